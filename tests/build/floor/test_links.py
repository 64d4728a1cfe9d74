"""Links at a glibc floor, with the compilers and linkers of this machine."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.build.floor.conftest import FLOOR, MakeFloor, Root, glibc_of
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.libstdcxx import LibstdcxxChoice
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.floor.binutils import HostCompiler
from wheelfarm.toolkit.floor.prepare import prepare_floor

THREADS = """\
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <thread>
extern "C" int work(const char* path) {
    auto value = std::make_shared<int>(1);
    std::mutex mutex;
    std::condition_variable ready;
    bool done = false;
    std::thread thread([&, value] {
        std::lock_guard<std::mutex> lock(mutex);
        *value += 1;
        done = true;
        ready.notify_all();
    });
    {
        std::unique_lock<std::mutex> lock(mutex);
        ready.wait_for(lock, std::chrono::seconds(60), [&] { return done; });
    }
    thread.join();
    struct stat facts;
    return stat(path, &facts) == 0 ? *value : -1;
}
"""
PLAIN = 'extern "C" int work() { return 7; }\n'
TOO_NEW = """\
#include <stdlib.h>
#include <uchar.h>
extern "C" size_t work(char* out) { return c8rtomb(out, 'a', nullptr); }
"""
NEW_IN_LIBSTDCXX = """\
#include <filesystem>
#include <stdexcept>
#include <string>
extern "C" int work(const char* path) {
    return std::filesystem::exists(std::filesystem::path(path).parent_path()) ? 3 : 4;
}
extern "C" void raise(const char* text) { throw std::filesystem::filesystem_error(
    text, std::error_code()); }
