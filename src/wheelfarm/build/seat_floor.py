"""Links at a glibc floor: a link's words come in, words with the floor's libraries go out.

Part of the seat (see ``seat_arguments``). Shared libraries alone are linked so; a program of the
build runs on the building machine. After the link everything that the result takes from the
system is compared with what the floor has (``limits``, as ``toolkit.floor`` writes it).
"""

from __future__ import annotations

import os
import sys

from wheelfarm.build.seat_files import remove
from wheelfarm.build.seat_run import run_program, wait_for

# The typing module is slow to import, and only a type checker needs it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from wheelfarm.build.seat import Seat
    from wheelfarm.build.seat_arguments import Command

#: Archives whose symbols a module keeps to itself.
_HIDDEN = ("libc_nonshared.a", "libfallbacks.a", "libstdc++.a")
#: Ways to ask for a shared library; the last is the linker's own.
_SHARED = frozenset(("-shared", "--shared", "-Bshareable"))
#: Options of links that make no shared library, though ``-shared`` may stand beside them.
_NOT_SHARED = frozenset(("-r", "-static", "-dlink", "-lib"))
#: The sets of versions, beside glibc's, that a manylinux policy promises.
_JUDGED = frozenset(("GLIBCXX", "CXXABI", "GCC", "LIBATOMIC", "ZLIB"))
_NO_VERSION = frozenset(("", "Base"))
#: Packed relative relocations: what they are called, objdump's line, and the glibc that reads them.
_PACKED = "DT_RELR"
_PACKED_TAG = "  RELR "
_PACKED_SINCE = "2.36"
_MOST_SHOWN = 10
_MOLD = (
    "`libstdcxx: static` with mold: mold takes symbols of libstdc++.a also where the shared "
    "library has them, and with LTO such a link fails; GNU ld, gold and lld (-fuse-ld=lld) link it"
)
_UNDEFINED = "*UND*"
_LATER_THAN_ALL = 1 << 30


def is_shared_link(command: Command) -> bool:
    """Return whether a link makes a shared library: not a program, nor an object of objects."""
    if _NOT_SHARED.intersection(command.options):
        return False
    passed = [word.split(",") for word in command.options if word.startswith("-Wl,")]
    return any(_SHARED.intersection(words) for words in (command.options, *passed))


def link(seat: Seat, command: Command, words: list[str]) -> tuple[int, float, int]:
    """Link a shared library at the floor; return exit status, seconds and peak KiB.

    A result that needs more than the floor has is removed, and what it needs is said. Of a link
    that failed it is said which symbols the floor lacks, since that is likely why.
    """
    floor = Floor(seat.config["floor"])
    environment = seat.environment_of_call()
    words = [seat.real, *floor.words(seat.tool, words)]
    status, seconds, peak = wait_for(words, environment)
    own = f"{seat.config['folder']}/work/{os.getpid()}-link"

    output = command.output or "a.out"
    if status == 0:
        listed = run_program([floor.objdump, "-p", "-T", output], environment, own)
        if listed.status != 0:
            sys.stderr.write(f"seat: error: {floor.objdump} cannot read {output}\n")
            return 1, seconds, peak
        faults = floor.faults(listed.out.decode(errors="replace"))
        wanted = set(faults)
    else:
        faults, wanted = {}, set(floor.symbols)
    found = [name for name in command.objects if ".so" not in name and os.path.isfile(name)]
    if wanted and found:
        # Its status is no answer: a linker script among the objects is none of nm's files.
        listed = run_program([floor.nm, "-A", "-u", *found], environment, own)
        users = users_of(listed.out.decode(errors="replace"), wanted)
    else:
        users = {}
    if status != 0:
        faults = {name: floor.symbols[name] for name in users}
        if floor.libstdcxx == "static" and _uses_mold(words):
            sys.stderr.write(f"seat: {_MOLD}\n")
    if not faults:
        return status, seconds, peak
    listed = run_program([floor.cxxfilt, *faults], environment, own)
    plain = dict(zip(faults, listed.out.decode(errors="replace").splitlines(), strict=False))
    sys.stderr.write(floor.message(output, faults, users, plain))
    if status == 0:
        remove(output)
    return status or 1, seconds, peak


def users_of(listing: str, names: set[str]) -> dict[str, str]:
    """Return the first object that takes each of some names, from what ``nm -A -u`` lists."""
    result: dict[str, str] = {}
    for line in listing.splitlines():
        words = line.split()
        if words and words[-1] in names:
            result.setdefault(words[-1], words[0].rstrip(":"))
    return result


