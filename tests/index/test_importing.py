"""Another index becomes ours, with hashes and through the gate: pages, release lists, roots."""

import base64
import hashlib
import html
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.farm_site import make_wheel
from tests.index.conftest import Farm
from tests.loopback import serving
from wheelfarm.errors import BadInputError
from wheelfarm.http import Client
from wheelfarm.index.importing import import_links, read_source

HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
NAME = f"some_tool-1.0-{HERE}-{HERE}-linux_x86_64.whl"


def compiled_wheel(folder: Path, version: str) -> Path:
    """Write a wheel with a real shared library."""
    path = make_wheel(folder, NAME.replace("1.0", version))
    source = folder / "tool.c"
    source.write_text("int some_tool(void) { return 1; }\n")
    module = folder / "libsome.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", module, source], check=True)
    name = f"some_tool/{module.name}"
    digest = base64.urlsafe_b64encode(hashlib.sha256(module.read_bytes()).digest())
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    (record,) = (member for member in members if member.endswith("/RECORD"))
    row = f"{name},sha256={digest.rstrip(b'=').decode()},{module.stat().st_size}\n"
    members[record] = row.encode() + members[record]
    members[name] = module.read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return path


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A host of real wheels: two good ones, one whose metadata lies, one that is torn."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    compiled_wheel(folder, "1.0")
    compiled_wheel(folder, "2.0")
    liar = compiled_wheel(folder, "3.0")
    liar.rename(folder / NAME.replace("1.0", "4.0"))
    (folder / NAME.replace("1.0", "5.0")).write_bytes(b"cut short")
    return folder


def page(folder: Path, *, hashes: bool = True) -> str:
    lines = []
    for path in sorted(folder.glob("*.whl")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        fragment = f"#sha256={digest}" if hashes else ""
        lines.append(f'<a href="{html.escape(path.name)}{fragment}">{path.name}</a>')
    return (
        "<html><body>" + "\n".join([*lines, '<a href="javascript:alert(1)">x.whl</a>']) + "</body>"
    )


def outcomes(farm: Farm, source: str) -> dict[str, str]:
    client = Client(attempts=1)
    done = import_links(farm.store, read_source(source, client).links, client)
    return {each.link.filename.split("-")[1]: each.outcome for each in done}


WANTED = {"1.0": "published", "2.0": "published", "4.0": "refused", "5.0": "refused"}


@pytest.mark.compile
@pytest.mark.parametrize("kind", ["flat", "flat without hashes", "simple", "releases"])
def test_a_foreign_index_becomes_ours(farm: Farm, upstream: Path, kind: str) -> None:
    with serving(upstream) as server:
        source = f"{server.url}list.html"
        if kind.startswith("flat"):
            (upstream / "list.html").write_text(page(upstream, hashes=kind == "flat"))
        elif kind == "simple":
            source = f"{server.url}simple/"
            project = upstream / "simple/Some_Tool"
            project.mkdir(parents=True)
            text = page(upstream).replace('href="some', 'href="../../some')
            (project / "index.html").write_text(text)
            (upstream / "simple/index.html").write_text('<a href="Some_Tool/">Some_Tool</a>')
        else:
            assets = [
                {
                    "name": path.name,
                    "browser_download_url": f"{server.url}{path.name}",
                    "digest": f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
                    "size": path.stat().st_size,
                }
                for path in upstream.glob("*.whl")
            ]
            (upstream / "releases.json").write_text(json.dumps([{"id": 1, "assets": assets}]))
            source = f"{server.url}releases.json"
        assert outcomes(farm, source) == WANTED
        again = outcomes(farm, source)
    assert again["1.0"] == "unchanged"
    farm.build()
    document = json.loads(farm.text("simple/some-tool/index.json"))
    assert [each["filename"] for each in document["files"]] == [NAME.replace("1.0", "2.0"), NAME]
    assert all(each["hashes"]["sha256"] for each in document["files"])


def test_a_hash_that_is_not_the_files_is_refused(farm: Farm, upstream: Path) -> None:
    text = f'<a href="{NAME}#sha256={"0" * 64}">x</a>'
    with serving(upstream) as server:
        (upstream / "list.html").write_text(text)
        client = Client(attempts=1)
        links = read_source(f"{server.url}list.html", client).links
        (done,) = import_links(farm.store, links, client)
    assert done.outcome == "refused"
    assert "sha256" in done.reason
    assert not farm.store.heads()


def test_an_empty_page_is_no_index(upstream: Path, tmp_path: Path) -> None:
    (upstream / "list.html").write_text("<html></html>")
    with serving(upstream) as server, pytest.raises(BadInputError, match="lists no wheel"):
        read_source(f"{server.url}list.html", Client(attempts=1))
    with pytest.raises(BadInputError, match="does not exist"):
        read_source(str(tmp_path / "none.html"), Client(attempts=1))
    # A page that somebody saved: where its links lead is not in it.
    (tmp_path / "saved.html").write_text('<a href="../files/demo-1.0-py3-none-any.whl">demo</a>')
    with pytest.raises(BadInputError, match="lists no wheel that has an address") as caught:
        read_source(str(tmp_path / "saved.html"), Client(attempts=1))
    assert "the page's own address" in caught.value.hint


def test_a_hostile_page_never_leads_to_files_of_this_machine(tmp_path: Path) -> None:
    wheel = "demo-1.0-py3-none-any.whl"
    secret, good = f"file://{tmp_path}/{wheel}", f"https://example.org/{wheel}"
    html = f'<a href="{secret}">{wheel}</a><a href="{good}">{wheel}</a>'
    page = {"files": [{"filename": wheel, "url": url, "hashes": {}} for url in (secret, good)]}
    assets = [{"name": wheel, "browser_download_url": url} for url in (secret, good)]
    for number, text in enumerate((html, json.dumps(page), json.dumps([{"assets": assets}]))):
        path = tmp_path / f"page{number}"
        path.write_text(text)
        links = read_source(str(path), Client(attempts=1)).links
        assert [link.url for link in links] == [good]
