"""A recipe's table in, a ``Recipe`` out; all faults go to the reader."""

import re
from collections.abc import Callable
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from wheelfarm.model.arch import ArchList
from wheelfarm.model.axis import TORCH_AXES, TorchAxis
from wheelfarm.model.cell import cell_name
from wheelfarm.model.libstdcxx import LIBSTDCXX_CHOICES, LibstdcxxChoice
from wheelfarm.model.python import PythonAxis
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.reading import Reader
from wheelfarm.recipes import parts
from wheelfarm.recipes.model import (
    EXEMPTIONS,
    OVERRIDES,
    BuildMatrix,
    Combination,
    Defaults,
    PathSource,
    Recipe,
    ShardFilter,
    Sharding,
    VerifyOptions,
)
from wheelfarm.recipes.policy import minutes, requirements_choice
from wheelfarm.recipes.source import read_source, version_of_source

PROJECT_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_COMPONENT = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", re.ASCII)
_PLACEHOLDER = re.compile(r"\{(?:VER:[A-Za-z0-9._-]+|LOCAL)\}", re.ASCII)
_SIBLING = re.compile(r"\{VER:([A-Za-z0-9._-]+)\}", re.ASCII)
_PYTHON_AXES: tuple[PythonAxis, ...] = ("exact", "abi3", "none")
_SHARD_FILTERS: tuple[ShardFilter, ...] = ("seat", "source")
#: More shards than this would not fit into one matrix of GitHub's.
MOST_SHARDS = 250


def read_recipe(reader: Reader, folder: Path, defaults: Defaults) -> Recipe | None:
    """Read one recipe; None where it is too faulty to stand for anything.

    ``folder`` is where the recipe's file lies: patches and local sources are found from there.
    """
    name = reader.string("name")
    if name and not PROJECT_NAME.fullmatch(name):
        reader.fault(f"{name!r} is no valid package name", "name")
    source = read_source(reader, folder, submodules=defaults.clone_recursive)
    version = _version(reader) or (None if source is None else version_of_source(source))
    axis, stated = _torch_axis(reader)
    recipe = Recipe(
        name=name,
        source=PathSource(path=folder, written="") if source is None else source,
        version=version,
        torch_axis=axis,
        torch_axis_stated=stated,
        from_torch=reader.parsed("from_torch", parts.torch_minor),
        python_axis=_one_of(reader, "python_axis", _PYTHON_AXES),
        from_python=reader.parsed("from_python", parts.python_minor),
        build_subdir=_relative(reader, "build_subdir"),
        patches=_patches(reader, folder),
        patch_script=_script(reader, "patch_script", folder),
        pre_build_script=reader.string("pre_build_script", ""),
        extra_deps=_requirements(reader, "extra_deps"),
        extra_cuda_components=_components(reader),
        env=_environment(reader),
        pure=reader.boolean("pure", default=False),
        arch_list=reader.parsed("arch_list", ArchList.parse),
        arch_list_by_cuda=parts.arch_map(reader, "arch_list_by_cuda"),
        arch_list_aarch64=reader.parsed("arch_list_aarch64", ArchList.parse),
        arch_list_by_cuda_aarch64=parts.arch_map(reader, "arch_list_by_cuda_aarch64"),
        arch_list_by_combination=parts.parsed_map(
            reader, "arch_list_by_combination", parts.combination_key, ArchList.parse
        ),
        min_pytorch=reader.parsed("min_pytorch", parts.torch_minor),
        build_matrix=_build_matrix(reader.table("build_matrix")),
        max_jobs=_optional_count(reader, "max_jobs"),
        nvcc_threads=_optional_count(reader, "nvcc_threads"),
        nvcc_flags=reader.string("nvcc_flags", ""),
        sharding=_sharding(reader),
        objects_behind_seat=_objects_behind_seat(reader),
        requires_dist=_requires_dist(reader),
        requirements=requirements_choice(reader, "requirements"),
        floor=reader.parsed("floor", parts.glibc_floor),
        libstdcxx=_libstdcxx(reader),
        runtime_jit=reader.boolean("runtime_jit", default=False),
        verify=_verify(reader.table("verify"), folder),
        priority=reader.integer("priority", 0),
        cost_minutes=minutes(reader, "cost_minutes"),
        reasons=reader.string_map("reasons"),
        folder=folder,
    )
    _check_axes(reader, recipe)
    _check_reasons(reader, recipe)
    reader.done()
    return recipe if name and source is not None else None


