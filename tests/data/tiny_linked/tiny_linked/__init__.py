"""Ask torch's core library for the name of a type."""

import torch
from tiny_linked._C import name

__all__ = ["name", "torch"]
