"""Stub libraries of an older glibc: zig, a glibc and a machine come in, libraries go out.

zig carries the symbol tables of every glibc and writes from them the libraries that a link needs:
symbols with their versions and no code, and the static remainder of libc (``atexit``, the ``stat``
family, ``pthread_atfork``), which programs of that glibc hold themselves. The ziglang wheel is how
zig comes from PyPI.
"""

import base64
import importlib.metadata
import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import CouldNotLookError
from wheelfarm.model.versions import Minor
from wheelfarm.run import ProgramFailedError, run

#: The libraries that glibc is made of, as a link names them: name after ``-l`` -> file.
LIBRARIES = {
    "c": "libc.so.6",
    "m": "libm.so.6",
    "pthread": "libpthread.so.0",
    "dl": "libdl.so.2",
    "rt": "librt.so.1",
    "util": "libutil.so.1",
    "resolv": "libresolv.so.2",
}
#: The loader's own symbols (``__tls_get_addr``); zig names the file by its way of linking.
LOADER = "libld.so.2"
REMAINDER = "libc_nonshared.a"

#: Since glibc 2.34 these are parts of libc itself, and empty files beside it.
MOVED = ("pthread", "dl", "rt", "util")
_WHEN_MOVED = Minor(2, 34)

_PROGRAM = "zig"
_TABLES = "lib/libc/glibc/abilists"
_HINT = "pip install 'wheelfarm[floor]', or state `floor: native` to build for this machine's glibc"


@dataclass(frozen=True, kw_only=True, slots=True)
class StubSource:
    """The program that writes stub libraries: where it is, and what its wheel says of it.

    ``sha256`` holds the digests that the wheel's RECORD names for the program and for its table of
    glibc's symbols, urlsafe base64 as there.
    """

    folder: Path
    version: str
    sha256: dict[str, str]

    def __str__(self) -> str:
        """Return the source's name and version."""
        return f"ziglang {self.version}"


def library_files(glibc: Minor) -> tuple[str, ...]:
    """Return the files of a glibc's libraries that hold any symbol, the loader's the last."""
    moved = MOVED if glibc >= _WHEN_MOVED else ()
    return (*(file for name, file in LIBRARIES.items() if name not in moved), LOADER)


def stub_source() -> StubSource:
    """Return the installed ziglang; CouldNotLookError where there is none, or no whole one."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        message = "ziglang, which writes the libraries of an older glibc, is not installed"
        raise CouldNotLookError(message, hint=_HINT)
    folder = Path(spec.origin).parent
    try:
        distribution = importlib.metadata.distribution("ziglang")
    except importlib.metadata.PackageNotFoundError as error:
        message = f"the ziglang of {folder} has no metadata, so nothing says that it is whole"
        raise CouldNotLookError(message, hint=_HINT) from error
    digests = {
        str(file).removeprefix("ziglang/"): file.hash.value
        for file in distribution.files or ()
        if file.hash is not None and str(file) in {f"ziglang/{_PROGRAM}", f"ziglang/{_TABLES}"}
    }
    if len(digests) != len((_PROGRAM, _TABLES)):
        message = f"the RECORD of ziglang {distribution.version} names no digest of its program"
        raise CouldNotLookError(message, hint=_HINT)
    return StubSource(folder=folder, version=distribution.version, sha256=digests)


def write_stubs(source: StubSource, *, glibc: Minor, machine: str, folder: Path) -> None:
    """Write a glibc's stub libraries and its static remainder into ``folder``.

    Raises CouldNotLookError where zig is not what its wheel holds, or knows no such glibc.
    """
    for name, expected in source.sha256.items():
        digest = bytes.fromhex(files.sha256(source.folder / name))
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != expected:
            message = f"{source.folder / name} is not what {source} holds: its digest differs"
            raise CouldNotLookError(message, hint="reinstall it: pip install --force-reinstall")
    with tempfile.TemporaryDirectory(prefix="wheelfarm-zig-") as temporary:
        made = Path(temporary)
        (made / "empty.c").write_text("", encoding="utf-8")
        command = [
            str(source.folder / _PROGRAM), "build-lib", "-dynamic", "-lc",
            "-target", f"{machine}-linux-gnu.{glibc}", "-O", "ReleaseSmall",
            "-fno-compiler-rt", "-fno-ubsan-rt", "--name", "empty", "empty.c",
        ]  # fmt: skip
        environment = {
            "HOME": temporary,
            "ZIG_GLOBAL_CACHE_DIR": str(made / "global"),
            "ZIG_LOCAL_CACHE_DIR": str(made / "local"),
        }
        try:
            run(command, cwd=made, env=environment)
        except ProgramFailedError as error:
            message = f"{source} wrote no libraries of glibc {glibc} for {machine}"
            raise CouldNotLookError(message, cause=error.cause or str(error)) from error
        for name in (*library_files(glibc), REMAINDER):
            found = list((made / "global").rglob(name))
            if len(found) != 1:
                message = f"{source} wrote {len(found)} files {name}, expected one"
                raise CouldNotLookError(message, hint="another release of ziglang may do")
            files.copy(found[0], folder / name)