def _version(reader: Reader) -> Version | None:
    version = reader.parsed("version", parse_version)
    if version is not None and version.local:
        reader.fault("a version has no local part here; wheelfarm adds its own", "version")
    return version


def _one_of(reader: Reader, key: str, allowed: tuple[PythonAxis, ...]) -> PythonAxis:
    word = reader.choice(key, allowed, allowed[0])
    return next((known for known in allowed if known == word), allowed[0])


def _libstdcxx(reader: Reader) -> LibstdcxxChoice:
    word = reader.choice("libstdcxx", LIBSTDCXX_CHOICES, "shared")
    return next((choice for choice in LIBSTDCXX_CHOICES if choice == word), "shared")


def _torch_axis(reader: Reader) -> tuple[TorchAxis, bool]:
    """Read ``torch_axis`` or its short form ``links_torch``; the default is the safe ``linked``."""
    if reader.has("links_torch"):
        links = reader.boolean("links_torch")
        if reader.has("torch_axis"):
            reader.fault("give either links_torch or torch_axis", "links_torch")
        return ("linked" if links else "free"), True
    if reader.has("torch_axis"):
        word = reader.choice("torch_axis", TORCH_AXES)
        return next((axis for axis in TORCH_AXES if axis == word), "linked"), True
    return "linked", False


def _check_axes(reader: Reader, recipe: Recipe) -> None:
    if (recipe.torch_axis == "stable_abi") != reader.has("from_torch"):
        known = "is required with" if recipe.torch_axis == "stable_abi" else "goes only with"
        reader.fault(f"from_torch {known} torch_axis: stable_abi", "from_torch")
    if (recipe.python_axis == "abi3") != reader.has("from_python"):
        known = "is required with" if recipe.python_axis == "abi3" else "goes only with"
        reader.fault(f"from_python {known} python_axis: abi3", "from_python")
    if recipe.requires_dist is not None and recipe.requirements is not None:
        reader.fault("give either requires_dist or requirements", "requirements")


def _check_reasons(reader: Reader, recipe: Recipe) -> None:
    known = (*OVERRIDES, *EXEMPTIONS)
    for key, text in recipe.reasons.items():
        top, _, option = key.partition(".")
        if key not in known:
            message = f"{key} overrides no policy; reasons are for {', '.join(known)}"
            reader.fault(message, "reasons", key)
        elif not (getattr(recipe.verify, option) if option else reader.has(top)):
            reader.fault(f"there is a reason for {key}, but no {key}", "reasons", key)
        elif not text.strip():
            reader.fault("the reason is empty", "reasons", key)


def _relative(reader: Reader, key: str) -> str:
    text = reader.string(key, "")
    if text in {"", "."}:
        return ""
    if why := parts.why_not_inside(text):
        reader.fault(why, key)
        return ""
    return Path(text).as_posix()


def _patches(reader: Reader, folder: Path) -> tuple[Path, ...]:
    found: list[Path] = []
    for index, pattern in enumerate(reader.strings("patches")):
        if why := parts.why_not_inside(pattern):
            reader.fault(why, "patches", index)
            continue
        matches = reader.attempt(_matching(folder, pattern), "patches", index)
        if matches is None:
            continue
        if not matches:
            reader.fault(f"no file matches {pattern!r}", "patches", index)
        found += [path for path in matches if path not in found]
    return tuple(found)


def _matching(folder: Path, pattern: str) -> Callable[[], list[Path]]:
    return lambda: sorted(path for path in folder.glob(pattern) if path.is_file())


def _script(reader: Reader, key: str, folder: Path) -> Path | None:
    text = _relative(reader, key)
    if not text:
        return None
    path = folder / text
    if not path.is_file():
        reader.fault(f"there is no file {text!r} beside the recipe", key)
    return path


def _requirements(reader: Reader, key: str) -> tuple[str, ...]:
    words = reader.strings(key)
    for index, word in enumerate(words):
        _check_requirement(reader, word, key, index)
    return words


def _check_requirement(reader: Reader, text: str, key: str, index: int) -> None:
    try:
        Requirement(text)
    except InvalidRequirement:
        reader.fault(f"{text!r} is no requirement (PEP 508)", key, index)


