"""The pages in words: every link leads somewhere, every verb is told of, JSON names its verb."""

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from wheelfarm.cli import main, whole_parser
from wheelfarm.cli.verbs import VERBS
from wheelfarm.resolve.overrides import OVERRIDES

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_VARIABLE = re.compile(r"\bWHEELFARM_[A-Z0-9_]+\b")
#: A command of ours with its arguments, as far as the shell reads it as one.
_COMMAND = re.compile(r"wheelfarm ([a-z]+)(?: ([a-z]+))?([^`\n|#;&>]*)")
#: Options of other programs that pages speak of.
_FOREIGN = {
    "--build", "--build-id", "--extra", "--extra-index-url", "--hash", "--memory-limit", "--net",
    "--no-deps", "--no-index", "--no-undefined", "--only-binary", "--orig", "--require-hashes",
    "--resources", "--simulate", "--threads",
}  # fmt: skip
#: Variables by which the parts of one build tell each other something, and one of a page's script.
_INNER = {
    "WHEELFARM_GRID", "WHEELFARM_OBJECTS", "WHEELFARM_PART", "WHEELFARM_SEAT_INSIDE",
    "WHEELFARM_SOURCE_FILTER",
}  # fmt: skip
_SCHEMA = re.compile(r"wheelfarm\.([a-z]+)(?:[.-][a-z.-]+)?/\d+")


def pages(repository: Path) -> list[Path]:
    return [repository / "README.md", *sorted((repository / "docs").rglob("*.md"))]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found = (re.sub(r"[`*_]|\[|\]\([^)]*\)", "", title) for title in _HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in found}


def test_every_link_of_a_page_leads_somewhere(repository: Path) -> None:
    seen, broken = 0, []
    for page in pages(repository):
        text = _FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in _LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            seen += 1
            name, _, anchor = target.partition("#")
            path = (page.parent / name) if name else page
            if not path.exists():
                broken.append(f"{page.name}: {target}")
            elif anchor and anchor not in anchors(_FENCE.sub("", path.read_text(encoding="utf-8"))):
                broken.append(f"{page.name}: {target} has no such heading")
    assert not broken
    assert seen > 20


def test_every_page_can_be_reached_from_the_first(repository: Path) -> None:
    reached, left = set(), [repository / "README.md"]
    while left:
        page = left.pop().resolve()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        targets = _LINK.findall(page.read_text(encoding="utf-8"))
        left += [page.parent / target.partition("#")[0] for target in targets]
    wanted = {page.resolve() for page in pages(repository) if page.parent.name != "decisions"}
    assert wanted <= reached


def test_every_verb_is_told_of(repository: Path) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages(repository))
    assert [verb for verb in VERBS if not re.search(rf"wheelfarm {verb}\b", text)] == []


def test_every_json_document_names_its_verb(repository: Path) -> None:
    # Every text of the form of a schema in the verbs' modules is that of a verb.
    found: dict[str, set[str]] = {}
    for path in (repository / "src/wheelfarm/cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = _SCHEMA.fullmatch(node.value)
                if match is not None:
                    found.setdefault(match[1], set()).add(path.stem.partition("_")[0])
    # What a failed verb prints is the same for all of them.
    assert found.pop("error") == {"output"}
    assert found.keys() <= set(VERBS)
    assert all(verb in modules for verb, modules in found.items()), found
    # These take theirs from the rooms that define the documents.
    assert set(VERBS) - found.keys() <= {"host", "doctor"}


def test_each_form_of_a_document_has_a_schema_of_its_own(repository: Path) -> None:
    printed: Counter[str] = Counter()
    for path in (repository / "src/wheelfarm/cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                name, first = ast.unparse(node.func), node.args[0]
                if name.startswith("print_json") and isinstance(first, ast.Constant):
                    printed[str(first.value)] += 1
    assert [schema for schema, count in printed.items() if count > 1] == []
    assert len(printed) > 30


def parsers() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield every parser with its verb and what stands below it."""
    for verb, parser in children(whole_parser()):
        yield verb, "", parser
        for action, deeper in children(parser):
            yield verb, action, deeper


def children(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings}


def test_every_option_of_a_page_exists(repository: Path) -> None:
    known = {"--version", *(name for *_, parser in parsers() for name in options(parser))}
    wrong = []
    for page in pages(repository):
        named = set(_OPTION.findall(page.read_text(encoding="utf-8")))
        wrong += [f"{page.name}: {name}" for name in sorted(named - known - _FOREIGN)]
    assert wrong == []
    assert not known & _FOREIGN


def test_every_command_of_a_page_has_its_options(repository: Path) -> None:
    known = {(verb, action): options(parser) for verb, action, parser in parsers()}
    seen, wrong = 0, []
    for page in pages(repository):
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        code = [*_FENCE.findall(text), *re.findall(r"`[^`\n]+`", _FENCE.sub("", text))]
        for verb, action, rest in _COMMAND.findall("\n".join(code)):
            here = (verb, action) if (verb, action) in known else (verb, "")
            if here not in known:
                wrong.append(f"{page.name}: there is no verb {verb}")
                continue
            seen += 1
            named = _OPTION.findall(rest.partition("wheelfarm ")[0])
            wrong += [f"{page.name}: {verb} {n}" for n in named if n not in known[here]]
    assert wrong == []
    assert seen > 80


def test_every_schema_and_variable_of_a_page_exists(repository: Path) -> None:
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted((repository / "src").rglob("*"))
        if path.suffix in {".py", ".yml", ".sh"}
    )
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages(repository))
    schemas = {match[0] for match in _SCHEMA.finditer(text)}
    assert len(schemas) > 3
    assert {schema for schema in schemas if schema not in source} == set()
    # Those of host facts are made of the facts' names.
    derived = {override.variable for override in OVERRIDES.values()}
    named, read = set(_VARIABLE.findall(text)), set(_VARIABLE.findall(source)) | derived
    assert named - read == set()
    told = named | {f"WHEELFARM_INDEX_{name}" for name in ("ROCM", "XPU", "MPS", "CPU")}
    untold = read - told - _INNER
    assert {name for name in untold if not name.startswith("WHEELFARM_TOKEN_")} == set()


@pytest.mark.parametrize(
    "words",
    [
        ("completion", "bash"),
        ("doctor",),
        ("grid",),
        ("host",),
        ("lint",),
        ("plan", "--have", "have.txt"),
        ("prune", "--store", "store"),
        ("rollback", "--list"),
        ("survey", "tree"),
        ("toolkit", "show"),
        ("upstream", "show"),
        ("index", "build", "--store", "store"),
    ],
)
def test_a_document_starts_with_its_schema(
    words: tuple[str, ...],
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/setup.py").write_text("from setuptools import setup\nsetup()\n")
    (tmp_path / "have.txt").write_text("")
    farm = ["--farm", str(repository / "examples/demo-farm")]
    main([*words, *(farm if words[0] in {"grid", "lint", "plan"} else []), "--json"])
    document = json.loads(capsys.readouterr().out)
    match = _SCHEMA.fullmatch(document["schema"])
    assert match is not None
    assert match[1] == words[0]
    assert next(iter(document)) == "schema"
