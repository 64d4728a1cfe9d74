"""A whole old farm in, a folder of ours out, with a note on all that did not simply move."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from wheelfarm import files
from wheelfarm.errors import BadInputError, Fault, FaultsError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.cell import cell_name
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.reading import Reader, read_json, read_text
from wheelfarm.recipes.document import parse_document, read_document
from wheelfarm.recipes.load import POLICY_FILE, RECIPE_FILE, RECIPES_FOLDER
from wheelfarm.recipes.migrate.notes import Note, Notes
from wheelfarm.recipes.migrate.package import Table, convert_package
from wheelfarm.recipes.migrate.values import reasons_of, strings, text_of, words_of
from wheelfarm.recipes.model import OVERRIDES
from wheelfarm.recipes.new import policy_text
from wheelfarm.recipes.parts import usable_path
from wheelfarm.recipes.recipe import PROJECT_NAME
from wheelfarm.upstream.facts import committed_facts, dump_facts
from wheelfarm.upstream.model import Release, UpstreamFacts

_PACKAGE = "package.yml"
_OVERRIDES = ("pcto_override.yml", "arch_override.yml")
_POLICY = "python_cuda_torch_os_policy.yml"
_ARCH_POLICY = "arch_policy.yml"
_MATRIX = "scraped_torch_matrix.json"
_ARCH_TABLES = ("arch_policy", "arch_policy_aarch64", "arch_exceptions", "arch_exceptions_aarch64")
_UPSTREAM = "upstream.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class OldPackage:
    """One package as it stood: its old folder's name, its merged tables, its other files."""

    folder: str
    file: str
    table: Mapping[str, Any]
    reasons: Mapping[str, str]
    others: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Migrated:
    """What a migration made: recipes by package, the policy, upstream facts, and the notes."""

    recipes: Mapping[str, Table]
    others: Mapping[str, tuple[Path, ...]]
    policy: Table
    facts: UpstreamFacts | None
    notes: tuple[Note, ...]


def convert_farm(folder: Path) -> Migrated:
    """Read an old farm and return ours; nothing is written.

    Raises BadInputError where it is no farm of that shape, FaultsError for files that are no YAML.
    """
    if not folder.is_dir():
        message = f"{folder} is no folder"
        raise BadInputError(message, hint="give the folder that holds the old farm's packages")
    notes = Notes("")
    faults: list[Fault] = []
    packages = _packages(folder, faults, notes)
    if not packages and not faults:
        message = f"{folder} has neither packages/*/{_PACKAGE} nor packages/*.yml"
        raise BadInputError(message, hint="give the folder that holds the old farm's packages")
    policy = _policy(folder / "defaults", folder, faults, notes)
    facts = _facts(folder / "defaults" / _MATRIX, folder)
    if facts is not None:
        policy["upstream"] = _UPSTREAM
        notes.of(f"defaults/{_MATRIX}").changed(
            "combos", f"now {_UPSTREAM}; `wheelfarm upstream refresh --farm` brings it up to date"
        )
    if faults:
        title = f"{folder} could not be read"
        raise FaultsError(title, faults)
    names = {package.folder: str(package.table.get("name", "")) for package in packages}
    recipes: dict[str, Table] = {}
    others: dict[str, tuple[Path, ...]] = {}
    for package in packages:
        own = notes.of(package.file)
        recipe = convert_package(package.table, names, own)
        _add_reasons(recipe, package, own)
        name = cell_name(recipe["name"])
        if why := _unusable(recipe["name"], name in recipes):
            own.to_do("name", f"{why}; this one is written nowhere")
            continue
        recipes[name] = recipe
        others[name] = package.others
    return Migrated(
        recipes=recipes, others=others, policy=policy, facts=facts, notes=tuple(notes.all)
    )


def _unusable(name: str, taken: bool) -> str:  # noqa: FBT001 - the value itself
    """Return why no recipe can be written under a name; empty where one can."""
    if not name.strip():
        return "it has no name"
    # The name becomes a folder: nothing is written outside of the new farm.
    if not PROJECT_NAME.fullmatch(name) or usable_path(name):
        return f"{name!r} is no valid package name"
    return f"a second package is named {cell_name(name)}" if taken else ""


