"""How a module gets the symbols of its C++ library that systems of the glibc floor lack."""

from typing import Literal

#: ``shared`` links the system's libstdc++ alone, and a newer symbol stops the build; ``static``
#: makes what is newer, and nothing else, a hidden part of the module.
LibstdcxxChoice = Literal["shared", "static"]
LIBSTDCXX_CHOICES: tuple[LibstdcxxChoice, ...] = ("shared", "static")
