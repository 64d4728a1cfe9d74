"""What units cost, kept in a store: hosts that measure at once lose nothing of each other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.build.sharding.test_guards import call
from wheelfarm.build.costs import CostBook, Costs, Measured
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.farm_files import farm_workspace
from wheelfarm.errors import BadInputError
from wheelfarm.recipes.load import load_farm
from wheelfarm.store.costs import StoredCosts
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.protocol import StoreConflictError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def measured(at: str = NEW, **seconds: float) -> Costs:
    return Costs(
        {
            f"csrc/{name}.cu": {2: Measured(archs=2, seconds=value, peak=7, at=at)}
            for name, value in seconds.items()
        }
    )


def seconds_of(costs: Costs) -> dict[str, float]:
    return {key: values[2].seconds for key, values in costs.measured.items()}


class Interrupted(DirectoryStore):
    """A store in which another host is faster once."""

    def __init__(self, root: Path, other: Costs) -> None:
        super().__init__(root)
        self.other: Costs | None = other

    def replace_costs(self, package: str, data: bytes, token: str) -> None:
        other, self.other = self.other, None
        if other is not None:
            StoredCosts(lambda: DirectoryStore(self.root)).add(package, other)
        super().replace_costs(package, data, token)


def test_costs_of_two_hosts_at_once_are_both_kept(tmp_path: Path) -> None:
    store = Interrupted(tmp_path / "store", measured(b=2.0, c=9.0))
    book = StoredCosts(lambda: store)
    assert book.read("torch_demo").measured == {}
    book.add("torch_demo", measured(a=1.0, c=3.0, at=OLD))
    assert store.other is None
    found = StoredCosts(lambda: DirectoryStore(tmp_path / "store")).read("torch_demo")
    assert seconds_of(found) == {"csrc/a.cu": 1.0, "csrc/b.cu": 2.0, "csrc/c.cu": 9.0}
    state = store.costs("torch-demo")
    # Much as before: the store is left alone.
    book.add("torch_demo", measured(a=1.5, c=10.0))
    assert store.costs("torch-demo") == state
    book.add("torch_demo", measured(a=4.0, c=10.0))
    assert seconds_of(book.read("torch_demo"))["csrc/a.cu"] == 4.0
    assert seconds_of(book.read("torch_demo"))["csrc/c.cu"] == 9.0
    state = store.costs("torch-demo")
    grown = Measured(archs=2, seconds=4.0, peak=9, at=NEW)
    book.add("torch_demo", Costs({"csrc/a.cu": {2: grown}}))
    assert store.costs("torch-demo") != state
    with pytest.raises(StoreConflictError):
        store.replace_costs("torch-demo", b"{}", "")
    # Costs are no wheels: a catalogue is not made, and files of the package are not listed.
    assert store.heads() == {}
    assert list(store.blobs("torch-demo")) == []


def test_a_build_adds_to_both_and_a_plan_reads_what_others_measured(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    StoredCosts(lambda: store).add("demo", measured(a=1.0, at=OLD))
    book = CostBook(tmp_path / "here/demo.json", "demo", StoredCosts(lambda: store))
    compiled = call("csrc/b.cu", seconds=5.0, argv=("-gencode=arch=compute_80,code=[sm_80,sm_90]",))
    book.add([compiled, call("csrc/c.cu", cache="hit")])
    assert book.peak() == 5
    assert seconds_of(book.read()) == {"csrc/a.cu": 1.0, "csrc/b.cu": 5.0}
    assert book.peak() == 7
    # Kept here for what looks at the file alone, and for a day without the store.
    assert seconds_of(Costs.read(book.path)) == {"csrc/a.cu": 1.0, "csrc/b.cu": 5.0}
    assert StoredCosts(lambda: store).read("demo").measured["csrc/b.cu"][2].at > NEW


def test_without_the_store_the_machines_own_costs_serve(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def unreachable() -> DirectoryStore:
        message = "the store did not answer"
        raise StoreError(message)

    book = CostBook(tmp_path / "demo.json", "demo", StoredCosts(unreachable))
    with caplog.at_level(logging.WARNING):
        book.add([call("csrc/a.cu", seconds=4.0)])
        assert book.read().measured["csrc/a.cu"][0].seconds == 4.0
    assert [record.getMessage() for record in caplog.records] == [
        "the costs of demo could not be shared: the store did not answer",
        "the shared costs of demo could not be read: the store did not answer",
    ]
    broken = DirectoryStore(tmp_path / "store")
    broken.replace_costs("demo", b'{"schema": "else"}', "")
    with pytest.raises(BadInputError, match="costs of demo"):
        StoredCosts(lambda: broken).read("demo")


def test_a_farms_builds_share_costs_by_its_store_once_that_is_made(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "farm.yml").write_text(
        'platforms: [linux_x86_64]\npython_min: "3.10"\nsupported_cudas: ["13.0"]\n'
        'arch_policy: {"13.0": "8.0"}\n'
    )
    farm = load_farm(tmp_path)
    assert farm_workspace(farm) == Workspace.of(tmp_path)
    store = DirectoryStore(tmp_path / "store")
    StoredCosts(lambda: store).add("demo", measured(a=1.0))
    found = farm_workspace(farm).costs("demo")
    assert found.shared is not None
    assert seconds_of(found.shared.read("demo")) == {"csrc/a.cu": 1.0}
