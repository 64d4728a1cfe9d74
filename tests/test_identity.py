"""Kept results know the code that made them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import wheelfarm
from wheelfarm.build.cache_budget import inventory
from wheelfarm.identity import code_identity
from wheelfarm.verify.facts_cache import facts_folder


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of two rooms in the place of wheelfarm."""
    for name in ("__init__.py", "facts/elf.py", "facts/deep/pe.py", "model/cell.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(wheelfarm, "__file__", str(tmp_path / "__init__.py"))
    code_identity.cache_clear()
    yield tmp_path
    code_identity.cache_clear()


@pytest.mark.parametrize("changed", ["facts/elf.py", "facts/deep/pe.py", "model/cell.py"])
def test_a_changed_room_is_another(source: Path, changed: str) -> None:
    before = code_identity("facts", "model")
    (source / changed).write_text("x = 2\n", encoding="utf-8")
    code_identity.cache_clear()
    assert code_identity("facts", "model") != before


def test_other_rooms_do_not_count(source: Path) -> None:
    before = code_identity("facts")
    (source / "model" / "cell.py").write_text("x = 2\n", encoding="utf-8")
    code_identity.cache_clear()
    assert code_identity("facts") == before


def test_facts_that_other_code_read_are_not_used(source: Path) -> None:
    before = facts_folder()
    (source / "facts" / "elf.py").write_text("x = 2\n", encoding="utf-8")
    code_identity.cache_clear()
    assert facts_folder() != before


def test_facts_are_kept_where_the_budget_of_all_caches_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHEELFARM_CACHE", str(tmp_path))
    kept = facts_folder() / "entry.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}", encoding="utf-8")
    assert [item.path for item in inventory(tmp_path) if item.kind == "facts"] == [kept]
