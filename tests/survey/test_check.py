"""Recipes against their sources, before and after the patches: real farms, patches and git."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.recipes.farms import write_farm
from wheelfarm.build.survey_check import judge
from wheelfarm.cli import main
from wheelfarm.model.axis import TorchAxis
from wheelfarm.survey.model import Evidence, Shows, SurveyResult, SurveyVerdict

LINKED = """\
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
setup(name="k", ext_modules=[CUDAExtension("k._C", ["k.cu"])])
"""
FREE = "from setuptools import setup\nsetup(name='k', packages=['k'])\n"
RECIPE = """\
name: {name}
version: "1.0"
source: {{path: ../../{source}}}
links_torch: {links}
"""


def _result(verdict: SurveyVerdict, *kinds: Shows) -> SurveyResult:
    evidence = tuple(Evidence(file="setup.py", line=1, sentence="x", shows=kind) for kind in kinds)
    return SurveyResult(torch_axis=verdict, evidence=evidence, build_system="setuptools")


def _report(
    farm: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, dict[str, dict[str, object]]]:
    status = main(["survey", "--check", "--json", str(farm), *more])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.survey-check/1"
    return status, {item["package"]: item for item in document["recipes"]}


def test_a_patch_that_creates_the_extension(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    research = tmp_path / "research"
    research.mkdir()
    (research / "train.py").write_text("import torch\n")
    farm = write_farm(
        tmp_path, {"k": RECIPE.format(name="k", source="research", links="true")
                   + "patches: [patches/*.patch]\n"},
    )  # fmt: skip
    patches = farm / "recipes" / "k" / "patches"
    patches.mkdir()
    lines = LINKED.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    header = f"--- /dev/null\n+++ b/setup.py\n@@ -0,0 +1,{len(lines)} @@\n"
    (patches / "0001-build.patch").write_text(
        f"diff --git a/setup.py b/setup.py\nnew file mode 100644\n{header}{body}"
    )
    status, found = _report(farm, capsys)
    item = found["k"]
    assert (status, item["status"], item["by_patches"]) == (0, "agrees", True)
    assert "the patches' doing" in str(item["sentence"])
    before, after = item["before"], item["after"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert (before["torch_axis"], after["torch_axis"]) == ("unknown", "linked")
    assert after["evidence"][0]["file"] == "setup.py"
    # The author's own folder stays as it was.
    assert not (research / "setup.py").exists()


def test_a_patch_script_counts_as_a_patch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "setup.py").write_text(FREE)
    recipe = RECIPE.format(name="k", source="source", links="true") + "patch_script: patch.py\n"
    farm = write_farm(tmp_path, {"k": recipe})
    (farm / "recipes" / "k" / "patch.py").write_text(
        f"from pathlib import Path\nPath('setup.py').write_text({LINKED!r})\n"
    )
    status, found = _report(farm, capsys)
    assert (status, found["k"]["status"], found["k"]["by_patches"]) == (0, "agrees", True)


def test_a_recipe_that_says_free_of_a_linked_tree_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("linked", LINKED), ("free", FREE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "setup.py").write_text(text)
    with tarfile.open(tmp_path / "linked-1.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "linked", "linked-1.0")
    farm = write_farm(
        tmp_path,
        {
            "wrong": RECIPE.format(name="wrong", source="linked-1.0.tar.gz", links="false"),
            "good": RECIPE.format(name="good", source="free", links="false"),
            "wasteful": RECIPE.format(name="wasteful", source="free", links="true"),
            "gone": RECIPE.format(name="gone", source="nowhere", links="true"),
        },
    )
    status, found = _report(farm, capsys)
    assert status == 1
    told = {name: item["status"] for name, item in found.items()}
    assert told == {
        "wrong": "wrong", "good": "agrees", "wasteful": "wasteful", "gone": "could not look",
    }  # fmt: skip
    assert _report(farm, capsys, "--package", "good")[0] == 0
    assert _report(farm, capsys, "--package", "gone")[0] == 2
    assert main(["survey", "--check", str(farm)]) == 1
    assert "setup.py:3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stated", "verdict", "kinds", "status"),
    [
        ("linked", "linked", ("linked",), "agrees"),
        ("linked", "stable_abi", ("stable_abi",), "wasteful"),
        ("linked", "mixed", ("linked", "stable_abi"), "agrees"),
        ("stable_abi", "mixed", ("linked", "stable_abi"), "wrong"),
        ("stable_abi", "linked", ("linked",), "wrong"),
        ("stable_abi", "abi_flag", ("abi_flag",), "wrong"),
        ("abi_flag", "free", ("free",), "wasteful"),
        ("free", "abi_flag", ("abi_flag",), "wrong"),
        ("free", "unknown", ("unknown",), "undecided"),
        ("linked", "optional", ("linked",), "undecided"),
    ],
)
def test_judge(
    stated: TorchAxis, verdict: SurveyVerdict, kinds: tuple[Shows, ...], status: str
) -> None:
    assert judge(stated, _result(verdict, *kinds))[0] == status
