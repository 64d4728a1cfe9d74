"""Count the kernels."""

from tiny_sharded._C import kernels

__all__ = ["kernels"]
