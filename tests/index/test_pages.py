"""What stands on which page: root, channels, aliases, yanks, hashes, metadata, the manifest."""

import hashlib
import html
import json
import re

import jsonschema
import pytest

from tests.index.conftest import WORLD, Farm, shipped
from wheelfarm.errors import BadInputError
from wheelfarm.index.listing import Link, links_of_html, links_of_json
from wheelfarm.index.model import Manifest, read_part
from wheelfarm.index.render import SiteConfig
from wheelfarm.store.publish import metadata_of, yank
from wheelfarm.values import replace

X86 = "manylinux_2_28_x86_64"
LINKED = f"demo-1.0+cu130torch2.10-cp311-cp311-{X86}.whl"
FREE = f"demo-1.0+cu130torch2.14-cp311-cp311-{X86}.whl"


def names(farm: Farm, folder: str) -> set[str]:
    links = links_of_html(farm.text(f"{folder}/index.html"), f"http://site/{folder}/")
    return {link.filename for link in links}


def texts(farm: Farm, folder: str) -> list[str]:
    links = links_of_html(farm.text(f"{folder}/index.html"), f"http://site/{folder}/")
    return [link.text for link in links]


def channels_of(farm: Farm, package: str = "demo") -> list[str]:
    part = json.loads(farm.text(f"manifest/packages/{package}.json"))
    assert len(part["wheels"]) == 1
    return list(part["wheels"][0]["channels"])


def test_a_linked_wheel_stands_in_its_own_channel_alone(farm: Farm) -> None:
    farm.publish(LINKED)
    farm.build()
    assert channels_of(farm) == ["cu130/torch2.10"]
    assert names(farm, "cu130/torch2.10/simple/demo") == {LINKED}
    assert not (farm.site / "cu130/torch2.14/simple/demo").exists()
    # A channel that nothing serves yet is an empty list, not a missing page.
    assert "<a " not in farm.text("cu130/torch2.14/simple/index.html")


@pytest.mark.parametrize(
    ("filename", "axis", "from_torch", "expected"),
    [
        (FREE, "free", None, ["2.9", "2.10", "2.14"]),
        (FREE.replace("torch2.14", "torch2.9"), "stable_abi", "2.10", ["2.10", "2.14"]),
        (FREE.replace("torch2.14", "torch2.10"), "stable_abi", None, ["2.10", "2.14"]),
        (FREE, "abi_flag", None, ["2.9", "2.10", "2.14"]),
        (FREE.replace("cp311-cp311", "cp310-abi3"), "free", None, ["2.9", "2.10", "2.14"]),
        (FREE.replace("cp311-cp311", "py3-none"), "free", None, ["2.9", "2.10", "2.14"]),
        (FREE.replace("cp311-cp311", "cp314-cp314"), "free", None, ["2.10", "2.14"]),
        (FREE.replace("cp311-cp311", "cp313-cp313t"), "free", None, ["2.14"]),
    ],
)
def test_a_wheel_that_links_no_torch_stands_wherever_it_serves(
    farm: Farm, filename: str, axis: str, from_torch: str | None, expected: list[str]
) -> None:
    world = shipped({"cu130": "2.9"}, "3.10 3.11 3.13")
    later = shipped({"cu130": "2.10"}, "3.10 3.11 3.13 3.14")
    newest = shipped({"cu130": "2.14"}, "3.11 3.14 3.13t")
    farm.world = replace(
        world,
        table={**world.table, **later.table, **newest.table},
        abis={**world.abis, **later.abis, **newest.abis},
    )
    farm.publish(filename, axis=axis, from_torch=from_torch)
    farm.build()
    assert channels_of(farm) == [f"cu130/torch{torch}" for torch in expected]
    stored = list((farm.folder / "store").rglob("*.whl"))
    assert len(stored) == 1


def test_another_abi_flag_keeps_a_wheel_out(farm: Farm) -> None:
    farm.world = replace(
        WORLD,
        abis={
            **WORLD.abis,
            next(k for k in WORLD.abis if k[1].minor == 9 and str(k[0]) == "cu130"): 0,
        },
    )
    farm.publish(FREE, axis="abi_flag")
    farm.build()
    assert channels_of(farm) == ["cu130/torch2.10", "cu130/torch2.14"]


