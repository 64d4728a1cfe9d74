"""JIT builds against the wheels: what is built, what hits, what is built anew, what is refused."""

import os
import signal
import subprocess
import textwrap
from pathlib import Path

import elftools
import pytest

from tests.toolkit import trees

pytestmark = [pytest.mark.compile, pytest.mark.torch]

SOURCE_FOLDER = Path(__file__).parents[2] / "src"
#: A Python module without torch's headers, which cost a minute; it asks the runtime its version.
MODULE = """\
#include <Python.h>
#include <cuda_runtime_api.h>
#include "answer.h"
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)
static PyObject *version(PyObject *, PyObject *) {
    int number = 0;
    cudaRuntimeGetVersion(&number);
    return PyLong_FromLong(number);
}
static PyObject *answer(PyObject *, PyObject *) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {
    {"version", version, METH_NOARGS, 0}, {"answer", answer, METH_NOARGS, 0}, {0, 0, 0, 0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(TORCH_EXTENSION_NAME), 0, -1, methods};
PyMODINIT_FUNC JOIN(PyInit_, TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""
#: What every script below starts with.
HEAD = """\
import glob, json, logging, os, sys
from pathlib import Path
from wheelfarm.toolkit import load, load_inline
from wheelfarm.errors import WheelfarmError
work = Path(sys.argv[1])
def module(**more):
    return load("tiny", work / "tiny.cpp", **more)
def results():
    return sorted(glob.glob(str(work / "cache/jit/v1/tiny/*/result-*")))
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "tiny.cpp").write_text(MODULE)
    (tmp_path / "answer.h").write_text("#define ANSWER 41\n")
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "elftools").symlink_to(Path(elftools.__file__).parent)
    # Who calls any nvcc of the machine is found out.
    trees.executable(
        tmp_path / "bin" / "nvcc",
        f"#!/bin/sh\necho called >> {tmp_path}/nvcc-called\nexit 97\n",
    )
    return tmp_path


def variables(work: Path, **more: str) -> dict[str, str]:
    return {
        "HOME": str(work / "home"),
        "PATH": f"{work / 'bin'}:/usr/bin:/bin",
        "PYTHONPATH": f"{SOURCE_FOLDER}:{work / 'packages'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "WHEELFARM_CACHE": str(work / "cache"),
        "WHEELFARM_CUDA_FROM_WHEELS": "1",
        **more,
    }


