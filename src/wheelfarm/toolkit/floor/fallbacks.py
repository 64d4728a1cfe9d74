"""What is newer than a floor and has an answer below it: sources in, a static library out.

Each file of the folder ``fallbacks`` says what its functions mean. All symbols are hidden: a module
that links them exports nothing more. All are weak: a project's own functions come first.
"""

import hashlib
from pathlib import Path

from wheelfarm.run import run
from wheelfarm.toolkit.floor.binutils import HostCompiler

ARCHIVE = "libfallbacks.a"
_SOURCES = Path(__file__).with_name("fallbacks")
#: A checked strlcpy must not become its own caller, and an LTO object hides what it holds.
_FLAGS = (
    "-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fno-lto", "-fno-builtin",
    "-U_FORTIFY_SOURCE",
)  # fmt: skip
#: What the sources of each suffix are.
_LANGUAGES = {".c": ("-x", "c", "-std=gnu11"), ".cpp": ("-x", "c++", "-std=gnu++11")}


def sources() -> tuple[Path, ...]:
    """Return the C and C++ files, sorted."""
    return tuple(sorted(path for path in _SOURCES.iterdir() if path.suffix in _LANGUAGES))


def digest() -> str:
    """Return one SHA-256 of all sources."""
    total = hashlib.sha256()
    for path in sources():
        total.update(path.name.encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def write_fallbacks(compiler: HostCompiler, folder: Path) -> None:
    """Compile the fallbacks into one archive in ``folder``."""
    objects = []
    for source in sources():
        target = folder / f"{source.stem}.o"
        run([compiler.program, *_LANGUAGES[source.suffix], *_FLAGS, "-c", source, "-o", target])
        objects.append(target)
    run([compiler.tool("ar"), "rcsD", folder / ARCHIVE, *objects])
    # A project may have a function of the same name: its own then counts, and is no second one.
    run([compiler.tool("objcopy"), "--weaken", folder / ARCHIVE])
    for path in objects:
        path.unlink()
