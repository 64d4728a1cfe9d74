"""The one door to the network: one client with retries, size limits and hash checks.

Absent (404, 410) is not failed: the first is ``NotFoundError``, the second ``UnreachableError``.
"""

from wheelfarm.http.cache import Cache, default_folder
from wheelfarm.http.client import MAX_FILE, MAX_PAGE, Client
from wheelfarm.http.credentials import Login
from wheelfarm.http.errors import (
    HashMismatchError,
    NotFoundError,
    OfflineError,
    RefusedError,
    TooLargeError,
    UnreachableError,
    redacted,
)
from wheelfarm.http.response import Response

__all__ = [
    "MAX_FILE",
    "MAX_PAGE",
    "Cache",
    "Client",
    "HashMismatchError",
    "Login",
    "NotFoundError",
    "OfflineError",
    "RefusedError",
    "Response",
    "TooLargeError",
    "UnreachableError",
    "default_folder",
    "redacted",
]
