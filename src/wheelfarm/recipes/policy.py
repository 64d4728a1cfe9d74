"""``farm.yml`` in, a farm's policy out."""

from wheelfarm.model.arch import ArchList
from wheelfarm.model.platform import LINUX_X86_64, WINDOWS_AMD64
from wheelfarm.model.versions import Minor
from wheelfarm.reading import Reader
from wheelfarm.recipes import parts
from wheelfarm.recipes.model import GLIBC_FLOOR, Defaults, FarmPolicy, Requirements

_REQUIREMENTS: tuple[Requirements, ...] = ("pinned", "blank", "upstream")


def requirements_choice(reader: Reader, key: str) -> Requirements | None:
    """Read what becomes of upstream's requirements; None where nothing is said."""
    if not reader.has(key):
        return None
    word = reader.choice(key, _REQUIREMENTS)
    return next((known for known in _REQUIREMENTS if known == word), None)


def read_policy(reader: Reader) -> FarmPolicy:
    """Read a farm's policy; faults go to the reader."""
    cudas = parts.parsed_list(reader, "supported_cudas", Minor.parse)
    policy = FarmPolicy(
        platforms=parts.platforms(reader, "platforms"),
        python_min=reader.parsed("python_min", parts.python_minor) or Minor(3, 10),
        supported_cudas=cudas,
        arch_policy=parts.arch_map(reader, "arch_policy"),
        arch_policy_aarch64=parts.arch_map(reader, "arch_policy_aarch64"),
        arch_exceptions=_exceptions(reader, "arch_exceptions"),
        arch_exceptions_aarch64=_exceptions(reader, "arch_exceptions_aarch64"),
        free_threaded=reader.boolean("free_threaded", default=False),
        min_pytorch=reader.parsed("min_pytorch", parts.torch_minor),
        floor=_floor(reader),
        defaults=_defaults(reader.table("defaults")),
        store=reader.string("store", "store"),
        upstream=reader.string("upstream", ""),
    )
    for key in ("platforms", "supported_cudas", "python_min"):
        if not reader.has(key):
            reader.fault(f"the key {key!r} is required", key)
        elif reader.raw(key) == []:
            reader.fault("must name at least one", key)
    _check_arch_rows(reader, policy)
    reader.done()
    return policy


def _exceptions(reader: Reader, key: str) -> dict[tuple[Minor, Minor], ArchList]:
    return parts.parsed_map(reader, key, parts.cuda_pair, ArchList.parse)


def _defaults(reader: Reader | None) -> Defaults:
    if reader is None:
        return Defaults()
    defaults = Defaults(
        max_jobs=reader.integer("max_jobs", 3, least=1),
        nvcc_threads=reader.integer("nvcc_threads", 1, least=1),
        clone_recursive=reader.boolean("clone_recursive", default=False),
        requirements=requirements_choice(reader, "requirements") or "pinned",
        cost_minutes=minutes(reader, "cost_minutes") or 20.0,
    )
    reader.done()
    return defaults


def minutes(reader: Reader, key: str) -> float | None:
    """Read a positive number of minutes; None where nothing is said."""
    if not reader.has(key):
        return None
    value = reader.raw(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        reader.fault(f"expected a positive number of minutes, found {value!r}", key)
        return None
    return float(value)


def _check_arch_rows(reader: Reader, policy: FarmPolicy) -> None:
    # Without architectures a line would be built for whatever a build script guesses.
    if {LINUX_X86_64, WINDOWS_AMD64}.intersection(policy.platforms):
        for cuda in policy.supported_cudas:
            if cuda not in policy.arch_policy:
                reader.fault(f"the CUDA line {cuda} has no row of architectures", "arch_policy")


def _floor(reader: Reader) -> Minor | None:
    """Read the floor; the word ``native`` asks for none."""
    if reader.raw("floor") == "native":
        return None
    return reader.parsed("floor", parts.glibc_floor) or GLIBC_FLOOR
