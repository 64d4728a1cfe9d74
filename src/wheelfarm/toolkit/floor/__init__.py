"""The glibc floor: a host compiler and a glibc come in, libraries to link against go out."""
