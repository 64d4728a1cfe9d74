"""Prepare the seat: compilers, toolkit, cache and part come in, a folder and variables go out.

The folder holds launchers under the compilers' names (``bin``), a CUDA root in which only nvcc is
the seat's (``toolkit``), the seat's program, and what it writes: the log of all calls
(``calls.jsonl``), the inputs of each unit, and the calls that it stood in for.
"""

import __future__

import hashlib
import marshal
import os
import py_compile
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wheelfarm import files
from wheelfarm.build.cache import CompilerCache
from wheelfarm.errors import CouldNotLookError
from wheelfarm.run import find_program, run
from wheelfarm.toolkit.floor.prepare import Floor

if TYPE_CHECKING:
    from types import CodeType

#: Raised when the form of the calls that reach the cache changes: older results are then not used.
FORMAT = 2
#: What the empty object carries, so that it is known wherever it ends up.
STUB_MARK = b"wheelfarm-seat-empty-object"

Mode = Literal["plain", "census", "shard", "link"]

_HOST = re.compile(r"(?:[a-z0-9_]+-linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-\d+)?")
#: The seat's modules, each after those that it imports.
_MODULES = (
    "seat_arguments",
    "seat_files",
    "seat_paths",
    "seat_probe",
    "seat_record",
    "seat_run",
    "seat_floor",
    "seat",
)
_FUTURE = "\nfrom __future__ import annotations\n"
_WRITTEN = ("work", "inputs", "stubbed")
_TOOLS = ("bin/nvcc", "nvvm/bin/cicc", "bin/ptxas", "bin/cudafe++", "bin/fatbinary", "bin/nvlink")
#: One read instead of a search along sys.path for each module: a compile has no time to spare.
_MAIN = """\
import marshal, os, sys
with open({bundle!r}, "rb") as stream:
    modules = marshal.load(stream)
for name, code in modules:
    module = sys.modules[name] = type(sys)(name)
    if code is None:
        module.__path__ = []
    else:
        exec(code, module.__dict__)
status = sys.modules["wheelfarm.build.seat"].main(sys.argv[1:])
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""
_SHIM = """\
#!/bin/sh
# Stands before the machine's {name}, which a build system may find and use behind the seat's back.
while [ $# -gt 0 ]; do
  case "$1" in
    -*) echo "{name} version 0 (passes calls through)"; exit 0 ;;
    *=*) shift ;;
    *) exec "$@" ;;
  esac
done
"""
_STUB = """\
    .section .wheelfarm_stub,"a",@progbits
    .ascii "{mark}"
    .section .note.GNU-stack,"",@progbits
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeatPart:
    """Which part of a build this job has.

    ``plain`` compiles everything; ``census`` nothing; ``shard`` the units that ``units`` gives to
    ``shard`` (from 1; 0 gives a unit to every shard) of ``shards``; ``link`` everything, and it
    expects the shards' results in the cache.
    """

    mode: Mode = "plain"
    shard: int = 0
    shards: int = 1
    units: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class SeatSpec:
    """What a seat is prepared from.

    ``root`` is the build root: the source tree and ``folder`` lie in it. ``toolkit`` is a CUDA root
    (None for a build without CUDA). ``folders`` are the folders of the environment that differ from
    machine to machine, each under the stable name by which units see it. ``path`` is where host
    compilers are looked for. Shared libraries are linked at ``floor`` where there is one.
    """

    root: Path
    folder: Path
    toolkit: Path | None
    folders: Mapping[str, Path] = field(default_factory=dict)
    cache: CompilerCache | None = None
    part: SeatPart = SeatPart()
    path: str = os.defpath
    c_compiler: str = "gcc"
    cxx_compiler: str = "g++"
    floor: Floor | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """A prepared seat.

    ``environment`` is to be merged into the build's; ``bin`` goes first on its PATH; ``cuda_home``
    takes the place of the toolkit; ``identity`` is the hash of all compilers; ``log`` is what
    ``calls.read_calls`` reads.
    """

    folder: Path
    bin: Path
    cuda_home: Path | None
    log: Path
    identity: str
    environment: Mapping[str, str]


