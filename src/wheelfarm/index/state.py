"""What a build remembers of the site that it wrote: per package, and of the pages over all."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.index.tree import SiteTree
from wheelfarm.reading import parse_json

#: Raised whenever pages would look different for the same records.
FORMAT = 1
#: Before a state's hash of its own text, which is its last key.
_MARK = b', "sha256": '


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageState:
    """A package as the last build left it.

    ``token`` names the catalogue's state, ``pages`` each page's hash, ``files`` the hosted files
    (keys in the store), ``summary`` what the pages over all packages say of it.
    """

    token: str
    pages: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteState:
    """The last build: its inputs, each package's token and summary, the common pages."""

    inputs: str = ""
    packages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, tree: SiteTree) -> "SiteState":
        """Return what the last build of this folder left; nothing for a new one."""
        document = _read(tree, "state.json")
        if document is None:
            return cls()
        inputs = str(document["inputs"]) if document.get("format") == FORMAT else ""
        return cls(inputs=inputs, packages=document["packages"], pages=document["pages"])

    def to_bytes(self) -> bytes:
        """Return the document of ``state.json``."""
        return _bytes(
            {
                "format": FORMAT,
                "inputs": self.inputs,
                "packages": dict(self.packages),
                "pages": dict(self.pages),
            }
        )


def load_package(tree: SiteTree, package: str) -> PackageState | None:
    """Return a package's state, None where the last build did not have it."""
    document = _read(tree, f"packages/{package}.json")
    if document is None:
        return None
    return PackageState(
        token=document["token"],
        pages=document["pages"],
        files=tuple(document["files"]),
        summary=document["summary"],
    )


def package_bytes(state: PackageState) -> bytes:
    """Return the document of a package's state."""
    return _bytes(
        {
            "token": state.token,
            "pages": dict(state.pages),
            "files": list(state.files),
            "summary": dict(state.summary),
        }
    )


def digest(data: bytes) -> str:
    """Return a page's hash, long enough to see that it changed."""
    return hashlib.sha256(data).hexdigest()


def _read(tree: SiteTree, name: str) -> Any:
    """Return a document as it was written; BadInputError where it is damaged.

    The states of an older wheelfarm have no hash of themselves and are taken as they are.
    """
    path = tree.state / name
    if not path.exists():
        return None
    data = path.read_bytes()
    body, mark, known = data.rpartition(_MARK)
    hint = f"remove {path}; the next build writes the pages anew"
    if mark and known != _sealed(body):
        message = f"{path} is damaged: it is not what the last build wrote"
        raise BadInputError(message, hint=hint)
    try:
        document = parse_json(data, str(path))
    except BadInputError as error:
        raise BadInputError(error.what, cause=error.cause, hint=hint) from error
    if not isinstance(document, dict):
        message = f"{path} is damaged: it is no table"
        raise BadInputError(message, hint=hint)
    return document


def _bytes(document: Mapping[str, Any]) -> bytes:
    body = json.dumps(document, sort_keys=True).encode().removesuffix(b"}")
    return body + _MARK + _sealed(body)


def _sealed(body: bytes) -> bytes:
    """Return how a document ends whose text before its own hash is ``body``."""
    return f'"{digest(body)}"}}'.encode()
