"""One package of an old farm in, the table of our recipe out."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.recipes.migrate.notes import Notes
from wheelfarm.recipes.migrate.values import (
    components_of,
    strings,
    text_of,
    variables_of,
    words_of,
)
from wheelfarm.recipes.source import checked_ref

Table = dict[str, Any]

_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_VERSIONED = re.compile(r"\{VER:([^}]+)\}")

#: Old keys that steer what only that farm's own workflows do.
_MEANINGLESS = {
    "cuda_installer": "the toolkit comes from NVIDIA's wheels, or from what the machine has",
    "free_disk_space": "runners are the workflow's concern",
    "platforms": "nothing read this key; narrow the platforms with build_matrix.platforms",
}
#: Keys that say the same here, as they are.
_SAME = ("links_torch", "clone_recursive", "max_jobs", "nvcc_threads", "sharding", "runtime_jit")
_TEXTS = (
    *("nvcc_flags", "build_subdir", "shard_filter", "torch_axis", "from_torch", "python_axis"),
    *("arch_list", "arch_list_aarch64", "min_pytorch"),
)
_NESTED = ("arch_list_by_cuda", "arch_list_by_cuda_aarch64", "build_matrix", "verify", "env")


def convert_package(old: Mapping[str, Any], names: Mapping[str, str], notes: Notes) -> Table:
    """Return our recipe's table. ``names`` are the packages' names by their old folder."""
    rest = dict(old)
    new: Table = {"name": text_of(rest.pop("name", ""), "name", notes)}
    if "version" in rest:
        new["version"] = text_of(rest.pop("version"), "version", notes)
    new |= _source(rest, notes)
    new |= {key: rest.pop(key) for key in _SAME if key in rest}
    new |= {key: text_of(rest.pop(key), key, notes) for key in _TEXTS if key in rest}
    new |= _lists(rest, names, notes)
    new |= _scripts(rest, notes)
    new |= {key: strings(rest.pop(key), key, notes) for key in _NESTED if key in rest}
    for key, value in rest.items():
        notes.left_out(key, f"{_MEANINGLESS.get(key, 'this key is not known')}: {value!r}")
    if "links_torch" not in new and "torch_axis" not in new:
        notes.to_do("links_torch", "not stated; `wheelfarm survey` reads the build files")
    return new


def _source(rest: Table, notes: Notes) -> Table:
    repo = text_of(rest.pop("source_repo", ""), "source_repo", notes)
    tag = text_of(rest.pop("source_tag", ""), "source_tag", notes)
    if "source" in rest:
        return {"source": rest.pop("source")}
    if not repo or not tag:
        notes.to_do("source_repo", "the source is not complete")
    try:
        checked_ref(tag)
    except BadInputError as error:
        notes.to_do("source_tag", str(error))
    kind = "commit" if _COMMIT.fullmatch(tag) else "tag"
    return {"source": {"git": f"https://github.com/{repo}.git", kind: tag}}


def _lists(rest: Table, names: Mapping[str, str], notes: Notes) -> Table:
    new: Table = {}
    if "extra_deps" in rest:
        new["extra_deps"] = words_of(rest.pop("extra_deps"), "extra_deps", notes)
    if "extra_cuda_components" in rest:
        key = "extra_cuda_components"
        new[key] = components_of(rest.pop(key), key, notes)
    if "sharding_platforms" in rest:
        key = "sharding_platforms"
        new[key] = words_of(rest.pop(key), key, notes)
    if "requires_dist" in rest:
        words = words_of(rest.pop("requires_dist"), "requires_dist", notes)
        new["requires_dist"] = [_VERSIONED.sub(_renaming(names, notes), word) for word in words]
    return new


def _renaming(names: Mapping[str, str], notes: Notes) -> "Callable[[re.Match[str]], str]":
    def rename(match: re.Match[str]) -> str:
        name = names.get(match[1], match[1])
        if name != match[1]:
            notes.changed("requires_dist", f"{{VER:{match[1]}}} is {{VER:{name}}}: by package name")
        return f"{{VER:{name}}}"

    return rename


def _scripts(rest: Table, notes: Notes) -> Table:
    new: Table = {}
    if "patch_script" in rest:
        path = text_of(rest.pop("patch_script"), "patch_script", notes)
        new["patch_script"] = f"patches/{path.rpartition('/')[2]}"
        if new["patch_script"] != path:
            notes.changed("patch_script", f"{path} is {new['patch_script']}, beside the recipe")
    if "patches" in rest:
        new["patches"] = words_of(rest.pop("patches"), "patches", notes)
    if "pre_build_script" in rest:
        script = text_of(rest.pop("pre_build_script"), "pre_build_script", notes)
        variables = variables_of(script)
        if variables is None:
            new["pre_build_script"] = script
        else:
            new["env"] = {**rest.pop("env", {}), **variables}
            notes.changed("pre_build_script", f"sets {', '.join(variables)} alone: now env")
    return new
