"""Archives as members of wheels: each form, with files of any bytes in it."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import zstandard

Content = bytes | Path


def _bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def zipped(members: Mapping[str, Content], packed: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", packed) as archive:
        for name, content in members.items():
            archive.writestr(name, _bytes(content))
    return target.getvalue()


def tarred(members: Mapping[str, Content]) -> bytes:
    """Return a tar."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in members.items():
            data = _bytes(content)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target.getvalue()


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