"""
PACKED = """\
#include <stdlib.h>
static int value;
static int* table[4] = {&value, &value, &value, &value};
extern "C" int* work(int at) { return at < 4 ? table[at] : (int*)malloc(1); }
"""
CALL = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).work(sys.argv[1].encode()))"


def called(path: Path) -> str:
    """Load a library in a process of its own and return what its function says."""
    command = [sys.executable, "-c", CALL, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def exported(facts: BinaryFacts) -> set[str]:
    return {name for name in facts.defined if not name.startswith("_Z")}


def test_a_native_link_needs_more_than_the_floor(root: Root) -> None:
    root.write("made.cpp", THREADS)
    command = ["/usr/bin/g++", "-shared", "-fPIC", "made.cpp", "-o", "made.so"]
    subprocess.run(command, cwd=root.path, check=True)
    native = glibc_of(root.facts("made.so"))
    assert native is None or native > FLOOR


def test_a_link_at_the_floor_needs_no_more_and_runs(root: Root) -> None:
    facts = root.library(THREADS)
    lowest = glibc_of(facts)
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "2"
    assert exported(facts) == {"work"}


@pytest.mark.parametrize(
    "words",
    [
        ["-static-libgcc"],
        ["-Wl,--no-undefined"],
        ["-Wl,-z,defs", "-Wl,--no-allow-shlib-undefined"],
        ["-Wl,--no-as-needed", "-lpthread", "-ldl", "-lm", "-lrt", "-lutil"],
        ["-pthread"],
        ["-static-libstdc++", "-static-libgcc"],
        ["-fuse-ld=gold"],
        ["-fuse-ld=lld"],
        ["-fuse-ld=mold"],
        ["-Wl,--gc-sections", "-Wl,-z,now"],
    ],
    ids=" ".join,
)
def test_what_users_pass_to_links_keeps_working(root: Root, words: list[str]) -> None:
    linker = words[0].removeprefix("-fuse-ld=")
    if linker in {"gold", "lld", "mold"} and shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"there is no ld.{linker} here")
    facts = root.library(THREADS, *words)
    lowest = glibc_of(facts)
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "2"
    assert exported(facts) >= {"work"}
    assert not exported(facts) & {"stat", "atexit", "pthread_cond_clockwait"}


@pytest.mark.parametrize(
    "words",
    [
        ["--shared", "-Wl,-static,-Bdynamic"],
        ["-nostartfiles", "-Wl,-shared"],
        ["-nostartfiles", "-Wl,-O1,-Bshareable"],
    ],
    ids=" ".join,
)
def test_other_ways_to_ask_for_a_shared_library(root: Root, words: list[str]) -> None:
    root.write("made.cpp", THREADS)
    root.run("g++", "-O2", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run("g++", *words, "made.o", "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "2"


@pytest.mark.parametrize(
    "words",
    [
        ["-Wl,-z,pack-relative-relocs"],
        ["-fuse-ld=lld", "-Wl,--pack-dyn-relocs=relr"],
        ["-fuse-ld=mold", "-Wl,--pack-dyn-relocs=relr"],
    ],
    ids=" ".join,
)
def test_packed_relocations_are_too_new(root: Root, words: list[str]) -> None:
    """Only some linkers mark them with a version, and older loaders pass over them in silence."""
    linker = words[0].removeprefix("-fuse-ld=")
    if linker in {"lld", "mold"} and shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"there is no ld.{linker} here")
    root.write("made.cpp", PACKED)
    root.run("g++", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    done = root.run("g++", "-shared", *words, "made.o", "-o", "made.so", check=False)
    if "pack" in done.stderr.partition("seat:")[0]:
        pytest.skip("this linker cannot pack relocations")
    assert done.stderr == (
        "seat: error: made.so needs DT_RELR (-z pack-relative-relocs): not at floor 2.28, "
        "there from glibc 2.36 on\n"
        "seat: as it is, the module can be linked at floor 2.36\n"
    )
    assert done.returncode == 1
    assert not (root.path / "made.so").exists()
    native = ["/usr/bin/g++", "-shared", *words, "made.o", "-o", "made.so"]
    subprocess.run(native, cwd=root.path, check=True)
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is None or lowest >= Minor(2, 36)


def test_link_time_optimisation(root: Root) -> None:
    root.write("made.cpp", THREADS)
    root.run("g++", "-O2", "-flto", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run("g++", "-O2", "-flto", "-shared", "made.o", "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "2"


def test_compile_and_link_in_one_call_and_response_files(root: Root) -> None:
    root.write("made.cpp", THREADS)
    root.write("words", '-shared -fPIC "made.cpp"\n-o made.so')
    root.run("g++", "@words")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR


@pytest.mark.parametrize("floor", ["2.17", "2.34"])
def test_other_floors(
    tmp_path: Path, compiler: HostCompiler, shared_folder: Path, floor: str
) -> None:
    """From 2.34 on libpthread and its like are empty; 2.17's libstdc++ knows no std::thread."""
    glibc = Minor.parse(floor)
    prepared = prepare_floor(
        glibc,
        compiler,
        cache=shared_folder / "floors",
        libstdcxx="static" if floor == "2.17" else "shared",
    )
    assert prepared is not None
    root = Root(tmp_path, prepared)
    lowest = glibc_of(root.library(THREADS, "-lpthread", "-ldl"))
    assert lowest is not None
    assert lowest <= glibc
    assert called(root.path / "made.so") == "2"


def test_programs_and_probes_are_left_alone(root: Root) -> None:
    root.write("program.cpp", '#include <stdio.h>\nint main() { return puts("here") < 0; }\n')
    root.run("g++", "program.cpp", "-o", "program")
    assert root.run("./program").stdout == "here\n"
    root.write("conftest.c", "int f(void) { return 0; }\n")
    root.run("gcc", "-shared", "-fPIC", "conftest.c", "-o", "conftest.so")
    assert [call.reason for call in root.calls] == ["compile and link in one call", "probe"]
    objects = root.write("part.c", "int f(void) { return 0; }\n")
    root.run("gcc", "-fPIC", "-c", objects, "-o", "part.o")
    root.run("gcc", "-r", "-nostdlib", "part.o", "-o", "whole.o")