def test_a_torch_that_nobody_knows_yet_has_its_channel(farm: Farm) -> None:
    farm.publish(FREE.replace("2.14", "2.15"), axis="free")
    farm.build()
    assert "cu130/torch2.15" in channels_of(farm)


def test_root_pages_list_a_free_wheel_once_per_torch_and_python(farm: Farm) -> None:
    farm.publish(FREE.replace("cp311-cp311", "cp310-abi3"), axis="free")
    farm.build()
    shown = texts(farm, "simple/demo")
    for torch in ("2.9", "2.10", "2.14"):
        for python in ("310", "311", "312", "313", "314"):
            assert f"demo-1.0+cu130torch{torch}-cp{python}-cp{python}-{X86}.whl" in shown
    assert len(names(farm, "simple/demo")) == 1
    document = json.loads(farm.text("simple/demo/index.json"))
    assert len(document["files"]) == 1
    assert len(texts(farm, "cu130/torch2.9/simple/demo")) == 1


def test_aliases_can_be_switched_off(farm: Farm) -> None:
    farm.publish(FREE, axis="free")
    farm.config = SiteConfig(aliases=False)
    farm.build()
    assert texts(farm, "simple/demo") == [FREE]


def test_a_label_in_another_farms_form_gets_ours_as_an_alias(farm: Farm) -> None:
    foreign = LINKED.replace("+cu130torch2.10", "+pt2.10cu130")
    farm.publish(foreign)
    farm.build()
    assert texts(farm, "simple/demo") == [foreign, LINKED]


def test_html_and_json_say_the_same(farm: Farm) -> None:
    for filename in (LINKED, FREE, LINKED.replace("1.0+", "1.1+")):
        farm.publish(filename, axis="free" if filename == FREE else "linked")
    yank(farm.store, [LINKED], 'breaks on "Hopper" & <later>')
    farm.build()
    for folder in ("simple/demo", "cu130/torch2.10/simple/demo"):
        url = f"http://site/{folder}/"
        page = links_of_html(farm.text(f"{folder}/index.html"), url)
        document = json.loads(farm.text(f"{folder}/index.json"))
        described = links_of_json(document, url)

        def facts(links: tuple[Link, ...]) -> set[object]:
            return {(link.url, *link.facts, link.yanked) for link in links}

        assert facts(page) == facts(described)
        assert document["meta"] == {"api-version": "1.1"}
        assert all(each["size"] and each["upload-time"] for each in document["files"])
        assert "dist-info-metadata" not in json.dumps(document)
        assert farm.text(f"{folder}/index.json") == farm.text(f"{folder}/index.v1_json")
    assert "data-dist-info-metadata" in farm.text("simple/demo/index.html")
    assert "data-core-metadata" in farm.text("simple/demo/index.html")


def test_every_link_leads_to_the_bytes_it_promises(farm: Farm) -> None:
    made = farm.publish(LINKED, requires_python=">=3.9,<4")
    farm.build()
    for folder in ("simple/demo", "cu130/torch2.10/simple/demo"):
        text = farm.text(f"{folder}/index.html")
        href = html.unescape(re.findall(r'href="([^"]+)"', text)[0])
        path, _, fragment = href.partition("#")
        assert "%2B" in path
        assert "+" not in path
        target = (farm.site / folder / path.replace("%2B", "+")).resolve()
        assert fragment == f"sha256={hashlib.sha256(target.read_bytes()).hexdigest()}"
        metadata = target.with_name(target.name + ".metadata").read_bytes()
        assert metadata == metadata_of(made.path)
        assert f'"sha256={hashlib.sha256(metadata).hexdigest()}"' in text
        assert 'data-requires-python="&gt;=3.9,&lt;4"' in text


def test_files_elsewhere_are_linked_with_their_base_address(farm: Farm) -> None:
    farm.publish(LINKED)
    farm.config = SiteConfig(files_url="https://files.example/farm")
    farm.build()
    text = farm.text("cu130/torch2.10/simple/demo/index.html")
    assert 'href="https://files.example/farm/files/demo/' in text
    part = read_part(json.loads(farm.text("manifest/packages/demo.json")), "part")
    assert part[0].url.startswith("https://files.example/farm/files/demo/")


