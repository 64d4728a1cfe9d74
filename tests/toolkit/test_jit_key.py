"""What decides a JIT build's key, and what does not; what the store believes."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from tests.toolkit import trees
from wheelfarm.facts.installed_torch import InstalledTorch
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.digests import Digests
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.flags import flags_of
from wheelfarm.toolkit.jit_key import Sources, jit_key
from wheelfarm.toolkit.jit_store import JitStore
from wheelfarm.toolkit.layout import Machine
from wheelfarm.values import replace

LONG_AGO = time.time() - 3600


def settle(folder: Path) -> None:
    """Give every file an old time, as installed files have."""
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


class Inputs:
    """A build's inputs, whole and alike for every test; each test changes one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        site = folder / "site-packages"
        trees.cu13(site)
        trees.torch(site, "2.14.1+cu130", "13.0")
        trees.touch(site / "torch" / "include" / "torch" / "extension.h", "// one\n")
        trees.touch(folder / "source.cu", "int f();\n")
        trees.executable(folder / "bin" / "c++", "#!/bin/sh\nexit 1\n")
        settle(folder)
        self.machine = trees.machine(folder)
        self.environ: dict[str, str] = {}
        self.arguments: dict[str, object] = {"extra_cflags": ["-O3"]}
        self.archs = "9.0"
        self.abi = True
        self.torch = InstalledTorch(
            folder=site / "torch",
            version=Version("2.14.1+cu130"),
            cuda=Minor(13, 0),
            requires_dist=(),
        )
        self.site = site

    def key(self, *, site: Path | None = None, source: Path | None = None) -> str:
        toolkit = find_toolkit(
            13,
            environment=trees.environment(site or self.site),
            machine=self.machine,
            needs=("device", "link"),
        )
        flags = flags_of(toolkit, ("cudart",), driver=False, machine=self.machine)
        sources = Sources(
            name="x",
            files=(source or self.folder / "source.cu",),
            arguments=self.arguments,
            has_device_code=True,
        )
        return jit_key(
            sources,
            flags,
            torch=replace(self.torch, folder=(site or self.site) / "torch"),
            torch_abi=self.abi,
            archs=self.archs,
            compiler=self.folder / "bin" / "c++",
            digests=Digests(self.folder / "digests"),
            environ=self.environ,
        )


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    return Inputs(tmp_path)


def text(path: str, contents: str) -> Callable[[Inputs], None]:
    def change(inputs: Inputs) -> None:
        target = inputs.folder / path
        target.write_text(contents)
        # The same size where it can be, and an older time: only the byte differs.
        os.utime(target, (LONG_AGO - 100, LONG_AGO - 100))

    return change


def attribute(name: str, value: Any) -> Callable[[Inputs], None]:
    return lambda inputs: setattr(inputs, name, value)


def another_torch(inputs: Inputs) -> None:
    inputs.torch = replace(inputs.torch, version=Version("2.14.2+cu130"))


