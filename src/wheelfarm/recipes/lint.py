"""What is wrong with a farm though it can be read: each finding with its rule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.model.axis import TORCH_AXES
from wheelfarm.model.platform import LINUX_AARCH64
from wheelfarm.recipes.axis_check import axis_fit
from wheelfarm.recipes.lock import FarmLock
from wheelfarm.recipes.model import EXEMPTIONS, OVERRIDES, Farm, FarmPolicy, Recipe
from wheelfarm.recipes.patch_digest import patch_digest

#: Variables by which a build finds its compilers and its CUDA.
_OWN_VARIABLES = frozenset(
    {"PATH", "PYTHONPATH", "HOME", "TMPDIR", "CUDA_HOME", "CUDA_PATH", "CUDACXX", "PYTORCH_NVCC"}
) | {"TORCH_NO_COMPILER_WRAPPER", "CCACHE_DISABLE"}
#: Variables that a build sets from the plan, and the recipe's key for each.
_KEYS = {
    "TORCH_CUDA_ARCH_LIST": "arch_list",
    "CUDAARCHS": "arch_list",
    "MAX_JOBS": "max_jobs",
    "CMAKE_BUILD_PARALLEL_LEVEL": "max_jobs",
    "NVCC_THREADS": "nvcc_threads",
    "NVCC_APPEND_FLAGS": "nvcc_flags",
}

Level = Literal["fault", "warning"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One finding: the package ("" for the policy), the rule, what is wrong."""

    package: str
    rule: str
    message: str
    level: Level = "fault"


def lint_recipes(farm: Farm, lock: FarmLock) -> tuple[Finding, ...]:
    """Return what recipes, policy and lock alone show."""
    findings = list(_policy(farm))
    for recipe in farm.recipes.values():
        findings += _axis(recipe, lock)
        findings += _reasons(recipe, farm.policy)
        findings += _source(recipe, lock)
        findings += _environment(recipe)
    return tuple(findings)


def _policy(farm: Farm) -> Iterator[Finding]:
    policy = farm.policy
    if LINUX_AARCH64 in policy.platforms and not policy.arch_policy_aarch64:
        message = "linux_aarch64 is a platform, but arch_policy_aarch64 has no CUDA line"
        yield Finding(package="", rule="aarch64", message=message, level="warning")
    if not farm.recipes:
        yield Finding(package="", rule="empty", message="the farm has no recipe")


def _axis(recipe: Recipe, lock: FarmLock) -> Iterator[Finding]:
    name = recipe.package
    if not recipe.torch_axis_stated:
        message = "links_torch (or torch_axis) is not stated; the default is true"
        yield Finding(package=name, rule="axis-stated", message=message)
    entry = lock.entries.get(name)
    verdict = "" if entry is None else entry.survey
    if not verdict:
        message = "there is no survey verdict; `wheelfarm lock` surveys the source"
        yield Finding(package=name, rule="axis-surveyed", message=message)
    elif entry is not None and entry.patches != patch_digest(recipe):
        message = "the patches changed since the survey; `wheelfarm lock` surveys again"
        yield Finding(package=name, rule="axis-surveyed", message=message)
    else:
        yield from _fit(recipe, verdict)


def _fit(recipe: Recipe, verdict: str) -> Iterator[Finding]:
    found = next((axis for axis in TORCH_AXES if axis == verdict), None)
    if verdict == "mixed" and recipe.torch_axis == "linked":
        # A tree that ships several kinds needs as many wheels as its neediest one.
        return
    fit = axis_fit(recipe.torch_axis, found)
    if fit == "wrong":
        message = f"the recipe says {recipe.torch_axis}, the survey found {verdict}"
        yield Finding(package=recipe.package, rule="axis-agrees", message=message)
    elif fit == "wasteful":
        message = f"the survey found {verdict}: fewer wheels would do"
        yield Finding(package=recipe.package, rule="axis-agrees", message=message, level="warning")
    elif fit == "undecided":
        message = f"the survey's verdict is {verdict}; the built wheel alone proves the axis"
        yield Finding(package=recipe.package, rule="axis-agrees", message=message, level="warning")


def _reasons(recipe: Recipe, policy: FarmPolicy) -> Iterator[Finding]:
    # A recipe that says what holds anyway overrides nothing, until the policy says something else.
    anyway = {
        "min_pytorch": policy.min_pytorch,
        "requirements": policy.defaults.requirements,
        "floor": policy.floor,
        "libstdcxx": "shared",
    }
    for key in OVERRIDES:
        value = getattr(recipe, key)
        overrides = value not in (None, {}, anyway.get(key))
        if overrides and key not in recipe.reasons:
            message = f"{key} overrides the farm's policy without a reason in `reasons`"
            yield Finding(package=recipe.package, rule="reason", message=message)
    for key in EXEMPTIONS:
        if getattr(recipe.verify, key.partition(".")[2]) and key not in recipe.reasons:
            message = f"{key} has no reason in `reasons`: the gate will refuse the wheel"
            yield Finding(package=recipe.package, rule="reason", message=message, level="warning")


def _environment(recipe: Recipe) -> Iterator[Finding]:
    for name in recipe.env:
        if name in _OWN_VARIABLES:
            message = (
                f"env.{name} takes the place of the build's own: compiles would go past the seat"
            )
            yield Finding(package=recipe.package, rule="env", message=message)
        elif name in _KEYS:
            message = f"env.{name} hides what the plan decided; say `{_KEYS[name]}`"
            yield Finding(package=recipe.package, rule="env", message=message)


def _source(recipe: Recipe, lock: FarmLock) -> Iterator[Finding]:
    try:
        says = lock.entry_of(recipe).says
        if says is not None:
            message = (
                f"the source's files say {says}, the recipe {lock.version_of(recipe)}: a build "
                "that makes another version than the recipe's is refused"
            )
            yield Finding(package=recipe.package, rule="version", message=message, level="warning")
    except BadInputError as error:
        message = f"{error.what}; {error.hint}"
        yield Finding(package=recipe.package, rule="locked", message=message)
    if lock.version_of(recipe) is None:
        message = "the version is not known: state it, or let `wheelfarm lock` read the source"
        yield Finding(package=recipe.package, rule="version", message=message)
