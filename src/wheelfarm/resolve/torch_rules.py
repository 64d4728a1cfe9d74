"""The rules about torch: its minor, its stable ABI, its C++ ABI, what a wheel requires of it."""

from packaging.version import Version

from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import Label
from wheelfarm.resolve.candidate import Candidate, Failure, Target, Wanted
from wheelfarm.resolve.markers import applies
from wheelfarm.resolve.needs import read_need


def torch_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold the torch axis: a minor exactly, as numbers; a stable ABI's floor; no dependence."""
    del wanted
    axis, label, torch = candidate.torch_axis, candidate.label, target.torch
    if axis == "free" or (label.torch is None and axis is None):
        return None
    if torch is None or axis == "abi_flag":
        return _needs_torch(torch)
    if axis == "stable_abi":
        return _stable_torch(candidate.entry.from_torch, torch)
    if label.torch is None:
        return Failure(aspect="torch", reason="links torch, and nothing says which")
    if target.torch_minor is None:
        return _snapshot(candidate, torch)
    return None if target.torch_minor == label.torch else _other_minor(label, torch)


def is_other_torch(label: Label, axis: TorchAxis | None, target: Target) -> bool:
    """Return whether a label and an axis alone say that ``torch_serves`` refuses."""
    said, ours = label.torch, target.torch_minor
    return axis in {None, "linked"} and said is not None and ours is not None and said != ours


def _other_minor(label: Label, torch: Version) -> Failure:
    claim = " or higher (a claim that nobody proved)" if label.or_higher else ""
    return Failure(
        aspect="torch",
        reason=f"is built for torch {label.torch}{claim}, this is {torch.public}",
        change=f"torch {label.torch}",
    )


def _needs_torch(torch: Version | None) -> Failure | None:
    if torch is not None:
        return None
    return Failure(
        aspect="torch",
        reason="depends on torch, and there is none",
        change="install torch, or let --choose-torch choose one",
    )


def _stable_torch(floor: Minor | None, torch: Version | None) -> Failure | None:
    if torch is None:
        return _needs_torch(torch)
    if floor is None:
        return Failure(aspect="torch", reason="links torch's stable ABI, nobody says from when")
    if torch < Version(str(floor)):
        return Failure(
            aspect="torch",
            reason=f"needs torch {floor} or newer, this is {torch.public}",
            change=f"torch {floor} or newer",
        )
    return None


def _snapshot(candidate: Candidate, torch: Version) -> Failure | None:
    """Refuse all for a snapshot or source build but a wheel that pins that very torch."""
    for requirement in candidate.entry.requires_dist or ():
        parsed = read_need(requirement)
        if (
            parsed is not None
            and parsed.name == "torch"
            and any(
                each.operator in {"==", "==="} and each.version == str(torch)
                for each in parsed.specifier
            )
        ):
            return None
    return Failure(
        aspect="torch",
        reason=f"is built for torch {candidate.label.torch}; {torch} is a snapshot, no release",
        change="an official torch release, a stable-ABI wheel, or a local build",
    )


def torch_allowed(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold what the wheel's own metadata requires of torch: a conflict is named, never forced."""
    if target.torch is None:
        return None
    for text in candidate.entry.requires_dist or ():
        parsed = read_need(text)
        if parsed is None or parsed.name != "torch" or not applies(parsed, wanted, target):
            continue
        if not parsed.specifier.contains(target.torch, prereleases=True):
            return Failure(
                aspect="torch",
                reason=f"requires torch{parsed.specifier}, this is {target.torch}",
                change=f"torch{parsed.specifier}",
            )
    return None


def abi_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold the C++ ABI class of torch, where the wheel's binaries or its name state one."""
    del wanted
    host = target.host
    if candidate.torch_axis == "free" or host.cxx_abi.value is None:
        return None
    needed = candidate.entry.cxx_abi
    if needed is None and candidate.label.cxx11_abi is not None:
        needed = 1 if candidate.label.cxx11_abi else 0
    if needed is None or needed == host.cxx_abi.value:
        return None
    reason = f"is built for C++ ABI {needed}, this torch has {host.cxx_abi.value}"
    return Failure(aspect="abi", reason=reason, change=f"a torch of C++ ABI {needed}")
