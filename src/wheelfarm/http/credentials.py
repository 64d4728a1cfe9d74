"""Who we are, host by host: the address itself, the environment, settings, netrc.

A login goes to the scheme, host and port that it belongs to and nowhere else.

``WHEELFARM_TOKEN_<HOST>`` holds a bearer token and ``WHEELFARM_LOGIN_<HOST>`` a ``user:password``,
where ``<HOST>`` is the host (and its port, where it is not the scheme's own) in capitals with ``_``
for every other character: ``WHEELFARM_TOKEN_WHEELS_EXAMPLE_ORG``.
"""

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from wheelfarm.places import home_or_none
from wheelfarm.values import NOTHING, value

#: The one host that GitHub's own variables are for.
_GITHUB = "api.github.com"
_OWN_PORTS = {"http": 80, "https": 443}
#: Scheme, host and port.
Origin = tuple[str, str, int]


@value(unseen=("password", "token"))
class Login:
    """A user and password, or a bearer token; secrets are not shown."""

    user: str = ""
    password: str = ""
    token: str = ""

    @property
    def header(self) -> str:
        """The Authorization header."""
        return f"Bearer {self.token}" if self.token else _basic(self.user, self.password)


def origin(parts: SplitResult) -> Origin:
    """Return what a secret belongs to: scheme, host and port."""
    return parts.scheme, parts.hostname or "", parts.port or _OWN_PORTS.get(parts.scheme, 0)


def login_of(parts: SplitResult) -> Login | None:
    """Return the login that an address holds before its host; None where there is none."""
    if not parts.username:
        return None
    return Login(user=unquote(parts.username), password=unquote(parts.password or ""))


def without_login(url: str) -> str:
    """Return an address without a login before its host."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def authorization(
    parts: SplitResult, asked: SplitResult, settings: Mapping[Origin, Login] = NOTHING
) -> str | None:
    """Return the Authorization header for an address; None where we have nothing for its host.

    ``asked`` is the address that a user gave, whose own user name and password hold for its origin
    alone; ``parts`` is the one that is asked now, which a redirect may have chosen. ``settings``
    are the user's own, by origin.
    """
    own = login_of(asked)
    if own is not None and origin(parts) == origin(asked):
        return own.header
    return _told(parts, settings) or _from_netrc(parts.hostname or "")


def told_to_us_alone(parts: SplitResult, settings: Mapping[Origin, Login] = NOTHING) -> bool:
    """Return whether an address is asked for with a login that no other program would find."""
    return _told(parts, settings) is not None


def _told(parts: SplitResult, settings: Mapping[Origin, Login]) -> str | None:
    """Return the header of a login that stands in our own variables or settings."""
    name = _variable(parts)
    token = os.environ.get(f"WHEELFARM_TOKEN_{name}")
    if token:
        return f"Bearer {token}"
    login = os.environ.get(f"WHEELFARM_LOGIN_{name}")
    if login:
        return _basic(*login.partition(":")[::2])
    if (known := settings.get(origin(parts))) is not None:
        return known.header
    if parts.scheme == "https" and parts.hostname == _GITHUB:
        token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN")
        if token:
            return f"Bearer {token}"
    return None


def _variable(parts: SplitResult) -> str:
    scheme, host, port = origin(parts)
    text = host if port == _OWN_PORTS.get(scheme) else f"{host}:{port}"
    return re.sub(r"[^A-Z0-9]", "_", text.upper())


def _from_netrc(host: str) -> str | None:
    path = _netrc()
    if path is None:
        return None
    import netrc

    try:
        found = netrc.netrc(str(path)).hosts.get(host)
    except (netrc.NetrcParseError, OSError, UnicodeDecodeError):
        return None
    if found is None or not found[2]:
        return None
    return _basic(found[0] or "", found[2])


def _netrc() -> Path | None:
    """Return the netrc file, by the name that Windows' programs give it too; None without one."""
    if given := os.environ.get("NETRC"):
        paths = [Path(given)]
    else:
        home = home_or_none()
        paths = [] if home is None else [home / ".netrc", home / "_netrc"]
    return next((path for path in paths if path.is_file()), None)


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
