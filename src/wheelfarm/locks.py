"""Locks on open files, on Linux and on Windows; the system drops them when their holder dies."""

import contextlib
import os
import sys

if sys.platform == "win32":
    import msvcrt

    def lock(handle: int) -> None:
        """Wait for the exclusive lock of an open file."""
        held = False
        while not held:  # LK_LOCK gives up after ten seconds, we do not
            with contextlib.suppress(OSError):
                os.lseek(handle, 0, os.SEEK_SET)
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                held = True

    def try_lock(handle: int) -> bool:
        """Take the exclusive lock of an open file if nobody holds it; return whether it is ours."""
        try:
            os.lseek(handle, 0, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(handle: int) -> None:
        """Give the lock back."""
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def lock(handle: int) -> None:
        """Wait for the exclusive lock of an open file."""
        fcntl.flock(handle, fcntl.LOCK_EX)

    def try_lock(handle: int) -> bool:
        """Take the exclusive lock of an open file if nobody holds it; return whether it is ours."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def unlock(handle: int) -> None:
        """Give the lock back."""
        fcntl.flock(handle, fcntl.LOCK_UN)