def prepare_seat(spec: SeatSpec) -> Seat:
    """Prepare the seat's folder anew and return it.

    Raises CouldNotLookError where a compiler that the build needs is not there.
    """
    root = Path(os.path.realpath(spec.root))
    folder = root / os.path.relpath(os.path.realpath(spec.folder), root)
    files.remove(folder)
    for name in ("bin", "links", "temporary", *_WRITTEN):
        (folder / name).mkdir(parents=True)
    tools = _tools(spec)
    identity = _write_identity(spec, folder)
    folders = _link_folders(spec, folder)
    config = {
        "mode": spec.part.mode,
        "shard": spec.part.shard,
        "shards": spec.part.shards,
        "units": dict(spec.part.units),
        "root": str(root),
        "folder": str(folder),
        "bin": str(folder / "bin"),
        "links": str(folder / "links"),
        "folders": folders,
        "temporary": [str(folder / "temporary"), "/tmp"],  # noqa: S108 - where others put folders
        "log": str(folder / "calls.jsonl"),
        "stub": _make_stub(folder, spec),
        "host": tools[spec.cxx_compiler]["path"],
        "names_source": _names_source(spec.toolkit),
        "tools": tools,
        "cache": _cache_config(spec, folder),
        "floor": _floor_config(spec.floor),
    }
    (folder / "seat.config").write_bytes(marshal.dumps(config))
    _write_program(folder)
    for tool in tools:
        _write_launcher(folder, folder / "bin" / tool, tool)
    cuda_home = _make_toolkit(spec, folder)
    for name in ("ccache", "sccache"):
        _write_executable(folder / "bin" / name, _SHIM.format(name=name))
    (folder / "calls.jsonl").touch()
    return Seat(
        folder=folder,
        bin=folder / "bin",
        cuda_home=cuda_home,
        log=folder / "calls.jsonl",
        identity=identity,
        environment=_environment(spec, folder, cuda_home),
    )


def _environment(spec: SeatSpec, folder: Path, cuda_home: Path | None) -> dict[str, str]:
    launchers = folder / "bin"
    result = {
        "CC": str(launchers / spec.c_compiler),
        "CXX": str(launchers / spec.cxx_compiler),
        "TMPDIR": str(folder / "temporary"),
        # torch 2.14 prepends a cache that it finds on PATH, and the empty objects would enter it.
        "TORCH_NO_COMPILER_WRAPPER": "1",
        "CCACHE_DISABLE": "1",
    }
    if cuda_home is not None:
        nvcc = str(launchers / "nvcc")
        result |= {"PYTORCH_NVCC": nvcc, "CUDACXX": nvcc, "CUDAHOSTCXX": result["CXX"]}
        result |= {"CUDA_HOME": str(cuda_home), "CUDA_PATH": str(cuda_home)}
    return result


def _tools(spec: SeatSpec) -> dict[str, dict[str, str]]:
    """Return launcher name -> role and real program, for every compiler that a build may name."""
    tools: dict[str, dict[str, str]] = {}
    for directory in spec.path.split(os.pathsep):
        if os.path.isdir(directory):
            for name in sorted(os.listdir(directory)):
                path = os.path.join(directory, name)
                if _HOST.fullmatch(name) and os.access(path, os.X_OK) and "ccache" not in directory:
                    tools.setdefault(name, {"role": "host", "path": path})
    for name in (spec.c_compiler, spec.cxx_compiler):
        if name not in tools:
            message = f"there is no {name} on {spec.path}"
            raise CouldNotLookError(message, hint="Debian, Ubuntu: apt-get install g++")
    if spec.toolkit is not None:
        nvcc = spec.toolkit / "bin" / "nvcc"
        if not nvcc.exists():
            message = f"there is no nvcc at {nvcc}"
            raise CouldNotLookError(message, hint="install cuda-toolkit[nvcc] into the environment")
        tools["nvcc"] = {"role": "nvcc", "path": str(nvcc)}
    return tools


def _link_folders(spec: SeatSpec, folder: Path) -> list[tuple[str, str]]:
    """Make one link per folder of the environment; return (folder, link name), longest first."""
    known = {**spec.folders, **({"toolkit": spec.toolkit} if spec.toolkit is not None else {})}
    pairs: dict[str, str] = {}
    for name, target in known.items():
        (folder / "links" / name).symlink_to(target.absolute())
        for spelling in (os.path.abspath(target), os.path.realpath(target)):
            pairs.setdefault(spelling, name)
    return sorted(pairs.items(), key=lambda pair: (-len(pair[0]), pair))


def _make_toolkit(spec: SeatSpec, folder: Path) -> Path | None:
    """Make a CUDA root whose ``bin/nvcc`` is the seat; everything else is the toolkit's own."""
    if spec.toolkit is None:
        return None
    view = folder / "toolkit"
    (view / "bin").mkdir(parents=True)
    for entry in sorted(spec.toolkit.iterdir()):
        if entry.name != "bin":
            (view / entry.name).symlink_to(entry.absolute())
    for entry in sorted((spec.toolkit / "bin").iterdir()):
        if entry.name != "nvcc":
            (view / "bin" / entry.name).symlink_to(entry.absolute())
    _write_launcher(folder, view / "bin" / "nvcc", "nvcc")
    return view


