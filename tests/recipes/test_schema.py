"""The generated documents are current, and say what the loader takes."""

import importlib.machinery
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml

from tests.recipes.farms import POLICY
from tests.recipes.test_load import FULL
from wheelfarm.recipes import schema
from wheelfarm.recipes.document import parse_document
from wheelfarm.recipes.model import Defaults
from wheelfarm.recipes.policy import read_policy
from wheelfarm.recipes.recipe import read_recipe


def generator(repository: Path) -> ModuleType:
    path = str(repository / "bin" / "generate-reference")
    loader = importlib.machinery.SourceFileLoader("generate_reference", path)
    spec = importlib.util.spec_from_loader("generate_reference", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_committed_documents_are_current(repository: Path) -> None:
    for path, text in generator(repository).documents().items():
        assert path.read_text() == text, f"run bin/generate-reference: {path.name} is old"


def known_keys(text: str, *, policy: bool) -> set[str]:
    document = parse_document(text, "x", [])
    reader = document.reader
    if policy:
        read_policy(reader)
    else:
        read_recipe(reader, Path(), Defaults())
    return set(reader._asked)


def test_the_schemas_have_the_keys_that_the_loader_takes() -> None:
    recipes = known_keys("name: x\nsource: {path: x}", policy=False) | {"source_tag"}
    assert set(schema.recipe_schema()["properties"]) == recipes
    assert set(schema.policy_schema()["properties"]) == known_keys(POLICY, policy=True)


def test_every_key_is_described() -> None:
    def check(part: dict[str, Any], where: str) -> None:
        for key, value in part.get("properties", {}).items():
            assert value.get("description"), f"{where}{key}"
            check(value.get("items", value), f"{where}{key}.")

    check(schema.recipe_schema(), "")
    check(schema.policy_schema(), "")


def test_the_schemas_take_what_the_loader_takes(repository: Path) -> None:
    demo = repository / "examples" / "demo-farm"
    jsonschema.validate(yaml.safe_load(FULL), schema.recipe_schema())
    jsonschema.validate(yaml.safe_load(POLICY), schema.policy_schema())
    jsonschema.validate(yaml.safe_load((demo / "farm.yml").read_text()), schema.policy_schema())
    recipe = yaml.safe_load((demo / "recipes/diso/recipe.yml").read_text())
    jsonschema.validate(recipe, schema.recipe_schema())


@pytest.mark.parametrize(
    "change",
    [
        {"nmae": "x"},
        {"min_pytorch": 2.1},
        {"source": {"git": "https://a.example/x"}},
        {"platforms": ["linux"]},
        {"torch_axis": "loose"},
        {"verify": {"import_nam": "x"}},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(change: dict[str, Any]) -> None:
    table = {"name": "x", "source": {"pypi": "x==1"}, **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(table, schema.recipe_schema())
    document = parse_document(json.dumps(table), "x", [])
    read_recipe(document.reader, Path(), Defaults())
    assert document.faults
