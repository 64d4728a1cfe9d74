"""The wheel's own requirements, beside the cell's environment, for the gate's import.

They are installed into an environment of their own that sees the cell's: what is there already
(torch above all) counts as installed, and the shared environment stays as it is.
"""

from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheelfarm.build.environment import Environment, install_or_fail
from wheelfarm.build.interpreter import inspect_interpreter
from wheelfarm.run import run


def installable(requirements: tuple[str, ...], siblings: frozenset[str]) -> tuple[str, ...]:
    """Return the requirements that an index can supply; extras and farm siblings are left out.

    A sibling is a package of the same farm, whose wheel of this cell no public index has.
    """
    kept: list[str] = []
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # pip would refuse it too; the gate names it
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if canonicalize_name(requirement.name) in siblings:
            continue
        kept.append(text)
    return tuple(kept)


def install_dependencies(
    environment: Environment, requirements: tuple[str, ...], folder: Path, *, log: Path
) -> Path:
    """Install requirements into ``folder`` and return its site-packages; no source is built.

    Raises BuildError where pip cannot, since a wheel nobody can install must not be published.
    """
    base = environment.interpreter
    run([environment.python, "-m", "venv", "--without-pip", "--symlinks", folder], log=log)
    python = folder / "bin" / "python"
    site = inspect_interpreter(python).site_packages
    (site / "environment.pth").write_text(f"{base.site_packages}\n", encoding="utf-8")
    if not requirements:
        return site
    words = ("--only-binary", ":all:", *requirements)
    what = f"what the wheel requires: {', '.join(requirements)}"
    install_or_fail(python, words, what, log=log)
    return site
