"""Steps run once for the same inputs, again for others, and never trust what a kill left."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from wheelfarm.build.steps import Inputs, Step, stable_key
from wheelfarm.errors import BuildError


def step(tmp_path: Path, inputs: Inputs) -> Step:
    return Step(
        name="step", folder=tmp_path / "step", log=tmp_path / "logs/step.log", inputs=inputs
    )


Work = Callable[[Path], Mapping[str, str]]


def writer(text: str, calls: list[str]) -> Work:
    def work(folder: Path) -> Mapping[str, str]:
        calls.append(text)
        (folder / "out").write_text(text, encoding="utf-8")
        return {"out": "out"}

    return work


def test_the_same_inputs_run_once(tmp_path: Path) -> None:
    calls: list[str] = []
    first = step(tmp_path, {"a": 1}).run(writer("one", calls))
    second = step(tmp_path, {"a": 1}).run(writer("two", calls))
    assert calls == ["one"]
    assert not first.reused
    assert second.reused
    assert second.path("out").read_text(encoding="utf-8") == "one"


def test_other_inputs_run_again_in_an_empty_folder(tmp_path: Path) -> None:
    calls: list[str] = []
    step(tmp_path, {"a": 1}).run(writer("one", calls))
    (tmp_path / "step/leftover").touch()
    result = step(tmp_path, {"a": 2}).run(writer("two", calls))
    assert calls == ["one", "two"]
    assert not (tmp_path / "step/leftover").exists()
    assert result.path("out").read_text(encoding="utf-8") == "two"


def test_what_a_kill_left_is_not_believed(tmp_path: Path) -> None:
    def killed(folder: Path) -> Mapping[str, str]:
        (folder / "out").write_text("half", encoding="utf-8")
        message = "killed"
        raise BuildError(message)

    with pytest.raises(BuildError):
        step(tmp_path, {"a": 1}).run(killed)
    calls: list[str] = []
    result = step(tmp_path, {"a": 1}).run(writer("whole", calls))
    assert calls == ["whole"]
    assert result.path("out").read_text(encoding="utf-8") == "whole"


@pytest.mark.parametrize("damage", ["missing output", "broken record", "old format"])
def test_a_damaged_result_is_made_again(tmp_path: Path, damage: str) -> None:
    calls: list[str] = []
    step(tmp_path, {"a": 1}).run(writer("one", calls))
    record = tmp_path / "step/step.json"
    if damage == "missing output":
        (tmp_path / "step/out").unlink()
    elif damage == "broken record":
        record.write_text('{"format": 1, "key": ', encoding="utf-8")
    else:
        text = record.read_text(encoding="utf-8").replace('"format": 1', '"format": 0')
        record.write_text(text, encoding="utf-8")
    step(tmp_path, {"a": 1}).run(writer("two", calls))
    assert calls == ["one", "two"]


def test_keys_are_stable_and_name_their_inputs() -> None:
    # A changed key here means that every farm builds everything anew: raise FORMAT knowingly.
    assert stable_key("compile", {"archs": "8.0", "jobs": None}).startswith("8f7d3c0b4576fa20")
    assert stable_key("x", {"a": "1"}) == stable_key("x", {"a": "1", "new": None})
    assert stable_key("x", {"a": "1"}) != stable_key("x", {"b": "1"})
    assert stable_key("x", {"a": "1"}) != stable_key("y", {"a": "1"})
