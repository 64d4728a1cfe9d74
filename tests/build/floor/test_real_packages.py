"""Real code at a floor: torch's errors across the boundary, and a package from PyPI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.build.floor.conftest import FLOOR, Root, glibc_of
from wheelfarm.build.wheel_file import read_members
from wheelfarm.facts.elf import read_elf

ERRORS = """\
#include <c10/util/Exception.h>
#include <filesystem>
static std::string said;
extern "C" const char *catches() {
    // Thrown in libc10.so, caught here.
    try { TORCH_CHECK_INDEX(false, "out of range"); }
    catch (const c10::IndexError &error) { said = error.what_without_backtrace(); }
    // Thrown here as a class of libc10.so, caught as its base.
    try { throw c10::ValueError({"f", "file", 1}, "bad value"); }
    catch (const c10::Error &error) { said += std::string("; ") + error.what_without_backtrace(); }
    // A class that the floor's libstdc++ lacks.
    try { std::filesystem::file_size("/nonexistent/file"); }
    catch (const std::system_error &error) { said += error.code().value() == 2 ? "; absent" : "?"; }
    if (std::uncaught_exceptions() != 0) said += "; left over";
    return said.c_str();
}
"""


@pytest.mark.torch
def test_errors_of_torch_cross_the_boundary(static_root: Root, torch_python: Path) -> None:
    root = static_root
    probe = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    done = subprocess.run([torch_python, "-c", probe], check=True, capture_output=True, text=True)
    torch = Path(done.stdout.strip())
    root.write("made.cpp", ERRORS)
    flags = ["-std=c++20", "-O0", "-fPIC", f"-I{torch / 'include'}"]
    root.run("g++", *flags, "-c", "made.cpp", "-o", "made.o")
    words = [f"-L{torch / 'lib'}", "-lc10", f"-Wl,-rpath,{torch / 'lib'}"]
    root.run("g++", "-shared", "made.o", *words, "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    script = (
        "import ctypes, sys\nmade = ctypes.CDLL(sys.argv[1])\n"
        "made.catches.restype = ctypes.c_char_p\nprint(made.catches().decode())"
    )
    command = [sys.executable, "-c", script, str(root.path / "made.so")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "out of range; bad value; absent\n"


@pytest.mark.full
@pytest.mark.network
def test_indexed_bzip2(static_root: Root) -> None:
    """Threads, shared pointers, std::filesystem, exceptions and LTO, unmodified from PyPI."""
    root = static_root
    command = [
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-cache-dir",
        "--no-binary", "indexed_bzip2", "indexed_bzip2==1.7.0", "-w", str(root.path / "out"),
    ]  # fmt: skip
    environment = {**os.environ, **root.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (root.path / "out").glob("*.whl")
    facts = [
        read_elf(content.data, path)
        for path, content in read_members(wheel).items()
        if path.endswith(".so")
    ]
    lowest = glibc_of(facts[0])
    assert lowest is not None
    assert lowest <= FLOOR
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert f'"manylinux_{lowest.major}_{lowest.minor}_x86_64"' in shown.stdout
    script = """\
import bz2, os, sys, zipfile
zipfile.ZipFile(sys.argv[1]).extractall("unpacked")
sys.path.insert(0, "unpacked")
import indexed_bzip2
data = os.urandom(300_000) * 8
open("data.bz2", "wb").write(bz2.compress(data))
print(indexed_bzip2.open("data.bz2", parallelization=2).read() == data)
try:
    indexed_bzip2.open("absent")
except ValueError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, wheel],
        cwd=root.path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "True\nOpening file 'absent' with mode 'rb' failed!\n"
