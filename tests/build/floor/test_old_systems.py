"""What was linked at a floor, loaded by older systems: unpacked packages, run in place.

Debian 11 has glibc 2.31 and Python 3.9; aarch64 programs run in qemu's user mode. Both are fetched
from the distribution, and skipped where it no longer has them.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.build.floor.conftest import FLOOR, MakeFloor, Root, glibc_of
from tests.build.floor.test_links import THREADS
from wheelfarm.toolkit.floor.binutils import host_compiler
from wheelfarm.toolkit.floor.prepare import prepare_floor

pytestmark = [pytest.mark.full, pytest.mark.network]

_SOURCES = "deb [trusted=yes] http://deb.debian.org/debian bullseye main\n"
_PACKAGES = (
    "libc6", "libstdc++6", "libgcc-s1", "zlib1g", "libexpat1", "libssl1.1", "libcrypt1",
    "python3.9-minimal", "libpython3.9-minimal", "libpython3.9-stdlib",
)  # fmt: skip

MODULE = """\
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <vector>
static PyObject *work(PyObject *, PyObject *) {
    auto value = std::make_shared<int>(40);
    std::mutex mutex;
    std::condition_variable ready;
    bool done = false;
    std::thread thread([&] {
        std::lock_guard<std::mutex> lock(mutex);
        *value += 2;
        done = true;
        ready.notify_one();
    });
    {
        std::unique_lock<std::mutex> lock(mutex);
        ready.wait_for(lock, std::chrono::seconds(60), [&] { return done; });
    }
    thread.join();
    struct stat facts;
    std::ostringstream text;
    try {
        std::vector<double> many(std::size_t(1) << 62);
    } catch (const std::exception &error) {
        text << *value << " " << stat("/", &facts) << " " << strtol("42", nullptr, 0);
    }
    return PyUnicode_FromString(text.str().c_str());
}
static PyMethodDef methods[] = {{"work", work, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "made", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_made() { return PyModule_Create(&module); }
"""


@pytest.fixture(scope="session")
def debian11(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of Debian 11's python3.9; the system's own package lists are not touched."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("there are no apt-get and dpkg-deb here")
    folder = tmp_path_factory.mktemp("debian11")
    for name in ("lists/partial", "cache/archives/partial", "packages", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "sources").write_text(_sources())
    options = [
        f"Dir::Etc::sourcelist={folder / 'sources'}", "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::Lists={folder / 'lists'}", f"Dir::Cache={folder / 'cache'}",
        "APT::Get::List-Cleanup=0", "APT::Sandbox::User=root",
    ]  # fmt: skip
    words = [word for option in options for word in ("-o", option)]
    for command in (["update"], ["download", *(f"{name}/bullseye" for name in _PACKAGES)]):
        done = subprocess.run(
            ["apt-get", "-q", *words, *command],
            cwd=folder / "packages", capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            pytest.skip(f"Debian 11 cannot be had here: {done.stderr.strip()[-200:]}")
    for package in (folder / "packages").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    return folder / "root"


def _sources() -> str:
    """Return Debian 11's archive, from wherever this machine takes its own packages."""
    own = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    for path in own:
        for line in path.read_text().splitlines() if path.is_file() else ():
            words = [word for word in line.split() if not word.startswith("[")]
            for word in words:
                if word.startswith("http") and word.rstrip("/").endswith("debian"):
                    return _SOURCES.replace("http://deb.debian.org/debian", word.rstrip("/"))
    return _SOURCES


def in_debian11(root: Path, script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a script by Debian 11's python3.9, with its own loader and glibc."""
    libraries = [root / "lib/x86_64-linux-gnu", root / "usr/lib/x86_64-linux-gnu"]
    command: list[str | Path] = [
        libraries[0] / "ld-2.31.so", "--library-path", ":".join(map(str, libraries)),
        root / "usr/bin/python3.9", "-c", script,
    ]  # fmt: skip
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONPATH": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_abi3_module_is_imported_by_debian_11(root: Root, debian11: Path) -> None:
    include = Path(sys.base_prefix) / f"include/python{sys.version_info[0]}.{sys.version_info[1]}"
    root.write("made.cpp", MODULE)
    root.run("g++", "-O1", "-fPIC", f"-I{include}", "-c", "made.cpp", "-o", "made.o")
    root.run("g++", "-shared", "made.o", "-o", "made.abi3.so")
    lowest = glibc_of(root.facts("made.abi3.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    script = "import made, platform; print(made.work(), *platform.libc_ver())"
    done = in_debian11(debian11, script, root.path)
    assert done.stdout == "42 0 42 glibc 2.31\n", done.stderr
    # Without the floor the same object is refused by that system's loader.
    subprocess.run(
        ["/usr/bin/g++", "-shared", "made.o", "-o", "made.abi3.so"], cwd=root.path, check=True
    )
    done = in_debian11(debian11, script, root.path)
    assert done.returncode != 0
    assert "version `GLIBC_2.3" in done.stderr or "version `GLIBCXX_3.4.29'" in done.stderr


def test_aarch64_by_a_cross_compiler_in_qemu(tmp_path: Path, make_floor: MakeFloor) -> None:
    qemu = shutil.which("qemu-aarch64")
    if qemu is None or shutil.which("aarch64-linux-gnu-g++") is None:
        pytest.skip("there are no qemu-aarch64 and aarch64-linux-gnu-g++ here")
    del make_floor
    compiler = host_compiler("aarch64-linux-gnu-g++")
    assert compiler.machine == "aarch64"
    floor = prepare_floor(FLOOR, compiler, cache=tmp_path / "floors")
    assert floor is not None
    root = Root(tmp_path, floor)
    root.write("made.cpp", THREADS)
    cross = "aarch64-linux-gnu-g++"
    root.run(cross, "-O2", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run(cross, "-shared", "made.o", "-o", "libmade.so")
    facts = root.facts("libmade.so")
    assert facts.machine == "aarch64"
    lowest = glibc_of(facts)
    assert lowest is not None
    assert lowest <= FLOOR
    root.write(
        "main.cpp",
        '#include <cstdio>\nextern "C" int work(const char*);\n'
        'int main(int, char** words) { std::printf("%d\\n", work(words[0])); }\n',
    )
    root.run(cross, "main.cpp", "-o", "main", "-L.", "-lmade", "-Wl,-rpath,$ORIGIN")
    done = subprocess.run(
        [qemu, "-L", "/usr/aarch64-linux-gnu", root.path / "main"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "2\n", done.stderr
