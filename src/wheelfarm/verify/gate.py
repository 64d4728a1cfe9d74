"""The gate: from a wheel's path, its cell and what is expected of it to a report."""

from collections.abc import Callable
from pathlib import Path

from wheelfarm.facts.model import WheelFacts
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.model.cell import CellId
from wheelfarm.values import replace
from wheelfarm.verify.arch_checks import check_architectures
from wheelfarm.verify.archive_checks import (
    check_metadata,
    check_name,
    check_record,
    check_size,
    check_tags,
    check_zip,
)
from wheelfarm.verify.binary_checks import (
    check_archives,
    check_binaries,
    check_compiled_code,
    unreadable,
)
from wheelfarm.verify.exemptions import check_exemptions
from wheelfarm.verify.gpu_check import check_gpu
from wheelfarm.verify.import_check import check_import
from wheelfarm.verify.import_child import ImportRequest
from wheelfarm.verify.library_checks import (
    check_driver,
    check_grafted,
    check_libraries,
    check_search_paths,
    check_version_needs,
)
from wheelfarm.verify.place_checks import check_places
from wheelfarm.verify.platform_checks import check_glibc, check_platform_tag
from wheelfarm.verify.python_checks import check_free_threaded, check_python_abi
from wheelfarm.verify.report import Check, Report
from wheelfarm.verify.requirement_checks import check_requirements, check_torch_pin
from wheelfarm.verify.subject import Expected, Subject
from wheelfarm.verify.torch_checks import check_cuda, check_cxx_abi, check_torch_axis

#: id -> check, in the order of the report. None: the check does not apply to this wheel.
CHECKS: dict[str, Callable[[Subject], Check | None]] = {
    "zip": check_zip,
    "name": check_name,
    "metadata": check_metadata,
    "tags": check_tags,
    "record": check_record,
    "size": check_size,
    "places": check_places,
    "requirements": check_requirements,
    "compiled-code": check_compiled_code,
    "binaries": check_binaries,
    "archives": check_archives,
    "torch-axis": check_torch_axis,
    "torch-pin": check_torch_pin,
    "cxx-abi": check_cxx_abi,
    "cuda": check_cuda,
    "libraries": check_libraries,
    "driver": check_driver,
    "grafted": check_grafted,
    "search-paths": check_search_paths,
    "version-needs": check_version_needs,
    "glibc": check_glibc,
    "platform-tag": check_platform_tag,
    "architectures": check_architectures,
    "python-abi": check_python_abi,
    "free-threaded": check_free_threaded,
    "exemptions": check_exemptions,
}

#: The checks whose facts are the binaries' own.
_OF_BINARIES = frozenset(CHECKS) - {
    *("zip", "name", "metadata", "tags", "record", "size", "requirements"),
    *("compiled-code", "binaries", "archives", "exemptions"),
}


def verify_wheel(
    path: Path,
    *,
    cell: CellId | None = None,
    expected: Expected | None = None,
    environment: Path | None = None,
    driver_stub: Path | None = None,
    packages: Path | None = None,
    strict: bool = False,
    gpu: bool = False,
    smoke_test: Path | None = None,
    facts: WheelFacts | None = None,
) -> Report:
    """Read a wheel, hold it against its cell and expectations, and return the report.

    ``environment`` is the Python of an environment with the cell's torch, into whose child process
    the wheel is imported; ``driver_stub`` the folder of a stub libcuda for machines without a
    driver; ``packages`` a folder with what the wheel requires. ``strict`` turns warnings into
    failures. With ``gpu`` the recipe's ``smoke_test`` is run on this machine's GPU. ``facts`` saves
    reading the wheel again.
    Raises BadInputError where there is no such file. An environment that is not the cell's is a
    check that could not look.
    """
    read = read_wheel(path) if facts is None else facts
    subject = Subject(facts=read, cell=cell, expected=expected)
    checks = list(static_checks(subject))
    not_asked: list[tuple[str, str]] = []
    request = ImportRequest(
        wheel=path, environment=environment, driver_stub=driver_stub, packages=packages
    )
    imported = check_import(subject, request, sound=all(c.status != "fail" for c in checks[:5]))
    if isinstance(imported, str):
        not_asked.append(("import", imported))
    else:
        checks.append(imported)
    if gpu:
        checks.append(check_gpu(subject, request, smoke_test))
    if strict:
        checks = [replace(c, status="fail") if c.status == "warn" else c for c in checks]
    return Report(
        wheel=read.file_name,
        sha256=read.sha256,
        cell="" if cell is None else str(cell),
        checks=tuple(checks),
        facts=read,
        knobs=() if expected is None else expected.knobs,
        not_asked=tuple(not_asked),
    )


def static_checks(subject: Subject) -> tuple[Check, ...]:
    """Return every check that needs the file alone."""
    found = [check for each in CHECKS.values() if (check := each(subject)) is not None]
    if unread := unreadable(subject):
        found = [_unseen(check, unread[0]) for check in found]
    return tuple(found)


def _unseen(check: Check, path: str) -> Check:
    """Return a check that passed only because a binary told nothing as one that could not look."""
    if check.status != "pass" or check.id not in _OF_BINARIES:
        return check
    return replace(check, status="could-not-look", summary=f"{path} could not be read")
