"""What a wheel's device code was built for: ``cu130``, later ``rocm7.0``."""

import re
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.model.versions import Minor
from wheelfarm.values import value

Kind = Literal["cuda", "rocm", "xpu", "cpu"]

_CUDA = re.compile(r"cu(\d{2,4})", re.ASCII)
_ROCM = r"rocm(\d+)\.(\d+)"
#: CUDA 9.2 is written ``cu92``; two digits that are a major alone are from CUDA 10 on.
_LONE_MAJORS = range(10, 20)


@value(kw_only=False, order=True)
class Accelerator:
    """A kind of device and its toolkit's version; ``cpu`` and ``xpu`` have none.

    A CUDA label that names a major alone (``cu12``) has ``version`` None and ``major`` 12.
    """

    kind: Kind
    major: int | None = None
    minor: int | None = None

    @classmethod
    def cuda(cls, version: Minor) -> "Accelerator":
        """Return the accelerator of a CUDA version."""
        return cls("cuda", version.major, version.minor)

    @classmethod
    def parse(cls, text: str) -> "Accelerator":
        """Read ``cu130``, ``cu92``, ``cu12`` (a major alone), ``rocm7.0``, ``xpu`` or ``cpu``.

        ``cu1210`` is CUDA 12.10: a major has two digits, the rest is the minor.
        """
        if text in {"cpu", "xpu"}:
            return cls("cpu" if text == "cpu" else "xpu")
        if (match := _CUDA.fullmatch(text)) is not None:
            return cls._cuda_digits(match[1])
        if (match := re.fullmatch(_ROCM, text, re.ASCII)) is not None:
            return cls("rocm", int(match[1]), int(match[2]))
        message = f"{text!r} is no accelerator; expected a word such as cu130, rocm7.0 or cpu"
        raise BadInputError(message)

    @classmethod
    def _cuda_digits(cls, digits: str) -> "Accelerator":
        if len(digits) == 2:  # noqa: PLR2004 - cu92, or a major alone
            number = int(digits)
            if number in _LONE_MAJORS:
                return cls("cuda", number)
            return cls("cuda", number // 10, number % 10)
        return cls("cuda", int(digits[:2]), int(digits[2:]))

    @property
    def version(self) -> Minor | None:
        """The toolkit's version, None where the label has no minor."""
        if self.major is None or self.minor is None:
            return None
        return Minor(self.major, self.minor)

    def __str__(self) -> str:
        if self.kind == "cuda":
            return f"cu{self.major}{'' if self.minor is None else self.minor}"
        return self.kind if self.version is None else f"{self.kind}{self.version}"
