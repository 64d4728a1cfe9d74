"""The way to an index, before anything is known of it: a client, and the manifest's address.

Light, so that the first request is on its way while the rest of the resolver is still imported.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from wheelfarm.errors import BadInputError
from wheelfarm.http import Cache, Client, Login, default_folder, redacted
from wheelfarm.values import NOTHING

#: The form in which manifests are asked for.
JSON = "application/json"


def make_client(
    *, offline: bool = False, cache: bool = True, logins: Mapping[str, Login] = NOTHING
) -> Client:
    """Return the client of the user side, with its cache of pages."""
    wanted = offline or bool(os.environ.get("WHEELFARM_OFFLINE"))
    kept = Cache(default_folder()) if cache or wanted else None
    return Client(cache=kept, offline=wanted, logins=logins)


def ask_ahead(client: Client, address: str | None) -> None:
    """Begin to ask for the manifest of an index that is named, if it is one of the network."""
    if address is not None and address.startswith(("http://", "https://")):
        client.ahead(manifest_address(client.learn_login(index_root(address))), accept=JSON)


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


def manifest_address(root: str) -> str:
    """Return where an index's manifest stands, if it has one."""
    site = urljoin(root, "..") if root.endswith("/simple/") else root
    return urljoin(site, "manifest/index.json")
