"""Every wheel of an answer with a hash: where the index has none, the file itself is hashed.

Another file's hash is never used, and what cannot be downloaded is refused.
"""

import tempfile
from pathlib import Path

from wheelfarm.errors import NegativeVerdictError
from wheelfarm.http import Client, redacted
from wheelfarm.resolve.choose import Choice
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.values import replace


def with_hashes(resolution: Resolution, client: Client, *, download: bool = True) -> Resolution:
    """Return the answer with a hash for every wheel.

    Raises NegativeVerdictError where one has none and nothing may be downloaded.
    """
    choices = tuple(_hashed(choice, client, download) for choice in resolution.choices)
    return replace(resolution, answer=replace(resolution.answer, choices=choices))


def _hashed(choice: Choice, client: Client, download: bool) -> Choice:  # noqa: FBT001 - private
    entry = choice.candidate.entry
    if entry.sha256 is not None:
        return choice
    if not download or client.offline:
        message = f"the index has no hash of {entry.name}, and it may not be downloaded"
        raise NegativeVerdictError(message, hint="leave --no-download and --offline away")
    with tempfile.TemporaryDirectory(prefix="wheelfarm-hash-") as folder:
        path = Path(folder, "wheel")
        digest = client.download(entry.url, path)
        size = path.stat().st_size
    remark = f"the index has no hash: {redacted(entry.url)} was downloaded and hashed"
    candidate = choice.candidate.with_entry(replace(entry, sha256=digest, size=size))
    return replace(choice, candidate=candidate, remarks=(*choice.remarks, remark))