def test_what_has_no_answer_stops_the_build_with_symbol_object_and_floor(
    root: Root, compiler: HostCompiler
) -> None:
    root.write("made.cpp", TOO_NEW)
    done = root.run(
        "g++", "-O2", "-fPIC", "-std=c++20", "-c", "made.cpp", "-o", "made.o", check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the headers of glibc {compiler.glibc} declare no c8rtomb")
    done = root.run("g++", "-shared", "made.o", "-o", "made.so", check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "seat: error: made.so needs c8rtomb (GLIBC_2.36), taken by made.o: not at floor 2.28, "
        "there from glibc 2.36 on\n"
        "seat: as it is, the module can be linked at floor 2.36\n"
    )
    assert not (root.path / "made.so").exists()
    assert root.calls[-1].status == 1


def test_a_link_that_failed_is_explained_too(root: Root, compiler: HostCompiler) -> None:
    root.write("made.cpp", TOO_NEW)
    done = root.run("g++", "-fPIC", "-std=c++20", "-c", "made.cpp", "-o", "made.o", check=False)
    if done.returncode != 0:
        pytest.skip(f"the headers of glibc {compiler.glibc} declare no c8rtomb")
    done = root.run("g++", "-shared", "-Wl,-z,defs", "made.o", "-o", "made.so", check=False)
    assert done.returncode == 1
    assert "undefined reference to `c8rtomb'" in done.stderr
    assert "needs c8rtomb (GLIBC_2.36), taken by made.o: not at floor 2.28" in done.stderr


def test_a_failure_of_another_kind_stays_what_it_is(root: Root) -> None:
    root.write("made.cpp", 'extern "C" int nowhere();\nextern "C" int f() { return nowhere(); }\n')
    root.run("g++", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    done = root.run("g++", "-shared", "-Wl,-z,defs", "made.o", "-o", "made.so", check=False)
    assert done.returncode == 1
    assert "seat:" not in done.stderr


def test_newer_libstdcxx_is_named_with_the_way_out(root: Root) -> None:
    root.write("made.cpp", NEW_IN_LIBSTDCXX)
    root.run("g++", "-std=c++17", "-O2", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    done = root.run("g++", "-shared", "made.o", "-o", "made.so", check=False)
    assert done.returncode == 1
    assert (
        "needs std::filesystem::status(std::filesystem::__cxx11::path const&) (GLIBCXX_3.4.26), "
        "taken by made.o: not at floor 2.28, there from glibc 2.31 on\n"
    ) in done.stderr
    assert "`libstdcxx: static` in the recipe" in done.stderr


@pytest.mark.parametrize(
    ("name", "version", "fault"),
    [
        ("libz.so.1", "ZLIB_1.2.9", ""),
        ("libz.so.1", "ZLIB_1.2.12", "there from glibc 2.37 on"),
        ("libz.so.1", "ZLIB_99", "promised by no manylinux tag"),
        ("libatomic.so.1", "LIBATOMIC_1.2", ""),
        ("libatomic.so.1", "LIBATOMIC_99", "promised by no manylinux tag"),
        ("libother.so.1", "OTHER_99", ""),
    ],
)
def test_what_other_libraries_of_the_system_have_too_new(
    root: Root, name: str, version: str, fault: str
) -> None:
    root.write("lib.c", "void taken(void) {}")
    root.write("lib.map", f"{version} {{ global: taken; }};")
    words = ["-shared", "-fPIC", f"-Wl,-soname,{name}", "-Wl,--version-script,lib.map"]
    subprocess.run(["/usr/bin/gcc", *words, "lib.c", "-o", name], cwd=root.path, check=True)
    root.write("made.c", "void taken(void); void work(void) { taken(); }")
    root.run("gcc", "-fPIC", "-c", "made.c", "-o", "made.o")
    done = root.run("gcc", "-shared", "made.o", name, "-o", "made.so", check=False)
    said = (
        f"seat: error: made.so needs taken ({version}), taken by made.o: not at floor 2.28, {fault}"
    )
    assert (said in done.stderr) == bool(fault), done.stderr
    assert (done.returncode == 0) == (not fault) == (root.path / "made.so").exists()


@pytest.mark.parametrize("choice", ["shared", "static"])
@pytest.mark.parametrize("linker", ["mold", "gold"])
def test_a_link_that_mold_fails_says_what_mold_does(
    tmp_path: Path, make_floor: MakeFloor, choice: LibstdcxxChoice, linker: str
) -> None:
    if shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"there is no ld.{linker} here")
    root = Root(tmp_path, make_floor(choice))
    root.write("made.cpp", 'extern "C" int absent(); extern "C" int work() { return absent(); }')
    root.run("g++", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    words = ["-fuse-ld=lld", f"-fuse-ld={linker}", "-Wl,--no-undefined"]
    done = root.run("g++", "-shared", *words, "made.o", "-o", "made.so", check=False)
    assert done.returncode != 0
    told = "seat: `libstdcxx: static` with mold: mold takes symbols" in done.stderr
    assert told == (choice == "static" and linker == "mold")


@pytest.mark.parametrize("words", [[], ["-flto"]], ids=["plain", "lto"])
def test_static_libstdcxx_takes_what_is_newer_and_nothing_else(
    static_root: Root, words: list[str]
) -> None:
    root = static_root
    root.write("made.cpp", NEW_IN_LIBSTDCXX)
    root.run("g++", "-std=c++17", "-O2", *words, "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run("g++", "-shared", *words, "made.o", "-o", "made.so")
    facts = root.facts("made.so")
    lowest = glibc_of(facts)
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "3"
    # What the floor's libstdc++ has stays shared, and what came from the archive is not exported.
    assert "libstdc++.so.6" in facts.needed
    assert "__cxa_throw" in facts.undefined
    assert exported(facts) == {"work", "raise"}
    assert not set(facts.defined) & {
        "_ZNSt10filesystem6statusERKNS_7__cxx114pathE",
        "_ZNSt10filesystem7__cxx114path14_M_split_cmptsEv",
    }


CATCHER = """\
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <exception>
#include <filesystem>
extern "C" void other_throws(int kind);
static std::string said;
extern "C" const char* catches(int kind) {
    try { other_throws(kind); }
    catch (const std::filesystem::filesystem_error& error) { said = "filesystem"; }
    catch (const std::system_error& error) { said = "system "; said += error.what(); }
    catch (std::runtime_error error) { said = "runtime "; said += error.what(); }
    catch (const std::exception& error) { said = "exception "; said += typeid(error).name(); }
    if (std::uncaught_exceptions() != 0) said += " left over";
    return said.c_str();
}
extern "C" const char* passes_on(int kind) {
    std::exception_ptr kept;
    try { other_throws(kind); } catch (...) { kept = std::current_exception(); }
    try { std::rethrow_exception(kept); }
    catch (const std::exception& error) { said = error.what(); }
    return said.c_str();
}
extern "C" int exists(const char* path) { return std::filesystem::exists(path); }
extern "C" void throws_here() { throw std::runtime_error("from the module"); }
"""
THROWER = """\
#include <stdexcept>
#include <system_error>
#include <exception>
#include <new>
#include <string>
extern "C" void other_throws(int kind) {
    if (kind == 0) throw std::runtime_error("");
    if (kind == 1) throw std::runtime_error(std::string(100, 'x'));
    if (kind == 2) throw std::system_error(std::make_error_code(std::errc::no_space_on_device));
    throw std::bad_alloc();
}
extern "C" void throws_here();
extern "C" int other_catches() {
    try { throws_here(); }
    catch (const std::runtime_error& error) { return std::string(error.what()).size(); }
    return -1;
}
"""


def test_exceptions_cross_the_boundary_of_a_static_libstdcxx(static_root: Root) -> None:
    """A library of the system (torch's libraries are such) and the module throw to each other."""
    root = static_root
    root.write("thrower.cpp", THROWER)
    command = ["/usr/bin/g++", "-shared", "-fPIC", "thrower.cpp", "-o", "libthrower.so"]
    subprocess.run(command, cwd=root.path, check=True)
    root.write("made.cpp", CATCHER)
    root.run("g++", "-std=c++17", "-O2", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run("g++", "-shared", "made.o", "-L.", "-lthrower", "-Wl,-rpath,$ORIGIN", "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    script = """\
import ctypes, sys
made = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
other = ctypes.CDLL(sys.argv[1].replace("made.so", "libthrower.so"))
made.catches.restype = made.passes_on.restype = ctypes.c_char_p
for kind in (0, 1, 2, 3, 0):
    print(made.catches(kind).decode())
for kind in (1, 2):
    print(made.passes_on(kind).decode())
print(other.other_catches(), made.exists(sys.argv[1].encode()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(root.path / "made.so")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "runtime ",
        "runtime " + "x" * 100,
        "system No space left on device",
        "exception St9bad_alloc",
        "runtime ",
        "x" * 100,
        "No space left on device",
        "15 1",
    ]


POINTERS = """\
#include <exception>
#include <future>
#include <stdexcept>
struct Counted : std::runtime_error {
    static int alive;
    Counted() : std::runtime_error("counted") { alive++; }
    Counted(const Counted& other) : std::runtime_error(other) { alive++; }
    ~Counted() { alive--; }
};
int Counted::alive = 0;
static int pointers() {
    std::exception_ptr one = std::make_exception_ptr(Counted()), two = one, three;
    three = two;
    two = nullptr;
    try { std::rethrow_exception(three); } catch (const Counted&) { return 1 + Counted::alive; }
    return 0;
}
extern "C" int work(const char*) {
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    promise.set_exception(std::make_exception_ptr(Counted()));
    int caught = 0;
    if (future.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready)
        try { future.get(); } catch (const std::runtime_error&) { caught = 10; }
    promise = std::promise<int>();
    future = std::future<int>();
    return caught + pointers() + 100 * Counted::alive;
}
"""


@pytest.mark.parametrize("words", [["-O0"], ["-O2", "-fno-inline"], ["-Os"], ["-O2"]], ids=" ".join)
def test_what_headers_define_inline_does_not_answer_the_fallbacks(
    root: Root, words: list[str]
) -> None:
    root.write("made.cpp", POINTERS)
    root.run("g++", "-std=c++17", *words, "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run("g++", "-shared", "made.o", "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "12"


OWN_NAMES = """\
#include <filesystem>
#include <sched.h>
#include <vector>
extern "C" int gettid() { return 5; }
extern "C" int work(const char* path) {
    unsigned cpu = 0;
    std::vector<double> values(std::filesystem::exists(path) ? 2 : 3);
    std::exception_ptr none, copy = none;
    return getcpu(&cpu, nullptr) == 0 && !copy ? gettid() + int(values.size()) : -1;
}
"""


@pytest.mark.parametrize("words", [[], ["-flto"]], ids=["plain", "lto"])
def test_own_functions_and_archives_that_hold_several(static_root: Root, words: list[str]) -> None:
    """A member of an archive brings all that it defines; none of it is a second definition."""
    root = static_root
    root.write("made.cpp", OWN_NAMES)
    # Without optimisation nothing is inlined: headers call all that they declare.
    root.run("g++", "-std=c++17", "-O0", *words, "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run("g++", "-shared", *words, "made.o", "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "7"


def test_setuptools_and_cmake_links_are_caught(root: Root) -> None:
    root.write("made.cpp", THREADS)
    root.write(
        "setup.py",
        "from setuptools import Extension, setup\n"
        "setup(name='made', version='1', ext_modules=[Extension('made', ['made.cpp'])])\n",
    )
    root.run(sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "by_setuptools")
    (built,) = (root.path / "by_setuptools").glob("*.so")
    root.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(made CXX)\n"
        "add_library(made SHARED made.cpp)\nadd_executable(program program.cpp)\n",
    )
    root.write("program.cpp", "int main() { return 0; }\n")
    cmake = Path(sys.executable).with_name("cmake")
    root.run(cmake, "-S", ".", "-B", "by_cmake")
    root.run(cmake, "--build", "by_cmake")
    for name in (built, root.path / "by_cmake" / "libmade.so"):
        lowest = glibc_of(root.facts(str(name.relative_to(root.path))))
        assert lowest is not None
        assert lowest <= FLOOR
    assert root.run(root.path / "by_cmake" / "program").returncode == 0


@pytest.mark.compile
def test_nvcc_links_at_the_floor_too(root: Root, toolkit_python: Path, tmp_path: Path) -> None:
    from wheelfarm.toolkit.find import find_toolkit
    from wheelfarm.toolkit.view import make_view

    toolkit = find_toolkit(None, "wheels", python=toolkit_python, needs=("host", "device", "link"))
    root.toolkit = make_view(toolkit, tmp_path / "cuda")
    root.write("made.cpp", THREADS)
    root.run("nvcc", "-Xcompiler", "-fPIC", "-c", "made.cpp", "-o", "made.o")
    root.run("nvcc", "-shared", "--cudart", "none", "made.o", "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    assert called(root.path / "made.so") == "2"
