"""What a server answered, once it was read."""

from collections.abc import Mapping

from wheelfarm.values import value


@value
class Response:
    """An answer: final address (after redirects), status, headers with lower-case names, body."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
