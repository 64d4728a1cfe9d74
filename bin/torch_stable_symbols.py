"""Write facts/data/torch_stable_symbols.json from the headers of torch wheels or environments.

Usage: python bin/torch_stable_symbols.py PATH...

Each PATH is a torch wheel (any platform: the headers are the same) or a folder that holds a
``torch`` package. A function belongs to the stable ABI when a header of the C shim declares it; its
first torch is the lowest minor whose headers do. To take up a new release, run with one wheel of
every minor from 2.4 on, for instance the macOS wheels, which are small:

    pip download --no-deps --platform macosx_14_0_arm64 --only-binary :all: torch==2.15.0
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).parents[1] / "src/wheelfarm/facts/data/torch_stable_symbols.json"
HEADERS = re.compile(
    r"torch/include/torch/csrc/"
    r"(stable/c/shim\.h|inductor/aoti_torch/c/shim\w*\.h|inductor/aoti_torch/generated/c_shim_\w+\.h)"
)
COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
EXPORT = re.compile(r"AOTI_TORCH_EXPORT\s+[\w:*&<>\s]*?\b(\w+)\s*\(")
#: The dtype and layout getters are declared by a macro that joins the name.
JOINED = re.compile(r"\b(aoti_torch_\w+)\s*\(\s*(?:void)?\s*\)\s*;")
VERSION = re.compile(r"^__version__ = '(\d+)\.(\d+)", re.MULTILINE)


def files(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the shim headers and version.py of a torch as (name, text)."""
    if path.is_file():
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if HEADERS.fullmatch(name) or name == "torch/version.py":
                    yield name, wheel.read(name).decode()
        return
    for file in (path / "torch").rglob("*"):
        name = file.relative_to(path).as_posix()
        if HEADERS.fullmatch(name) or name == "torch/version.py":
            yield name, file.read_text()


def declared(text: str) -> set[str]:
    """Return the functions that a header exports."""
    plain = COMMENTS.sub(" ", text)
    found = set(EXPORT.findall(plain)) | set(JOINED.findall(plain))
    return {name for name in found if not name.startswith("__")}


def main() -> None:
    """Read every torch that was named and write the data file."""
    first: dict[str, tuple[int, int]] = {}
    seen = []
    for path in map(Path, sys.argv[1:]):
        names: set[str] = set()
        minor: tuple[int, int] | None = None
        for name, text in files(path):
            if name == "torch/version.py":
                match = VERSION.search(text)
                minor = None if match is None else (int(match[1]), int(match[2]))
            else:
                names |= declared(text)
        if minor is None or not names:
            sys.exit(f"{path} holds no torch with shim headers")
        seen.append(minor)
        for name in names:
            first[name] = min(minor, first.get(name, minor))
    groups: dict[str, list[str]] = {}
    for minor in sorted(set(first.values())):
        text = f"{minor[0]}.{minor[1]}"
        groups[text] = sorted(name for name, since in first.items() if since == minor)
    document = {
        "schema": "wheelfarm.torch-stable-symbols/1",
        "source": "C shim headers of the torch wheels on PyPI",
        "read": [f"{major}.{minor}" for major, minor in sorted(seen)],
        "since": groups,
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(document, indent=1) + "\n")
    print({text: len(names) for text, names in groups.items()})


if __name__ == "__main__":
    main()
