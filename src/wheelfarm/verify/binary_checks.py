"""Checks that there is compiled code, that it can be read, and that it is for this platform."""

from wheelfarm.facts.model import InnerArchive
from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Subject, cut, judged, matches
from wheelfarm.wording import counted

_TEXT = "named like a binary"
_MACHINES = {"x86_64": "x86_64", "aarch64": "aarch64", "amd64": "x86_64"}


def check_compiled_code(subject: Subject) -> Check:
    """Check that a wheel for a GPU holds compiled code, or that its recipe says it is pure."""
    facts, expected = subject.facts, subject.expected
    count = len(subject.binaries)
    with_device_code = sum(1 for binary in subject.binaries if binary.device_code)
    if count:
        pure = expected is not None and expected.pure
        warnings = ["the recipe says that it is pure, but it holds compiled code"] if pure else []
        fine = f"{counted(count, 'binary', 'binaries')}, {with_device_code} with device code"
        return judged("compiled-code", warnings=warnings, fine=fine)
    message = "the wheel holds no compiled code"
    if expected is not None and expected.pure:
        return judged("compiled-code", fine=f"{message}, as its recipe says")
    label = None if facts.name is None else facts.name.label.accelerator
    promised = subject.cell is not None or expected is not None or label is not None
    if promised or facts.root_is_purelib is False:
        return judged("compiled-code", fails=[message], fine="")
    return judged("compiled-code", warnings=[message], fine="")


def unreadable(subject: Subject) -> tuple[str, ...]:
    """Return the binaries of which nothing is known; text under a binary's name is no binary."""
    return tuple(
        binary.path
        for binary in subject.facts.binaries
        if binary.problem and not binary.problem.startswith(_TEXT)
    )


def check_binaries(subject: Subject) -> Check:
    """Check that every binary can be read to its end, and is for the wheel's platform."""
    fails: list[str] = []
    warnings: list[str] = []
    for binary in subject.facts.binaries:
        if binary.problem:
            line = f"{binary.path}: {binary.problem}"
            (warnings if binary.problem.startswith(_TEXT) else fails).append(line)
        elif binary.path.lower().endswith(".pyd") and not binary.needed:
            fails.append(f"{binary.path} imports nothing, so it is no Python module")
    fails += _foreign(subject)
    return judged(
        "binaries",
        fails=fails,
        warnings=warnings,
        fine=f"{counted(len(subject.facts.binaries), 'binary', 'binaries')} read to the end",
    )


def _foreign(subject: Subject) -> list[str]:
    name = subject.facts.name
    platform = None if name is None else name.platform
    if platform is None:
        return []
    wanted = _MACHINES.get(platform.machine, platform.machine)
    kind = "pe" if platform.system == "windows" else "elf"
    return [
        f"{binary.path} is {binary.kind.upper()} for {binary.machine}, the wheel for {platform}"
        for binary in subject.binaries
        if binary.kind != "device"
        and not binary.path.lower().endswith(".exe")  # launchers of every machine, run by choice
        and (binary.kind != kind or binary.machine != wanted)
    ]


def check_archives(subject: Subject) -> Check | None:
    """Check that no archive inside the wheel holds compiled code, which no check would look at."""
    found, expected = subject.facts.inner, subject.expected
    if not found:
        return None
    allowed = () if expected is None else expected.allowed_archives
    asked = [each for each in found if not matches(each.path, allowed)]
    code = [_hidden(each) for each in asked if each.count]
    unread = [f"{each.path} was not looked into: {each.problem}" for each in asked if each.problem]
    if code and expected is not None:
        return judged("archives", fails=[*code, *unread], fine="")
    if code or unread:
        # A stranger's wheel made no promise of what it holds; what is unknown is no pass.
        lines = [*code, *unread]
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        summary = f"{lines[0]}{more}"
        return Check(
            id="archives", status="could-not-look", summary=summary, evidence=cut(lines[1:])
        )
    skipped = [f"{each.path}: not asked, by the recipe" for each in found if each not in asked]
    fine = f"{counted(len(asked), 'archive')} inside, without compiled code"
    return judged("archives", fine=fine, evidence=skipped)


def _hidden(archive: InnerArchive) -> str:
    names = ", ".join(archive.code[:3])
    some = f"{names}, …" if archive.count > 3 else names  # noqa: PLR2004 - as many are named
    binaries = counted(archive.count, "binary", "binaries")
    return f"{archive.path} holds {binaries} that no check looks at: {some}"
