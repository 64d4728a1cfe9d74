"""The models in, their JSON schemas and reference page out: the docstrings are the documentation.

A dataclass keeps no docstring of a field, so the module's own source is read (as scikit-build-core
does for its settings). This runs when the documents are made, never when a recipe is read.
"""

import ast
import dataclasses
import inspect
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal

from packaging.version import Version

from wheelfarm.model.arch import ArchList
from wheelfarm.model.axis import TORCH_AXES
from wheelfarm.model.platform import PLATFORMS, Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.recipes import model

Schema = dict[str, Any]

_MINOR = r"^[0-9]+\.[0-9]+$"
#: Keys that take more than a version of two numbers: of a torch release the minor counts.
_PATTERNS = {
    "min_pytorch": r"^[0-9]+\.[0-9]+(\.[0-9]+)?$",
    "from_torch": r"^[0-9]+\.[0-9]+(\.[0-9]+)?$",
    "floor": r"^(native|[0-9]+\.[0-9]+)$",
}
_WORDS = sorted({word for item in PLATFORMS for word in (item.identifier, item.recipe_word)})
_PLAIN: dict[object, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number", "exclusiveMinimum": 0},
    Version: {"type": "string"},
    Path: {"type": "string"},
    Minor: {"type": "string", "pattern": _MINOR},
    ArchList: {"type": "string", "examples": ["8.0;9.0+PTX"]},
    Platform: {"enum": _WORDS},
    PythonTag: {"type": "string", "pattern": r"^3\.[0-9]+t?$"},
}

_STRING = {"type": "string"}
_SOURCE: Schema = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"pypi": _STRING},
            "required": ["pypi"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "git": _STRING,
                "tag": _STRING,
                "commit": {"type": "string", "pattern": "^[0-9a-f]{40}$"},
                "submodules": {"type": "boolean"},
            },
            "required": ["git"],
            "oneOf": [{"required": ["tag"]}, {"required": ["commit"]}],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"path": _STRING},
            "required": ["path"],
            "additionalProperties": False,
        },
    ]
}
#: Keys that are written otherwise than the model keeps them: model field -> keys.
_REWRITTEN: Mapping[str, Mapping[str, Schema]] = {
    "source": {
        "source": _SOURCE,
        "source_repo": {**_STRING, "description": "Short for GitHub: `owner/name`."},
        "source_tag": {**_STRING, "description": "The tag or commit of `source_repo`."},
        "clone_recursive": {
            "type": "boolean",
            "description": "Whether a git source comes with its submodules.",
        },
    },
    "torch_axis": {
        "torch_axis": {"enum": list(TORCH_AXES)},
        "links_torch": {
            "type": "boolean",
            "description": "Short for `torch_axis: linked` (true) or `free` (false).",
        },
    },
    "sharding": {
        "sharding": {"type": "integer", "minimum": 1, "maximum": 250},
        "sharding_platforms": {
            "type": "array",
            "items": {"enum": _WORDS},
            "description": "Where the build is split; by default everywhere.",
        },
        "shard_filter": {
            "enum": ["seat", "source"],
            "description": "How it is split: per compiled unit, or by the build's source list.",
        },
    },
}
_HIDDEN = {"torch_axis_stated", "folder"}
_REQUIRED = {
    model.Recipe: ["name"],
    model.FarmPolicy: ["platforms", "python_min", "supported_cudas"],
    model.Combination: ["cuda", "pytorch"],
}
#: A build matrix's rows are written with the words of existing farms.
_ROW: Mapping[str, Schema] = {
    "cuda": {"type": "string", "pattern": _MINOR, "description": "The CUDA line."},
    "pytorch": {
        "type": "string",
        "description": "A torch minor, or a release: then its cells are built against that.",
    },
    "python_versions": {
        "type": "array",
        "items": _PLAIN[PythonTag],
        "description": "The row's Pythons; by default all that PyTorch has.",
    },
}


