"""The metadata file beside a wheel (PEP 658, 714), for wheels of which only the name is known."""

import hashlib
import re
from email.parser import HeaderParser
from urllib.parse import urlsplit

from wheelfarm.http import Client, HashMismatchError, NotFoundError, redacted
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.values import replace

_SHA256 = r"[0-9a-f]{64}"
#: No METADATA is larger (bytes).
_LIMIT = 4 << 20


def with_metadata(candidate: Candidate, client: Client) -> Candidate:
    """Return the candidate with what its metadata requires; hash-checked where the page has one.

    A metadata file that is advertised and not there leaves the requirements unknown (empty).
    """
    parts = urlsplit(candidate.entry.url)
    url = parts._replace(path=f"{parts.path}.metadata").geturl()
    try:
        body = client.get(url, limit=_LIMIT).body
    except NotFoundError:
        return candidate.with_entry(replace(candidate.entry, metadata_sha256=None))
    promised = candidate.entry.metadata_sha256 or ""
    actual = hashlib.sha256(body).hexdigest()
    if re.fullmatch(_SHA256, promised) and promised != actual:
        raise HashMismatchError(redacted(url), promised, actual)
    message = HeaderParser().parsestr(body.decode("utf-8", "replace"))
    entry = replace(
        candidate.entry,
        requires_dist=tuple(message.get_all("Requires-Dist") or ()),
        requires_python=message.get("Requires-Python") or candidate.entry.requires_python,
    )
    return candidate.with_entry(entry)
