"""From another index to a store: a flat page, a GitHub release list, a PEP 503 index, or a file.

Every wheel is downloaded, hashed, compared with the hash that the source gave, read and judged as a
stranger's; what the gate refuses stays out, with the reason.
"""

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from wheelfarm.errors import BadInputError, NegativeVerdictError, WheelfarmError
from wheelfarm.http import Client, HashMismatchError
from wheelfarm.index.listing import (
    Link,
    links_of_html,
    links_of_json,
    links_of_releases,
    looks_like_json,
    projects_of_html,
)
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.proof import proof_of
from wheelfarm.store.protocol import RefusedError, Store
from wheelfarm.store.publish import publish
from wheelfarm.values import replace
from wheelfarm.verify.gate import verify_wheel

Outcome = Literal["published", "unchanged", "restored", "skipped", "refused"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What became of one link."""

    link: Link
    outcome: Outcome
    reason: str = ""


def read_source(source: str, client: Client) -> tuple[Link, ...]:
    """Return the wheels that a source lists, each once.

    ``source`` is an address or a file. Raises BadInputError where it lists nothing at all, so that
    an empty page is never taken for an empty index.
    """
    if "://" in source:
        answer = client.get(source, accept="text/html, application/json;q=0.9, */*;q=0.1")
        links = _links(answer.body, answer.url, client)
    else:
        path = Path(source)
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            message = f"{source} {what}; an import reads an address or a file"
            hint = (
                "wheels that lie in a folder go in with `wheelfarm verify --report` and `publish`"
            )
            raise BadInputError(message, hint=hint)
        links = _links(path.read_bytes(), path.absolute().as_uri(), client)
    wheels = {link.url: link for link in links if link.filename.endswith(".whl")}
    if not wheels:
        message = f"{source} lists no wheel"
        raise BadInputError(message, hint="give a page of links, a release list or a simple index")
    return tuple(wheels.values())


def import_links(
    store: Store, links: Iterable[Link], client: Client, *, packages: frozenset[str] = frozenset()
) -> list[Imported]:
    """Publish every wheel of the links; with ``packages`` those of these projects alone."""
    return [_import(store, link, client, packages) for link in links]


def _links(data: bytes, url: str, client: Client) -> tuple[Link, ...]:
    document = looks_like_json(data)
    if isinstance(document, list):
        return links_of_releases(document, url)
    if isinstance(document, dict):
        return links_of_json(document, url)
    text = data.decode(errors="replace")
    projects = projects_of_html(text, url)
    if not projects:
        return links_of_html(text, url)
    found: list[Link] = []
    for project in projects:
        answer = client.get(project, accept="text/html")
        found += links_of_html(answer.body.decode(errors="replace"), answer.url)
    return tuple(found)


def _import(store: Store, link: Link, client: Client, packages: frozenset[str]) -> Imported:
    try:
        name = WheelName.parse(link.filename)
    except BadInputError as error:
        return Imported(link=link, outcome="refused", reason=error.what)
    if packages and name.package not in packages:
        return Imported(link=link, outcome="skipped", reason="another package")
    try:
        return Imported(link=link, outcome=_publish(store, link, client))
    except (RefusedError, HashMismatchError, BadInputError, NegativeVerdictError) as error:
        return Imported(link=link, outcome="refused", reason=_sentence(error))


def _publish(store: Store, link: Link, client: Client) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="wheelfarm-import-") as folder:
        wheel = Path(folder) / link.filename
        client.download(link.url, wheel, sha256=link.sha256 or None)
        report = verify_wheel(wheel)
        proof = proof_of(report, json.dumps(report.to_dict()).encode())
        note = f"import: from {urlsplit(link.url)._replace(netloc=_host(link.url)).geturl()}"
        return publish(store, wheel, replace(proof, warnings=(*proof.warnings, note))).outcome


def _host(url: str) -> str:
    """Return an address's host without a user name and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _sentence(error: WheelfarmError) -> str:
    return f"{error.what} ({error.cause})" if error.cause else error.what
