"""wheelfarm: build, prove, publish and resolve the CUDA wheels of Python extensions."""

__version__ = "0.1.0"
