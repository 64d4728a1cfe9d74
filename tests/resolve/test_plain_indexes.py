"""Plain indexes as other tools write them: markup, hosts and answers that are not quite ours."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests import loopback
from tests.farm_site import make_wheel
from tests.loopback import Handler, Loopback, serving
from tests.resolve.shelf import host
from wheelfarm import files
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.http import Client, RefusedError
from wheelfarm.reading import parse_toml
from wheelfarm.resolve.sources import SimpleIndex, open_index

NAME = "diso-0.1.4+cu130torch2.14-cp311-cp311-linux_x86_64.whl"
LINK = f"/files/{quote(NAME)}"
HTML = "text/html; charset=utf-8"


@pytest.fixture
def client() -> Iterator[Client]:
    found = Client(timeout=2, attempts=1, pause=0.001)
    yield found
    found.close()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Loopback]:
    """A host with one wheel, whose page each test gives."""
    (tmp_path / "www/files").mkdir(parents=True)
    make_wheel(tmp_path / "www/files", NAME)
    with serving(tmp_path / "www") as server:
        yield server


def digest(plain: Loopback) -> str:
    return files.sha256(plain.folder / "files" / NAME)


def found(plain: Loopback, client: Client) -> tuple[str, str | None]:
    """Return the one wheel's address and hash, as the index gives them."""
    page = open_index(f"{plain.url}simple/", client).pages(["diso"], host())["diso"]
    (candidate,) = page.candidates
    return candidate.entry.url, candidate.entry.sha256


@pytest.mark.parametrize(
    "markup",
    [
        '<a href="{link}#sha256={sha}">{name}</a>',
        '<a href="../../files/{quoted}#sha256={sha}">{name}</a>',
        '<base href="/files/"><a href="{quoted}#sha256={sha}">{name}</a>',
        "<A HREF='{link}#sha256={SHA}'>{name}</A>",
        "<a href={link}#sha256={sha}>{name}</a>",
        '<a\n  href="\n{link}#sha256={sha} "\n>\n  {name}\n</a>',
        '<a href="/files/{name}#sha256={sha}">{name}</a>',
        '<a href="{link}#egg=diso&amp;sha256={sha}">{name}</a><a href="..">up</a><a>none</a>',
        '<a href="{link}#sha256={sha}" data-yanked="no">{name}<a href="mailto:x@y.z">mail</a>',
        '<!-- \udce9 --><a href="{link}#sha256={sha}">{name}</a>',
        '\ufeff<a href="{link}#sha256={sha}">{name}</a>',
    ],
)
def test_markup_of_other_tools_is_read(plain: Loopback, client: Client, markup: str) -> None:
    sha = digest(plain)
    text = markup.format(link=LINK, quoted=quote(NAME), name=NAME, sha=sha, SHA=sha.upper())
    page = plain.folder / "simple/diso/index.html"
    page.parent.mkdir(parents=True)
    page.write_bytes(f"<html><body>{text}</body></html>".encode("utf-8", "surrogateescape"))
    assert found(plain, client) == (plain.url.rstrip("/") + LINK, sha)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "application/octet-stream"},
        {"Content_Type": "text/html; charset=no-such"},
        {"Content_Type": HTML, "Content_Encoding": "gzip"},
    ],
)
def test_a_page_is_read_whatever_its_host_says_of_it(
    plain: Loopback, client: Client, headers: dict[str, str]
) -> None:
    body = f'<a href="{LINK}#sha256={digest(plain)}">{NAME}</a>'.encode()
    if "Content_Encoding" in headers:
        body = gzip.compress(body)
    plain.plan("/simple/diso/", loopback.status(200, body, **headers))
    assert found(plain, client)[1] == digest(plain)


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [
        ("utf-16", "text/html"),
        ("utf-16-le", "text/html; Charset=UTF-16LE"),
        ("utf-32-be", "text/html; charset='utf-32be'"),
        ("latin-1", "text/html; charset=punycode"),
        ("latin-1", 'text/html; charset="iso-8859-1"'),
        ("cp1252", "text/html"),
    ],
)
def test_a_page_is_read_in_its_own_encoding(
    plain: Loopback, client: Client, encoding: str, kind: str
) -> None:
    body = f'<title>R\xe4der</title><a href="{LINK}#sha256={digest(plain)}">{NAME}</a>'
    plain.plan("/simple/diso/", loopback.status(200, body.encode(encoding), Content_Type=kind))
    assert found(plain, client)[1] == digest(plain)


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [("utf-16-le", "text/html"), ("utf-32-be", HTML), ("utf-16-be", "text/html; charset=hex")],
)
def test_what_is_no_text_is_not_taken_for_an_empty_page(
    plain: Loopback, client: Client, encoding: str, kind: str
) -> None:
    body = f'<a href="{LINK}#sha256={digest(plain)}">{NAME}</a>'.encode(encoding)
    plain.plan("/simple/diso/", loopback.status(200, body, Content_Type=kind))
    with pytest.raises(CouldNotLookError, match="is no page of text"):
        found(plain, client)