CHANGES: dict[str, Callable[[Inputs], None]] = {
    "a byte of the source": text("source.cu", "int g();\n"),
    "a byte of torch's headers": text("site-packages/torch/include/torch/extension.h", "// two\n"),
    "a new header that could hide another": text(
        "site-packages/nvidia/cu13/include/new.h", "// new\n"
    ),
    "a byte of the toolkit's headers": text(
        "site-packages/nvidia/cu13/include/crt/host_config.h", "//\n"
    ),
    "nvcc itself": text("site-packages/nvidia/cu13/bin/nvcc", "#!/bin/sh\nexit 2\n"),
    "ptxas": text("site-packages/nvidia/cu13/bin/ptxas", "#!/bin/sh\nexit 2\n"),
    "the host compiler": text("bin/c++", "#!/bin/sh\nexit 2\n"),
    "torch's C++ ABI": attribute("abi", value=False),
    "the architectures": attribute("archs", "9.0;12.0"),
    "the flags": attribute("arguments", {"extra_cflags": ["-O2"]}),
    "nvcc's variables": attribute("environ", {"NVCC_APPEND_FLAGS": "-lineinfo"}),
    "torch's version": another_torch,
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_key(inputs: Inputs, name: str) -> None:
    before = inputs.key()
    assert inputs.key() == before
    CHANGES[name](inputs)
    assert inputs.key() != before


def test_another_python_is_another_key(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    import sysconfig

    before = inputs.key()
    monkeypatch.setitem(sysconfig.get_config_vars(), "SOABI", "cpython-399-x86_64-linux-gnu")
    assert inputs.key() != before


def test_new_times_do_not(inputs: Inputs) -> None:
    before = inputs.key()
    now = time.time() - 60
    for path in inputs.folder.rglob("*"):
        os.utime(path, (now, now))
    assert inputs.key() == before


def test_another_spelling_of_the_same_places_does_not(inputs: Inputs) -> None:
    before = inputs.key()
    alias = inputs.folder / "alias"
    alias.symlink_to(inputs.folder)
    assert inputs.key(site=alias / "site-packages", source=alias / "source.cu") == before


def test_the_same_toolkit_by_two_variables_is_one_key(inputs: Inputs, tmp_path: Path) -> None:
    real = trees.system(tmp_path / "usr" / "local" / "cuda-13.2", "13.2")
    settle(real)
    (tmp_path / "usr" / "local" / "cuda").symlink_to(real)
    keys = set()
    for spelling in ("cuda", "cuda-13.2"):
        machine = Machine(
            environ={"PATH": "", "CUDA_HOME": str(tmp_path / "usr" / "local" / spelling)},
            top=tmp_path / "nothing",
        )
        toolkit = find_toolkit(
            13, "system", environment=trees.environment(), machine=machine, needs=("device",)
        )
        keys.add(
            jit_key(
                Sources(name="x", files=(tmp_path / "source.cu",), has_device_code=True),
                flags_of(toolkit, ("cudart",), driver=False, machine=machine),
                torch=inputs.torch,
                torch_abi=True,
                archs="9.0",
                compiler=inputs.folder / "bin" / "c++",
                digests=Digests(tmp_path / "digests"),
                environ={},
            )
        )
    assert len(keys) == 1


def test_a_digest_is_remembered_and_never_stale(tmp_path: Path) -> None:
    digests = Digests(tmp_path / "memory")
    path = trees.touch(tmp_path / "file", "one")
    first = digests.of_file(path)
    # It was just written: the next change could bear the same time, so nothing is remembered yet.
    assert not (tmp_path / "memory").exists()
    path.write_text("two")
    assert digests.of_file(path) != first


def test_a_memory_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    path = trees.touch(tmp_path / "file", "one")
    settle(tmp_path)
    trees.touch(tmp_path / "memory", "a file where the folder would be")
    digests = Digests(tmp_path / "memory")
    assert digests.of_file(path) == digests.of_file(path)


def store(tmp_path: Path) -> JitStore:
    folder = tmp_path / "key"
    folder.mkdir(exist_ok=True)
    return JitStore(folder, Digests(tmp_path / "memory"))


def finished(store: JitStore, header: Path, contents: str = "library") -> Path:
    library = trees.touch(store.new_folder() / "x.so", contents)
    store.add(library, (header,))
    return library


def test_a_result_counts_while_its_headers_are_what_they_were(tmp_path: Path) -> None:
    header = trees.touch(tmp_path / "a.h", "1")
    one = store(tmp_path)
    assert one.find() is None
    library = finished(one, header)
    assert store(tmp_path).find() == library
    header.write_text("2")
    assert store(tmp_path).find() is None
    other = finished(one, header)
    assert store(tmp_path).find() == other
    header.write_text("1")
    assert store(tmp_path).find() == library
    header.unlink()
    assert store(tmp_path).find() is None


def test_what_the_manifest_does_not_name_is_not_there(tmp_path: Path) -> None:
    one = store(tmp_path)
    leftover = trees.touch(one.new_folder() / "x.so", "half")
    assert one.find() is None
    library = finished(one, trees.touch(tmp_path / "a.h"))
    assert not leftover.exists()
    assert one.find() == library


def test_a_library_cut_short_is_not_loaded(tmp_path: Path) -> None:
    one = store(tmp_path)
    library = finished(one, trees.touch(tmp_path / "a.h"))
    library.write_text("lib")
    assert one.find() is None


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "{",
        "[]",
        '{"format": 9}',
        '{"format": 1, "results": [{"folder": "../..", "library": "x"}]}',
    ],
)
def test_a_damaged_manifest_is_an_empty_one(tmp_path: Path, manifest: str) -> None:
    one = store(tmp_path)
    finished(one, trees.touch(tmp_path / "a.h"))
    (one.folder / "manifest.json").write_text(manifest)
    assert one.find() is None


def test_old_results_go(tmp_path: Path) -> None:
    one = store(tmp_path)
    header = tmp_path / "a.h"
    libraries = []
    for number in range(6):
        header.write_text(str(number))
        libraries.append(finished(one, header))
    assert [library.exists() for library in libraries] == [False] * 2 + [True] * 4
    shutil.rmtree(libraries[-1].parent)
    assert one.find() is None
