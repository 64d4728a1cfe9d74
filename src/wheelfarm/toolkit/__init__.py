"""CUDA from pip wheels or a system: find it, make flags, a view (a CUDA_HOME) and a driver stub."""
