"""A recipe's exemptions reach the gate with their reasons; one without a reason is refused."""

from pathlib import Path

import pytest

from tests.verify.helpers import NAME, judge
from tests.wheels import make_wheel
from wheelfarm.engines.farm_cells import _knobs
from wheelfarm.errors import FaultsError
from wheelfarm.recipes.load import load_recipe
from wheelfarm.verify.report import Knob
from wheelfarm.verify.subject import Expected

RECIPE = """\
name: demo
source: {pypi: demo==1.0}
verify:
  no_direct_import: ["*_cuda.*"]
  skip_arch: kernels are compiled at run time
"""
REASON = "reasons: {verify.no_direct_import: the CPU twin registers the same operators}\n"


def knobs(folder: Path, text: str) -> tuple[Knob, ...]:
    path = folder / "recipe.yml"
    path.write_text(text)
    return _knobs(load_recipe(path))


def expected(found: tuple[Knob, ...]) -> Expected:
    return Expected(no_direct_import=("*_cuda.*",), skip_arch=True, knobs=found)


def test_an_exemption_without_a_reason_fails(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    check = judge(wheel, "exemptions", expected(knobs(tmp_path, RECIPE)))
    assert check.status == "fail"
    assert check.summary == "the exemption no_direct_import has no written reason"


def test_reasons_are_shown(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    check = judge(wheel, "exemptions", expected(knobs(tmp_path, RECIPE + REASON)))
    assert check.status == "pass"
    assert check.evidence == (
        "skip_arch: kernels are compiled at run time (kernels are compiled at run time)",
        "no_direct_import: *_cuda.* (the CPU twin registers the same operators)",
    )


def test_a_reason_for_nothing_is_a_fault(tmp_path: Path) -> None:
    text = RECIPE.replace('  no_direct_import: ["*_cuda.*"]\n', "") + REASON
    with pytest.raises(FaultsError, match=r"no verify\.no_direct_import"):
        knobs(tmp_path, text)


def test_a_smoke_test_must_be_there(tmp_path: Path) -> None:
    text = RECIPE + "  smoke_test: smoke.py\n" + REASON
    with pytest.raises(FaultsError, match=r"no file 'smoke\.py' beside the recipe"):
        knobs(tmp_path, text)
    (tmp_path / "smoke.py").write_text("import demo\n")
    assert load_recipe(tmp_path / "recipe.yml").verify.smoke_test == tmp_path / "smoke.py"
