"""What is new upstream, and what of a store is not as the farm declares it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.conftest import CELLS, POLICY, Farm, write_farm
from tests.grid.grids import facts_of, release
from tests.loopback import Loopback, serving, status
from tests.store_wheels import WHEN, Made, make_wheel
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.publish import publish, yank
from wheelfarm.upstream.facts import dump_facts
from wheelfarm.values import replace
from wheelfarm.verify.report import GATE_VERSION

FACTS = facts_of(release("cu130", "2.14.1", {"linux_x86_64": ["3.10", "3.11"]}))
RECIPE = """\
# The comment stays.
name: diso
version: 0.1.4
source: {pypi: diso==0.1.4}
links_torch: true
"""


def page(*names: str) -> str:
    anchors = "".join(f'<a href="{name}">{name}</a>\n' for name in names)
    return f"<!DOCTYPE html><html><body>\n{anchors}</body></html>\n"


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Loopback]:
    pages = {
        "whl": page("cu130/", "cu134/"),
        "whl/cu130/torch": page("torch-2.14.1%2Bcu130-cp310-cp310-manylinux_2_28_x86_64.whl"),
        "whl/cu134/torch": page("torch-2.15.0%2Bcu134-cp311-cp311-manylinux_2_28_x86_64.whl"),
        "simple/diso": page("diso-0.1.4.tar.gz", "diso-0.2.0.tar.gz", "diso-0.3.0rc1.tar.gz"),
        "simple/nvidia-cuda-nvcc": page(
            "nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.whl",
            "nvidia_cuda_nvcc-13.5.37-py3-none-manylinux2014_x86_64.whl",
        ),
    }
    for name, text in pages.items():
        folder = tmp_path / "pages" / name
        folder.mkdir(parents=True)
        (folder / "index.html").write_text(text)
    with serving(tmp_path / "pages") as server:
        yield server


@pytest.fixture
def watched(tmp_path: Path) -> Farm:
    farm = Farm(tmp_path / "farm")
    (farm.root / "recipes/diso").mkdir(parents=True)
    (farm.root / "farm.yml").write_text(POLICY + "upstream: upstream.json\n")
    (farm.root / "recipes/diso/recipe.yml").write_text(RECIPE)
    (farm.root / "upstream.json").write_text(dump_facts(FACTS, {}))
    return farm


def places(server: Loopback) -> tuple[str, ...]:
    return ("--base-url", f"{server.url}whl", "--index", f"{server.url}simple")


def test_all_news_as_a_difference(watched: Farm, upstream: Loopback, tmp_path: Path) -> None:
    issue, told = tmp_path / "issue.md", tmp_path / "told"
    words: list[str | Path] = ["watch", *places(upstream), "--issue", issue, "--told", told]
    found = watched.json(*words)
    assert {(news["kind"], news["subject"]) for news in found["news"]} == {
        ("rows", "cu134 torch 2.15.0 cp311 linux_x86_64"),
        ("line", "CUDA 13.4"),
        ("retired-line", "CUDA 13.0"),
        ("version", "diso 0.2.0"),
        ("compiler", "CUDA 13.5"),
    }
    for line in (
        '+supported_cudas: ["13.0", "13.4"]',
        "+version: 0.2.0",
        "+source: {pypi: diso==0.2.0}",
        " # The comment stays.",
    ):
        assert line in found["diff"].splitlines()
    assert "+++ b/upstream.json" in found["diff"]
    assert found["diff"] in issue.read_text()
    assert issue.read_text().rstrip().endswith(f"wheelfarm-watch {found['fingerprint']} -->")
    issue.unlink()
    again = watched.json(*words)
    assert again["told_before"], "the same news is told once"
    assert again["fingerprint"] == found["fingerprint"]
    assert not issue.exists()
    assert (watched.root / "recipes/diso/recipe.yml").read_text() == RECIPE, "it only proposes"


def test_a_failed_read_concludes_nothing(watched: Farm, upstream: Loopback) -> None:
    for path in ("/whl/cu130/torch/", "/simple/diso/", "/simple/nvidia-cuda-nvcc/"):
        upstream.plan(path, *[status(404)] * 9)
    found = watched.json("watch", *places(upstream), status=2)
    assert found["news"] == []
    assert found["diff"] == ""
    assert len(found["unread"]) == 3


WHEEL = "tiny_cuda-1.0+cu130torch2.14-{tags}-abi3-manylinux_2_28_x86_64.whl"


@pytest.fixture
def store(small_farm: Farm) -> DirectoryStore:
    policy = small_farm.root / "farm.yml"
    policy.write_text(POLICY.replace("8.0+PTX", "8.0;9.0+PTX"))
    return DirectoryStore(small_farm.root / "store")


def put(
    store: DirectoryStore, folder: Path, *, name: str = "", version: int = GATE_VERSION
) -> Made:
    tags = CELLS["tiny_cuda"].split("-")[4].partition(".")[0]
    made = make_wheel(folder, name or WHEEL.format(tags=tags))
    report = {"gate_version": version, "sha256": made.proof.facts.sha256}
    made = replace(made, proof=replace(made.proof, report=json.dumps(report).encode()))
    publish(store, made.path, made.proof, clock=lambda: WHEN)
    return made


def rules(farm: Farm, *words: str | Path, status: int = 1) -> dict[str, str]:
    found = farm.json("audit", *words, status=status)["findings"]
    return {finding["id"]: finding["text"] for finding in found}


def test_a_store_as_declared(small_farm: Farm, store: DirectoryStore, tmp_path: Path) -> None:
    put(store, tmp_path / "made")
    assert rules(small_farm, "--hashes", status=0) == {}
    small_farm.call("index", "build", "--out", tmp_path / "site")
    assert rules(small_farm, "--site", tmp_path / "site", status=0) == {}


def test_gaps(small_farm: Farm, store: DirectoryStore, tmp_path: Path) -> None:
    assert rules(small_farm) == {"gap": "declared, and no usable wheel serves it"}
    made = put(store, tmp_path / "made")
    yank(store, [made.name], "broken")
    assert set(rules(small_farm)) == {"gap"}, "a yanked wheel serves nobody"


def test_archs_and_gates(small_farm: Farm, store: DirectoryStore, tmp_path: Path) -> None:
    put(store, tmp_path / "made", version=GATE_VERSION - 1)
    policy = small_farm.root / "farm.yml"
    policy.write_text(POLICY.replace("8.0+PTX", "8.0;9.0;12.0+PTX"))
    found = rules(small_farm)
    assert "lacks 12.0, 12.0+PTX" in found["archs"]
    assert "verify it again" in found["gate"]


def test_damage(small_farm: Farm, store: DirectoryStore, tmp_path: Path) -> None:
    made = put(store, tmp_path / "made")
    wheel = next(store.root.rglob(f"files/**/{made.name}"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    assert rules(small_farm, status=0) == {}, "hashes cost a reading, so they are asked for"
    assert "the catalogue says" in rules(small_farm, "--hashes")["hash"]
    wheel.unlink()
    assert "has no" in rules(small_farm, "--hashes")["hash"]
    report = next(store.root.glob("reports/*/*.json"))
    report.write_text("{}")
    assert rules(small_farm)["hash"] == "its report is not the one of then"
    report.unlink()
    assert "has no" in rules(small_farm)["report"]


def test_strangers(small_farm: Farm, store: DirectoryStore, tmp_path: Path) -> None:
    put(store, tmp_path / "made")
    put(store, tmp_path / "other", name=WHEEL.format(tags="cp311").replace("tiny_cuda", "other"))
    old = WHEEL.format(tags="cp311").replace("1.0+", "0.9+")
    put(store, tmp_path / "old", name=old)
    found = small_farm.json("audit")["findings"]
    assert {(finding["id"], finding["subject"]) for finding in found} == {
        ("undeclared", "other"),
        ("undeclared", old),
    }


def test_an_index_that_lags(small_farm: Farm, store: DirectoryStore, tmp_path: Path) -> None:
    made = put(store, tmp_path / "made")
    site = tmp_path / "site"
    small_farm.call("index", "build", "--out", site)
    part = site / "manifest/packages/tiny-cuda.json"
    document = json.loads(part.read_text())
    document["wheels"][0]["sha256"] = "0" * 64
    part.write_text(json.dumps(document))
    assert "another hash" in rules(small_farm, "--site", site)["index"]
    document["wheels"] = []
    part.write_text(json.dumps(document))
    assert rules(small_farm, "--site", site)["index"] == "the index does not list it"
    part.unlink()
    assert "no page of it" in rules(small_farm, "--site", site)["index"]
    assert made.path.is_file()


def test_a_store_that_cannot_be_read_has_no_gaps(tmp_path: Path) -> None:
    farm = write_farm(tmp_path / "farm", ("tiny_cuda",))
    catalogue = farm.root / "store/catalogue"
    catalogue.mkdir(parents=True)
    (catalogue / "tiny-cuda.json").write_text("{")
    done = farm.call("audit", status=4)
    assert "gap" not in done.stdout
