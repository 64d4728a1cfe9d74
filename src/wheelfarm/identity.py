"""Which code made a kept result: names of rooms come in, a digest of their source goes out.

What a step or a check answers depends on its inputs and on its own code. A kept answer whose key
lacked the code would outlive the mend of a fault in it.
"""

import functools
import hashlib
from pathlib import Path

import wheelfarm


@functools.cache
def code_identity(*rooms: str) -> str:
    """Return 16 hexadecimal digits of the source of rooms, such as ``facts``.

    Where wheelfarm lies without its source, its version stands for it.
    """
    root = Path(wheelfarm.__file__).parent
    digest = hashlib.sha256(wheelfarm.__version__.encode())
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