def recipe_schema() -> Schema:
    """Return the JSON schema of a recipe."""
    schema = _schema_of(model.Recipe)
    schema["anyOf"] = [{"required": ["source"]}, {"required": ["source_repo", "source_tag"]}]
    return _document("wheelfarm recipe", schema)


def policy_schema() -> Schema:
    """Return the JSON schema of ``farm.yml``."""
    return _document("wheelfarm farm policy", _schema_of(model.FarmPolicy))


def _document(title: str, schema: Schema) -> Schema:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _schema_of(kind: type) -> Schema:
    properties: dict[str, Schema] = {}
    if kind is model.Combination:
        properties = {key: dict(value) for key, value in _ROW.items()}
    else:
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            if field.name not in _HIDDEN:
                properties |= _properties(kind, field.name, hints[field.name])
    return {
        "type": "object",
        "description": inspect.cleandoc(kind.__doc__ or ""),
        "properties": properties,
        "required": _REQUIRED.get(kind, []),
        "additionalProperties": False,
    }


def _properties(kind: type, name: str, hint: object) -> dict[str, Schema]:
    description = field_docs(kind)[name]
    if kind is model.Recipe and name in _REWRITTEN:
        keys = {key: dict(value) for key, value in _REWRITTEN[name].items()}
        keys[name]["description"] = description
        return keys
    schema = _schema_of_hint(hint)
    schema |= {"pattern": _PATTERNS[name]} if name in _PATTERNS else {}
    return {name: {**schema, "description": description}}


def _schema_of_hint(hint: object) -> Schema:
    """Return the schema of a type hint; TypeError for one that recipes have no form for."""
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _schema_of(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, UnionType}:
        (inner,) = (item for item in arguments if item is not NoneType)
        return _schema_of_hint(inner)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _schema_of_hint(arguments[0])}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema_of_hint(arguments[1])}
    message = f"{hint!r} has no schema"
    raise TypeError(message)


@cache
def field_docs(kind: type) -> Mapping[str, str]:
    """Return the docstring of each field of a model, with its lines joined."""
    found: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(model)).body:
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            for field, text in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(text, ast.Expr)
                    and isinstance(text.value, ast.Constant)
                ):
                    found[field.target.id] = " ".join(
                        str(text.value.value).replace("``", "`").split()
                    )
    return found


def reference_page() -> str:
    """Return the reference page of all keys, as Markdown."""
    parts = [
        "# Reference of recipes and farm policy\n",
        "Made from the models by `bin/generate-reference`; do not edit.\n",
    ]
    for title, schema in (
        ("`recipes/<package>/recipe.yml`", recipe_schema()),
        ("`farm.yml`", policy_schema()),
    ):
        parts += [f"## {title}\n", f"{schema['description']}\n", *_rows("", schema)]
    return "\n".join(parts) + "\n"


def _rows(prefix: str, schema: Schema) -> list[str]:
    rows = ["| key | form | meaning |", "|---|---|---|"]
    inner: list[str] = []
    for key, value in schema["properties"].items():
        required = " (required)" if key in schema["required"] else ""
        description = value.get("description", "").replace("|", "\\|")
        rows.append(f"| `{prefix}{key}`{required} | {_form(value)} | {description} |")
        nested = value.get("items", value)
        if "properties" in nested:
            dots = f"{prefix}{key}[]." if "items" in value else f"{prefix}{key}."
            inner += ["", f"`{prefix}{key}`:", "", *_rows(dots, nested)]
    return [*rows, *inner, ""] if not prefix else [*rows, *inner]


def _form(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "oneOf" in schema:
        return "table"
    kind = schema["type"]
    if kind == "array":
        return f"list of {_form(schema['items'])}"
    if kind == "object":
        rest = schema.get("additionalProperties")
        return f"table of {_form(rest)}" if isinstance(rest, dict) else "table"
    return str(kind)
