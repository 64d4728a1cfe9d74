"""CUDA's headers and a C compiler in, a stand-in for the driver's libcuda.so.1 out.

It has every function that ``cuda.h`` declares, so that extensions link against it and a machine
without a driver can import them. It answers as a driver on a machine without a device does
(CUDA_ERROR_NO_DEVICE), so that code which asks first behaves as on any CPU box.
"""

import contextlib
import re
import tempfile
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BuildError
from wheelfarm.run import run

#: A symbol by which a stand-in is told from a driver.
MARKER = "wheelfarm_stub_driver"

_FORMAT = 1
_DECLARED = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(")
_VERSION = re.compile(r"^\s*#\s*define\s+CUDA_VERSION\s+(\d+)", re.MULTILINE)

#: cuda.h renames functions by macros: plain gives ``cuMemAlloc_v2``, the others the old names and
#: the per-thread-stream ones, all of which a real driver exports.
_PASSES = (
    (),
    ("-D__CUDA_API_VERSION_INTERNAL",),
    ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",),
)

#: Functions with an answer of their own; the rest return CUDA_ERROR_NO_DEVICE.
_SPECIAL = """\
int cuDriverGetVersion(int *version) { if (!version) return 1; *version = VERSION; return 0; }
int cuDeviceGetCount(int *count) { if (count) *count = 0; return NO_DEVICE; }
static int text(int error, const char **out, const char *what, const char *unknown) {
    if (!out) return 1;
    *out = error == NO_DEVICE ? what : error == 0 ? "no error" : unknown;
    return 0;
}
int cuGetErrorString(int error, const char **out) {
    return text(error, out, "no CUDA-capable device is detected (stand-in driver)", "an error");
}
int cuGetErrorName(int error, const char **out) {
    return text(error, out, "CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_UNKNOWN");
}
static int lookup(const char *name, void **out, int *status) {
    if (!name || !out) return 1;
    for (const struct entry *at = entries; at->name; at++)
        if (!strcmp(at->name, name)) {
            *out = at->function;
            if (status) *status = 0;
            return 0;
        }
    *out = 0;
    if (status) *status = 1;
    return 500;
}
int cuGetProcAddress(const char *name, void **out, int version, unsigned long long flags) {
    return lookup(name, out, 0);
}
int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long long flags,
                        int *status) {
    return lookup(name, out, status);
}
"""
_DEFINED = re.compile(r"^int (cu\w+)\(", re.MULTILINE)


def driver_functions(include_dir: Path, compiler: Path) -> tuple[str, ...]:
    """Return the names of every function that the ``cuda.h`` of a folder declares, sorted."""
    names: set[str] = set()
    for flags in _PASSES:
        command = [str(compiler), "-E", "-P", "-x", "c", *flags, f"-I{include_dir}", "-"]
        names |= set(_DECLARED.findall(run(command, stdin="#include <cuda.h>\n").stdout))
    if not names:
        message = f"the cuda.h of {include_dir} declares no function"
        raise BuildError(message)
    return tuple(sorted(names))


def make_driver_stub(include_dir: Path, folder: Path, compiler: Path) -> Path:
    """Make ``libcuda.so.1`` (and ``libcuda.so``) in ``folder`` and return the first one's path.

    ``compiler`` is a C or C++ compiler. One that is already made from the same header is kept.
    """
    header = include_dir / "cuda.h"
    library, record = folder / "libcuda.so.1", folder / ".wheelfarm-stub"
    key = f"{_FORMAT} {files.sha256(header)}\n"
    with files.locked(folder / ".lock"):
        if library.is_file() and record.is_file() and record.read_text(encoding="utf-8") == key:
            return library
        for left in folder.glob(".stub.*"):
            # Of a killed process: we hold the lock.
            files.remove(left)
        with tempfile.TemporaryDirectory(prefix=".stub.", dir=folder) as work:
            source, built = Path(work) / "stub.c", Path(work) / "libcuda.so.1"
            source.write_text(
                stub_source(header, driver_functions(include_dir, compiler)), encoding="utf-8"
            )
            options = ("-x", "c", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin")
            command: list[str | Path] = [compiler, *options]
            run([*command, "-Wl,-soname,libcuda.so.1", "-o", built, source])
            built.replace(library)
        with contextlib.suppress(FileExistsError):
            (folder / "libcuda.so").symlink_to(library.name)
        files.write_text(record, key)
    return library


def stub_source(header: Path, names: tuple[str, ...]) -> str:
    """Return the C source of a stand-in that defines ``names``."""
    match = _VERSION.search(header.read_text(encoding="utf-8", errors="replace"))
    version = match[1] if match else "0"
    special = set(_DEFINED.findall(_SPECIAL))
    plain = [name for name in names if name not in special]
    everything = sorted(special | set(plain))
    lines = ["#include <string.h>", f"#define VERSION {version}", "#define NO_DEVICE 100"]
    lines += [f"const int {MARKER} = 1;"]
    lines += [f"int {name}();" for name in everything if name not in special]
    lines += [f"extern int {name}();" for name in sorted(special)]
    lines += ["struct entry { const char *name; void *function; };"]
    lines += ["static const struct entry entries[] = {"]
    lines += [f'    {{"{name}", (void *){name}}},' for name in everything]
    lines += ["    {0, 0}};", *(f"int {name}() {{ return NO_DEVICE; }}" for name in plain)]
    return "\n".join([*lines, _SPECIAL])


def is_stub(library: Path) -> bool:
    """Return whether a libcuda is a stand-in of this module and no driver."""
    try:
        return library.stat().st_size < 1 << 20 and MARKER.encode() in library.read_bytes()
    except OSError:
        return False
