"""Command lines of compilers: every spelling of an option ends in one form."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfarm.build.seat_arguments import parse, split
from wheelfarm.build.seat_files import read_inputs
from wheelfarm.build.seat_paths import Paths


@pytest.mark.parametrize(
    "words",
    [
        "-c a.cu -o a.o -gencode arch=compute_80,code=sm_80 -MD -MF a.d -Iinclude -std=c++17 -t 4",
        """--compile a.cu --output-file a.o --generate-code=arch=compute_80,code=sm_80
        --generate-dependencies-with-compile --dependency-output a.d --include-path include
        --std c++17 --threads 4 -ccbin gcc""",
        """a.cu -o=a.o -c -gencode=arch=compute_80,code=sm_80 -MMD -MF=a.d -I include -std c++17 -t8
        --compiler-bindir=/usr/bin/g++ -t=4""",
    ],
)
def test_spellings_of_nvccs_options_are_one(words: str) -> None:
    command = parse("nvcc", words.split())
    assert command.options == [
        *(["-gencode=arch=compute_80,code=sm_80"]),
        "-I",
        "include",
        "-std=c++17",
    ]
    assert (command.sources, command.output, command.depfile) == (["a.cu"], "a.o", "a.d")
    assert command.compiles
    assert command.dependencies
    assert command.threads in {"4", "8"}
    assert command.bypass == ""


def test_device_code_becomes_the_form_that_is_part_of_the_key() -> None:
    assert parse("nvcc", ["-dc", "a.cu"]).options == ["-rdc=true"]
    assert parse("nvcc", ["--device-w", "a.cu"]).options == ["-rdc=false"]


def test_lists_of_include_folders_are_taken_apart() -> None:
    command = parse("nvcc", ["-c", "a.cu", "-I=x,y", "-isystem", "z"])
    assert command.options == ["-I", "x", "-I", "y", "-isystem", "z"]
    assert [command.options[position] for position in command.paths] == ["x", "y", "z"]


def test_host_options_in_both_forms() -> None:
    command = parse(
        "host",
        [
            "-c",
            "b.cpp",
            "-ob.o",
            "-Ix",
            "-I",
            "y",
            "-isystem",
            "z",
            "-MMD",
            "-MFb.d",
            "-MT",
            "t",
            "-DA=1",
            "-D",
            "B",
        ],
    )
    assert command.options == ["-I", "x", "-I", "y", "-isystem", "z", "-DA=1", "-DB"]
    assert (command.output, command.depfile, command.targets) == ("b.o", "b.d", ["t"])


@pytest.mark.parametrize(
    ("role", "words", "query", "library"),
    [
        ("host", "--version", True, False),
        ("host", "-E a.cpp", True, False),
        ("host", "-v", True, False),
        ("nvcc", "--dryrun -c a.cu", True, False),
        ("nvcc", "a.o -shared -o a.so", False, True),
        ("nvcc", "-dlink a.o -o d.o", False, True),
        ("host", "a.o -o a", False, False),
    ],
)
def test_what_is_no_compile_is_known(role: str, words: str, query: bool, library: bool) -> None:
    command = parse(role, words.split())
    assert (command.query, command.library, command.compiles and not command.query) == (
        query, library, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("role", "words", "reason"),
    [
        ("host", "-c a.cpp -march=native", "depends on the machine"),
        ("nvcc", "-c a.cu -arch=native", "depends on the machine"),
        ("nvcc", "-c a.cu --keep", "leaves other outputs"),
        ("nvcc", "-c a.cu -Xcompiler -MD,-MF,x.d", "behind -Xcompiler"),
        ("host", "-c a.cpp -Wp,-MD,x.d", "behind -Wp"),
        ("nvcc", "-c a.cu --time x.csv", "second output"),
    ],
)
def test_what_no_cache_can_serve_has_a_reason(role: str, words: str, reason: str) -> None:
    assert reason in parse(role, words.split()).bypass


def test_the_language_of_nvcc_holds_for_all_inputs() -> None:
    command = parse("nvcc", ["a.cpp", "-c", "-x", "cu", "b.dp", "c.o"])
    assert command.inputs == [("a.cpp", "cu"), ("b.dp", "cu"), ("c.o", "")]
    assert parse("host", ["-x", "c", "a.cc", "-x", "none", "b.cc"]).inputs == [
        ("a.cc", "c"), ("b.cc", "c++"),
    ]  # fmt: skip


def test_response_files_nest_in_both_compilers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.rsp").write_text("-c 'a b.cu' -I\"x y\"\n--options-file two.rsp")
    (tmp_path / "two.rsp").write_text("-o out\\ put.o")
    command = parse("nvcc", ["--options-file", "one.rsp"])
    assert (command.sources, command.output, command.options) == (
        ["a b.cu"], "out put.o", ["-I", "x y"],
    )  # fmt: skip
    (tmp_path / "three.rsp").write_text("-c a.cpp @four.rsp")
    (tmp_path / "four.rsp").write_text("-DX=1 @absent")
    assert parse("host", ["@three.rsp"]).inputs == [("a.cpp", "c++"), ("@absent", "")]
    (tmp_path / "loop.rsp").write_text("@loop.rsp")
    with pytest.raises(OSError, match="nested too deeply"):
        parse("host", ["@loop.rsp"])


@given(st.lists(st.text(max_size=8), max_size=6))
def test_what_is_quoted_comes_back(words: list[str]) -> None:
    text = " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words)
    assert split(text) == words


def test_a_depfile_is_read_with_its_escapes() -> None:
    text = "a.o: a.cu \\\n  with\\ blank.h \\\n dollar$$.h a.cu\n\nwith\\ blank.h:\n"
    assert read_inputs(text) == ["a.cu", "with blank.h", "dollar$.h"]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    for name in ("root/seat/links", "root/seat/temporary", "root/src", "env/site/torch/include"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root/seat/links/site").symlink_to(tmp_path / "env/site")
    return Paths(
        str(tmp_path / "root"),
        str(tmp_path / "root/seat/links"),
        [(str(tmp_path / "env/site"), "site")],
        [str(tmp_path / "root/seat/temporary")],
    )


def test_paths_are_alike_on_every_machine_and_come_back(paths: Paths, tmp_path: Path) -> None:
    here = str(tmp_path / "root/src")
    header = str(tmp_path / "env/site/torch/include")
    assert paths.stable(header, here) == "../seat/links/site/torch/include"
    assert paths.stable(str(tmp_path / "root/src/a.cu"), here) == "a.cu"
    assert paths.stable("/usr/include", here) == "/usr/include"
    assert paths.stable("b.cu", here) == "b.cu"
    assert paths.original("../seat/links/site/torch/include/x.h") == f"{header}/x.h"
    assert paths.original("/usr/include/x.h") == "/usr/include/x.h"
    assert paths.unit("a.cu", here) == "src/a.cu"
    assert paths.unit(f"{header}/x.cu", here) == "site/torch/include/x.cu"


def test_random_folders_lose_their_random_part(paths: Paths, tmp_path: Path) -> None:
    here = str(tmp_path / "root/src")
    spelt = []
    for name in ("pip-build-env-ab12_xyz", "pip-build-env-qqqq1111"):
        folder = tmp_path / "root/seat/temporary" / name / "overlay/include"
        folder.mkdir(parents=True)
        spelt.append(paths.stable(str(folder), here))
    assert spelt == [
        "../seat/links/random-pip-build-env/overlay/include",
        "../seat/links/random-pip-build-env-2/overlay/include",
    ]
    # A build that works inside its random folder has relative paths already.
    inside = str(tmp_path / "root/seat/temporary/pip-build-env-ab12_xyz")
    assert paths.stable(f"{inside}/overlay/include", inside) == "overlay/include"
