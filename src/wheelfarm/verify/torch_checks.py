"""Checks of torch and CUDA: the declared axis against the symbols, the C++ ABI, the CUDA major."""

from collections.abc import Iterator

from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Expected, Subject, judged, matches, shown

_WORDS = {
    "none": "links no torch",
    "stable_abi": "links torch's stable ABI alone",
    "linked": "links libtorch",
}


def check_torch_axis(subject: Subject) -> Check:
    """Check the declared torch axis against needed libraries and undefined symbols."""
    linkage = subject.facts.linkage
    proof = shown(subject.evidence("torch", "stable_torch"))
    found = _WORDS[linkage.torch]
    if linkage.torch == "stable_abi" and linkage.stable_torch is not None:
        found += f", valid from torch {linkage.stable_torch}"
    expected = subject.expected
    if expected is None or expected.torch_axis is None:
        return judged("torch-axis", fine=found, evidence=proof)
    fails, warnings = _against_axis(subject, expected, found)
    return judged("torch-axis", fails=fails, warnings=warnings, fine=found, evidence=proof)


def _against_axis(subject: Subject, expected: Expected, found: str) -> tuple[list[str], list[str]]:
    linkage = subject.facts.linkage
    axis = expected.torch_axis
    if axis in {"free", "abi_flag"}:
        if linkage.torch == "none":
            return list(_opened(subject, expected)), list(_inside(subject))
        first = next(iter(shown(subject.evidence("torch"))), "")
        return [f"declared as {axis}, but the wheel {found}: {first}"], []
    if linkage.torch == "none":
        return _unlinked(expected)
    if axis == "linked":
        if linkage.torch == "linked":
            return [], []
        field = f"torch_axis: stable_abi, from_torch: {str(linkage.stable_torch or '')!r}"
        return [], [f"declared as linked, but it {found}; `{field}` would save builds"]
    return _against_stable(subject, expected)


def _opened(subject: Subject, expected: Expected) -> Iterator[str]:
    """Yield the libraries of torch that a binary opens by name: a link that no table shows."""
    for binary in subject.binaries:
        for name in binary.opens:
            if not matches(name, expected.allowed_needed):
                yield (
                    f"declared as {expected.torch_axis}, but {binary.path} opens {name} at run "
                    "time; where it does without, list it in `verify: {allowed_needed: …}`"
                )


def _inside(subject: Subject) -> Iterator[str]:
    """Yield the binaries that hold torch's own code, of its headers or of a static library."""
    for binary in subject.binaries:
        if binary.torch_inside:
            yield (
                f"{binary.path} holds code of torch itself ({binary.torch_inside[0]}): it is that "
                "of the torch it was built against"
            )


def _unlinked(expected: Expected) -> tuple[list[str], list[str]]:
    if expected.torch_axis_stated:
        return [f"stated as {expected.torch_axis}, but no binary links torch"], []
    return [], [
        "linked by default, but no binary links torch; say `links_torch: false` in the recipe"
    ]


def _against_stable(subject: Subject, expected: Expected) -> tuple[list[str], list[str]]:
    linkage = subject.facts.linkage
    if linkage.torch == "linked":
        unstable = [
            f"{binary.path}: {name}"
            for binary in subject.binaries
            if binary.torch is not None
            for name in binary.torch.unstable
        ]
        return [f"declared as stable_abi, but it takes an unstable symbol: {unstable[0]}"], []
    floor = expected.from_torch or (None if subject.cell is None else subject.cell.torch)
    needed = linkage.stable_torch
    if floor is not None and needed is not None and needed > floor:
        proof = next(iter(shown(subject.evidence("stable_torch")[-1:])), "")
        return [f"declared valid from torch {floor}, but needs {needed}: {proof}"], []
    return [], []


def check_cxx_abi(subject: Subject) -> Check | None:
    """Check the C++ ABI of the label or recipe against the one that symbols show."""
    linkage, name = subject.facts.linkage, subject.facts.name
    label = None if name is None else name.label.cxx11_abi
    declared = None if subject.expected is None else subject.expected.cxx_abi
    claims = {int(value) for value in (label, declared) if value is not None}
    proof = subject.evidence("cxx_abi")
    if not claims and not proof:
        return None
    shown_abis = {int(_NEW in entry.detail) for entry in proof}
    fails = []
    if len(shown_abis) > 1:
        fails.append("binaries use both C++ ABIs of libstdc++")
    fails += [
        f"claims C++ ABI {claim}, but a symbol shows {abi}"
        for claim in sorted(claims)
        for abi in sorted(shown_abis - {claim})
    ]
    fine = f"uses C++ ABI {linkage.cxx_abi}" if proof else "no symbol depends on the C++ ABI"
    return judged("cxx-abi", fails=fails, fine=fine, evidence=shown(proof))


_NEW = "__cxx11"


def check_cuda(subject: Subject) -> Check | None:
    """Check that all CUDA libraries are of one major, and of the cell's or the label's."""
    linkage, name = subject.facts.linkage, subject.facts.name
    proof = subject.evidence("cuda_major")
    label = None if name is None else name.label.accelerator
    accelerator = label if subject.cell is None else subject.cell.accelerator
    claimed = accelerator.major if accelerator is not None and accelerator.kind == "cuda" else None
    if not proof:
        return _static_cuda(subject, claimed)
    fails: list[str] = []
    warnings: list[str] = []
    lines = shown(proof)
    if linkage.cuda_major is None and len(proof) > 1:
        message = f"binaries need libraries of different CUDA majors: {lines[0]}; {lines[-1]}"
        (fails if claimed is not None else warnings).append(message)
    elif claimed is not None and linkage.cuda_major not in {None, claimed}:
        fails.append(f"claims CUDA {claimed}, but needs CUDA {linkage.cuda_major}: {lines[-1]}")
    toolkit = linkage.toolkit
    if claimed is not None and toolkit is not None and toolkit.major != claimed:
        newer = shown(subject.evidence("toolkit"))
        fails.append(f"claims CUDA {claimed}, but its PTX is of CUDA {toolkit}: {newer[0]}")
    found = linkage.cuda_major if linkage.cuda_major is not None else "of several majors"
    return judged(
        "cuda", fails=fails, warnings=warnings, fine=f"needs CUDA {found}", evidence=lines
    )


def _static_cuda(subject: Subject, claimed: int | None) -> Check | None:
    toolkit = subject.facts.linkage.toolkit
    if toolkit is None:
        return None
    lines = shown(subject.evidence("toolkit"))
    fails = []
    if claimed is not None and toolkit.major != claimed:
        fails.append(f"claims CUDA {claimed}, but its PTX is of CUDA {toolkit}")
    return judged("cuda", fails=fails, fine=f"its PTX is of CUDA {toolkit}", evidence=lines)
