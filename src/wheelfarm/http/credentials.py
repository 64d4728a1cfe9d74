"""Who we are, host by host: the address itself, the environment, netrc. Never sent elsewhere.

``WHEELFARM_TOKEN_<HOST>`` holds a bearer token and ``WHEELFARM_LOGIN_<HOST>`` a ``user:password``,
where ``<HOST>`` is the host (and its port, where it is not the scheme's own) in capitals with ``_``
for every other character: ``WHEELFARM_TOKEN_WHEELS_EXAMPLE_ORG``.
"""

import base64
import os
import re
from pathlib import Path
from urllib.parse import SplitResult, unquote

#: The one host that GitHub's own variables are for.
_GITHUB = "api.github.com"
_OWN_PORTS = {"http": 80, "https": 443}


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """Return what a secret belongs to: scheme, host and port."""
    return parts.scheme, parts.hostname or "", parts.port or _OWN_PORTS.get(parts.scheme, 0)


def authorization(parts: SplitResult, asked: SplitResult) -> str | None:
    """Return the Authorization header for an address; None where we have nothing for its host.

    ``asked`` is the address that a user gave, whose own user name and password hold for its origin
    alone; ``parts`` is the one that is asked now, which a redirect may have chosen.
    """
    if asked.username and origin(parts) == origin(asked):
        return _basic(unquote(asked.username), unquote(asked.password or ""))
    name = _variable(parts)
    token = os.environ.get(f"WHEELFARM_TOKEN_{name}")
    if token:
        return f"Bearer {token}"
    login = os.environ.get(f"WHEELFARM_LOGIN_{name}")
    if login:
        return _basic(*login.partition(":")[::2])
    if parts.scheme == "https" and parts.hostname == _GITHUB:
        token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN")
        if token:
            return f"Bearer {token}"
    return _from_netrc(parts.hostname or "")


def _variable(parts: SplitResult) -> str:
    scheme, host, port = origin(parts)
    text = host if port == _OWN_PORTS.get(scheme) else f"{host}:{port}"
    return re.sub(r"[^A-Z0-9]", "_", text.upper())


def _from_netrc(host: str) -> str | None:
    path = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    if not path.is_file():
        return None
    import netrc

    try:
        found = netrc.netrc(str(path)).hosts.get(host)
    except (netrc.NetrcParseError, OSError):
        return None
    if found is None or not found[2]:
        return None
    return _basic(found[0] or "", found[2])


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
