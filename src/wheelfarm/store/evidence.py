"""From a wheel's facts and its recipe's word to what the index may say of it."""

from dataclasses import dataclass

from wheelfarm.facts.libraries import nvidia_library
from wheelfarm.facts.model import BinaryFacts, WheelFacts
from wheelfarm.index.model import Module, WheelEntry
from wheelfarm.model.axis import CxxAbi, TorchAxis
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """What a recipe says where a binary cannot tell.

    ``torch_axis`` matters for ``abi_flag`` alone, which looks like ``free`` in the binary;
    ``from_torch`` is the floor that a stable-ABI package states.
    """

    torch_axis: TorchAxis | None = None
    from_torch: Minor | None = None
    cxx_abi: CxxAbi | None = None
    runtime_jit: bool = False


def entry_of(
    facts: WheelFacts, declared: Declared, *, name: WheelName, url: str, metadata_sha256: str
) -> WheelEntry:
    """Return the manifest's entry of a wheel: what its binaries prove, and only then the recipe."""
    linkage = facts.linkage
    axis = torch_axis(facts, declared)
    return WheelEntry(
        name=name,
        url=url,
        sha256=facts.sha256,
        size=facts.size,
        metadata_sha256=metadata_sha256,
        requires_python=facts.requires_python,
        requires_dist=facts.requires_dist,
        torch_axis=axis,
        from_torch=_floor(linkage.stable_torch, declared.from_torch)
        if axis == "stable_abi"
        else None,
        cxx_abi=declared.cxx_abi if linkage.cxx_abi is None else linkage.cxx_abi,
        glibc=linkage.glibc,
        toolkit=_toolkit(facts, name),
        needs_driver=linkage.needs_driver,
        runtime_jit=declared.runtime_jit,
        libraries=_libraries(facts),
        # Loose device files (cubins) are picked by the package itself; they are no modules.
        modules=tuple(
            _module(binary)
            for binary in facts.binaries
            if binary.device_code and binary.kind != "device"
        ),
    )


def torch_axis(facts: WheelFacts, declared: Declared) -> TorchAxis:
    """Return the torch axis that the binaries show; a recipe can only narrow ``free``."""
    shown = facts.linkage.torch
    if shown == "none":
        return "abi_flag" if declared.torch_axis == "abi_flag" else "free"
    return shown


def _floor(shown: Minor | None, declared: Minor | None) -> Minor | None:
    known = [floor for floor in (shown, declared) if floor is not None]
    return max(known) if known else None


def _toolkit(facts: WheelFacts, name: WheelName) -> Minor | None:
    """Return the CUDA that compiled the wheel: as its PTX shows, else as its label says."""
    accelerator = name.label.accelerator
    labelled = None if accelerator is None else accelerator.version
    return facts.linkage.toolkit or labelled


def _libraries(facts: WheelFacts) -> tuple[str, ...]:
    inside = {member.name.rpartition("/")[2] for member in facts.members}
    inside |= {binary.soname for binary in facts.binaries}
    needed = {name for binary in facts.binaries for name in (*binary.needed, *binary.delayed)}
    return tuple(sorted(name for name in needed - inside if nvidia_library(name) is not None))


def _module(binary: BinaryFacts) -> Module:
    kinds = {
        kind: tuple(sorted({code.arch for code in binary.device_code if code.kind == kind}))
        for kind in ("sass", "ptx")
    }
    return Module(path=binary.path, sass=kinds["sass"], ptx=kinds["ptx"])
