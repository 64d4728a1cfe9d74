"""Guards of a sharded build, and what is made of a build's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelfarm.build.calls import Call, failures, read_calls, summarise
from wheelfarm.build.guards import (
    EmptyCacheError,
    EmptyObjectError,
    SeatNeverAskedError,
    TooFewHitsError,
    TooManyBypassedError,
    check_bypassed,
    check_link,
    check_no_stubs,
    check_shard,
    judge_link,
)
from wheelfarm.build.inputs import UnitInputs, first_difference, inputs_of_calls
from wheelfarm.build.memory import SwappedError, choose_build_jobs, swap_used, watching_swap
from wheelfarm.build.resources import Machine
from wheelfarm.build.seat_setup import STUB_MARK
from wheelfarm.build.unseen import BehindSeatError, Unseen, unseen_objects
from wheelfarm.errors import BadInputError
from wheelfarm.run import ProgramFailedError, Stop, run
from wheelfarm.values import replace

if TYPE_CHECKING:
    from pathlib import Path

VARIABLES = {"PYTORCH_NVCC": "/seat/bin/nvcc", "CC": "/seat/bin/gcc", "HOME": "/"}


def call(unit: str, *, cache: str = "miss", **more: object) -> Call:
    values: dict[str, object] = {
        "tool": "nvcc", "role": "nvcc", "action": "compile", "reason": "", "unit": unit,
        "output": f"{unit}.o", "kind": "cu", "argv": (), "safe": ("-c", unit), "cwd": "/",
        "cache": cache, "inputs": "", "size": 1, "seconds": 2.0, "peak": 5, "planned": True,
        "alone": False, "status": 0, **more,
    }  # fmt: skip
    return Call(**values)  # type: ignore[arg-type]  # test data


def test_a_shard_that_the_seat_was_never_asked_for_names_who_compiled() -> None:
    log = "running build_ext\n/usr/local/cuda-13.0/bin/nvcc -c a.cu\nsh -c '/usr/bin/g++ b.o'\n"
    with pytest.raises(SeatNeverAskedError) as caught:
        check_shard([], 0, variables=VARIABLES, log_text=log, expected=2)
    text = str(caught.value)
    assert "PYTORCH_NVCC=/seat/bin/nvcc, CC=/seat/bin/gcc" in text
    assert "compilers in its log: /usr/bin/g++, /usr/local/cuda-13.0/bin/nvcc" in text
    assert caught.value.exit_code == 3


def test_a_shard_whose_cache_kept_nothing_says_why() -> None:
    past = call("a.cu", cache="bypass", reason="--keep leaves other outputs behind")
    with pytest.raises(EmptyCacheError, match="1 x --keep leaves"):
        check_shard([past], 0, variables=VARIABLES, log_text="", expected=1)
    check_shard([past], 0, variables=VARIABLES, log_text="", expected=0)
    check_shard([past], 3, variables=VARIABLES, log_text="", expected=1)


def test_too_many_units_past_the_cache_fail() -> None:
    past = [call(f"p{index}.cu", cache="bypass", reason="-march=native") for index in range(2)]
    good = [call(f"g{index}.cu") for index in range(18)]
    assert check_bypassed([*past, *good]) == {"-march=native": 2}
    with pytest.raises(TooManyBypassedError, match="2 of 19 units") as caught:
        check_bypassed([*past, *good[1:]])
    assert caught.value.units == ("p0.cu", "p1.cu")


def inputs(unit: str, **files: str) -> UnitInputs:
    return UnitInputs(words=("-c", unit), files=files or {unit: "1"})


def test_the_link_job_names_what_missed_and_the_first_difference() -> None:
    there = {unit: inputs(unit) for unit in ("a.cu", "b.cu", "c.cu")}
    own = {
        "a.cu": inputs("a.cu"),
        "b.cu": inputs("b.cu", **{"b.cu": "2"}),
        "c.cu": replace(inputs("c.cu"), words=("-c", "c.cu", "-g")),
        "d.cu": replace(inputs("d.cu"), clock=True),
        "e.cu": inputs("e.cu"),
    }
    calls = [
        call("a.cu", cache="hit"),
        *(call(f"{unit}.cu") for unit in "bcde"),
        call("link", action="real", reason="link"),
    ]
    report = judge_link(
        calls, there=there, missing=frozenset({"e.cu"}), inputs=own, keys=own
    )  # fmt: skip
    assert report.hits == ("a.cu",)
    assert {miss.unit: miss.reason for miss in report.misses} == {
        "b.cu": "b.cu has other content",
        "c.cu": "the arguments differ: -g",
    }
    assert (report.clock, report.healed) == (("d.cu",), ("e.cu",))
    assert report.rate == pytest.approx(1 / 3)
    with pytest.raises(TooFewHitsError, match=r"only 1 of 3 units") as caught:
        check_link(report)
    assert caught.value.units[0] == "b.cu: b.cu has other content"
    check_link(replace(report, hits=tuple(f"h{n}" for n in range(18))))


def test_differences_of_inputs_are_told_apart() -> None:
    one = UnitInputs(words=("-c", "a"), files={"a": "1", "old.h": "2"})
    assert first_difference(one, one) == ""
    assert "was 'a' in the shard" in first_difference(one, replace(one, words=("-c", "b")))
    assert "did not read new.h" in first_difference(one, replace(one, files={"new.h": "1"}))
    assert "only the shard read old.h" in first_difference(one, replace(one, files={"a": "1"}))


def test_a_unit_with_the_time_in_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text('const char* when = __DATE__ " " __TIME__;\n')
    (tmp_path / "b.cu").write_text("int my__DATE__x;\n")
    for name in "ab":
        (tmp_path / f"{name}.inputs").write_text(f"{name}.cu\n/usr/include/stdio.h\ngone.h")
    calls = [
        call(f"{name}.cu", cwd=str(tmp_path), inputs=str(tmp_path / f"{name}.inputs"))
        for name in "ab"
    ]
    found = inputs_of_calls(calls, ())
    assert (found["a.cu"].clock, found["b.cu"].clock) == (True, False)
    assert found["a.cu"].files["gone.h"] == ""


def test_an_empty_object_is_found_wherever_it_ended(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build/whole.o").write_bytes(b"\x7fELF")
    check_no_stubs(tmp_path)
    (tmp_path / "build/lib.so.1").write_bytes(b"\x7fELF" + STUB_MARK + b"...")
    (tmp_path / "notes.txt").write_bytes(STUB_MARK)
    with pytest.raises(EmptyObjectError) as caught:
        check_no_stubs(tmp_path)
    assert caught.value.units == ("build/lib.so.1",)


def test_objects_behind_the_seat_are_named_and_refused(tmp_path: Path) -> None:
    compiled = b"\x7fELF ... GCC: (Debian 12.2.0-14) 12.2.0"
    for name in ("seen.cu.o", "sub/seen.cu.o", "assembled.o", "named.o", "shipped.o", "copied.o",
                 "hidden.o", "vendor/fortran.o", "data.o", "empty.o",
                 "build/CMakeFiles/4.4.5/CompilerIdCUDA/tmp/a_dlink.o", "conftest.o"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(compiled + name.encode())
    (tmp_path / "copied.o").write_bytes((tmp_path / "seen.cu.o").read_bytes())
    (tmp_path / "data.o").write_bytes(b"\x7fELF of objcopy")
    (tmp_path / "empty.o").write_bytes(b"")
    calls = [
        call("seen.cu"),
        call("", action="real", reason="assembly", cwd=str(tmp_path), argv=("-c", "assembled.S")),
        call("", action="real", reason="link", cwd=str(tmp_path), argv=("-r", "-o", "named.o")),
        # That the linker is given an object says nothing of who made it.
        call("", action="real", reason="link", cwd=str(tmp_path), argv=("hidden.o", "-o", "a.so")),
    ]
    found = unseen_objects(
        tmp_path,
        calls,
        tmp_path,
        shipped=frozenset({tmp_path / "shipped.o"}),
        allowed={"vendor/*.o": "Fortran"},
    )
    assert found == Unseen(compiled=("hidden.o",), others=("data.o", "empty.o"))
    with pytest.raises(BehindSeatError, match=r"1 objects were compiled behind") as caught:
        found.check()
    assert caught.value.units == ("hidden.o",)
    assert caught.value.exit_code == 3
    Unseen(others=("data.o",)).check()


def test_a_failed_unit_is_reported_once_and_forgiven_when_it_compiles() -> None:
    failed = [call("a.cu", status=1), call("a.cu", status=1), call("b.cu", status=1)]
    assert [found.unit for found in failures(failed)] == ["a.cu", "b.cu"]
    assert [found.unit for found in failures([*failed, call("b.cu")])] == ["a.cu"]
    assert summarise(failed).failed == 3


def test_a_log_with_a_foreign_line_is_refused_and_a_cut_one_is_read(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    assert read_calls(log) == ()
    log.write_text('{"tool": "nv')
    assert read_calls(log) == ()
    log.write_text('{"tool": "nvcc"}\n')
    with pytest.raises(BadInputError):
        read_calls(log)


def test_jobs_fit_the_measured_peak() -> None:
    machine = Machine(cores=16, memory=40_000_000_000)
    assert choose_build_jobs(most=None, peak=3_000_000_000, machine=machine) == 11
    assert choose_build_jobs(most=4, peak=3_000_000_000, machine=machine) == 4
    assert choose_build_jobs(most=None, peak=90_000_000_000, machine=machine) == 1
    assert choose_build_jobs(most=None, peak=None, machine=machine) == 15


def test_swap_beyond_the_limit_stops_the_build_but_not_at_one_job() -> None:
    # The build would never end by itself; the third look finds too much in use.
    looks = iter((500_000_000, 600_000_000))

    def read() -> int:
        return next(looks, 3_600_000_000)

    told = r"was stopped: it used 3\.1 GB of swap space with 4 jobs"
    with (
        pytest.raises(SwappedError, match=told) as caught,
        watching_swap(jobs=4, read=read, seconds=0) as stop,
    ):
        run(["sh", "-c", "sleep 3600 & wait"], stop=stop)
    assert "max_jobs to 2" in str(caught.value)
    assert caught.value.exit_code == 3
    assert isinstance(caught.value.__cause__, ProgramFailedError)
    used = iter((0, 9_000_000_000))
    with watching_swap(jobs=1, read=lambda: next(used, 9_000_000_000), seconds=0) as stop:
        assert run(["true"], stop=stop).ok


def test_swap_that_only_the_last_look_finds_fails_too_and_errors_stay_themselves() -> None:
    used = iter((0, 2_000_000_000))
    with pytest.raises(SwappedError), watching_swap(jobs=2, read=lambda: next(used), seconds=3600):
        pass
    with (
        pytest.raises(ProgramFailedError, match="exit status 1"),
        watching_swap(jobs=2, read=lambda: 0, seconds=3600) as stop,
    ):
        run(["false"], stop=stop)


def test_a_stop_that_came_before_the_program_ends_it_too() -> None:
    stop = Stop()
    stop.request()
    assert run(["sleep", "3600"], stop=stop, check=False).returncode == -9


def test_the_swap_of_a_cgroup_comes_before_the_machines(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("SwapTotal: 9000000 kB\nSwapFree: 6000000 kB\n")
    assert swap_used(tmp_path) == 3_000_000 * 1024
    cgroup = tmp_path / "sys/fs/cgroup"
    cgroup.mkdir(parents=True)
    (cgroup / "memory.swap.current").write_text("77\n")
    assert swap_used(tmp_path) == 77
