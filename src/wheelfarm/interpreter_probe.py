"""What a Python says of itself, as JSON on its output; also called in the running process.

The text of this file is handed to other interpreters with ``-c``. It runs on every Python 3 and
imports the standard library alone, only after the working folder has left the search path.
"""

import sys


def answer(folders: bool) -> "dict[str, object]":  # noqa: FBT001 - a script's own call
    """Return what this interpreter is; with ``folders`` also sysconfig's, which costs more."""
    import os
    import site

    user = site.getusersitepackages()
    said = {
        "version": ".".join(map(str, sys.version_info[:3])),
        "full": sys.version.split()[0],
        "implementation": sys.implementation.name,
        "free_threaded": free_threaded(),
        "system": sys.platform,
        "machine": os.uname()[4]
        if hasattr(os, "uname")
        else os.environ.get("PROCESSOR_ARCHITECTURE", ""),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "libc": libc(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "path": [entry for entry in sys.path if entry],
        "user_site": user if site.ENABLE_USER_SITE else "",
        "disabled_user_site": "" if site.ENABLE_USER_SITE else user,
    }
    if folders:
        import sysconfig

        said["folders"] = {name: sysconfig.get_path(name) for name in ("include", "platlib")}
    return said


def free_threaded() -> bool:
    """Return whether this Python has no global lock (PEP 703)."""
    if hasattr(sys, "abiflags"):
        return "t" in sys.abiflags
    import sysconfig

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def libc() -> str:
    """Return what the C library calls itself: ``glibc 2.36``, nothing where it does not say."""
    import os

    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if entry]
    import json

    print(json.dumps(answer("folders" in sys.argv)))  # noqa: T201 - the answer itself
