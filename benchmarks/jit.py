"""Load one extension cold and warm, with this cache and with torch's own; print times and ratios.

    python benchmarks/jit.py PYTHON [--rounds 3]

PYTHON is an interpreter with torch and the CUDA wheels, crt and CCCL among them. Both sides build
the same host source in new processes; importing torch is measured apart and taken off.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

SOURCE = """\
#include <Python.h>
#include <cuda_runtime_api.h>
static PyObject *version(PyObject *, PyObject *) {
    int number = 0;
    cudaRuntimeGetVersion(&number);
    return PyLong_FromLong(number);
}
static PyMethodDef methods[] = {{"version", version, METH_NOARGS, 0}, {0, 0, 0, 0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "bench", 0, -1, methods};
PyMODINIT_FUNC PyInit_bench() { return PyModule_Create(&module); }
"""
OURS = """\
import json, os, sys, time
def cpu():
    return sum(os.times()[:4])
started = time.perf_counter()
import torch
imported, before = time.perf_counter(), cpu()
from wheelfarm.toolkit import load
module = load("bench", sys.argv[1])
done = time.perf_counter()
print(json.dumps([imported - started, done - imported, cpu() - before, module.version()]))
"""
TORCHS = """\
import json, os, sys, time
def cpu():
    return sum(os.times()[:4])
started = time.perf_counter()
import torch
imported, before = time.perf_counter(), cpu()
from wheelfarm.toolkit import build_flags
from torch.utils.cpp_extension import load
flags = build_flags(("cudart",), driver=False)
module = load("bench", [sys.argv[1]], extra_include_paths=list(flags.include_dirs),
              extra_ldflags=flags.ldflags)
done = time.perf_counter()
print(json.dumps([imported - started, done - imported, cpu() - before, module.version()]))
"""


def once(
    python: Path, script: str, source: Path, environ: dict[str, str]
) -> tuple[float, float, float]:
    """Return seconds of a new process: importing torch, the load beyond it, the load's CPU."""
    command = [str(python), "-c", script, str(source)]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, env=environ)
    imported, loaded, cpu, _ = json.loads(completed.stdout.splitlines()[-1])
    return imported, loaded, cpu


def main() -> None:
    """Run both sides and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        source = folder / "bench.cpp"
        source.write_text(SOURCE, encoding="utf-8")
        environ = {
            **os.environ,
            "PATH": f"{arguments.python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "WHEELFARM_CACHE": str(folder / "cache"),
            "TORCH_EXTENSIONS_DIR": str(folder / "extensions"),
            "WHEELFARM_CUDA_FROM_WHEELS": "1",
            "TORCH_NO_COMPILER_WRAPPER": "1",
        }
        imports, rows = [], []
        for name, script in (("wheelfarm", OURS), ("torch", TORCHS)):
            first = once(arguments.python, script, source, environ)
            rest = [
                once(arguments.python, script, source, environ) for _ in range(arguments.rounds)
            ]
            imports += [first[0], *(round_[0] for round_ in rest)]
            warm, warm_cpu = (median(round_[at] for round_ in rest) for at in (1, 2))
            rows.append((name, first[1], warm, first[2], warm_cpu))
        print(f"import torch (median): {median(imports):.2f} s; the rest is beyond it")
        for name, cold, warm, cold_cpu, warm_cpu in rows:
            print(f"{name:10} wall: cold {cold:6.2f} s   warm {warm:6.2f} s   {warm / cold:.3f}")
            print(f"{'':10} CPU:  cold {cold_cpu:6.2f} s   warm {warm_cpu:6.2f} s")
        print(f"warm, wheelfarm over torch: wall {rows[0][2] / rows[1][2]:.2f}", end="")
        print(f", CPU {rows[0][4] / rows[1][4]:.2f}")


if __name__ == "__main__":
    main()
