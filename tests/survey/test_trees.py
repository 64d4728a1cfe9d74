"""Every idiom by which a tree links torch, every decoy, every build system, as small trees."""

from pathlib import Path

import pytest

from tests.survey.backend_cases import CASES as BACKENDS
from tests.survey.cmake_cases import SCIKIT_CASES
from tests.survey.cmake_command_cases import PLAIN_CASES, SETUP_CASES
from tests.survey.condition_cases import CONDITIONS
from tests.survey.decoy_cases import DECOYS, UNKNOWNS
from tests.survey.idiom_cases import IDIOMS
from tests.survey.other_build_cases import OTHER_BUILDS
from tests.survey.stable_cases import FLAG_CASES, HEADER_CASES
from tests.survey.tree_case import TreeCase, check


@pytest.mark.parametrize("case", [*IDIOMS, *DECOYS, *UNKNOWNS, *CONDITIONS], ids=lambda c: c.name)
def test_setup_tree(case: TreeCase, tmp_path: Path) -> None:
    check(case, tmp_path)


CMAKE = [*SCIKIT_CASES, *SETUP_CASES, *HEADER_CASES, *FLAG_CASES, *PLAIN_CASES]


@pytest.mark.parametrize("case", CMAKE, ids=lambda c: c.name)
def test_cmake_tree(case: TreeCase, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.parametrize("case", [*BACKENDS, *OTHER_BUILDS], ids=lambda c: c.name)
def test_backend_tree(case: TreeCase, tmp_path: Path) -> None:
    check(case, tmp_path)
