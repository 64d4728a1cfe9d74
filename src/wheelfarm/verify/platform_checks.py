"""Checks of what the system must offer: glibc, libstdc++, and whether the platform tag is true."""

from wheelfarm.facts.manylinux import claimed_glibc, lowest_true, policy_for, tag_machine
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.versions import Minor
from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Subject, judged, shown

#: What a platform tag calls the machines that the reader of ELF files names otherwise.
_TAG_WORDS = {"i386": "i686", "arm": "armv7l"}
_KNOWN = frozenset({"x86_64", "aarch64", "riscv64", *_TAG_WORDS.values()})


def check_glibc(subject: Subject) -> Check | None:
    """Check that the wheel runs on the policy's glibc and the libstdc++ that goes with it."""
    floor = None if subject.expected is None else subject.expected.glibc
    linkage = subject.facts.linkage
    if not any(binary.kind == "elf" for binary in subject.binaries):
        return None
    proof = shown(subject.evidence("glibc", "glibcxx", "cxxabi"))
    found = f"needs glibc {linkage.glibc or 'of any version'}"
    if linkage.glibcxx:
        found += f" and {linkage.glibcxx}"
    fails = [] if floor is None else _above(subject, floor)
    return judged("glibc", fails=fails, fine=found, evidence=proof)


def _above(subject: Subject, floor: Minor) -> list[str]:
    policy = policy_for(floor)
    return [
        f"{binary.path} needs {version} ({_symbol(binary, version)}); the floor is glibc {floor}"
        for binary in subject.binaries
        if binary.kind == "elf" and (version := policy.lacks(binary))
    ]


def _symbol(binary: BinaryFacts, version: str) -> str:
    symbols = (need.symbol for need in binary.version_needs if need.version == version)
    return next(symbols, "") or "no symbol named"


def check_platform_tag(subject: Subject) -> Check | None:
    """Check that the platform tag is true, and name the lowest tag that is."""
    name = subject.facts.name
    if name is None or not any(binary.kind == "elf" for binary in subject.binaries):
        return None
    elf = (binary.machine for binary in subject.binaries if binary.kind == "elf")
    machines = {_TAG_WORDS.get(machine, machine) for machine in elf}
    machine = min(machines)
    lowest = lowest_true(subject.binaries)
    suggestion = (
        "no manylinux tag"
        if lowest is None
        else f"manylinux_{lowest.major}_{lowest.minor}_{machine}"
    )
    fails, warnings = [], []
    for tag in name.platforms:
        glibc = claimed_glibc(tag)
        if tag == "any":
            fails.append("the tag says any platform, but the wheel holds Linux binaries")
        elif not tag_machine(tag):
            fails.append(f"{tag} is no platform tag of Linux, and no installer takes it")
        elif machines - {tag_machine(tag)} and _machine_known(tag_machine(tag), machines):
            fails.append(f"{tag} is not true: the binaries are for {', '.join(sorted(machines))}")
        elif tag.startswith("musllinux"):
            fails += _musl(subject)
        elif glibc is None:
            warnings.append(f"{tag} promises nothing; the lowest true tag is {suggestion}")
        else:
            fails += [f"{tag} is not true: {line}" for line in _above(subject, glibc)]
    evidence = [f"the lowest true tag is {suggestion}"] if fails else []
    fine = f"{'.'.join(name.platforms)} is true; the lowest true tag is {suggestion}"
    return judged("platform-tag", fails=fails, warnings=warnings, fine=fine, evidence=evidence)


def _machine_known(tagged: str, machines: set[str]) -> bool:
    """Return whether the readers know the tag's machine, or the binaries', by name."""
    return tagged in _KNOWN or bool(machines & _KNOWN)


def _musl(subject: Subject) -> list[str]:
    return [
        f"{binary.path} needs glibc, but the tag says musl"
        for binary in subject.binaries
        if "libc.so.6" in binary.needed
    ]
