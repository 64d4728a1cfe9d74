"""Indexes of every kind: manifest, PEP 691, PEP 503, a farm's aliases, GitHub Releases."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import loopback
from tests.farm_site import FarmSite, make_wheel
from tests.loopback import Handler, Loopback, serving
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, NegativeVerdictError, UsageError, WheelfarmError
from wheelfarm.http import Client, HashMismatchError, UnreachableError
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.releases import ReleasesIndex
from wheelfarm.resolve.sources import ManifestIndex, SimpleIndex, open_index

CELL = "cp311-cp311-manylinux_2_28_x86_64.whl"
DISO = f"diso-0.1.4+cu130torch2.14-{CELL}"
MACHINE = [
    *("--platform", "linux_x86_64", "--python-version", "3.11", "--libc", "2.36"),
    *("--torch", "2.14.1+cu130", "--gpu", "8.6", "--driver", "580.65"),
]


def resolve(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["resolve", *words, "--index", url, "--json", *MACHINE])
    return code, json.loads(capsys.readouterr().out)


def host() -> Host:
    from tests.resolve.shelf import host as stated

    return stated()


@pytest.fixture
def client() -> Iterator[Client]:
    found = Client(timeout=2, attempts=2, pause=0.001)
    yield found
    found.close()


def simple(folder: Path, package: str, links: str, *, base: str = "simple") -> None:
    page = folder / base / package / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"<!DOCTYPE html><html><body>{links}</body></html>", encoding="utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# The manifest.


def test_a_site_is_found_from_its_root_and_from_its_simple_pages(
    site: FarmSite, server: Loopback, client: Client
) -> None:
    site.add(DISO)
    site.write()
    for address in (server.url, server.url.rstrip("/"), f"{server.url}simple/"):
        assert isinstance(open_index(address, client), ManifestIndex)


def test_a_part_whose_bytes_are_not_the_manifests_is_refused(
    site: FarmSite, server: Loopback, client: Client
) -> None:
    site.add(DISO)
    site.write()
    index = open_index(server.url, client)
    part = site.folder / "manifest/packages/diso.json"
    part.write_bytes(part.read_bytes() + b" ")
    with pytest.raises(HashMismatchError):
        index.pages(["diso"], host())


def test_a_manifest_of_another_form_is_bad_input(
    site: FarmSite, server: Loopback, client: Client
) -> None:
    path = site.folder / "manifest/index.json"
    path.parent.mkdir(parents=True)
    for text in ('{"schema": "wheelfarm.manifest/9"}', "[]", "{", '{"schema": 1}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BadInputError):
            open_index(server.url, client)


def test_a_part_on_the_users_own_disk_is_not_read(
    site: FarmSite, server: Loopback, client: Client, tmp_path: Path
) -> None:
    site.add(DISO)
    site.write()
    secret = tmp_path / "secret.json"
    secret.write_text("{}", encoding="utf-8")
    path = site.folder / "manifest/index.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["packages"]["diso"] |= {"url": secret.as_uri(), "sha256": digest(secret)}
    path.write_text(json.dumps(document), encoding="utf-8")
    index = open_index(server.url, client)
    with pytest.raises(BadInputError, match="may not name"):
        index.pages(["diso"], host())


def test_what_is_asked_ahead_is_asked_once_however_it_is_written(
    site: FarmSite,
    server: Loopback,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packages = [f"some-package{number}" for number in range(12)]
    for package in packages:
        site.add(f"{package.replace('-', '_')}-1.0+cu130torch2.14-{CELL}")
    site.write()
    asked = ["Some.Package0>=1", *packages[1:], "some_package1"]
    code, document = resolve(server.url, capsys, *asked)
    assert code == 0
    assert len(document["wheels"]) == 12
    assert len(server.requests) == 13
    monkeypatch.setenv("WHEELFARM_INDEX", server.url)
    assert main(["resolve", "some-package0", "--json", "--no-cache", *MACHINE]) == 0
    assert len(server.requests) == 15


@pytest.mark.parametrize(
    "text",
    [
        *('{"packages": 3}', '{"packages": null}', '{"packages": []}', "3", "no JSON"),
        "[" * 100_000,
        *('{"packages": {"diso": 3}}', '{"packages": {"diso": {"url": 3}}}'),
        '{"packages": {"diso": {"url": "http://[x", "sha256": 3}}}',
    ],
)
def test_what_is_faulty_is_told_by_its_reader(text: str, site: FarmSite, server: Loopback) -> None:
    path = site.folder / "manifest/index.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"manifest/index\.json"):
        main(["resolve", "diso", "--index", server.url, *MACHINE])


def test_a_faulty_entry_costs_itself_alone(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(DISO)
    site.add(f"diso-0.2.0+cu130torch2.14-{CELL}", modules=[{"path": 1}])
    site.wheels["diso"].append({"filename": "no wheel", "url": "x"})
    site.write()
    code, document = resolve(server.url, capsys, "diso")
    assert code == 0
    assert document["wheels"][0]["version"] == "0.1.4+cu130torch2.14"


def test_at_most_two_requests_per_package(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    packages = [f"package{number}" for number in range(5)]
    for package in packages:
        site.add(f"{package}-1.0+cu130torch2.14-{CELL}")
    site.write()
    code, document = resolve(server.url, capsys, *packages)
    assert code == 0
    assert len(document["wheels"]) == 5
    assert len(server.requests) <= 2 * len(packages)
    before = len(server.requests)
    resolve(server.url, capsys, *packages)
    assert all("if-none-match" in each.headers for each in server.requests[before:])
    assert main(["resolve", *packages, "--index", server.url, "--offline", *MACHINE]) == 0
    assert len(server.requests) == before * 2


# Plain indexes.


def test_pep_503_with_metadata_beside_the_wheel(
    tmp_path: Path, site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = make_wheel(site.folder, DISO)
    metadata = site.folder / f"{DISO}.metadata"
    metadata.write_text(
        "Metadata-Version: 2.1\nName: diso\nVersion: 0.1.4\n"
        "Requires-Dist: torch==2.14.*\nRequires-Dist: trimesh\n",
        encoding="utf-8",
    )
    newer = f"diso-0.2.0+cu130torch2.14-{CELL}"
    links = (
        f'<a href="../../{quote(DISO)}#sha256={digest(wheel)}"'
        f' data-core-metadata="sha256={digest(metadata)}">{DISO}</a>'
        f'<a href="../../{newer}" data-yanked="">{newer}</a>'
        f'<a href="../../diso-0.3.0.tar.gz#sha256={digest(wheel)}">diso-0.3.0.tar.gz</a>'
    )
    simple(site.folder, "diso", links)
    code, document = resolve(f"{server.url}simple", capsys, "diso")
    assert code == 0
    (found,) = document["wheels"]
    assert found["url"] == f"{server.url}{quote(DISO)}"
    assert found["sha256"] == digest(wheel)
    assert found["requires"] == ["trimesh"]
    metadata.write_text("Name: diso\n", encoding="utf-8")
    with pytest.raises(HashMismatchError):
        resolve(f"{server.url}simple/", capsys, "diso", "--no-cache")


def test_metadata_that_contradicts_torch_sends_the_choice_elsewhere(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    links = ""
    for version, torch in (("0.2.0", "2.12.*"), ("0.1.0", "2.14.*")):
        name = f"diso-{version}+cu130torch2.14-{CELL}"
        wheel = make_wheel(site.folder, name)
        text = f"Name: diso\nVersion: {version}\nRequires-Dist: torch=={torch}\n"
        (site.folder / f"{name}.metadata").write_text(text, encoding="utf-8")
        links += f'<a href="../../{quote(name)}#sha256={digest(wheel)}"'
        links += f' data-dist-info-metadata="true">{name}</a>'
    simple(site.folder, "diso", links)
    code, document = resolve(f"{server.url}simple/", capsys, "diso")
    assert code == 0
    assert document["wheels"][0]["version"].startswith("0.1.0")


def test_pep_691_json(site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = make_wheel(site.folder, DISO)
    page = {
        "meta": {"api-version": "1.1"},
        "name": "diso",
        "files": [
            {
                "filename": DISO,
                "url": f"../../{quote(DISO)}",
                "hashes": {"sha256": digest(wheel)},
                "requires-python": ">=3.9",
                "yanked": False,
            },
            {
                "filename": f"diso-0.2.0+cu130torch2.14-{CELL}",
                "url": "../../x.whl",
                "hashes": {},
                "yanked": "broken",
            },
        ],
    }
    body = json.dumps(page).encode()
    kind = "application/vnd.pypi.simple.v1+json"
    server.plan("/simple/diso/", loopback.status(200, body, Content_Type=kind))
    code, document = resolve(f"{server.url}simple/", capsys, "diso")
    assert code == 0
    assert document["wheels"][0]["sha256"] == digest(wheel)
    assert "application/vnd.pypi.simple.v1+json" in server.requests[-1].headers["accept"]


def test_a_link_without_a_hash_is_downloaded_and_hashed_or_refused(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = make_wheel(site.folder, DISO)
    other = "diso-0.1.4+cu130torch2.14-cp311-cp311-manylinux_2_28_aarch64.whl"
    links = f'<a href="../../{quote(DISO)}">{DISO}</a>'
    links += f'<a href="../../{quote(other)}#sha256={"1" * 64}">{other}</a>'
    simple(site.folder, "diso", links)
    code, document = resolve(f"{server.url}simple/", capsys, "diso")
    assert code == 0
    assert document["wheels"][0]["sha256"] == digest(wheel)
    assert any("downloaded and hashed" in text for text in document["wheels"][0]["remarks"])
    with pytest.raises(NegativeVerdictError, match="has no hash"):
        resolve(f"{server.url}simple/", capsys, "diso", "--no-download")


def test_a_links_text_says_which_cell_its_file_serves(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    """Farms list one torch-free file under the names of all torches it works with."""
    file = f"diso-0.1.4+cu130torch2.8-{CELL}"
    wheel = make_wheel(site.folder, file)
    links = "".join(
        f'<a href="../../{quote(file)}#sha256={digest(wheel)}">'
        f"diso-0.1.4+cu130torch{torch}-{CELL}</a>"
        for torch in ("2.8", "2.13", "2.14")
    )
    simple(site.folder, "diso", links)
    code, document = resolve(f"{server.url}simple/", capsys, "diso")
    assert code == 0
    assert document["wheels"][0]["filename"] == file
    assert document["wheels"][0]["url"].endswith(quote(file))


def test_a_links_text_of_another_package_is_not_believed(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = f"evil-9.0+cu130torch2.14-{CELL}"
    simple(site.folder, "diso", f'<a href="../../{quote(evil)}#sha256={"1" * 64}">{DISO}</a>')
    code, document = resolve(f"{server.url}simple/", capsys, "diso")
    assert code == 1
    assert document["wheels"] == []


@pytest.mark.parametrize("plus_is_blank", [True, False])
def test_a_plus_sign_works_on_both_kinds_of_servers(
    site: FarmSite,
    server: Loopback,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    plus_is_blank: bool,
) -> None:
    make_wheel(site.folder, DISO)
    simple(site.folder, "diso", f'<a href="../../{DISO}">{DISO}</a>')
    if plus_is_blank:
        from tests.loopback import Handler as Real

        plain = Real.file

        def file(self: Handler) -> Path:
            self.path = self.path.replace("+", " ")
            return plain(self)

        monkeypatch.setattr(Real, "file", file)
    code, document = resolve(f"{server.url}simple", capsys, "diso")
    assert code == 0
    assert "%2B" in document["wheels"][0]["url"]
    assert "+" in document["wheels"][0]["filename"]


def test_a_page_that_is_absent_and_one_that_is_empty_are_told_apart(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    simple(site.folder, "empty", "")
    code, document = resolve(f"{server.url}simple/", capsys, "empty", "absent")
    assert code == 1
    assert {miss["package"]: miss["in_index"] for miss in document["misses"]} == {
        "empty": True,
        "absent": False,
    }


def test_hostile_names_do_not_reach_the_terminal(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"diso-1.0+cu130torch2.13\x1b[2J-{CELL}"
    simple(site.folder, "diso", f'<a href="../../{quote(text)}">{text}</a>')
    assert main(["resolve", "diso", "--index", f"{server.url}simple/", *MACHINE]) == 1
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "href",
    [
        f"file:///etc/{DISO}",
        f"ftp://x.invalid/{DISO}",
        f"javascript:alert(1)/{DISO}",
    ],
)
def test_a_page_may_not_name_addresses_of_other_kinds(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str], href: str
) -> None:
    simple(site.folder, "diso", f'<a href="{href}#sha256={"1" * 64}">{DISO}</a>')
    code, document = resolve(f"{server.url}simple/", capsys, "diso")
    assert code == 1
    assert document["wheels"] == []


def test_an_address_cannot_break_out_of_a_lock(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    href = f"/x --index-url=https://evil.invalid &quot;\n&apos;/{DISO}"
    simple(site.folder, "diso", f'<a href="{href}#sha256={"1" * 64}">{DISO}</a>')
    code = main(
        ["resolve", "diso", "--index", f"{server.url}simple/", "--format", "requirements", *MACHINE]
    )
    (line,) = (each for each in capsys.readouterr().out.splitlines() if each.startswith("diso @"))
    assert code == 0
    assert line.count(" ") == 2
    assert '"' not in line


def test_an_address_that_is_none_is_bad_input(client: Client) -> None:
    with pytest.raises(BadInputError):
        open_index("wheels.example.org/simple", client)


# The second transport.


def github(folder: Path, server_url: str, names: list[str], *, per_page: int = 100) -> None:
    """Write the Releases API's answers for a repository, as GitHub gives them."""
    assets = [
        {
            "name": name,
            "state": "uploaded",
            "size": (folder / "assets" / name).stat().st_size,
            "digest": f"sha256:{digest(folder / 'assets' / name)}",
            "browser_download_url": f"{server_url}assets/{quote(name)}",
        }
        for name in names
    ]
    assets.append({"name": "report.json", "state": "uploaded", "browser_download_url": "x"})
    assets.append({"name": DISO.replace("0.1.4", "9.9"), "state": "starter"})
    base = f"{server_url}repos/me/farm/releases"
    draft = {"draft": True, "assets": [], "assets_url": f"{base}/0/assets"}
    release = {"draft": False, "assets": assets, "assets_url": f"{base}/1/assets"}
    (folder / "page1.json").write_text(json.dumps([draft]), encoding="utf-8")
    (folder / "page2.json").write_text(json.dumps([release]), encoding="utf-8")


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[Loopback]:
    """A local GitHub: two pages of releases, linked by the Link header."""
    folder = tmp_path / "github"
    (folder / "assets").mkdir(parents=True)
    names = [DISO, f"diso-0.1.4+cu130torch2.13-{CELL}"]
    for name in names:
        make_wheel(folder / "assets", name)
    with serving(folder) as found:
        github(folder, found.url, names)
        path = "/repos/me/farm/releases"
        following = f'<{found.url}repos/me/farm/releases?page=2>; rel="next"'

        def first(handler: Handler) -> None:
            handler.answer(200, (folder / "page1.json").read_bytes(), {"Link": following})

        def second(handler: Handler) -> None:
            handler.answer(200, (folder / "page2.json").read_bytes())

        found.plan(f"{path}?per_page=100", *[first] * 4)
        found.plan(f"{path}?page=2", *[second] * 4)
        yield found


