"""Real sdists of a package index: their verdicts, read from their own build files.

docs/survey.md says what their build files show.
"""

import os
from pathlib import Path

import pytest
from packaging.version import Version

from wheelfarm.http import Client
from wheelfarm.recipes.pypi import find_sdist, index_url
from wheelfarm.survey import survey_tree
from wheelfarm.survey.source import opened

#: (project, version, verdict, a place that the evidence must hold).
SDISTS = (
    ("torch-scatter", "2.1.2", "linked", "setup.py:94"),
    ("torch-cluster", "1.6.3", "linked", "setup.py:95"),
    ("torch-sparse", "0.6.18", "linked", "setup.py:118"),
    ("torch-spline-conv", "1.2.2", "linked", "setup.py:90"),
    ("flash-attn", "2.8.3.post2", "linked", "setup.py:227"),
    ("gsplat", "1.5.3", "linked", "setup.py:93"),
    ("diso", "0.1.4", "linked", "setup.py:45"),
    ("causal-conv1d", "1.7.0", "linked", "setup.py:243"),
    ("mamba-ssm", "2.3.2.post1", "linked", "setup.py:248"),
    ("natten", "0.21.0", "linked", "csrc/CMakeLists.txt:202"),
    ("natten", "0.17.5", "linked", "csrc/CMakeLists.txt:230"),
    ("transformer-engine-torch", "2.20.2", "linked", "build_tools/pytorch.py:120"),
    ("fairseq", "0.12.2", "linked", "setup.py:91"),
    ("mmcv", "2.2.0", "linked", "setup.py:446"),
    ("minkowskiengine", "0.5.4", "linked", "setup.py:305"),
    ("vllm", "0.10.0", "linked", "cmake/utils.cmake:488"),
    ("vllm", "0.33.0", "mixed", "cmake/utils.cmake:656"),
    ("xformers", "0.0.35", "stable_abi", "setup.py:332"),
    ("deepspeed", "0.19.8", "optional", "op_builder/builder.py:543"),
    ("fairscale", "0.4.13", "optional", "setup.py:41"),
    ("flashinfer-python", "0.2.5", "optional", "setup.py:266"),
    ("openequivariance", "0.7.0", "stable_abi", "CMakeLists.txt:80"),
    ("openequivariance", "0.4.0", "free", ""),
    ("cumm", "0.1.0", "free", "setup.py:159"),
    ("llama-cpp-python", "0.2.20", "free", "vendor/llama.cpp/CMakeLists.txt:684"),
    ("pyopencl", "2026.1.4", "free", "CMakeLists.txt:167"),
    ("numba-cuda", "0.24.0", "free", "setup.py:58"),
    ("lightgbm", "4.7.0", "free", "CMakeLists.txt:516"),
    ("torch-geometric", "2.8.1", "free", "pyproject.toml:3"),
    ("torch-fidelity", "0.4.0", "free", "setup.py:34"),
    ("sageattention", "1.0.6", "free", "setup.py:3"),
    ("pycuda", "2026.1", "unknown", ""),
)


def _archive(project: str, version: str, folder: Path) -> Path:
    """Return an sdist, from WHEELFARM_TEST_SDISTS where that folder has it."""
    client = Client()
    sdist = find_sdist(project, Version(version), client=client, index=index_url())
    name = Path(sdist.file_name).name
    kept = Path(os.environ.get("WHEELFARM_TEST_SDISTS", folder)) / name
    if not kept.exists():
        client.download(sdist.url, kept, sha256=sdist.sha256)
    return kept


@pytest.mark.full
@pytest.mark.network
@pytest.mark.parametrize(
    ("project", "version", "verdict", "place"), SDISTS, ids=[f"{row[0]}-{row[1]}" for row in SDISTS]
)
def test_a_real_sdist(project: str, version: str, verdict: str, place: str, tmp_path: Path) -> None:
    with opened(str(_archive(project, version, tmp_path))) as root:
        result = survey_tree(root)
    story = "\n".join([result.torch_axis, result.condition, *map(str, result.evidence)])
    assert result.torch_axis == verdict, story
    places = {f"{item.file}:{item.line}" for item in result.evidence}
    assert not place or place in places, story
