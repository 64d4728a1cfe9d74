"""A project's name as indexes compare it (PEP 503)."""

import re

_SEPARATORS = re.compile(r"[-_.]+")


def normalized(name: str) -> str:
    """Return a project's normalised name: small letters, runs of ``-_.`` as one hyphen.

    The same as ``packaging.utils.canonicalize_name``, whose module imports half of ``packaging``:
    20 ms that a user of the resolver would wait for one line.
    """
    return _SEPARATORS.sub("-", name).lower()