def _packages(folder: Path, faults: list[Fault], notes: Notes) -> list[OldPackage]:
    root = folder / "packages"
    found = [
        _folder_package(path.parent, folder, faults, notes)
        for path in sorted(root.glob(f"*/{_PACKAGE}"))
    ]
    for path in sorted(root.glob("*.y*ml")):
        name = path.relative_to(folder).as_posix()
        table = _table(path, name, faults)
        script = str(table.get("patch_script", ""))
        others = tuple(item for item in (folder / script,) if script and item.is_file())
        found.append(
            OldPackage(folder=path.stem, file=name, table=table, reasons={}, others=others)
        )
    return found


def _folder_package(path: Path, root: Path, faults: list[Fault], notes: Notes) -> OldPackage:
    name = (path / _PACKAGE).relative_to(root).as_posix()
    table = dict(_table(path / _PACKAGE, name, faults))
    readme = read_text(path / "README.md") if (path / "README.md").is_file() else ""
    given = reasons_of(readme)
    reasons: dict[str, str] = {}
    for override in _OVERRIDES:
        file = path / override
        if not file.is_file():
            continue
        context = file.relative_to(root).as_posix()
        for key, value in _table(file, context, faults).items():
            if key in table and table[key] != value:
                notes.of(context).changed(key, f"replaces {table[key]!r} of {_PACKAGE}")
            table[key] = value
            reasons[key] = given.get(override, given.get("", ""))
    known = {_PACKAGE, *_OVERRIDES}
    others = tuple(
        item
        for item in sorted(path.rglob("*"))
        if item.is_file() and not item.is_symlink() and item.name not in known
    )
    return OldPackage(folder=path.name, file=name, table=table, reasons=reasons, others=others)


def _table(path: Path, context: str, faults: list[Fault]) -> Mapping[str, Any]:
    value = read_document(path, context, faults).value
    if not isinstance(value, dict):
        faults.append(Fault(context, "expected a table of keys"))
        return {}
    return value


def _add_reasons(recipe: Table, package: OldPackage, notes: Notes) -> None:
    reasons = {}
    for key in OVERRIDES:
        if key not in recipe:
            continue
        if why := package.reasons.get(key, ""):
            reasons[key] = why
        else:
            notes.to_do(key, "the override has no written reason; give it in `reasons`")
    if reasons:
        recipe["reasons"] = reasons


def _policy(folder: Path, root: Path, faults: list[Fault], notes: Notes) -> Table:
    if not (folder / _POLICY).is_file():
        notes.of(f"defaults/{_POLICY}").to_do(
            "supported_cudas", "the file is absent, so a policy for PyPI's newest torch was written"
        )
        text = policy_text(committed_facts())
        return dict(parse_document(text, POLICY_FILE, faults).value)
    own = notes.of((folder / _POLICY).relative_to(root).as_posix())
    old = dict(_table(folder / _POLICY, own.file, faults))
    new: Table = {
        "platforms": _platforms(old.pop("platforms", []), own),
        "python_min": text_of(old.pop("python_min", "3.10"), "python_min", own),
        "supported_cudas": strings(old.pop("supported_cudas", []), "supported_cudas", own),
    }
    defaults = dict(old.pop("defaults", {}))
    kept = {key: defaults.pop(key) for key in _DEFAULTS if key in defaults}
    if kept:
        new["defaults"] = kept
    for key, value in defaults.items():
        own.left_out(f"defaults.{key}", f"it has no meaning here: {value!r}")
    if "combinations" in old:
        old.pop("combinations")
        own.left_out("combinations", "generated: the rows follow from what PyTorch published")
    for key, value in old.items():
        own.left_out(key, f"this key is not known: {value!r}")
    if (folder / _ARCH_POLICY).is_file():
        new |= _arch_policy(folder / _ARCH_POLICY, root, faults, notes)
    return new


def _platforms(value: Any, notes: Notes) -> list[str]:
    found = []
    for word in words_of(value, "platforms", notes):
        try:
            found.append(str(Platform.parse(word)))
        except BadInputError as error:
            notes.to_do("platforms", error.what)
    return found


_DEFAULTS = ("max_jobs", "nvcc_threads", "clone_recursive")