def _cache_config(spec: SeatSpec, folder: Path) -> dict[str, object] | None:
    if spec.cache is None:
        return None
    environment = spec.cache.environment(folder / "identity")
    return {
        "kind": spec.cache.kind,
        "program": str(spec.cache.program),
        "environment": environment,
    }


def _floor_config(floor: Floor | None) -> dict[str, str] | None:
    if floor is None:
        return None
    return {
        "folder": str(floor.folder),
        "libstdcxx": floor.libstdcxx,
        **{name: str(floor.compiler.tool(name)) for name in ("objdump", "nm", "c++filt")},
    }


def _write_identity(spec: SeatSpec, folder: Path) -> str:
    """Write the file of the compilers' hashes (no paths: it is alike on all machines)."""
    lines = [f"seat {FORMAT}"]
    for name, path in _compiler_parts(spec):
        lines.append(f"{name} {files.sha256(path)}")
    text = "\n".join(lines) + "\n"
    (folder / "identity").write_text(text, encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def _compiler_parts(spec: SeatSpec) -> Iterator[tuple[str, Path]]:
    for compiler in (spec.c_compiler, spec.cxx_compiler):
        program = find_program(compiler, path=spec.path)
        yield compiler, program
        for part in ("cc1", "cc1plus", "as"):
            named = run([program, f"-print-prog-name={part}"], check=False).stdout.strip()
            found = Path(named) if os.path.isabs(named) else None
            if part == "as" and found is None:
                found = find_program("as", path=spec.path)
            if found is not None and found.is_file():
                yield f"{compiler} {part}", found
    if spec.toolkit is not None:
        for tool in _TOOLS:
            path = spec.toolkit / tool
            if not path.is_file():
                message = f"the toolkit has no {tool}: {spec.toolkit}"
                raise CouldNotLookError(
                    message, hint="its nvcc, nvvm and crt parts belong together"
                )
            yield tool, path
        for name in ("bin/nvcc.profile", "nvvm/libdevice/libdevice.10.bc"):
            if (spec.toolkit / name).is_file():
                yield name, spec.toolkit / name


def _names_source(toolkit: Path | None) -> bool:
    """Return whether the toolkit's cudafe++ can be told the path that its symbols are made from."""
    if toolkit is None:
        return False
    return b"orig_src_path_name" in (toolkit / "bin" / "cudafe++").read_bytes()


def _make_stub(folder: Path, spec: SeatSpec) -> bytes:
    """Return an object of this machine's architecture that holds nothing but its mark."""
    source, target = folder / "stub.s", folder / "stub.o"
    source.write_text(_STUB.format(mark=STUB_MARK.decode()), encoding="utf-8")
    compiler = find_program(spec.c_compiler, path=spec.path)
    run([compiler, "-c", source, "-o", target], env={"PATH": spec.path})
    return target.read_bytes()


def _write_program(folder: Path) -> None:
    """Compile the seat into the folder: a start that compiled it each time would cost 20 ms."""
    program = folder / "program"
    program.mkdir()
    here = Path(__file__).parent
    modules: list[tuple[str, CodeType | None]] = [("wheelfarm", None), ("wheelfarm.build", None)]
    for name in _MODULES:
        source = here / f"{name}.py"
        # Annotations stay text, without the import of __future__ at each start.
        text = source.read_text(encoding="utf-8").replace(_FUTURE, "\n")
        flags = __future__.annotations.compiler_flag
        code = compile(text, str(source), "exec", flags=flags, dont_inherit=True, optimize=2)
        modules.append((f"wheelfarm.build.{name}", code))
    (program / "bundle").write_bytes(marshal.dumps(modules))
    main = program / "main.py"
    main.write_text(_MAIN.format(bundle=str(program / "bundle")), encoding="utf-8")
    py_compile.compile(
        str(main),
        cfile=str(program / "main.pyc"),
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _write_launcher(folder: Path, path: Path, tool: str) -> None:
    python = os.path.realpath(sys.executable)
    words = [python, "-I", "-S", str(folder / "program" / "main.pyc"), str(folder / "seat.config")]
    _write_executable(path, f'#!/bin/sh\nexec {shlex.join([*words, tool])} "$@"\n')


def _write_executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
