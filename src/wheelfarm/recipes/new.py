"""The text of a new farm's policy and of a new recipe; what must be decided says so."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelfarm.model.platform import LINUX_X86_64
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.pypi import Sdist
from wheelfarm.survey import SurveyResult
from wheelfarm.upstream.model import UpstreamFacts

if TYPE_CHECKING:
    from wheelfarm.model.axis import TorchAxis

_POLICY = """\
# What this farm builds. Every key is described in docs/recipes.md.
platforms: [linux_x86_64]     # also linux_aarch64, windows_amd64
python_min: "3.10"            # there is no highest: PyTorch's own wheels are the ceiling
supported_cudas: [{cudas}]

# The GPU architectures of each CUDA line; these are the ones that torch itself is built for.
arch_policy:
{archs}
"""

_STATED = """\
# {verdict}: {evidence}
{line}
"""

_OPEN = """\
# To be decided: do the binaries link torch (true: one wheel per torch minor), or not (false)?
# `wheelfarm survey` reads the build files and answers with evidence. {why}
# {evidence}
# links_torch: true
"""

_RECIPE = """\
name: {name}
source: {{pypi: {project}=={version}}}

{axis}
# Decide these too, where they matter; `wheelfarm lint` asks for what is missing.
# extra_deps: [cmake, ninja]        # build requirements; build isolation is off
# extra_cuda_components: [cublas]   # parts of the CUDA toolkit besides compiler and runtime
# env: {{NAME_FORCE_BUILD: "TRUE"}}   # some builds download a prebuilt wheel unless told not to
# min_pytorch: "2.10"               # with its reason:  reasons: {{min_pytorch: "..."}}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AxisFinding:
    """What is known of a package's torch axis: the recipe's line and why, or why it is open."""

    line: str = ""
    verdict: str = ""
    evidence: str = ""
    survey: str = ""


def surveyed(result: SurveyResult, evidence: str) -> AxisFinding:
    """Return the recipe's line for a survey's verdict; an undecided one leaves the line open."""
    lines: dict[TorchAxis, str] = {
        "linked": "links_torch: true",
        "free": "links_torch: false",
        "abi_flag": "torch_axis: abi_flag",
    }
    axis = result.recipe_axis
    if axis is None or axis not in lines:
        return AxisFinding(
            verdict=f"It says {result.torch_axis}.", evidence=evidence, survey=result.torch_axis
        )
    return AxisFinding(
        line=lines[axis],
        verdict=f"The survey says {result.torch_axis}",
        evidence=evidence,
        survey=result.torch_axis,
    )


#: How many of PyPI's newest torch minors a new farm's policy covers.
_MINORS = 2


def policy_text(facts: UpstreamFacts) -> str:
    """Return a policy for the CUDA lines of PyPI's newest torch minors."""
    rows = {
        Minor.of(torch): row[LINUX_X86_64]
        for torch, row in sorted(facts.pypi.items())
        if LINUX_X86_64 in row
    }
    lines = {rows[torch]: torch for torch in sorted(rows)[-_MINORS:]}
    archs = {
        line: facts.torch_arch_list(line, torch, LINUX_X86_64)
        for line, torch in sorted(lines.items())
    }
    return _POLICY.format(
        cudas=", ".join(f'"{line.version}"' for line in archs),
        archs="\n".join(f'  "{line.version}": "{text}+PTX"' for line, text in archs.items()),
    )


def recipe_text(name: str, sdist: Sdist, finding: AxisFinding) -> str:
    """Return a recipe that builds an sdist."""
    if finding.line:
        axis = _STATED.format(verdict=finding.verdict, evidence=finding.evidence, line=finding.line)
    else:
        axis = _OPEN.format(why=finding.verdict, evidence=finding.evidence or "No build file says.")
    return _RECIPE.format(name=name, project=name, version=sdist.version, axis=axis)
