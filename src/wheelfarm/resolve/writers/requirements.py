"""``requirements.txt``: every wheel by its address, with its hash."""

from urllib.parse import urlsplit, urlunsplit

from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.resolution import Resolution


def address(candidate: Candidate) -> str:
    """Return a wheel's address, ``+`` of its file name written ``%2B`` (stores read + as blank)."""
    parts = urlsplit(candidate.entry.url)
    return urlunsplit(parts._replace(path=parts.path.replace("+", "%2B"), fragment=""))


def requirement(candidate: Candidate) -> str:
    """Return one pinned requirement: name, address and hash in the form pip and uv check."""
    return f"{candidate.package} @ {address(candidate)} --hash=sha256:{candidate.entry.sha256}"


def write(resolution: Resolution) -> str:
    """Return the file's text; the torch that the wheels are for stands in a comment."""
    lines = [f"# wheels for {resolution.answer.target}; install with --no-deps"]
    lines += [requirement(choice.candidate) for choice in resolution.choices]
    return "\n".join(lines) + "\n"
