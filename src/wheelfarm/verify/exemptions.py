"""Check of the exemptions themselves: each has a written reason, which the report shows."""

from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Expected, Subject, judged
from wheelfarm.wording import counted

#: Fields of Expected that make the gate look away somewhere.
EXEMPTIONS = (
    "skip_import",
    "skip_arch",
    "forgive_device_errors",
    "no_direct_import",
    "allowed_needed",
    "allowed_archives",
    "module_archs",
    "grafted",
)


def check_exemptions(subject: Subject) -> Check | None:
    """Check that every exemption in use carries a reason."""
    expected = subject.expected
    used = () if expected is None else used_exemptions(expected)
    if expected is None or not used:
        return None
    fails = [
        f"the exemption {name} has no written reason" for name in used if not expected.reason(name)
    ]
    lines = [f"{knob.field}: {knob.value} ({knob.reason})" for knob in expected.knobs]
    fine = f"{counted(len(used), 'exemption')}, each with its reason"
    return judged("exemptions", fails=fails, fine=fine, evidence=lines)


def used_exemptions(expected: Expected) -> tuple[str, ...]:
    """Return the names of the exemptions that an expectation makes use of."""
    return tuple(name for name in EXEMPTIONS if getattr(expected, name))
