"""Run alone in a fresh process of the wheel's environment: import modules, note what happened.

Takes one JSON argument: ``site`` (the unpacked wheel), ``packages`` (what it requires), ``torch``
(import it first), ``targets``, ``ops``, ``script`` (a file to run), ``answer`` (the file to which
one JSON line per event goes). It uses the standard library alone, since the environment is not
ours, and says "start" before each step, so that a crash can be laid at its door.
"""

import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import re
import runpy
import sys
import sysconfig
import time


def main() -> None:
    """Do what the argument asks."""
    request = json.loads(sys.argv[1])
    with open(request["answer"], "a", encoding="utf-8") as stream:  # noqa: PTH123 - runs alone

        def note(event: str, target: str, **more: object) -> None:
            stream.write(json.dumps({"event": event, "target": target, **more}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

        if request.get("describe"):
            note("environment", "", **describe())
            return
        sys.path.insert(0, request["site"])
        if request["packages"]:
            sys.path.append(request["packages"])
        if request["torch"]:
            attempt(note, "torch", lambda: importlib.import_module("torch"))
        for target in request["targets"]:
            attempt(note, target, lambda target=target: importlib.import_module(target))
        for operator in request["ops"]:
            attempt(note, operator, lambda operator=operator: find_operator(operator))
        script = request.get("script")
        if script:
            attempt(note, script, lambda: run_script(script))
        note("end", "")


def attempt(note: "object", target: str, step: "object") -> None:
    """Run one step and note how it ended; whatever it raises is the wheel's answer."""
    note("start", target)  # type: ignore[operator]
    began = time.monotonic()
    try:
        step()  # type: ignore[operator]
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything, even SystemExit
        note("error", target, kind=type(error).__name__, message=str(error)[:4000])  # type: ignore[operator]
        return
    note("ok", target, seconds=round(time.monotonic() - began, 2))  # type: ignore[operator]


def run_script(path: str) -> None:
    """Run a script; leaving with status 0 is as good as reaching its end."""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in {None, 0}:
            raise


def find_operator(name: str) -> None:
    """Look a torch operator up (``namespace::name``); AttributeError where there is none."""
    torch = importlib.import_module("torch")
    namespace, _, operator = name.partition("::")
    getattr(getattr(torch.ops, namespace), operator)


def describe() -> "dict[str, object]":
    """Return the interpreter's version and torch's, without importing torch."""
    found: dict[str, object] = {
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "site": sysconfig.get_path("purelib"),
        "torch": None,
        "cuda": None,
        "torch_folder": None,
        "driver": driver_loads(),
    }
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return found
    folder = next(iter(spec.submodule_search_locations))
    found["torch_folder"] = folder
    with contextlib.suppress(OSError):
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as stream:  # noqa: PTH118, PTH123 - runs alone
            text = stream.read()
        found["torch"] = first(r"^__version__\s*=\s*'([^']+)'", text)
        found["cuda"] = first(r"^cuda\b[^=\n]*=\s*'([^']+)'", text)
    return found


def first(pattern: str, text: str) -> "str | None":
    """Return the first group of a pattern's first match."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


def driver_loads() -> bool:
    """Return whether this machine has a CUDA driver."""
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
