"""Checks of the file itself: zip, name, METADATA, WHEEL tags, RECORD."""

import re
from collections import Counter
from collections.abc import Iterator

from packaging.metadata import ExceptionGroup, Metadata
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError
from wheelfarm.facts.metadata import digest_bytes
from wheelfarm.facts.model import Member, ProblemKind, RecordRow
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import ASSET_LIMIT, Subject, judged
from wheelfarm.wording import counted

#: The ABI of one CPython; letters at its end are those of its build.
_EXACT_ABI = re.compile(r"(cp\d+)[a-z]*")
#: RECORD cannot hold its own hash, and signatures are made after it.
_UNHASHED = ("RECORD", "RECORD.jws", "RECORD.p7s")


def _problems(subject: Subject, kind: ProblemKind) -> tuple[str, ...]:
    return tuple(problem.message for problem in subject.facts.problems if problem.kind == kind)


def check_zip(subject: Subject) -> Check:
    """Check that the file is one zip that every installer unpacks to the same safe files."""
    facts = subject.facts
    total = sum(member.size for member in facts.members)
    return judged(
        "zip",
        fails=_problems(subject, "zip"),
        fine=f"{counted(len(facts.members), 'member')}, {total} bytes unpacked",
    )


def check_size(subject: Subject) -> Check:
    """Check the wheel's size against the budget and the limit of release assets."""
    size = subject.facts.size
    fails = []
    if size >= ASSET_LIMIT:
        fails.append(f"{size} bytes is at or over the limit of release assets, {ASSET_LIMIT}")
    budget = None if subject.expected is None else subject.expected.max_size
    if budget is not None and size > budget:
        fails.append(f"{size} bytes is over the budget of {budget}")
    return judged("size", fails=fails, fine=f"{size} bytes")


def check_name(subject: Subject) -> Check:
    """Check that the file name is a wheel's, and the cell's where there is one."""
    name = subject.facts.name
    fails = list(_problems(subject, "name"))
    if name is not None:
        fails += _no_python(name)
    if name is not None and subject.cell is not None:
        fails += _against_cell(name, subject)
    return judged("name", fails=fails, fine=f"{subject.facts.file_name} is well formed")


def _no_python(name: WheelName) -> Iterator[str]:
    """Yield the ABI tags that belong to no Python which the name has."""
    for abi in name.abis:
        match = _EXACT_ABI.fullmatch(abi)
        if match is not None and match[1] not in name.pythons:
            yield f"no Python is {'.'.join(name.pythons)} and has the ABI {abi}"


def _against_cell(name: WheelName, subject: Subject) -> Iterator[str]:
    cell = subject.cell
    if cell is None:
        return
    if name.package != canonicalize_name(cell.package):
        yield f"the name is of {name.package}, the cell of {cell.package}"
    if name.version.public != cell.version.public:
        yield f"the name says version {name.version.public}, the cell {cell.version.public}"
    if name.version.local != Version(f"0+{cell.local_tag}").local:
        yield f"the local version is {name.version.local}, the cell's is {cell.local_tag}"
    try:
        python = name.python
    except BadInputError as error:
        yield error.what
    else:
        if python != cell.python:
            yield f"the name is for {python}, the cell for {cell.python}"
    if name.platform != cell.platform:
        yield f"the name is for {'.'.join(name.platforms)}, the cell for {cell.platform}"


def check_metadata(subject: Subject) -> Check:
    """Check that METADATA, the dist-info folder and ``.data`` agree with the file name."""
    facts = subject.facts
    fails = list(_problems(subject, "metadata"))
    if facts.name is not None and facts.metadata:
        fails += _identity(facts.name, subject)
    fails += [
        f"Requires-Dist: {text!r} is no requirement"
        for text in facts.requires_dist
        if _requirement(text) is None
    ]
    warnings = [] if fails or not facts.metadata else _validation(facts.metadata)
    warnings += [
        f"Requires-Dist: {text!r} names one address, which no index can replace"
        for text in facts.requires_dist
        if (requirement := _requirement(text)) is not None and requirement.url
    ]
    return judged(
        "metadata",
        fails=fails,
        warnings=warnings,
        fine=f"METADATA, {facts.dist_info} and the file name say {facts.project} {facts.version}",
    )


def _identity(name: WheelName, subject: Subject) -> Iterator[str]:
    facts = subject.facts
    if facts.project and canonicalize_name(facts.project) != name.package:
        yield f"METADATA says Name {facts.project!r}, the file name {name.distribution!r}"
    if facts.version and not _same_version(facts.version, name.version_text):
        yield f"METADATA says Version {facts.version!r}, the file name {name.version_text!r}"
    roots = {member.name.split("/")[0] for member in facts.members if "/" in member.name}
    folders = sorted(root for root in roots if root.endswith((".dist-info", ".data")))
    for folder in folders:
        stem = folder.rsplit(".", 1)[0]
        project, _, version = stem.partition("-")
        if canonicalize_name(project) != name.package:
            yield f"the folder {folder} is named after another project than the file"
        elif not _same_version(version, name.version_text):
            yield f"the folder {folder} says version {version!r}, the file {name.version_text!r}"


