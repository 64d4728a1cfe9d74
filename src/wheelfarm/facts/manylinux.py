"""What the manylinux policies promise: auditwheel's table comes in, typed policies go out.

Which versions of which libraries a manylinux tag promises is auditwheel's table (PEP 600), made
from the distributions of each glibc.
"""

import functools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.facts.linkage import version_numbers
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.versions import Minor

#: The machines of PEP 600's tags, and of later glibcs.
_MACHINE = "(x86_64|i686|aarch64|armv7l|ppc64|ppc64le|s390x|riscv64|loongarch64)"
_LINUX = re.compile(rf"(linux|musllinux_\d+_\d+)_{_MACHINE}", re.ASCII)
_MANYLINUX = re.compile(rf"manylinux_(\d+)_(\d+)_{_MACHINE}", re.ASCII)
_OLD_MANYLINUX = re.compile(rf"(manylinux1|manylinux2010|manylinux2014)_{_MACHINE}", re.ASCII)
_OLD_NAMES = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
#: The sets of symbol versions, beside glibc's, that a policy promises.
JUDGED = ("GLIBCXX", "CXXABI", "GCC", "LIBATOMIC", "ZLIB")


@dataclass(frozen=True, kw_only=True, slots=True)
class Manylinux:
    """One manylinux policy: its glibc, and the symbol versions that it promises per machine."""

    glibc: Minor
    versions: dict[str, dict[str, frozenset[str]]]

    def lacks(self, binary: BinaryFacts) -> str:
        """Return the first version need that the policy does not promise, empty for none."""
        promised = self.versions.get(binary.machine, {})
        for need in binary.version_needs:
            name, _, number = need.version.partition("_")
            numbers = version_numbers(need.version, "GLIBC")
            if numbers is not None:
                if numbers[:2] > (self.glibc.major, self.glibc.minor):
                    return need.version
            elif name in JUDGED and number not in promised.get(name, frozenset()):
                return need.version
        return ""


@functools.cache
def policies() -> tuple[Manylinux, ...]:
    """Return the manylinux policies, the lowest glibc first."""
    try:
        file = resources.files("auditwheel.policy") / "manylinux-policy.json"
    except ModuleNotFoundError as error:
        message = "auditwheel, whose table says what a platform tag promises, is not installed"
        raise CouldNotLookError(message, hint="pip install wheelfarm[farm]") from error
    found = []
    for entry in json.loads(file.read_text(encoding="utf-8")):
        parts = entry["name"].split("_")
        if parts[0] != "manylinux":
            continue
        versions = {
            machine: {name: frozenset(numbers) for name, numbers in sets.items()}
            for machine, sets in entry["symbol_versions"].items()
        }
        found.append(Manylinux(glibc=Minor(int(parts[1]), int(parts[2])), versions=versions))
    return tuple(sorted(found, key=lambda policy: policy.glibc))


def require_tag(glibc: Minor) -> None:
    """Raise BadInputError where no manylinux tag of a glibc is known, such as of a misspelt one.

    Wheels of such a floor would be tagged so that no system takes them.
    """
    newest = policies()[-1].glibc
    if glibc > newest:
        message = f"no system with glibc {glibc} is known: the newest tag is of {newest}"
        hint = "state the oldest glibc that the wheels must run on, such as 2.28"
        raise BadInputError(message, hint=hint)


def policy_for(glibc: Minor) -> Manylinux:
    """Return the policy of a glibc, or of the nearest lower one that has a policy."""
    lower = [policy for policy in policies() if policy.glibc <= glibc]
    nearest = lower[-1] if lower else policies()[0]
    return Manylinux(glibc=glibc, versions=nearest.versions)


def lowest_true(binaries: Iterable[BinaryFacts]) -> Minor | None:
    """Return the glibc of the lowest manylinux tag that is true; None where none is."""
    elf = [binary for binary in binaries if binary.kind == "elf"]
    for policy in policies():
        if not any(policy.lacks(binary) for binary in elf):
            return policy.glibc
    return None


def claimed_glibc(tag: str) -> Minor | None:
    """Return the glibc that a platform tag promises, None for a tag that promises none."""
    match = _MANYLINUX.fullmatch(tag)
    if match is not None:
        return Minor(int(match[1]), int(match[2]))
    old = _OLD_MANYLINUX.fullmatch(tag)
    return None if old is None else Minor(*_OLD_NAMES[old[1]])


def tag_machine(tag: str) -> str:
    """Return the machine of a Linux platform tag, empty for a text that is none."""
    for form in (_MANYLINUX, _OLD_MANYLINUX, _LINUX):
        match = form.fullmatch(tag)
        if match is not None:
            return match[match.re.groups]
    return ""
