"""The user's own settings, from one file: the index, the farm's repository, logins by host.

It is ``wheelfarm/config.toml`` under ``XDG_CONFIG_HOME``, else under ``~/.config``, macOS's
``~/Library/Application Support`` or Windows's ``%LOCALAPPDATA%`` (XDG Base Directory Specification;
platformdirs has the same places). ``WHEELFARM_CONFIG`` names another file. Whoever writes it
decides where code comes from, and who is told a login.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from wheelfarm.errors import BadInputError
from wheelfarm.http import Login
from wheelfarm.reading import Reader
from wheelfarm.values import NOTHING, value


@value(unseen=("logins",))
class Configuration:
    """What a user set for all projects: index addresses by backend ("" for all), and the rest.

    ``logins`` maps addresses of hosts to what is told to them alone; it is never printed.
    """

    indexes: Mapping[str, str] = NOTHING
    releases: str = ""
    logins: Mapping[str, Login] = NOTHING


def config_file() -> Path:
    """Return where the user's settings stand, whether or not the file is there."""
    given = os.environ.get("WHEELFARM_CONFIG")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME")
    if base and os.name != "nt":
        folder = Path(base)
    elif os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        folder = Path(local) if local else Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path.home() / ".config"
    return folder / "wheelfarm" / "config.toml"


def read_configuration() -> Configuration:
    """Return the user's settings; empty where there is no file, FaultsError for a faulty one."""
    path = config_file()
    if not path.exists():
        if os.environ.get("WHEELFARM_CONFIG"):
            message = f"WHEELFARM_CONFIG names {path}, and there is no such file"
            raise BadInputError(message)
        return Configuration()
    from wheelfarm.reading import read_toml
    from wheelfarm.resolve.backends import read_indexes

    reader = Reader(read_toml(path), str(path))
    found = Configuration(
        indexes=read_indexes(reader),
        releases=reader.string("releases", ""),
        logins=_logins(reader),
    )
    reader.done()
    reader.finish()
    return found


def _names_host(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _logins(reader: Reader) -> dict[str, Login]:
    """Read ``[credentials."host"]``; a host without a scheme is one of https."""
    logins: dict[str, Login] = {}
    table = reader.table("credentials")
    for host in () if table is None else table.keys():
        entry = None if table is None else table.table(host)
        if entry is None:
            continue
        token = entry.optional_string("token")
        user, password = entry.optional_string("user"), entry.optional_string("password")
        entry.done()
        if (token is None) == (password is None):
            entry.fault("expected a token, or a user and a password")
            continue
        address = host if "://" in host else f"https://{host}"
        if not _names_host(address):
            entry.fault("expected a host such as wheels.example.org, or http://host:8080")
            continue
        logins[address] = Login(user=user or "", password=password or "", token=token or "")
    return logins
