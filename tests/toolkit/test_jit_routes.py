"""Which calls of ``load`` reach torch untouched, and which are refused before torch is imported."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit import trees

SOURCE_FOLDER = Path(__file__).parents[2] / "src"
#: torch's builder, as far as a call that is handed on can tell: it says what it was given.
CPP_EXTENSION = """\
import json
def load(**arguments):
    print("torch", json.dumps(arguments, sort_keys=True))
    return "torch's own"
load_inline = load
"""
SCRIPT = """\
import sys
from wheelfarm.errors import WheelfarmError
from wheelfarm.toolkit import load
try:
    answer = load("x", "/x.cpp", extra_cflags=["-O3"], extra_ldflags=["-lx"])
    print("answer", answer)
except WheelfarmError as error:
    print(type(error).__name__, error)
print("imported", "torch" in sys.modules)
"""


def call(folder: Path, version: str, cuda: str | None, **more: Any) -> dict[str, str]:
    """What a call says beside a torch of that kind: first word of each line -> its rest."""
    trees.torch(folder, version, cuda, **more.pop("facts", {}))
    trees.touch(folder / "torch" / "__init__.py")
    trees.touch(folder / "torch" / "utils" / "__init__.py")
    trees.touch(folder / "torch" / "utils" / "cpp_extension.py", CPP_EXTENSION)
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        check=True,
        capture_output=True,
        text=True,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{folder}:{SOURCE_FOLDER}",
            "WHEELFARM_CACHE": str(folder / "cache"),
            **more,
        },
    )
    lines = (line.partition(" ") for line in completed.stdout.splitlines())
    return {first: rest for first, _, rest in lines}


@pytest.mark.parametrize(
    ("version", "cuda", "facts", "mode"),
    [
        ("2.9.0+rocm7.0", None, {"hip": "7.0.2"}, "1"),
        ("2.9.0+xpu", None, {"xpu": "20250201"}, "auto"),
        ("2.14.1+cu130", "13.0", {}, "0"),
        ("2.14.1+cpu", None, {}, "0"),
    ],
)
def test_handed_on_untouched(
    tmp_path: Path, version: str, cuda: str | None, facts: dict[str, str], mode: str
) -> None:
    said = call(tmp_path, version, cuda, facts=facts, WHEELFARM_CUDA_FROM_WHEELS=mode)
    given = json.loads(said["torch"])
    assert given["extra_cflags"] == ["-O3"]
    assert given["extra_ldflags"] == ["-lx"]
    assert given["extra_include_paths"] == []
    assert given["with_cuda"] is None
    assert said["answer"] == "torch's own"
    assert not (tmp_path / "cache").exists()


def test_torch_without_cuda_is_refused_by_its_place(tmp_path: Path) -> None:
    said = call(tmp_path, "2.14.1+cpu", None)
    refusal = f"torch 2.14.1+cpu in {tmp_path}/torch was built without CUDA"
    assert said["CpuOnlyTorchError"] == refusal
    assert said["imported"] == "False"


def test_wheels_that_are_asked_for_and_absent_are_an_error(tmp_path: Path) -> None:
    said = call(tmp_path, "2.14.1+cu130", "13.0", WHEELFARM_CUDA_FROM_WHEELS="1")
    assert "what 'x' needs (host, link, cudart)" in said["NoToolkitError"]
    assert said["imported"] == "False"
