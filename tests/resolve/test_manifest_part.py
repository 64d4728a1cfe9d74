"""A manifest's part by lines and as a whole: the same page, whatever its layout."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.resolve.shelf import Shelf, host
from wheelfarm.errors import BadInputError
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.manifest_part import manifest_page
from wheelfarm.resolve.pages import Fits, Page

URL = "https://wheels.example.org/manifest/packages/diso.json"
HEAD = {"schema": "wheelfarm.package/1", "package": "diso"}
NAMES = [
    f"diso-0.1.{patch}+cu130torch2.14-{python}-{python}-{platform}.whl"
    for patch in range(3)
    for python in ("cp311", "cp312")
    for platform in ("manylinux_2_28_x86_64", "win_amd64")
]

entries = st.builds(
    lambda name, library, address, axis: {
        "filename": name,
        "url": address,
        "sha256": "0" * 64,
        "libraries": [library],
        **axis,
    },
    st.sampled_from(NAMES),
    # What could end an entry or a line, or be taken for a key, if it were looked for wrongly.
    st.text(st.sampled_from('"},{\n\\]'), max_size=8) | st.just('"torch_axis": "stable_abi"'),
    st.sampled_from(["../../files/a.whl", "../../files/b.whl"]),
    st.sampled_from([{}, *({"torch_axis": axis} for axis in ("linked", "free", "new kind", 3))]),
)


class OnePage(Shelf):
    """An index of one page."""

    def __init__(self, page: Page) -> None:
        super().__init__(tells=False)
        self.page = page

    def pages(self, names: Iterable[str], host: Host) -> Mapping[str, Page]:
        del names, host
        return {self.page.package: self.page}


def by_lines(wheels: list[dict[str, Any]]) -> bytes:
    lines = ",\n".join(map(json.dumps, wheels))
    return f'{json.dumps(HEAD)[:-1]}, "wheels": [\n{lines}\n]}}\n'.encode()


def shown(page: Page) -> list[tuple[str, str, tuple[str, ...]]]:
    found = page.all_candidates()
    return [(str(each), each.entry.url, each.entry.libraries) for each in found]


def grouped(page: Page) -> list[tuple[str, str | None, list[str | None]]]:
    return [
        (group.version_text, group.torch_axis, [each.torch_axis for each in group.read[0]])
        for group in page.groups
    ]


@given(st.lists(entries, max_size=6))
def test_the_layout_of_a_part_changes_nothing(wheels: list[dict[str, Any]]) -> None:
    lines = manifest_page("diso", by_lines(wheels), URL, Fits(host()))
    for indent in (None, 1):
        whole = json.dumps({**HEAD, "wheels": wheels}, indent=indent).encode()
        other = manifest_page("diso", whole, URL, Fits(host()))
        assert shown(other) == shown(lines)
        assert other.unread == lines.unread
        assert len(other.candidates) == len(lines.candidates)
        assert grouped(other) == grouped(lines)


def test_a_wheel_of_another_python_is_read_only_for_a_report() -> None:
    fitting, foreign = NAMES[0], NAMES[2]
    line = '{"filename": "' + foreign + '", "url": this is no JSON}'
    good = json.dumps({"filename": fitting, "url": "../a.whl", "sha256": None})
    head = json.dumps(HEAD)[:-1]
    body = f'{head}, "wheels": [\n{good},\n{line}\n]}}\n'.encode()
    page = manifest_page("diso", body, URL, Fits(host()))
    assert [str(each) for each in page.candidates] == [fitting]
    assert [str(each) for each in page.all_candidates()] == [fitting]


def test_a_wheel_for_another_torch_is_read_only_for_a_report() -> None:
    """What links another torch is out by its name; what does not link it is looked at."""
    other = "diso-0.2+cu130torch2.13-cp311-cp311-manylinux_2_28_x86_64.whl"
    free = other.replace("0.2", "0.3")
    faulty = '{"filename": "' + other + '", "torch_axis": "linked", "url": this is no JSON}'
    entry = {"filename": free, "url": "../a.whl", "sha256": None, "torch_axis": "free"}
    lines = f"{faulty},\n{json.dumps(entry)}"
    body = f'{json.dumps(HEAD)[:-1]}, "wheels": [\n{lines}\n]}}\n'.encode()
    page = manifest_page("diso", body, URL, Fits(host()))
    resolution = OnePage(page).resolve(host(), "diso")
    assert [str(each.candidate) for each in resolution.choices] == [free]
    untouched = [group.version_text for group in page.groups if "read" not in vars(group)]
    assert untouched == ["0.2+cu130torch2.13"]
    assert [name for name, _ in page.unread] == [other]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"schema": "wheelfarm.package/1"}',
        b'{"schema": "wheelfarm.package/2", "package": "diso", "wheels": []}',
        b'{"schema": "other", "wheels": [\n{"filename": "a"}\n]}\n',
        b'\xff{"schema": 1, "wheels": [\n\n]}\n',
    ],
)
def test_what_is_no_part_is_refused_without_the_login_of_its_address(body: bytes) -> None:
    with pytest.raises(BadInputError) as caught:
        manifest_page("diso", body, "https://user:secret@wheels.example.org/p.json", Fits(host()))
    assert "secret" not in str(caught.value)


def test_an_entry_without_a_name_or_an_address_is_told() -> None:
    wheels: list[Any] = [{"filename": NAMES[0]}, {"url": "../a.whl"}, 3]
    body = json.dumps({**HEAD, "wheels": wheels}).encode()
    page = manifest_page("diso", body, URL, Fits(host()))
    assert sorted(page.unread) == [
        ("None", "the manifest's entry has no file name"),
        ("None", "the manifest's entry has no file name"),
        (NAMES[0], "the manifest's entry has no address"),
    ]