def test_pages_list_the_newest_first_and_yanked_ones_last(farm: Farm) -> None:
    farm.publish(LINKED)
    farm.publish(LINKED.replace("1.0+", "1.10+"))
    farm.publish(LINKED.replace("1.0+", "1.9+"))
    farm.publish(LINKED.replace("torch2.10-", "torch2.10-1-"))
    yank(farm.store, [LINKED.replace("1.0+", "1.10+")], "bad")
    farm.build()
    versions = [text.split("-cp")[0].removeprefix("demo-") for text in texts(farm, "simple/demo")]
    assert versions == [
        "1.9+cu130torch2.10",
        "1.0+cu130torch2.10-1",
        "1.0+cu130torch2.10",
        "1.10+cu130torch2.10",
    ]
    document = json.loads(farm.text("simple/demo/index.json"))
    assert document["files"][-1]["yanked"] == "bad"


def test_names_are_normalised(farm: Farm) -> None:
    for distribution in ("torch_scatter", "Flash_Attn", "pyg.lib"):
        farm.publish(LINKED.replace("demo", distribution))
    farm.build()
    root = json.loads(farm.text("simple/index.json"))
    wanted = ["flash-attn", "pyg-lib", "torch-scatter"]
    assert [each["name"] for each in root["projects"]] == wanted
    for name in wanted:
        assert (farm.site / "simple" / name / "index.html").is_file()


def test_no_package_name_collides_with_a_page_or_a_channel(farm: Farm) -> None:
    for distribution in ("simple", "manifest", "files", "cu130", "coverage", "index.html"):
        farm.publish(LINKED.replace("demo", distribution))
    farm.build()
    manifest = Manifest.read(json.loads(farm.text("manifest/index.json")), "manifest")
    assert set(manifest.packages) == {
        "simple",
        "manifest",
        "files",
        "cu130",
        "coverage",
        "index-html",
    }
    assert names(farm, "cu130/torch2.10/simple/cu130") == {LINKED.replace("demo", "cu130")}
    assert names(farm, "simple/simple") == {LINKED.replace("demo", "simple")}


def test_the_manifest_holds_what_a_resolver_needs_and_fits_its_schema(farm: Farm) -> None:
    farm.publish(LINKED)
    farm.publish(FREE.replace("demo", "other"), axis="stable_abi", from_torch="2.9")
    farm.build()
    index = json.loads(farm.text("manifest/index.json"))
    manifest = Manifest.read(index, "manifest")
    jsonschema.validate(index, json.loads(farm.text("manifest/schema/index.json")))
    assert str(manifest.fallback) == "cu130/torch2.10"
    schema = json.loads(farm.text("manifest/schema/package.json"))
    whole = json.loads(farm.text("manifest/all.json"))
    for name, part in manifest.packages.items():
        data = (farm.site / "manifest" / part.url).read_bytes()
        assert hashlib.sha256(data).hexdigest() == part.sha256
        document = json.loads(data)
        jsonschema.validate(document, schema)
        assert whole["packages"][name] == document
    (entry,) = read_part(json.loads(farm.text("manifest/packages/other.json")), "part")
    assert entry.torch_axis == "stable_abi"
    assert str(entry.from_torch) == "2.9"
    assert entry.libraries == ("libcudart.so.13",)
    assert entry.modules is not None
    assert [str(arch) for arch in entry.modules[0].sass] == ["8.0", "9.0"]
    target = (farm.site / "manifest/packages" / entry.url.replace("%2B", "+")).resolve()
    assert hashlib.sha256(target.read_bytes()).hexdigest() == entry.sha256


def test_a_catalogue_that_cannot_be_is_named(farm: Farm) -> None:
    farm.publish(LINKED)
    farm.build()
    before = farm.text("simple/demo/index.html")
    path = farm.folder / "store/catalogue/demo.json"
    good = path.read_text()
    for bad, message in (
        (good.replace('"sha256": "', '"sha256": "../'), "sha256|cannot be"),
        (good.replace("files/demo/", "files/else/"), "cannot be"),
        (good.replace('"uploaded": "', '"uploaded": 1, "x": "'), "uploaded"),
        (good.replace('"wheels"', '"wheel"'), "demo"),
        ("{", "JSON"),
    ):
        path.write_text(bad)
        with pytest.raises(BadInputError, match=message):
            farm.build()
    assert farm.text("simple/demo/index.html") == before