def _requires_dist(reader: Reader) -> tuple[str, ...] | None:
    if not reader.has("requires_dist"):
        return None
    words = reader.strings("requires_dist")
    for index, word in enumerate(words):
        # A local version behind the placeholder must be there for the text to be a requirement.
        _check_requirement(reader, _PLACEHOLDER.sub("1", word), "requires_dist", index)
    return tuple(
        _SIBLING.sub(lambda match: f"{{VER:{cell_name(match[1])}}}", item) for item in words
    )


def _components(reader: Reader) -> tuple[str, ...]:
    words = reader.strings("extra_cuda_components")
    for index, word in enumerate(words):
        if not _COMPONENT.fullmatch(word):
            reader.fault(f"{word!r} is no toolkit component", "extra_cuda_components", index)
    return words


def _environment(reader: Reader) -> dict[str, str]:
    values = reader.string_map("env")
    for name in values:
        if not _VARIABLE.fullmatch(name):
            reader.fault(f"{name!r} is no name of an environment variable", "env", name)
        if "\0" in values[name]:
            reader.fault("a value of the environment holds no NUL", "env", name)
    return values


def _optional_count(reader: Reader, key: str) -> int | None:
    return reader.integer(key, least=1) if reader.has(key) else None


def _sharding(reader: Reader) -> Sharding | None:
    where = parts.platforms(reader, "sharding_platforms")
    word = reader.choice("shard_filter", _SHARD_FILTERS, "seat")
    if not reader.has("sharding"):
        for key in ("sharding_platforms", "shard_filter"):
            if reader.has(key):
                reader.fault(f"{key} goes only with sharding", key)
        return None
    shards = reader.integer("sharding", least=1)
    if shards > MOST_SHARDS:
        reader.fault(f"must be at most {MOST_SHARDS}, found {shards}", "sharding")
    if shards < 2:  # noqa: PLR2004 - one shard is no split
        return None
    chosen: ShardFilter = "source" if word == "source" else "seat"
    return Sharding(shards=shards, platforms=where, filter=chosen)


def _objects_behind_seat(reader: Reader) -> dict[str, str]:
    patterns = reader.string_map("objects_behind_seat")
    for pattern, reason in patterns.items():
        if not reason.strip():
            reader.fault("the reason is empty", "objects_behind_seat", pattern)
    return patterns


def _build_matrix(reader: Reader | None) -> BuildMatrix | None:
    if reader is None:
        return None
    rows = tuple(row for row in map(_combination, reader.tables("combinations")) if row is not None)
    seen: dict[tuple[Minor, Minor], int] = {}
    for index, row in enumerate(rows):
        if (row.cuda, row.torch) in seen:
            reader.fault(
                f"CUDA {row.cuda} with torch {row.torch} stands here twice; one wheel name cannot "
                "stand for two releases of one torch minor",
                "combinations",
                index,
            )
        seen[row.cuda, row.torch] = index
    matrix = BuildMatrix(
        combinations=rows,
        platforms=parts.platforms(reader, "platforms"),
        python_versions=parts.pythons(reader, "python_versions"),
    )
    reader.done()
    return matrix


def _combination(reader: Reader) -> Combination | None:
    cuda = reader.parsed("cuda", Minor.parse)
    torch = reader.parsed("pytorch", parts.torch_row)
    pythons = parts.pythons(reader, "python_versions")
    for key in ("cuda", "pytorch"):
        if not reader.has(key):
            reader.fault(f"the key {key!r} is required", key)
    reader.done()
    if cuda is None or torch is None:
        return None
    return Combination(cuda=cuda, torch=torch[0], release=torch[1], pythons=pythons)


def _verify(reader: Reader | None, folder: Path) -> VerifyOptions:
    if reader is None:
        return VerifyOptions()
    options = VerifyOptions(
        import_name=reader.string("import_name", ""),
        extra_imports=reader.strings("extra_imports"),
        no_direct_import=reader.strings("no_direct_import"),
        allowed_needed=reader.strings("allowed_needed"),
        allowed_archives=reader.strings("allowed_archives"),
        needs_driver=reader.boolean("needs_driver", default=False),
        expect_ops=reader.strings("expect_ops"),
        expect_device_error=reader.boolean("expect_device_error", default=False),
        skip_arch=reader.string("skip_arch", ""),
        skip_import=reader.string("skip_import", ""),
        max_size_mb=reader.integer("max_size_mb", 0, least=0),
        smoke_test=_script(reader, "smoke_test", folder),
    )
    reader.done()
    return options
