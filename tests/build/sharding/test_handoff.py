"""A real project built in shards and linked from their caches; what is refused, and healed."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard
from packaging.version import Version

from wheelfarm import files
from wheelfarm.build.cache import CompilerCache, NoCache, find_cache
from wheelfarm.build.costs import Costs
from wheelfarm.build.environment import open_environment
from wheelfarm.build.handoff import CorruptShardError, pack_cache, read_product, record_of, unite
from wheelfarm.build.inputs import UnitInputs
from wheelfarm.build.part import Prepared, compile_part, job_cache
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.sharded import (
    CensusResult,
    MissingShardsError,
    make_plan,
    run_census,
    run_link,
    run_shard,
    write_report,
)
from wheelfarm.build.source import FolderSource
from wheelfarm.build.unseen import BehindSeatError
from wheelfarm.errors import CouldNotLookError
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.run import find_program
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelfarm.build.partition import ShardPlan

NAMES = ("one", "two", "three", "four", "five", "six")
IDENTITY = "1" * 64


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory,
    toolkit_python: Path,
    toolkit_view: Path,
    six_units: Callable[[Path], Path],
) -> Prepared:
    base = tmp_path_factory.mktemp("cell")
    if not isinstance(find_cache(base / "probe"), CompilerCache):
        pytest.skip("ccache is not installed")
    tree = six_units(base / "source")
    (base / "packages").mkdir()
    cell = CellId.parse("six-1.0-cu130-torch2.14-cp311-linux_x86_64")
    return Prepared(
        request=BuildRequest(
            cell=Cell(cell, Version("2.14.1")),
            source=FolderSource(folder=tree),
            archs=ArchList.parse("8.0"),
            torch_axis="free",
        ),
        tree=tree,
        packages=base / "packages",
        environment=open_environment(toolkit_python.parents[1]),
        toolkit=find_toolkit(source="wheels", python=toolkit_python, needs=("device",)),
        view=toolkit_view,
        driver_stub=base,
        kept=base / "kept",
    )


@pytest.fixture(scope="module")
def found(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> CensusResult:
    folder = tmp_path_factory.mktemp("census")
    return run_census(prepared, folder / "root", log=folder / "log")


@pytest.fixture(scope="module")
def plan(found: CensusResult) -> ShardPlan:
    return make_plan(found, Costs(), cell="six-cell", build="b", shards=2)


@pytest.fixture(scope="module")
def archives(
    prepared: Prepared, plan: ShardPlan, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    base = tmp_path_factory.mktemp("shards")
    paths = [base / f"shard{shard}of2.tar.zst" for shard in (1, 2)]
    for shard, archive in enumerate(paths, 1):
        run_shard(prepared, plan, shard, base / f"root{shard}", archive, log=base / "log")
    return paths


@pytest.mark.compile
def test_the_census_names_every_unit_and_compiles_none(found: CensusResult) -> None:
    keys = {unit.key for unit in found.census.units}
    assert keys == {f"tree/csrc/{name}.cu" for name in NAMES} | {"tree/csrc/bind.cpp"}
    kinds = {unit.key: (unit.kind, unit.archs) for unit in found.census.units}
    assert kinds["tree/csrc/six.cu"] == ("cu", ("80",))
    assert kinds["tree/csrc/bind.cpp"] == ("c++", ())


@pytest.mark.compile
def test_a_compiler_behind_the_seat_is_found_by_the_census_and_may_be_allowed(
    prepared: Prepared, six_units: Callable[[Path], Path], tmp_path: Path
) -> None:
    tree = six_units(tmp_path / "source")
    setup = tree / "setup.py"
    compiler = find_program("gcc", path="/usr/bin:/bin")
    behind = f'subprocess.run(["{compiler}", "-c", "own.c", "-o", "own.o"], check=True)\n'
    (tree / "own.c").write_text("int own(void) { return 1; }\n")
    setup.write_text(setup.read_text().replace("\nclass", f"\n{behind}\nclass", 1))
    other = replace(prepared, tree=tree)
    with pytest.raises(BehindSeatError) as caught:
        run_census(other, tmp_path / "root", log=tmp_path / "log")
    assert caught.value.units == ("tree/own.o",)
    request = replace(prepared.request, objects_behind_seat={"own.o": "a generator's own"})
    allowed = replace(other, request=request)
    found = run_census(allowed, tmp_path / "root", log=tmp_path / "log")
    assert len(found.census.units) == len(NAMES) + 1


@pytest.mark.compile
def test_the_link_job_is_answered_by_the_shards(
    prepared: Prepared, plan: ShardPlan, archives: list[Path], tmp_path: Path
) -> None:
    linked = run_link(prepared, plan, archives, tmp_path / "link", log=tmp_path / "log")
    assert len(linked.report.hits) == len(NAMES) + 1
    assert linked.report.rate == 1.0
    write_report(linked, tmp_path / "link.json")
    assert json.loads((tmp_path / "link.json").read_text())["hits"] == len(NAMES) + 1
    files.unpack(linked.wheel, tmp_path / "wheel")
    symbols = subprocess.run(
        ["nm", "-D", *(tmp_path / "wheel").rglob("*.so")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert all(f"launch_{name}" in symbols for name in NAMES)
    # The same build in one job leaves the same code.
    plain = compile_part(
        prepared, tmp_path / "plain", log=tmp_path / "log2",
        cache=job_cache(prepared, tmp_path / "plain" / "cache"),
    )  # fmt: skip
    files.unpack(plain.wheel, tmp_path / "plain-wheel")
    libraries = [next((tmp_path / name).rglob("*.so")) for name in ("wheel", "plain-wheel")]
    assert libraries[0].read_bytes() == libraries[1].read_bytes()


@pytest.mark.compile
def test_a_missing_shard_stops_the_link_before_it_compiles_or_is_healed(
    prepared: Prepared, plan: ShardPlan, archives: list[Path], tmp_path: Path
) -> None:
    here = [archives[0], tmp_path / "shard2of2.tar.zst"]
    with pytest.raises(MissingShardsError, match="shard 2: it is missing") as caught:
        run_link(prepared, plan, here, tmp_path / "link", log=tmp_path / "log")
    assert caught.value.exit_code == 3
    assert not (tmp_path / "log").exists()
    healed = run_link(prepared, plan, here, tmp_path / "link", log=tmp_path / "log", heal=True)
    second = {key for key, share in plan.units.items() if share.shard == 2}
    assert set(healed.report.healed) == second
    assert healed.healed == (2,)
    assert healed.report.rate == 1.0


def test_shards_without_ccache_are_refused(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sccache = CompilerCache(
        kind="sccache", program=Path("sccache"), version="0.16.0", folder=tmp_path
    )
    monkeypatch.setattr("wheelfarm.build.sharded.job_cache", lambda *_a, **_k: sccache)
    with pytest.raises(CouldNotLookError, match=r"needs ccache, and this machine has sccache"):
        run_census(prepared, tmp_path / "root", log=tmp_path / "log")
    nothing = NoCache(reason="there is none")
    monkeypatch.setattr("wheelfarm.build.sharded.job_cache", lambda *_a, **_k: nothing)
    with pytest.raises(CouldNotLookError, match="needs a compiler cache"):
        run_census(prepared, tmp_path / "root", log=tmp_path / "log")


def results(folder: Path) -> CompilerCache:
    place = folder / "a/b/0123456789abcdefghijR"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"object")
    (folder / "a" / "stats").write_text("0")
    return CompilerCache(kind="ccache", program=Path("ccache"), version="4.7.5", folder=folder)


def pack(folder: Path, archive: Path, shard: int = 1) -> None:
    units = {"a.cu": UnitInputs(words=("-c", "a.cu"), files={"a.cu": "00"}, clock=False)}
    pack_cache(
        "ccache", folder, archive, plan="p", shard=shard, identity=IDENTITY, units=units
    )  # fmt: skip


def test_a_shards_archive_carries_results_and_units_alone(tmp_path: Path) -> None:
    results(tmp_path / "cache")
    pack(tmp_path / "cache", tmp_path / "s.tar.zst")
    product = read_product(tmp_path / "s.tar.zst", plan="p", identity=IDENTITY)
    assert product.results == 1
    report = unite("ccache", [product], tmp_path / "union")
    assert (report.taken, report.differing) == (1, 0)
    assert report.units["a.cu"].words == ("-c", "a.cu")
    assert [path.name for path in (tmp_path / "union").rglob("*") if path.is_file()] == [
        "0123456789abcdefghijR"
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("0123456789abcdefghijR", "0123456789abcdefghijM"),
        ("ae0af8b4fe29cc1a8e67042cce5a08541ef710", "aa2e2cbda74604b180418d3370b058ce0535be"),
    ],
    ids=["ccache 4.7", "ccache 4.14"],
)
def test_of_two_results_one_is_kept_and_of_two_manifests_the_longer(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    first, second = b"\xcc\xac\x01\x00first", b"\xcc\xac\x01\x00second"
    short, long = b"\xcc\xac\x01\x01m", b"\xcc\xac\x01\x01mmmm"
    for shard, (result, manifest) in enumerate(((first, short), (second, long)), 1):
        folder = tmp_path / ("one", "two")[shard - 1]
        (folder / "a/b").mkdir(parents=True)
        (folder / "a/b" / names[0]).write_bytes(result)
        (folder / "a/b" / names[1]).write_bytes(manifest)
        pack(folder, tmp_path / f"{folder.name}.tar.zst", shard=shard)
    products = [
        read_product(tmp_path / f"{name}.tar.zst", plan="p", identity=IDENTITY)
        for name in ("one", "two")
    ]
    report = unite("ccache", products, tmp_path / "union")
    assert (report.taken, report.alike, report.differing) == (2, 0, 2)
    assert (tmp_path / "union/a/b" / names[0]).read_bytes() == first
    assert (tmp_path / "union/a/b" / names[1]).read_bytes() == long


def test_another_hash_plan_or_compiler_is_refused(tmp_path: Path) -> None:
    results(tmp_path / "cache")
    archive = tmp_path / "s.tar.zst"
    pack(tmp_path / "cache", archive)
    with pytest.raises(CorruptShardError, match="another shard plan"):
        read_product(archive, plan="q", identity=IDENTITY)
    with pytest.raises(CorruptShardError, match="another compiler"):
        read_product(archive, plan="p", identity="2" * 64)
    archive.write_bytes(archive.read_bytes()[:-1] + b"\0")
    with pytest.raises(CorruptShardError, match="another hash than its record"):
        read_product(archive, plan="p", identity=IDENTITY)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cache/../../evil", tarfile.REGTYPE),
        ("cache/ccache.conf", tarfile.REGTYPE),
        ("/etc/evil", tarfile.REGTYPE),
        ("cache/a/b/0123456789abcdefghijR", tarfile.SYMTYPE),
    ],
)
def test_a_member_outside_the_layout_stops_the_union(
    tmp_path: Path, name: str, kind: bytes
) -> None:
    archive = tmp_path / "s.tar.zst"
    results(tmp_path / "cache")
    pack(tmp_path / "cache", archive)
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    plain = tmp_path / "s.tar"
    with tarfile.open(plain, "w") as tar:
        tar.addfile(member)
    archive.write_bytes(zstandard.compress(plain.read_bytes()))
    record = json.loads(record_of(archive).read_text())
    record["sha256"] = files.sha256(archive)
    record_of(archive).write_text(json.dumps(record))
    product = read_product(archive, plan="p", identity=IDENTITY)
    with pytest.raises(CorruptShardError, match=r"no regular file|no place of ccache's layout"):
        unite("ccache", [product], tmp_path / "union")
    assert not (tmp_path / "union").exists()
    assert not (tmp_path / "evil").exists()
