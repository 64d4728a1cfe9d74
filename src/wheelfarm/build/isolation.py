"""A command without a network: what is not in the environment cannot get into the wheel."""

from functools import lru_cache

from wheelfarm.errors import CouldNotLookError
from wheelfarm.run import run

#: An address that refuses at once: the discard port of this machine.
_DEAD_PROXY = "http://127.0.0.1:9"

#: Set in every compile, and all there is where the kernel grants no network namespace.
OFFLINE_ENVIRONMENT = {
    "PIP_NO_INDEX": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    **{
        name: _DEAD_PROXY
        for proxy in ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")
        for name in (proxy, proxy.upper())
    },
    "no_proxy": "",
    "NO_PROXY": "",
}


@lru_cache
def network_namespace() -> tuple[str, ...]:
    """Return the words that start a command in a network namespace of its own, or none at all.

    Root needs no user namespace; others are mapped to themselves where the kernel allows it.
    """
    for words in (("unshare", "--net"), ("unshare", "--user", "--map-current-user", "--net")):
        try:
            if run([*words, "true"], check=False, timeout=20).ok:
                return words
        except CouldNotLookError:
            return ()
    return ()