class Floor:
    """A floor as the seat's configuration has it.

    ``folder`` holds the libraries to link with, ``objdump``, ``nm`` and ``cxxfilt`` are the
    compiler's own, ``libstdcxx`` is ``shared`` or ``static``.
    """

    __slots__ = (
        "allowed",
        "cxxfilt",
        "folder",
        "glibc",
        "later",
        "libstdcxx",
        "nm",
        "objdump",
        "symbols",
    )

    def __init__(self, config: dict[str, str]) -> None:
        self.folder = config["folder"]
        self.objdump = config["objdump"]
        self.nm = config["nm"]
        self.cxxfilt = config["c++filt"]
        self.libstdcxx = config["libstdcxx"]
        self.glibc = ""
        self.allowed: set[str] = set()
        self.later: dict[str, str] = {}
        self.symbols: dict[str, tuple[str, str]] = {}
        with open(f"{self.folder}/limits", encoding="utf-8") as stream:
            lines = stream.read().splitlines()
        for line in lines:
            kind, name, version, since = line.replace(" -", " ").split(" ")
            if kind == "floor":
                self.glibc = since
            elif kind == "allowed":
                self.allowed.add(name)
            elif kind == "later":
                self.later[name] = since
            else:
                self.symbols[name] = (version, since)

    def words(self, tool: str, words: list[str]) -> list[str]:
        """Return the words of a link by ``tool`` that finds the floor's libraries first."""
        before = []
        if self.libstdcxx == "static" and ("++" in tool or tool == "nvcc"):
            # An LTO object counts as no user of a library, and libstdc++.a would answer for all.
            library = f"{self.folder}/libstdc++.so.6"
            before = ["--push-state", "--no-as-needed", library, "--pop-state"]
        # The system's libstdc++ itself needs a newer glibc, which is no business of this link.
        # One option for each archive: mold 1.10 never ends over a list.
        after = ["--allow-shlib-undefined", *(f"--exclude-libs={name}" for name in _HIDDEN)]
        return ["-L", self.folder, *_passed(before), *words, *_passed(after)]

    def faults(self, listing: str) -> dict[str, tuple[str, str]]:
        """Return what a library takes that the floor lacks: symbol -> (version, glibc).

        ``listing`` is what ``objdump -p -T`` says of the library.
        """
        result: dict[str, tuple[str, str]] = {}
        for line in listing.splitlines():
            if line.startswith(_PACKED_TAG) and _numbers(_PACKED_SINCE) > _numbers(self.glibc):
                # An older loader leaves the addresses as they are, also where no version says so.
                result[_PACKED] = ("-z pack-relative-relocs", _PACKED_SINCE)
            head, _, tail = line.partition("\t")
            size, *names = tail.split() or [""]
            if not head.endswith(_UNDEFINED) or not size or not names:
                continue
            version = names[0].strip("()") if len(names) > 1 else ""
            if version in _NO_VERSION:
                # A weak symbol may stay without an answer: the code asks whether it has one.
                if "w" not in head.partition(" ")[2][:7] and names[-1] in self.symbols:
                    result[names[-1]] = self.symbols[names[-1]]
                continue
            since = self.since(version)
            if since is not None:
                result[names[-1]] = (version, since)
        return result

    def since(self, version: str) -> str | None:
        """Return the glibc from which on a version is there: None for one that the floor has.

        Empty for a version that no policy promises.
        """
        family, _, number = version.partition("_")
        if family == "GLIBC":
            return number if _numbers(number) > _numbers(self.glibc) else None
        if family in _JUDGED:
            return None if version in self.allowed else self.later.get(version, "")
        return None

    def message(
        self,
        output: str,
        faults: dict[str, tuple[str, str]],
        users: dict[str, str],
        plain: dict[str, str],
    ) -> str:
        """Return what is said of a link that the floor does not allow.

        ``users`` names an object for each symbol, ``plain`` is a symbol as C++ writes it.
        """
        lines = []
        for name in sorted(faults)[:_MOST_SHOWN]:
            version, since = faults[name]
            shown = plain.get(name, name)
            what = f"{shown} ({version})" if version else shown
            where = f", taken by {users[name]}" if name in users else ""
            there = f"there from glibc {since} on" if since else "promised by no manylinux tag"
            lines.append(f"error: {output} needs {what}{where}: not at floor {self.glibc}, {there}")
        if len(faults) > _MOST_SHOWN:
            lines.append(f"error: and {len(faults) - _MOST_SHOWN} more symbols")
        families = {version.partition("_")[0] for version, _ in faults.values()}
        if self.libstdcxx == "shared" and families & {"GLIBCXX", "CXXABI"}:
            lines.append(
                "`libstdcxx: static` in the recipe makes what is newer in libstdc++ a part of the "
                "module"
            )
        if all(since for _, since in faults.values()):
            needed = max((since for _, since in faults.values()), key=_numbers)
            lines.append(f"as it is, the module can be linked at floor {needed}")
        return "".join(f"seat: {line}\n" for line in lines)


def _uses_mold(words: list[str]) -> bool:
    """Return whether a link asks for mold; of several choices compilers take the last."""
    chosen = [word for word in words if "-fuse-ld=" in word or "--ld-path=" in word]
    return bool(chosen) and chosen[-1].endswith("mold")


def _passed(options: list[str]) -> list[str]:
    """Return the words by which a compiler passes options on to its linker."""
    return [word for option in options for word in ("-Xlinker", option)]


def _numbers(text: str) -> tuple[int, ...]:
    """Return a version's numbers; a name such as ABI_DT_RELR (glibc 2.36) is later than all."""
    parts = text.split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else (_LATER_THAN_ALL,)
