"""Check that the wheel can be imported: bare and after torch, each in a fresh child process."""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name

from wheelfarm.errors import CouldNotLookError
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.verify.import_child import (
    Environment,
    ImportRequest,
    describe,
    lay_out,
    mismatches,
    run_probe,
)
from wheelfarm.verify.report import Check, Status
from wheelfarm.verify.requirement_checks import requirements_of
from wheelfarm.verify.subject import Expected, Subject, cut, matches

_NO_FACADE = {"test", "tests", "docs", "examples", "benchmarks", "scripts", "nvidia"}
_MODULE = re.compile(r"(?P<stem>[^/]+?)(?:\.(?:cpython-|cp|abi3)[\w.-]*)?\.(?:so|pyd)$")
#: What CUDA, torch and extensions say where there is no GPU or no driver.
DEVICE_ERRORS = re.compile(
    r"no CUDA-capable device|Found no NVIDIA driver|no CUDA GPUs are available|no NVIDIA GPU"
    r"|CUDA driver version is insufficient|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE"
    r"|CUDA_ERROR_NOT_INITIALIZED|CUDA initialization|0 active drivers",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Findings:
    """What the imports showed, gathered over all child processes."""

    fails: list[str] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def check(self, fine: str) -> Check:
        """Return the check: a failure weighs most, then what could not be looked at."""
        answers: tuple[tuple[Status, list[str]], ...] = (
            ("fail", self.fails),
            ("could-not-look", self.unknowns),
            ("warn", self.warnings),
        )
        for status, findings in answers:
            if findings:
                evidence = cut((*findings[1:], *self.lines))
                return Check(id="import", status=status, summary=findings[0], evidence=evidence)
        return Check(id="import", status="pass", summary=fine, evidence=cut(self.lines))


def check_import(subject: Subject, request: ImportRequest, *, sound: bool) -> Check | str:
    """Import the wheel; the answer is a check, or the reason why nobody asked for it.

    ``sound`` says that the file itself is in order; otherwise nothing is unpacked.
    """
    expected = subject.expected or Expected()
    if expected.skip_import:
        reason = expected.reason("skip_import")
        return _answer("warn", f"not imported, as the recipe asks: {reason}")
    if request.environment is None:
        reason = "no environment was given in which to import the wheel"
        return reason if subject.cell is None else _answer("could-not-look", reason)
    if not sound:
        return _answer("could-not-look", "not imported, as the file itself is not sound")
    return _looked(subject, request)


def _looked(subject: Subject, request: ImportRequest) -> Check:
    try:
        environment = describe(request)
    except CouldNotLookError as error:
        return _answer("could-not-look", error.what)
    mismatch = next(mismatches(subject, environment), "")
    if mismatch:
        return _answer("could-not-look", f"the environment is not the cell's: {mismatch}")
    if _needs_driver(subject) and not environment.driver and request.driver_stub is None:
        return _answer(
            "could-not-look", "skipped: needs a driver, and there is neither one nor a stub"
        )
    return _imported(subject, request, environment)


def _answer(status: Status, summary: str) -> Check:
    return Check(id="import", status=status, summary=summary)


def _needs_driver(subject: Subject) -> bool:
    declared = subject.expected is not None and subject.expected.needs_driver
    return declared or subject.facts.linkage.needs_driver


def facades(subject: Subject) -> tuple[str, ...]:
    """Return the packages to import: the recipe's, or the wheel's own top-level ones."""
    expected = subject.expected
    if expected is not None and expected.import_names:
        return expected.import_names
    roots = [
        member.name.split("/")[0]
        for member in subject.facts.members
        if member.name.endswith("/__init__.py") and member.name.count("/") == 1
    ]
    named = [root for root in roots if canonicalize_name(root) == _project(subject)]
    return tuple(named or sorted(set(roots) - _NO_FACADE))


def _project(subject: Subject) -> str:
    return "" if subject.facts.name is None else subject.facts.name.package


def compiled_modules(subject: Subject) -> tuple[str, ...]:
    """Return the dotted names of the wheel's compiled modules that may be imported directly."""
    expected = subject.expected or Expected()
    return tuple(
        name
        for binary in subject.binaries
        if (name := _dotted(binary)) and not _is_excluded(name, binary.path, expected)
    )


def _is_excluded(name: str, path: str, expected: Expected) -> bool:
    """Return whether a recipe's patterns name a module, by its dotted name, path or file name."""
    ways = (name, path, path.rpartition("/")[2])
    return any(matches(way, expected.no_direct_import) for way in ways)


def _dotted(binary: BinaryFacts) -> str:
    if binary.python is None or not binary.python.module:
        return ""
    path = re.sub(r"^[^/]+\.data/(?:platlib|purelib)/", "", binary.path)
    folder, _, base = path.rpartition("/")
    match = _MODULE.fullmatch(base)
    if match is None or match["stem"] != binary.python.module:
        return ""
    return ".".join(filter(None, (*folder.split("/"), match["stem"])))


def _imported(subject: Subject, request: ImportRequest, environment: Environment) -> Check:
    expected = subject.expected or Expected()
    names = dict.fromkeys((*facades(subject), *expected.extra_imports, *compiled_modules(subject)))
    targets = tuple(name for name in names if not matches(name, expected.no_direct_import))
    if not targets:
        return _answer("could-not-look", "there is no module to import; name one in the recipe")
    findings = _Findings()
    stub = request.driver_stub if _needs_driver(subject) and not environment.driver else None
    with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
        site = Path(folder) / "site"
        lay_out(request.wheel, site, environment, subject)
        runs = _Runs(subject=subject, request=request, site=site, stub=stub, findings=findings)
        bare = {target: runs.bare(target) for target in targets}
        if environment.torch is None:
            runs.judge(bare, bare)
        else:
            runs.judge(bare, runs.after_torch(targets, expected.expect_ops))
    how = " with a stub driver" if stub is not None else ""
    return findings.check(f"imports {', '.join(targets[:4])}{how}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Runs:
    """The child processes of one wheel."""

    subject: Subject
    request: ImportRequest
    site: Path
    stub: Path | None
    findings: _Findings

    def bare(self, target: str) -> str:
        """Import one module in a process of its own; return what went wrong, empty for nothing."""
        return self._run((target,), (), torch=False)[target]

    def after_torch(self, targets: tuple[str, ...], ops: tuple[str, ...]) -> dict[str, str]:
        """Import torch, all modules, and look the operators up, in one process."""
        return self._run(targets, ops, torch=True)

    def _run(
        self, targets: tuple[str, ...], ops: tuple[str, ...], *, torch: bool
    ) -> dict[str, str]:
        answer = self.site.parent / f"answer-{targets[0]}-{torch}"
        asked = {
            "site": str(self.site),
            "packages": "" if self.request.packages is None else str(self.request.packages),
            "torch": torch,
            "targets": targets,
            "ops": ops,
            "answer": str(answer),
        }
        events = run_probe(self.request, asked, answer, stub=self.stub)
        steps = (*(("torch",) if torch else ()), *targets, *ops)
        found = dict.fromkeys(steps, "was not reached")
        for event in events:
            if event["event"] == "ok":
                found[event["target"]] = ""
            elif event["event"] in {"error", "crash"} and event["target"] in found:
                found[event["target"]] = f"{event['kind']}: {event['message']}"
        return found

    def judge(self, bare: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Turn what happened into findings."""
        if after.get("torch"):
            self.findings.unknowns.append(f"the environment's torch fails: {after['torch']}")
            return
        for target, problem in after.items():
            if target == "torch":
                continue
            alone = bare.get(target, "")
            if not problem:
                how = "alone and after torch" if not alone else f"after torch only ({alone})"
                self.findings.lines.append(f"{target} imports {how}")
                if alone and not self._comes_with_torch():
                    self.findings.warnings.append(
                        f"{target} imports only after torch, which the wheel does not require"
                    )
            else:
                self._problem(target, problem)

    def _comes_with_torch(self) -> bool:
        facts = self.subject.facts
        names = (canonicalize_name(r.name) for r in requirements_of(facts.requires_dist))
        return facts.linkage.torch != "none" or "torch" in set(map(str, names))

    def _problem(self, target: str, problem: str) -> None:
        expected = self.subject.expected or Expected()
        missing = _missing_module(problem)
        roots = {member.name.split("/")[0] for member in self.subject.facts.members}
        if DEVICE_ERRORS.search(problem):
            if expected.forgive_device_errors:
                reason = expected.reason("forgive_device_errors")
                self.findings.warnings.append(
                    f"{target} stops at the missing device, forgiven ({reason}): {problem}"
                )
                return
            self.findings.fails.append(f"{target} asks for a device when it is imported: {problem}")
        elif missing and missing.split(".")[0] not in roots:
            self.findings.unknowns.append(
                f"{target} needs the module {missing}, which the environment does not have"
            )
        else:
            self.findings.fails.append(f"{target} does not import: {problem}")


def _missing_module(problem: str) -> str:
    match = re.match(r"ModuleNotFoundError: No module named '([\w.]+)'", problem)
    return "" if match is None else match[1]