def _arch_policy(path: Path, root: Path, faults: list[Fault], notes: Notes) -> Table:
    own = notes.of(path.relative_to(root).as_posix())
    old = dict(_table(path, own.file, faults))
    new = {key: strings(old.pop(key), key, own) for key in _ARCH_TABLES if key in old}
    for key, value in old.items():
        own.left_out(key, f"this key is not known: {value!r}")
    return new


def _facts(path: Path, root: Path) -> UpstreamFacts | None:
    """Return upstream facts with the releases of a scraped matrix, None where there is none."""
    if not path.is_file():
        return None
    context = path.relative_to(root).as_posix()
    reader = Reader(read_json(path), context)
    rows: dict[tuple[Accelerator, Version], dict[Platform, set[PythonTag]]] = {}
    for combo in reader.tables("combos"):
        accelerator = combo.parsed("cuda", Accelerator.parse)
        torch = combo.parsed("torch", Version)
        python = combo.parsed("python", PythonTag.of_version)
        platform = combo.parsed("platform", Platform.parse)
        if accelerator and torch and python and platform:
            row = rows.setdefault((accelerator, torch), {})
            row.setdefault(platform, set()).add(python)
    if not rows:
        reader.fault("there is no combination at all; the file is cut short", "combos")
    reader.finish()
    base = committed_facts()
    releases = tuple(
        Release(
            accelerator=accelerator,
            torch=torch,
            pythons={platform: tuple(sorted(tags)) for platform, tags in row.items()},
        )
        for (accelerator, torch), row in sorted(rows.items())
    )
    return UpstreamFacts(
        observed=base.observed,
        releases=releases,
        pypi=base.pypi,
        torch_archs=base.torch_archs,
        extension_archs=base.extension_archs,
        compiler_archs=base.compiler_archs,
    )


def write_farm(migrated: Migrated, out: Path) -> None:
    """Write the new farm to ``out``.

    Raises BadInputError where ``out`` exists and is not empty.
    """
    if out.exists() and any(out.iterdir()):
        message = f"{out} is not empty"
        raise BadInputError(message, hint="nothing was written; name a new folder with --out")
    with files.replacing_folder(out) as folder:
        (folder / POLICY_FILE).write_text(_yaml(migrated.policy), encoding="utf-8")
        if migrated.facts is not None:
            sources = {"releases": f"the scraped matrix ({_MATRIX}) of the farm that was migrated"}
            text = dump_facts(migrated.facts, sources)
            (folder / _UPSTREAM).write_text(text, encoding="utf-8")
        for name, recipe in migrated.recipes.items():
            own = folder / RECIPES_FOLDER / name
            own.mkdir(parents=True)
            (own / RECIPE_FILE).write_text(_yaml(recipe), encoding="utf-8")
            for path in migrated.others[name]:
                target = own / _beside(path)
                if target.exists():  # Of two files of one name both stay.
                    target = target.with_name(path.parent.name) / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def without_combinations(migrated: Migrated, package: str, out: Path) -> Note:
    """Take the rows out of a written recipe's build matrix, and return the note of it."""
    recipe = dict(migrated.recipes[package])
    matrix = {key: value for key, value in recipe["build_matrix"].items() if key != "combinations"}
    recipe["build_matrix"] = matrix
    if not matrix:
        del recipe["build_matrix"]
        reasons = dict(recipe.get("reasons", {}))
        reasons.pop("build_matrix", None)
        recipe["reasons"] = reasons
    files.write_text(out / RECIPES_FOLDER / package / RECIPE_FILE, _yaml(recipe))
    text = "the hand-made rows may go: the stated axis plans the same wheels without them"
    return Note(file=f"packages/{package}", key="build_matrix", kind="changed", text=text)


def _beside(path: Path) -> Path:
    return Path("patches", path.name) if path.suffix in {".py", ".patch"} else Path(path.name)


def _yaml(table: Mapping[str, Any]) -> str:
    # Through JSON first: only plain values, so that nothing is written as a Python object.
    plain = json.loads(json.dumps(table))
    text: str = yaml.safe_dump(
        plain, sort_keys=False, default_flow_style=None, width=96, allow_unicode=True
    )
    return text
