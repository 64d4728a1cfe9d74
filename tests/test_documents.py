"""The pages in words: every link leads somewhere, every verb is told of, JSON names its verb."""

import ast
import json
import re
from pathlib import Path

import pytest

from wheelfarm.cli import main
from wheelfarm.cli.verbs import VERBS

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
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
