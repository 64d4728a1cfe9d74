"""JSON Schemas of the manifest's documents, published beside them."""

from typing import Any

from wheelfarm.index.model import MANIFEST_SCHEMA, PACKAGE_SCHEMA
from wheelfarm.model.axis import TORCH_AXES

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_HASH: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_MINOR: dict[str, Any] = {"type": "string", "pattern": r"^\d+\.\d+$"}
_ARCHS: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "pattern": r"^\d+\.\d[af]?$"},
}
_COMBINATION: dict[str, Any] = {
    "type": "object",
    "required": ["accelerator", "torch"],
    "properties": {"accelerator": _TEXT, "torch": _MINOR},
}


def manifest_json_schema() -> dict[str, Any]:
    """Return the schema of ``/manifest/index.json``."""
    part = {
        "type": "object",
        "required": ["url", "sha256", "versions", "wheels"],
        "properties": {
            "url": _TEXT,
            "sha256": _HASH,
            "versions": _TEXTS,
            "wheels": {"type": "integer", "minimum": 0},
        },
    }
    return {
        "$schema": _DIALECT,
        "title": "The packages and channels of a wheel site",
        "type": "object",
        "required": ["schema", "packages", "combinations"],
        "properties": {
            "schema": {"const": MANIFEST_SCHEMA},
            "packages": {"type": "object", "additionalProperties": part},
            "combinations": {"type": "array", "items": _COMBINATION},
            "fallback": {"anyOf": [{"type": "null"}, _COMBINATION]},
            "releases": {"type": "string", "description": "owner/name of a GitHub repository"},
        },
    }


_WHEEL: dict[str, Any] = {
    "type": "object",
    "required": ["filename", "url", "sha256"],
    "properties": {
        "filename": {"type": "string", "pattern": r"\.whl$"},
        "url": {"type": "string", "description": "absolute, or relative to this document"},
        "sha256": _HASH,
        "size": {"type": "integer", "minimum": 0, "description": "bytes"},
        "metadata_sha256": _HASH,
        "requires_python": _TEXT,
        "requires_dist": _TEXTS,
        "yanked": {"type": "string", "description": "the reason; absent for a good wheel"},
        "torch_axis": {"enum": list(TORCH_AXES)},
        "from_torch": _MINOR,
        "cxx_abi": {"enum": [0, 1]},
        "glibc": _MINOR,
        "toolkit": _MINOR,
        "needs_driver": {"type": "boolean"},
        "runtime_jit": {"type": "boolean"},
        "libraries": _TEXTS,
        "modules": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "sass", "ptx"],
                "properties": {"path": _TEXT, "sass": _ARCHS, "ptx": _ARCHS},
            },
        },
        "uploaded": _TEXT,
        "report": _HASH,
        "warnings": _TEXTS,
        "channels": _TEXTS,
    },
}

PACKAGE_JSON_SCHEMA: dict[str, Any] = {
    "$schema": _DIALECT,
    "title": "One package's wheels",
    "type": "object",
    "required": ["schema", "package", "wheels"],
    "properties": {
        "schema": {"const": PACKAGE_SCHEMA},
        "package": _TEXT,
        "wheels": {"type": "array", "items": _WHEEL},
    },
}
"""The schema of ``/manifest/packages/<package>.json``."""
