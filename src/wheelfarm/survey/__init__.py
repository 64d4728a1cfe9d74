"""Does this source tree link libtorch? Evidence from its build files, which are never run."""
