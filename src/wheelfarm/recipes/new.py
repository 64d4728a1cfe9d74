"""The text of a new farm's policy and of a new recipe; what must be decided says so."""

from dataclasses import dataclass

from wheelfarm.model.platform import LINUX_X86_64
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.pypi import Sdist
from wheelfarm.upstream.model import UpstreamFacts

_POLICY = """\
# What this farm builds. Every key is described in docs/recipes.md.
platforms: [linux_x86_64]     # also linux_aarch64, windows_amd64
python_min: "{python}"            # there is no highest: PyTorch's own wheels are the ceiling
supported_cudas: ["{cuda}"]

# The GPU architectures of each CUDA line; these are the ones that torch itself is built for.
arch_policy:
  "{cuda}": "{archs}"
"""

_STATED = """\
# {verdict}: {evidence}
{line}
"""

_OPEN = """\
# To be decided: do the binaries link torch (true: one wheel per torch minor), or not (false)?
# `wheelfarm survey` reads the build files and answers with evidence. {why}
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


def policy_text(facts: UpstreamFacts) -> str:
    """Return a policy for the CUDA line of the newest torch on PyPI."""
    newest = max(facts.pypi)
    accelerator = facts.pypi[newest][LINUX_X86_64]
    archs = facts.torch_arch_list(accelerator, Minor.of(newest), LINUX_X86_64)
    release = facts.release(accelerator, newest)
    tags = () if release is None else release.pythons[LINUX_X86_64]
    python = min(tag.version for tag in tags if tag.version is not None)
    return _POLICY.format(python=python, cuda=accelerator.version, archs=f"{archs}+PTX")


def recipe_text(name: str, sdist: Sdist, finding: AxisFinding) -> str:
    """Return a recipe that builds an sdist."""
    if finding.line:
        axis = _STATED.format(
            verdict=finding.verdict, evidence=finding.evidence, line=finding.line
        )
    else:
        axis = _OPEN.format(why=finding.verdict).replace(" \n", "\n")
    return _RECIPE.format(name=name, project=name, version=sdist.version, axis=axis)
