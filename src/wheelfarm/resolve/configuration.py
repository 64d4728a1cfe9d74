"""The user's own settings, from one file: the index, the farm's repository, logins by host.

It is ``wheelfarm/config.toml`` under ``XDG_CONFIG_HOME``, else under ``~/.config``, macOS's
``~/Library/Application Support`` or Windows's ``%LOCALAPPDATA%`` (XDG Base Directory Specification;
platformdirs has the same places). ``WHEELFARM_CONFIG`` names another file. Whoever writes it
decides where code comes from, and who is told a login.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TypeVar
from urllib.parse import urlsplit

from wheelfarm.errors import BadInputError
from wheelfarm.http import Login
from wheelfarm.places import home_or_none
from wheelfarm.reading import Reader
from wheelfarm.values import NOTHING, value

AnyPath = TypeVar("AnyPath", bound=PurePath)


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
    system = "windows" if os.name == "nt" else sys.platform
    # Nothing lies below a file: a user without a home has no settings.
    return config_place(system, os.environ, home_or_none() or Path(os.devnull))


def config_place(system: str, environment: Mapping[str, str], home: AnyPath) -> AnyPath:
    """Return where settings stand on ``windows``, ``darwin`` or any other system.

    Paths are of the kind that ``home`` is.
    """
    if given := environment.get("WHEELFARM_CONFIG"):
        return type(home)(given)
    base = environment.get("LOCALAPPDATA" if system == "windows" else "XDG_CONFIG_HOME")
    if base:
        folder = type(home)(base)
    elif system == "windows":
        folder = home / "AppData" / "Local"
    elif system == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = home / ".config"
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