def test_releases_answer_when_the_index_is_out_of_reach(
    releases: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wheelfarm.http.transport.time.sleep", lambda _: None)
    with serving(Path("/nonexistent")) as gone:
        url = gone.url
    words = ["--releases", f"{releases.url}repos/me/farm/releases"]
    code, document = resolve(url, capsys, "diso", *words)
    assert code == 0
    (found,) = document["wheels"]
    assert found["filename"] == DISO
    assert found["sha256"] == digest(releases.folder / "assets" / DISO)
    assert "answered by the second transport" in document["notes"][0]


def test_releases_take_over_when_the_index_breaks_off_midway(
    site: FarmSite,
    server: Loopback,
    releases: Loopback,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wheelfarm.http.transport.time.sleep", lambda _: None)
    site.add(DISO)
    site.write()
    server.plan("/manifest/packages/diso.json", *[loopback.status(503)] * 8)
    words = ["--releases", f"{releases.url}repos/me/farm/releases"]
    code, document = resolve(server.url, capsys, "diso", *words)
    assert code == 0
    assert "second transport" in document["notes"][0]


def test_an_empty_index_never_triggers_the_second_transport(
    site: FarmSite, server: Loopback, releases: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write_empty()
    words = ["--releases", f"{releases.url}repos/me/farm/releases"]
    code, document = resolve(server.url, capsys, "diso", *words)
    assert code == 1
    assert releases.requests == []
    assert document["notes"] == []


def test_neither_transport_is_could_not_look(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wheelfarm.http.transport.time.sleep", lambda _: None)
    with serving(Path("/nonexistent")) as gone:
        url = gone.url
    with pytest.raises(UnreachableError) as caught:
        resolve(url, capsys, "diso", "--releases", f"{url}repos/me/farm/releases")
    assert caught.value.exit_code == 2


def test_more_assets_than_a_page_are_read_page_by_page(tmp_path: Path, client: Client) -> None:
    folder = tmp_path / "github"
    folder.mkdir()
    with serving(folder) as server:
        base = f"{server.url}repos/me/farm/releases"
        assets = [
            {
                "name": f"diso-0.{number}+cu130torch2.14-{CELL}",
                "state": "uploaded",
                "browser_download_url": f"{server.url}a/{number}.whl",
            }
            for number in range(150)
        ]
        release = {"assets": assets[:100], "assets_url": f"{base}/1/assets"}
        pages = [json.dumps(part).encode() for part in (assets[:100], assets[100:])]
        following = f'<{base}/1/assets?page=2>; rel="next"'
        path = "/repos/me/farm/releases"
        server.plan(f"{path}?per_page=100", loopback.status(200, json.dumps([release]).encode()))
        first = loopback.status(200, pages[0], Link=following)
        server.plan(f"{path}/1/assets?per_page=100", first)
        server.plan(f"{path}/1/assets?page=2", loopback.status(200, pages[1]))
        index = ReleasesIndex(client, base, "")
        assert len(index.pages(["diso"], host())["diso"].all_candidates()) == 150


def test_a_simple_index_is_what_is_no_site(server: Loopback, client: Client) -> None:
    assert isinstance(open_index(server.url, client), SimpleIndex)


@pytest.mark.parametrize("bad", ["http://[bad/", "http://x:99999/", "http://x:port/", "//[/"])
def test_addresses_that_are_none_are_never_a_fault_of_ours(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str], bad: str
) -> None:
    page = site.folder / "simple" / "diso" / "index.html"
    page.parent.mkdir(parents=True)
    good = f'<a href="{DISO.replace("+", "%2B")}#sha256={"0" * 64}">{DISO}</a>'
    other = DISO.replace("0.1.4", "0.1.9")
    text = f'<base href="{bad}"><a href="{bad}{other}">{other}</a>{good}'
    page.write_text(text if "port" not in bad and "9" not in bad else text[text.index("<a") :])
    code, answer = resolve(f"{server.url}simple/", capsys, "diso", "--explain")
    assert code == 0
    assert answer["wheels"][0]["filename"] == DISO
    files = [
        {"filename": name, "url": address, "hashes": {"sha256": "0" * 64}}
        for name, address in ((other, f"{bad}{other}"), (DISO, DISO))
    ]
    body = json.dumps({"meta": {"api-version": "1.0"}, "files": files}).encode()
    kind = "application/vnd.pypi.simple.v1+json"
    server.plan("/simple/diso/", loopback.status(200, body, Content_Type=kind))
    code, answer = resolve(f"{server.url}simple/", capsys, "diso", "--explain", "--no-cache")
    assert code == 0
    assert answer["wheels"][0]["filename"] == DISO


@pytest.mark.parametrize("bad", ["http://[bad/x.json", "http://x:99999/x.json"])
def test_a_manifest_whose_part_has_no_address_is_bad_input(
    site: FarmSite, server: Loopback, bad: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(DISO)
    site.write()
    path = site.folder / "manifest" / "index.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["packages"]["diso"]["url"] = bad
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(WheelfarmError, match="no address"):
        resolve(server.url, capsys, "diso")


def test_a_manifest_entry_without_an_address_is_refused_and_another_taken(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(DISO)
    site.add(DISO.replace("0.1.4", "0.1.9"), url="http://[bad/x.whl")
    site.write()
    code, answer = resolve(server.url, capsys, "diso")
    assert code == 0
    assert answer["wheels"][0]["filename"] == DISO


def test_what_a_plain_index_does_not_tell_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = DISO.replace("+cu130torch2.14", "+torch2.14")
    simple(tmp_path, "diso", f'<a href="{bare}#sha256={"0" * 64}">{bare}</a>')
    index = ["--index", str(tmp_path / "simple")]
    with pytest.raises(UsageError, match="does not tell what it serves"):
        main(["resolve", "--available", *index])
    assert main(["resolve", "--available", "diso", "other", *index]) == 0
    said = capsys.readouterr()
    assert "2.14" in said.out
    assert "has no wheel of other" in said.err
    assert main(["resolve", "diso", *index, *MACHINE]) == 0
    assert "nothing says for which CUDA it is" in capsys.readouterr().out
