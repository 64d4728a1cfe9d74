"""``wheelfarm migrate DIR --out DIR``: an existing farm in our form; the rest is listed."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.output import print_json, print_table
from wheelfarm.wording import counted

if TYPE_CHECKING:
    from wheelfarm.recipes.migrate.farm import Migrated
    from wheelfarm.recipes.migrate.notes import Note


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="the old farm: its packages/ and defaults/"
    )
    parser.add_argument("--out", type=Path, required=True, help="a new folder for the farm")


def execute(arguments: argparse.Namespace) -> int:
    """Write the new farm and print what did not simply move.

    The new farm is read back at the end, so that what it still lacks is said now.
    """
    from wheelfarm.recipes.load import load_farm
    from wheelfarm.recipes.migrate.farm import convert_farm, write_farm

    migrated = convert_farm(arguments.folder)
    write_farm(migrated, arguments.out)
    notes = [*migrated.notes]
    if not any(note.kind == "to do" and note.key == "source_tag" for note in notes):
        notes += _simplified(migrated, arguments.out)
    _report(arguments, migrated, notes)
    load_farm(arguments.out)
    return 0


def _simplified(migrated: "Migrated", out: Path) -> "list[Note]":
    """Drop hand-made rows that the stated axis makes redundant; note those that could go."""
    from wheelfarm.cli.farm_option import facts_of
    from wheelfarm.grid.build import rows_against_axis
    from wheelfarm.grid.rows import rows_of
    from wheelfarm.recipes.load import load_farm
    from wheelfarm.recipes.migrate.farm import without_combinations
    from wheelfarm.recipes.migrate.notes import Note

    farm = load_farm(out)
    facts = facts_of(farm)
    rows = rows_of(farm.policy, facts)
    notes = []
    for name, recipe in farm.recipes.items():
        change = rows_against_axis(recipe, farm.policy, facts, rows)
        if change == "same":
            notes.append(without_combinations(migrated, name, out))
        elif change == "more":
            text = "without its hand-made rows the package loses no wheel and gains others: decide"
            place = f"packages/{name}"
            notes.append(Note(file=place, key="build_matrix", kind="to do", text=text))
    return notes


def _report(arguments: argparse.Namespace, migrated: "Migrated", notes: "list[Note]") -> None:
    if arguments.json:
        document = [
            {"file": note.file, "key": note.key, "kind": note.kind, "text": note.text}
            for note in notes
        ]
        packages = list(migrated.recipes)
        print_json(
            "wheelfarm.migrate/1",
            {"out": str(arguments.out), "packages": packages, "notes": document},
        )
        return
    rows = [(note.kind, note.file, note.key, note.text) for note in notes]
    if rows:
        print_table(("what", "file", "key", "remark"), rows)
        print()
    print(f"{counted(len(migrated.recipes), 'package')} written to {arguments.out}")
    print(f"next: wheelfarm lint --farm {arguments.out}; wheelfarm lock --farm {arguments.out}")
