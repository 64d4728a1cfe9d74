"""What can go wrong on the network, and an address without its secrets."""

from urllib.parse import SplitResult, urlsplit

from wheelfarm.errors import BadInputError, CouldNotLookError


class UnreachableError(CouldNotLookError):
    """A server did not answer, or not with what it announced."""

    def __init__(self, url: str, why: str, *, hint: str = "") -> None:
        self.url = url
        self.why = why
        super().__init__(
            f"{redacted(url)} could not be read: {why}",
            hint=hint or "check the network, the proxy settings and the address",
        )


class NotFoundError(CouldNotLookError):
    """The server answered, and there is nothing at this address."""

    def __init__(self, url: str, status: int) -> None:
        self.url = url
        self.status = status
        super().__init__(f"there is nothing at {redacted(url)} (HTTP {status})")


class RefusedError(CouldNotLookError):
    """The server answered that we may not see this, or that the request is wrong."""

    def __init__(self, url: str, status: int) -> None:
        self.url = url
        self.status = status
        hint = ""
        if status in {401, 403, 407}:
            hint = "give credentials for this host: netrc, or WHEELFARM_TOKEN_<HOST>"
        super().__init__(f"{redacted(url)} answered HTTP {status}", hint=hint)


class OfflineError(CouldNotLookError):
    """Offline, and the cache does not hold this address."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(
            f"{redacted(url)} is not in the cache, and we are offline",
            hint="run once without --offline",
        )


class TooLargeError(BadInputError):
    """An answer is larger than what it may be."""

    def __init__(self, url: str, limit: int) -> None:
        self.url = url
        super().__init__(f"{redacted(url)} is larger than {limit} bytes")


class HashMismatchError(BadInputError):
    """A file's bytes are not those that were promised."""

    def __init__(self, what: str, expected: str, actual: str) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"{what} has sha256 {actual}, expected {expected}",
            cause="the file changed under its name, or was damaged or replaced on the way",
        )


def redacted(url: str) -> str:
    """Return an address without its user name, password and query (which may hold a signature)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2].partition("?")[0]
    clean = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    if clean.query:
        clean = clean._replace(query="...")
    return clean.geturl()


def split_address(url: str) -> SplitResult:
    """Return an address's parts; UnreachableError for a host or a port that cannot be."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UnreachableError(url, f"it is no address ({error})") from error
    return parts
