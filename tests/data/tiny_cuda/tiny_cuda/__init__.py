"""A CUDA extension as small as one can be."""

from tiny_cuda._C import add, device_count

__all__ = ["add", "device_count"]
