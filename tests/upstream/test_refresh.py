"""Reading PyTorch's wheel pages, from a server on loopback with pages of their shape."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import loopback
from tests.grid.grids import facts_of, release
from tests.loopback import Loopback, serving
from tests.recipes.farms import POLICY, recipe, write_farm
from wheelfarm.cli import main
from wheelfarm.errors import CouldNotLookError
from wheelfarm.http import Client
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.upstream.facts import dump_facts, load_facts
from wheelfarm.upstream.refresh import Refreshed, refresh

FACTS = facts_of(
    release("cu126", "2.6.0", {"linux_x86_64": ["3.10"]}),
    release("cu130", "2.9.0", {"linux_x86_64": ["3.11"]}),
)
END = "</body>\n</html>\n<!--TIMESTAMP 1764450000-->\n"
ROOT = ["cu92/", "cu118/", "cu126/", "cu130/", "cpu/", "nightly/", "rocm6.4/", "torch/"]
CU126 = [
    "torch-2.6.0%2Bcu126-cp310-cp310-linux_x86_64.whl#sha256=aa",
    "torch-2.6.0%2Bcu126-cp39-cp39-linux_x86_64.whl",
    "torch-2.6.0%2Bcu126-cp313-cp313t-linux_x86_64.whl",
    "torch-2.7.0%2Bcu126-cp310-cp310-manylinux_2_28_x86_64.whl",
    "torch-2.7.0%2Bcu126-cp310-cp310-win_amd64.whl",
    "torch-2.8.0rc1%2Bcu126-cp310-cp310-manylinux_2_28_x86_64.whl",
    "torch-2.1.0%2Bcu126-cp310-cp310-linux_x86_64.whl",
]
CU130 = [
    "torch-2.9.0-cp311-cp311-manylinux_2_28_aarch64.whl",
    "torch-2.9.0%2Bcu130-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.9.0%2Bcu129-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.9.0-cp311-none-macosx_11_0_arm64.whl",
    "torch_no_python-2.9.0-py3-none-any.whl",
    "torch-broken.whl",
]


def page(links: list[str], *, end: str = END) -> str:
    anchors = "".join(f'    <a href="/whl/x/{link}">{link}</a><br/>\n' for link in links)
    return f"<!DOCTYPE html>\n<html>\n  <body>\n    <h1>Links for torch</h1>\n{anchors}{end}"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Loopback]:
    folder = tmp_path / "pages"
    for name, links in {"": ROOT, "cu126/torch": CU126, "cu130/torch": CU130}.items():
        (folder / "whl" / name).mkdir(parents=True, exist_ok=True)
        (folder / "whl" / name / "index.html").write_text(page(links))
    with serving(folder) as server:
        yield server


def run(server: Loopback, *also: str) -> Refreshed:
    accelerators = [Accelerator.parse(word) for word in also]
    client = Client(attempts=1)
    return refresh(FACTS, client=client, base_url=f"{server.url}whl", also=accelerators)


def test_the_difference_is_what_is_new(pages: Loopback) -> None:
    found = run(pages)
    assert found.added == (
        "cu126 torch 2.6.0 cp313t linux_x86_64",
        "cu126 torch 2.7.0 cp310 linux_x86_64",
        "cu126 torch 2.7.0 cp310 windows_amd64",
        "cu130 torch 2.9.0 cp311 linux_aarch64",
    )
    assert found.kept == ()
    assert dict(found.passed_over) == {
        "cu92": "older than every line of the facts",
        "cu118": "older than every line of the facts",
        "torch-2.6.0+cu126-cp39-cp39-linux_x86_64.whl": "for cp39",
        "torch-2.8.0rc1+cu126-cp310-cp310-manylinux_2_28_x86_64.whl": "a pre-release",
        "torch-2.9.0+cu129-cp311-cp311-manylinux_2_28_x86_64.whl": "built for cu129",
        "torch-2.9.0-cp311-none-macosx_11_0_arm64.whl": "another system",
        "torch_no_python-2.9.0-py3-none-any.whl": "another package",
        "torch-broken.whl": "'torch-broken.whl' is no wheel file name",
    }


def test_nothing_is_ever_a_removal(pages: Loopback) -> None:
    (pages.folder / "whl/cu126/torch/index.html").write_text(page(CU126[3:]))
    found = run(pages)
    assert found.kept == ("cu126 torch 2.6.0 cp310 linux_x86_64",)
    assert found.facts.releases[0] == FACTS.releases[0]


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_folder_that_nobody_has_is_not_published(pages: Loopback, code: int) -> None:
    pages.plan("/whl/cu134/torch/", loopback.status(code))
    assert run(pages, "cu134").not_published == ("cu134",)


@pytest.mark.parametrize("code", [403, 404])
def test_a_folder_of_the_facts_that_is_gone_is_an_error_that_names_it(
    pages: Loopback, code: int
) -> None:
    pages.plan("/whl/cu130/torch/", loopback.status(code))
    with pytest.raises(
        CouldNotLookError, match=f"cu130/torch/ answered HTTP {code}, but the facts"
    ):
        run(pages)


@pytest.mark.parametrize("code", [403, 404, 500])
def test_a_root_page_that_cannot_be_read_is_could_not_look(pages: Loopback, code: int) -> None:
    pages.plan("/whl/", loopback.status(code))
    with pytest.raises(CouldNotLookError, match=f"HTTP {code}"):
        run(pages)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no end: it was cut short"),
        (page(CU126)[:300], "has no end: it was cut short"),
        (page([]), "has no link at all"),
        (page(["torch-2.9.0-cp311-none-macosx_11_0_arm64.whl"]), "lists no torch wheel"),
    ],
)
def test_an_empty_or_partial_page_is_refused(pages: Loopback, text: str, message: str) -> None:
    (pages.folder / "whl/cu126/torch/index.html").write_text(text)
    with pytest.raises(CouldNotLookError, match=message):
        run(pages)


def test_a_page_that_breaks_off_on_the_way_is_refused(pages: Loopback) -> None:
    pages.plan("/whl/cu126/torch/", loopback.half)
    with pytest.raises(CouldNotLookError, match="cu126/torch/ could not be read"):
        run(pages)


def test_the_verb_writes_a_farms_own_facts(
    tmp_path: Path, pages: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    farm = write_farm(tmp_path / "farm", {"one": recipe("one")}, POLICY + "upstream: own.json\n")
    (farm / "own.json").write_text(dump_facts(FACTS, {"releases": "a test"}))
    words = ["upstream", "refresh", "--farm", str(farm), "--base-url", f"{pages.url}whl"]
    assert main([*words, "--dry-run"]) == 0
    assert load_facts(farm / "own.json").releases == FACTS.releases
    assert "+ cu126 torch 2.7.0 cp310 windows_amd64" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.upstream-refresh/1"
    assert document["written"] == str(farm / "own.json")
    assert len(document["added"]) == 4
    assert len(load_facts(farm / "own.json").releases) == 3
    # A second look finds nothing new, and writes nothing.
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] is None
