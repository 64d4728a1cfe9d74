"""Whatever a recipe or a policy holds, reading it ends in a value or in faults, never otherwise."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from wheelfarm.errors import FaultsError
from wheelfarm.recipes import schema
from wheelfarm.recipes.document import parse_document
from wheelfarm.recipes.load import load_recipe
from wheelfarm.recipes.model import FarmPolicy
from wheelfarm.recipes.policy import read_policy

WORDS = st.sampled_from(
    ["1.0", "2.10", "12.8", "12.8/2.9", "8.0;9.0+PTX", "linux", "3.11", "main", "v1.0", "../x",
     "x==1.0", "{VER:x}", "{LOCAL}", "", "\0", "a" * 300, "٣.٤", "\x1b[31m", "seat", "pinned"]
)  # fmt: skip
SCALARS = WORDS | st.text(max_size=8) | st.integers() | st.booleans() | st.none() | st.floats()
KEYS = sorted(
    {*schema.recipe_schema()["properties"], *schema.policy_schema()["properties"]}
    | {"pypi", "git", "tag", "commit", "path", "combinations", "cuda", "pytorch", "12.8", "x"}
    | {"python_versions", "import_name", "skip_arch", "expect_ops", "12.8/2.9"}
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)


@given(TABLES)
def test_any_recipe_ends_in_a_value_or_in_faults(table: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "recipe.yml"
        path.write_text(yaml.safe_dump({"name": "x", "source": {"pypi": "x==1"}, **table}))
        with contextlib.suppress(FaultsError):
            load_recipe(path)


@given(TABLES)
def test_any_policy_ends_in_a_value_or_in_faults(table: dict[str, Any]) -> None:
    document = parse_document(yaml.safe_dump(table), "farm.yml", [])
    reader = document.reader
    assert isinstance(read_policy(reader), FarmPolicy) or reader.faults


@given(st.text(max_size=60))
def test_any_text_is_a_document_or_has_faults(text: str) -> None:
    document = parse_document(text, "x.yml", [])
    assert document.faults or document.value is not None or text.strip() in {"", "~", "null"}