@pytest.mark.parametrize(
    "answer",
    [
        loopback.status(403, b"<Error><Code>AccessDenied</Code></Error>"),
        loopback.status(200, b"\n<!DOCTYPE html><title>Our wheels</title>", Content_Type=HTML),
    ],
)
def test_a_host_without_a_manifest_may_say_so_in_other_ways(
    plain: Loopback, client: Client, answer: Callable[[Handler], None]
) -> None:
    plain.plan("/manifest/index.json", answer)
    body = f'<a href="{LINK}#sha256={digest(plain)}">{NAME}</a>'.encode()
    plain.plan("/simple/diso/", loopback.status(200, body, Content_Type=HTML))
    index = open_index(f"{plain.url}simple/", client)
    assert isinstance(index, SimpleIndex)
    assert index.pages(["diso"], host())["diso"].candidates


@pytest.mark.parametrize("page", [403, 404])
def test_a_host_that_shows_nothing_could_not_be_looked_at(
    plain: Loopback, client: Client, page: int
) -> None:
    plain.plan("/manifest/index.json", loopback.status(403))
    plain.plan("/simple/diso/", loopback.status(page))
    with pytest.raises(RefusedError, match="HTTP 403"):
        open_index(f"{plain.url}simple/", client).pages(["diso"], host())


@pytest.mark.parametrize("page", ["json", "html"])
@pytest.mark.parametrize(("version", "read"), [("1.0", True), ("1.9", True), ("2.0", False)])
def test_a_page_of_a_later_api_is_not_guessed_at(
    plain: Loopback, client: Client, page: str, version: str, *, read: bool
) -> None:
    sha = digest(plain)
    if page == "json":
        file = {"filename": NAME, "url": LINK, "hashes": {"sha256": sha}}
        document = {"meta": {"api-version": version}, "name": "diso", "files": [file]}
        body = json.dumps(document).encode()
        kind = "application/vnd.pypi.simple.v1+json"
    else:
        meta = f'<meta name="pypi:repository-version" content="{version}">'
        body = f'<html><head>{meta}</head><a href="{LINK}#sha256={sha}">{NAME}</a>'.encode()
        kind = HTML
    plain.plan("/simple/diso/", loopback.status(200, body, Content_Type=kind))
    if read:
        assert found(plain, client)[1] == sha
        return
    with pytest.raises(BadInputError, match=r"version 2\.0 of the simple API"):
        found(plain, client)


def test_a_requires_python_that_is_not_valid_counts_for_nothing(
    plain: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Older metadata has such; pip passes it over, and a lock may not hold it."""
    from packaging.pylock import Pylock

    link = f'<a href="{LINK}#sha256={digest(plain)}" data-requires-python="&gt;=3.6.*">{NAME}</a>'
    plain.plan("/simple/diso/", loopback.status(200, link.encode(), Content_Type=HTML))
    lock = tmp_path / "pylock.toml"
    machine = ["--platform", "linux_x86_64", "--python-version", "3.11", "--libc", "2.36"]
    machine += ["--torch", "2.14.1+cu130", "--index", f"{plain.url}simple/"]
    assert main(["resolve", "diso", *machine, "--output", str(lock)]) == 0
    assert "its Requires-Python is not valid, and counts for nothing" in capsys.readouterr().out
    Pylock.from_dict(parse_toml(lock.read_text(encoding="utf-8"), "pylock.toml")).validate()
