"""What a server answered, once it was read."""

import hashlib
from collections.abc import Mapping
from functools import cached_property

from wheelfarm.values import value


@value
class Response:
    """An answer: final address (after redirects), status, headers with lower-case names, body."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the body, in hexadecimal digits."""
        return hashlib.sha256(self.body).hexdigest()