def run(python: Path, work: Path, script: str, **more: str) -> str:
    completed = subprocess.run(
        [python, "-c", HEAD + textwrap.dedent(script), str(work)],
        check=False,
        capture_output=True,
        text=True,
        env=variables(work, **more),
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def built(work: Path) -> list[Path]:
    return sorted(work.glob("cache/jit/v1/tiny/*/result-*"))


def test_contents_decide_and_nothing_else(torch_python: Path, work: Path) -> None:
    """One process: cold, same, new times, one byte changed under an old time, and back."""
    output = run(
        torch_python,
        work,
        """
        first = module()
        assert (first.version(), first.answer()) == (13000, 41)
        assert module() is first and len(results()) == 1
        for name in ("tiny.cpp", "answer.h"):
            os.utime(work / name, (1, 1))
        assert module() is first and len(results()) == 1
        # One byte, the same size, an older time.
        (work / "answer.h").write_text("#define ANSWER 42\\n")
        os.utime(work / "answer.h", (0, 0))
        second = module()
        assert second.answer() == 42 and len(results()) == 2
        (work / "answer.h").write_text("#define ANSWER 41\\n")
        assert module() is first and len(results()) == 2
        module(extra_cflags=["-DX"])
        assert len(results()) == 3
        print("done", first.__file__)
        """,
    )
    assert output.startswith("done")
    assert not (work / "nvcc-called").exists()
    library = Path(output.split(maxsplit=1)[1])
    alone_and_injected(torch_python, library)
    warm_without_torchs_builder(torch_python, work)


def alone_and_injected(python: Path, library: Path) -> None:
    """The library loads by itself, before and after torch and under LD_PRELOAD."""
    use = f"found = ctypes.CDLL({str(library)!r})"
    for order in (f"import ctypes; {use}; import torch", f"import ctypes, torch; {use}"):
        load = f"{order}; print(hasattr(found, 'PyInit_tiny'))"
        clean = subprocess.run(
            [python, "-c", load], check=True, capture_output=True, text=True, env={}
        )
        assert clean.stdout.strip() == "True"
    listing = subprocess.run(
        ["ldd", library], check=True, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    ).stdout
    runtime = next(line for line in listing.splitlines() if "libcudart.so.13" in line)
    assert "nvidia/cu13/lib/libcudart.so.13" in runtime
    injected = subprocess.run(
        [python, "-c", "print('up')"],
        check=True,
        capture_output=True,
        text=True,
        env={"LD_PRELOAD": str(library)},
    )
    assert (injected.stdout.strip(), injected.stderr) == ("up", "")


def warm_without_torchs_builder(python: Path, work: Path) -> None:
    """A hit in another process, from the environment under another name, builds nothing."""
    prefix = subprocess.run(
        [python, "-c", "import sys; print(sys.prefix)"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (work / "other-name").symlink_to(prefix)
    before = built(work)
    output = run(
        work / "other-name" / "bin" / "python",
        work,
        """
        found = module()
        assert sys.prefix.endswith("other-name"), sys.prefix
        print(found.answer(), "torch.utils.cpp_extension" in sys.modules)
        """,
    )
    assert output == "41 False"
    assert built(work) == before


def test_two_processes_build_once(torch_python: Path, work: Path) -> None:
    script = HEAD + "print(module().__file__)\n"
    processes = [
        subprocess.Popen(
            [torch_python, "-c", script, str(work)],
            stdout=subprocess.PIPE,
            text=True,
            env=variables(work),
        )
        for _ in range(2)
    ]
    answers = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert answers[0] == answers[1]
    assert len(built(work)) == 1


def test_a_killed_build_is_never_loaded(torch_python: Path, work: Path) -> None:
    """The compiler stops half-way, everything is killed, and the next process builds anew."""
    fifo = work / "started"
    os.mkfifo(fifo)
    compiler = trees.executable(
        work / "bin" / "slow-c++",
        f'#!/bin/sh\ncase "$*" in *-shared*)\n'
        f"  if [ -e {work}/stop ]; then\n"
        f"    for word; do case $word in *.so) echo half > $word;; esac; done\n"
        f'    echo $$ > {fifo}; exec sleep 600\n  fi;; esac\nexec c++ "$@"\n',
    )
    (work / "stop").touch()
    process = subprocess.Popen(
        [torch_python, "-c", HEAD + "module()\n", str(work)],
        env=variables(work, CXX=str(compiler)),
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    stopped = int(fifo.read_text())
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # The compiler leads a session of its own.
    os.kill(stopped, signal.SIGKILL)
    (leftover,) = built(work)
    assert (leftover / "tiny.so").read_text() == "half\n"

    (work / "stop").unlink()
    assert run(torch_python, work, "print(module().answer())", CXX=str(compiler)) == "41"
    assert not leftover.exists()
    assert len(built(work)) == 1


def test_an_environment_that_moved_is_named(torch_python: Path, work: Path) -> None:
    """A library whose wheels moved says which folder is gone."""
    wheels = work / "env" / "nvidia" / "cu13" / "lib"
    wheels.mkdir(parents=True)
    empty = ["gcc", "-shared", "-x", "c", "/dev/null"]
    # A name of its own: the machine's loader may know another libcudart.
    name = "libonlyhere.so.13"
    subprocess.run([*empty, f"-Wl,-soname,{name}", "-o", str(wheels / name)], check=True)
    library = work / "moved.so"
    link = ["-Wl,--no-as-needed", f"-L{wheels}", f"-l:{name}", f"-Wl,-rpath,{wheels}"]
    subprocess.run([*empty, "-o", str(library), *link], check=True)
    script = f"""
        from wheelfarm.toolkit import load_library
        try:
            load_library(Path({str(library)!r}))
            print("loads")
        except WheelfarmError as error:
            print(error)
        """
    assert run(torch_python, work, script) == "loads"
    (work / "env").rename(work / "env-moved")
    output = run(torch_python, work, script)
    assert "the folders that it was built against moved or were removed" in output
    assert str(wheels) in output
    assert "not found: libonlyhere.so.13" in output


def test_device_code_is_built_by_the_wheels_own_nvcc(torch_python: Path, work: Path) -> None:
    """A .cu source: nvcc through the view, cudart by the view's unversioned name."""
    (work / "kernel.cu").write_text(
        "#include <cuda_runtime.h>\n__global__ void kernel(int *out) { *out = 1; }\n"
        'extern "C" int launch() { kernel<<<1, 1>>>(nullptr); return (int)cudaGetLastError(); }\n'
    )
    before = frozen(torch_python)
    output = run(
        torch_python,
        work,
        """
        import ctypes
        try:
            load("tiny", work / "kernel.cu", is_python_module=False)
        except WheelfarmError as error:
            print(error)
        os.environ["TORCH_CUDA_ARCH_LIST"] = "9.9"
        try:
            load("tiny", work / "kernel.cu", is_python_module=False)
        except WheelfarmError as error:
            print(error)
        os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"
        path = load("tiny", work / "kernel.cu", is_python_module=False)
        print("launch", ctypes.CDLL(path).launch() != 0)
        """,
    )
    assert "set TORCH_CUDA_ARCH_LIST" in output
    assert "Unknown CUDA arch (9.9)" in output
    assert output.endswith("launch True")
    assert not (work / "nvcc-called").exists()
    assert frozen(torch_python) == before


def frozen(python: Path) -> list[str]:
    """Names in the wheels' folder: nothing is ever added there."""
    script = "import nvidia, os; print(sorted(os.listdir(nvidia.__path__[0] + '/cu13/lib')))"
    return subprocess.run(
        [python, "-c", script], check=True, capture_output=True, text=True
    ).stdout.split()


def test_texts_and_what_is_refused(torch_python: Path, work: Path) -> None:
    """One process: sources as text, a compile error, a wrong mode, a wrong name."""
    (work / "text.cpp").write_text(MODULE.replace('#include "answer.h"', "#define ANSWER 7"))
    (work / "wrong.cpp").write_text("#include <cuda_runtime_api.h>\nint f() { return oops; }\n")
    output = run(
        torch_python,
        work,
        """
        text = (work / "text.cpp").read_text()
        inline = lambda: load_inline("tiny", text, no_implicit_headers=True)
        first = inline()
        print(first.answer(), inline() is first, len(results()))
        def refused(action):
            try:
                action()
            except WheelfarmError as error:
                print(error.exit_code, error)
        refused(lambda: load("tiny", work / "wrong.cpp"))
        assert len(results()) == 1
        os.environ["WHEELFARM_CUDA_FROM_WHEELS"] = "perhaps"
        refused(inline)
        refused(lambda: load("no/name", work / "tiny.cpp"))
        """,
    )
    lines = output.splitlines()
    assert lines[:2] == ["7 True 1", "3 the extension 'tiny' does not build"]
    assert "wrong.cpp:2:" in output
    log = next(Path(line.split("log: ")[1]) for line in lines if "log: " in line)
    assert "oops" in log.read_text()
    assert "4 WHEELFARM_CUDA_FROM_WHEELS=perhaps is invalid" in output
    assert "4 'no/name' is no name of an extension module" in output
    assert "  CUDA: " in output
    assert "(CUDA 13.0, wheels, found by sys.path)" in output


def test_a_systems_toolkit_never_wins_in_silence(torch_python: Path, work: Path) -> None:
    """In mode auto it is taken as before, and said; a warm load has nothing to say."""
    cli = [str(torch_python), "-m", "wheelfarm", "toolkit", "home", "--to", str(work / "system")]
    subprocess.run(cli, check=True, capture_output=True, env=variables(work))
    auto = {"WHEELFARM_CUDA_FROM_WHEELS": "", "CUDA_HOME": str(work / "system")}
    script = """
        handler = logging.StreamHandler(sys.stdout)
        logging.getLogger("wheelfarm").addHandler(handler)
        print("answer", module().answer())
        """
    cold = run(torch_python, work, script, **auto)
    assert f"'tiny' is built with {work}/system (CUDA 13.0, system, found by CUDA_HOME)" in cold
    assert "WHEELFARM_CUDA_FROM_WHEELS=1 takes the wheels of " in cold
    assert "nvidia/cu13" in cold.partition("wheels of ")[2]
    assert run(torch_python, work, script, **auto) == "answer 41"


def test_a_compiler_with_words_around_it(torch_python: Path, work: Path) -> None:
    """CXX may be a command line: its arguments count, a launcher before it does not run."""
    trees.executable(work / "bin" / "ccache", f"#!/bin/sh\ntouch {work}/ccache-called\nexit 96\n")
    (work / "answer.h").write_text("#ifndef ANSWER\n#define ANSWER 41\n#endif\n")
    script = "print(module().answer(), len(results()))"
    assert run(torch_python, work, script) == "41 1"
    assert run(torch_python, work, script, CXX="ccache c++") == "41 1"
    assert run(torch_python, work, script, CXX="ccache c++ -DANSWER=7") == "7 2"
    assert not (work / "ccache-called").exists()
    refused = """
        try:
            module()
        except WheelfarmError as error:
            print(error.exit_code, error)
        """
    assert "4 CXX=c++ ' is invalid" in run(torch_python, work, refused, CXX="c++ '")
