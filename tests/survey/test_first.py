"""The survey's plainest answers."""

from pathlib import Path

import pytest

from wheelfarm.errors import BadInputError
from wheelfarm.survey import survey_tree


def test_a_tree_without_build_files_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text("__global__ void f() {}\n")
    result = survey_tree(tmp_path)
    assert (result.torch_axis, result.build_system) == ("unknown", "")


def test_a_folder_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no folder"):
        survey_tree(tmp_path, subdir="gone")