def _same_version(one: str, other: str) -> bool:
    """Compare as PEP 440 does: local parts without regard to case and separator."""
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return one == other


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _validation(metadata: str) -> list[str]:
    try:
        Metadata.from_email(metadata)
    except ExceptionGroup as group:
        return [str(error) for error in group.exceptions]
    return []


def check_tags(subject: Subject) -> Check:
    """Check that the WHEEL file's tags are those of the file name, each once."""
    facts = subject.facts
    fails = list(_problems(subject, "wheel"))
    if facts.name is None or not facts.tags:
        return judged("tags", fails=fails or ["there are no tags to compare"], fine="")
    name = facts.name
    claimed = {
        f"{python}-{abi}-{platform}"
        for python in name.pythons
        for abi in name.abis
        for platform in name.platforms
    }
    found = Counter(facts.tags)
    for tag in found:
        if tag.count("-") != 2 or not all(tag.split("-")):  # noqa: PLR2004 - three parts
            fails.append(f"WHEEL has the line 'Tag: {tag}', which is no complete tag")
        elif tag not in claimed:
            fails.append(f"WHEEL has the tag {tag}, which the file name does not have")
    fails += [f"WHEEL lacks the file name's tag {tag}" for tag in sorted(claimed - set(found))]
    warnings = [
        f"WHEEL has the tag {tag} {count} times" for tag, count in found.items() if count > 1
    ]
    # Strangers do so, NVIDIA's wheels among them; a farm's wheel must lie beside torch.
    (warnings if subject.expected is None else fails).extend(_called_pure(subject))
    return judged(
        "tags",
        fails=fails,
        warnings=warnings,
        fine=f"WHEEL has exactly {counted(len(claimed), 'tag')} of the name",
    )


def _called_pure(subject: Subject) -> Iterator[str]:
    """Yield compiled code that goes where pure Python does: some systems keep the two apart."""
    facts = subject.facts
    code = [binary.path for binary in subject.binaries if binary.kind != "device"]
    whole = facts.root_is_purelib is True
    for path in code:
        top, _, rest = path.partition("/")
        if rest.startswith("purelib/") if top.endswith(".data") else whole:
            reason = "WHEEL says Root-Is-Purelib: true" if whole else "it lies in purelib"
            yield f"{path} goes where pure Python does, apart from torch on some systems: {reason}"
            return


def check_record(subject: Subject) -> Check:
    """Check RECORD against the bytes: every member once, with its hash and size."""
    facts = subject.facts
    fails = list(_problems(subject, "record"))
    if facts.record is None:
        return judged("record", fails=fails or ["there is no RECORD"], fine="")
    others: list[str] = []
    fails += _record_findings(subject, others)
    if others and not fails:
        return Check(
            id="record",
            status="could-not-look",
            summary="RECORD uses hashes other than sha256, which were not compared",
            evidence=tuple(others[:12]),
        )
    own = f"{facts.dist_info}/RECORD"
    listed = any(row.path == own for row in facts.record)
    warnings = [] if listed else [f"{own} does not list itself, as the format asks"]
    return judged(
        "record",
        fails=fails,
        warnings=warnings,
        fine=f"{counted(len(facts.record), 'row')} hold against the bytes",
    )


def _record_findings(subject: Subject, others: list[str]) -> Iterator[str]:
    facts = subject.facts
    rows = facts.record or ()
    members = {member.name: member for member in facts.members}
    exempt = {f"{facts.dist_info}/{name}" for name in _UNHASHED}
    for path, count in Counter(row.path for row in rows).items():
        if count > 1:
            yield f"RECORD has {path!r} {count} times"
    for row in rows:
        member = members.get(row.path)
        if member is None:
            yield f"RECORD line {row.line} names {row.path!r}, which is not in the wheel"
        elif row.path not in exempt:
            yield from _row_findings(row, member, others)
    listed = {row.path for row in rows}
    for name in members:
        if name not in listed and name not in exempt:
            yield f"{name!r} is in the wheel, but not in RECORD"


def _row_findings(row: RecordRow, member: Member, others: list[str]) -> Iterator[str]:
    if row.size is not None and row.size != member.size:
        yield f"RECORD says {row.path!r} has {row.size} bytes, it has {member.size}"
    algorithm, _, digest = row.digest.partition("=")
    if not algorithm:
        yield f"RECORD has no hash for {row.path!r}"
    elif algorithm != "sha256":
        others.append(f"{row.path}: {algorithm}")
    elif digest_bytes(digest) != bytes.fromhex(member.sha256):
        yield f"RECORD has another hash for {row.path!r} than its bytes"
