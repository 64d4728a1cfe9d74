"""Mend what can be mended of a wheel without lying, write the result, and judge it again.

The file name says what the wheel is meant to be; METADATA, folders, WHEEL tags and RECORD follow
it. Only the platform tag is changed in the name itself, to the lowest one that the binaries make
true. What would have to be invented (a METADATA, a library, an architecture) is left alone.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.build.search_paths import relative_search_paths
from wheelfarm.build.wheel_file import Content, read_members, rename_version, write_wheel
from wheelfarm.errors import BadInputError
from wheelfarm.facts.manylinux import lowest_true
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.run import find_program, run
from wheelfarm.values import replace
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.library_checks import is_relative
from wheelfarm.verify.platform_checks import check_platform_tag
from wheelfarm.verify.report import Report
from wheelfarm.verify.subject import Subject

_ELF = b"\x7fELF"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mended:
    """A mended wheel: where it lies, what was done to it, and the reports before and after."""

    wheel: Path
    done: tuple[str, ...]
    before: Report
    after: Report


def mend_wheel(wheel: Path, folder: Path, *, strip: bool = True) -> Mended:
    """Write a mended copy of a wheel into ``folder``; the wheel itself is not touched.

    Raises BadInputError for what cannot be read as a wheel at all: no zip, a member named twice or
    outside of its folder, no METADATA, a file name that is no wheel's.
    """
    if folder.exists() and not folder.is_dir():
        message = f"{folder} is a file; results go into a folder"
        raise BadInputError(message, hint="name another folder with --out")
    before = verify_wheel(wheel)
    old = WheelName.parse(wheel.name)
    if wheel.resolve().parent == folder.resolve():
        message = f"{folder} is the wheel's own folder; the result could replace it"
        raise BadInputError(message, hint="name another folder with --out")
    members = read_members(wheel)
    done: list[str] = []
    members = _with_wheel_file(members, old, before, done)
    members = _binaries(members, before, strip=strip, done=done)
    new = _true_name(old, before, done)
    members = rename_version(members, old, new)
    result = write_wheel(folder, new, members)
    after = verify_wheel(result)
    done += _identity(before, after)
    return Mended(wheel=result, done=tuple(done), before=before, after=after)


def _identity(before: Report, after: Report) -> Iterator[str]:
    """Yield what rewriting the metadata mended: claimed only where the check passes now."""
    words = {
        "metadata": "wrote the file name's version into METADATA and the folders' names",
        "tags": "wrote the file name's tags into WHEEL",
        "record": "made RECORD anew from the bytes",
    }
    for identifier, word in words.items():
        check, now = before.check(identifier), after.check(identifier)
        if check is None or now is None or now.status != "pass":
            continue
        if check.status != "pass":
            yield f"{word} ({check.summary})"


def _with_wheel_file(
    members: dict[str, Content], name: WheelName, before: Report, done: list[str]
) -> dict[str, Content]:
    path = f"{before.facts.dist_info}/WHEEL"
    if not before.facts.dist_info or path in members:
        return members
    purelib = "false" if before.facts.binaries else "true"
    text = f"Wheel-Version: 1.0\nGenerator: wheelfarm\nRoot-Is-Purelib: {purelib}\n"
    done.append(f"wrote a WHEEL file with the tags of {name}")
    return {**members, path: Content(data=text.encode())}


def _true_name(name: WheelName, before: Report, done: list[str]) -> WheelName:
    check = check_platform_tag(Subject(facts=before.facts))
    if check is None or check.status == "pass":
        return name
    binaries = [binary for binary in before.facts.binaries if not binary.problem]
    lowest = lowest_true(binaries)
    machine = next((binary.machine for binary in binaries if binary.kind == "elf"), "x86_64")
    tag = f"linux_{machine}"
    if lowest is not None:
        tag = f"manylinux_{lowest.major}_{lowest.minor}_{machine}"
    if (tag,) == name.platforms:
        return name
    done.append(f"retagged {'.'.join(name.platforms)} as {tag} ({check.summary})")
    return replace(name, platforms=(tag,))


def _binaries(
    members: dict[str, Content], before: Report, *, strip: bool, done: list[str]
) -> dict[str, Content]:
    facts = before.facts
    readable = {binary.path: binary for binary in facts.binaries if not binary.problem}
    changed = dict(members)
    if strip:
        for path in sorted(readable):
            content = changed.get(path)
            if content is not None and content.data.startswith(_ELF):
                changed[path] = _stripped(path, content, done)
    wrong = {path for path, binary in readable.items() if _leads_elsewhere(binary)}
    subset = {path: changed[path] for path in sorted(wrong & set(changed))}
    for path, content in relative_search_paths(subset, cuda_major=facts.linkage.cuda_major).items():
        if content != changed[path]:
            was = ":".join((*readable[path].rpath, *readable[path].runpath))
            done.append(f"made the search path of {path} relative (it was {was})")
        changed[path] = content
    return changed


def _leads_elsewhere(binary: BinaryFacts) -> bool:
    return not all(map(is_relative, (*binary.rpath, *binary.runpath)))


def _stripped(path: str, content: Content, done: list[str]) -> Content:
    program = find_program("strip", hint="install binutils, or pass --no-strip")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "binary"
        file.write_bytes(content.data)
        if not run([program, "--strip-unneeded", file], check=False).ok:
            # A machine that this strip does not know keeps its symbols, which is no defect.
            return content
        data = file.read_bytes()
    if len(data) >= len(content.data):
        return content
    done.append(f"stripped {path} ({len(content.data) - len(data)} bytes)")
    return replace(content, data=data)
