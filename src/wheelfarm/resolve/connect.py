"""The way to an index, before anything is known of it: a client, and the manifest's address.

Light, so that the first request is on its way while the rest of the resolver is still imported.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from wheelfarm.errors import BadInputError
from wheelfarm.http import Cache, Client, Login, Response, default_folder, redacted
from wheelfarm.model.project_name import normalized
from wheelfarm.values import NOTHING

#: The form in which manifests are asked for.
JSON = "application/json"
#: How many pages are asked for at once.
AT_ONCE = 8


def make_client(
    *, offline: bool = False, cache: bool = True, logins: Mapping[str, Login] = NOTHING
) -> Client:
    """Return the client of the user side, with its cache of pages."""
    wanted = offline or bool(os.environ.get("WHEELFARM_OFFLINE"))
    kept = Cache(default_folder()) if cache or wanted else None
    return Client(cache=kept, offline=wanted, logins=logins)


def ask_ahead(client: Client, address: str | None, wanted: Iterable[str] = ()) -> None:
    """Begin to ask an index of the network for its manifest, and for the parts of what is wanted.

    ``wanted`` are requirements as a user writes them. Nothing is judged here: whoever needs an
    answer reads it, and says what is wrong with it.
    """
    if address is None or not address.startswith(("http://", "https://")):
        return
    url = manifest_address(client.learn_login(index_root(address)))
    found = (re.match(r"[\w.-]+", word, re.ASCII) for word in wanted)
    names = [normalized(match[0]) for match in found if match is not None]

    def ask_parts(answer: Response) -> None:
        for part in _parts_of(answer.body, names[:AT_ONCE]):
            with contextlib.suppress(BadInputError):
                client.ahead(part_address(url, part), accept=JSON)

    client.ahead_apart(url, accept=JSON, then=ask_parts)


def _parts_of(body: bytes, names: Iterable[str]) -> Iterator[str]:
    """Yield what a manifest says of where parts stand; what is faulty is left to its reader."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return
    packages = document.get("packages") if isinstance(document, dict) else None
    if not isinstance(packages, dict):
        return
    for entry in map(packages.get, names):
        url = entry.get("url") if isinstance(entry, dict) else None
        if isinstance(url, str):
            yield url


def index_root(address: str) -> str:
    """Return an index's address, that of a folder included, with a slash at its end.

    Raises BadInputError for what is neither an address nor a folder.
    """
    if not address.startswith(("http://", "https://", "file://")):
        folder = Path(address)
        if not folder.is_dir():
            message = f"{redacted(address)!r} is no index address and no folder"
            raise BadInputError(message, hint="give https://..., or the folder of a bundle")
        address = folder.resolve().as_uri()
    _check_parts(address)
    return address if address.endswith("/") else f"{address}/"


def _check_parts(address: str) -> None:
    """Raise BadInputError for a host or a port that cannot be; no login is repeated."""
    try:
        _ = urlsplit(address).port
    except ValueError as error:
        message = f"the address of the index, {address.rpartition('@')[2]!r}, is none"
        raise BadInputError(message, cause=str(error)) from error


def part_address(manifest: str, url: str) -> str:
    """Return where a package's part of a manifest stands, as the manifest at an address names it.

    Raises BadInputError for an address that no manifest of its kind may name, such as our disk's.
    """
    try:
        address = urljoin(manifest, url)
    except ValueError as error:
        message = f"{redacted(manifest)} names a part at what is no address"
        raise BadInputError(message, cause=str(error)) from error
    own = ("file:",) if manifest.startswith("file:") else ()
    if address.startswith(("http://", "https://", *own)):
        return address
    message = f"{redacted(manifest)} names a part at an address that it may not name"
    raise BadInputError(message, cause=f"its kind is {address.partition(':')[0]!r}")


def manifest_address(root: str) -> str:
    """Return where an index's manifest stands, if it has one."""
    site = urljoin(root, "..") if root.endswith("/simple/") else root
    return urljoin(site, "manifest/index.json")
