"""Sources are verified before they are unpacked; patches apply whole or stop the build."""

import contextlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfarm.build.patches import PatchError, apply_patches, run_patch_script
from wheelfarm.build.source import (
    ArchiveSource,
    FolderSource,
    GitSource,
    fetch_source,
    folder_fingerprint,
)
from wheelfarm.errors import BadInputError
from wheelfarm.files import UnsafeArchiveError, sha256, unpack
from wheelfarm.http import HashMismatchError

PATCH = """--- a/setup.py
+++ b/setup.py
@@ -1 +1 @@
-old = 1
+new = 2
"""


def make_sdist(folder: Path, name: str = "demo-1.0") -> Path:
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        data = b"old = 1\n"
        info = tarfile.TarInfo(f"{name}/setup.py")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return path


def fetch(source: ArchiveSource | GitSource | FolderSource, tmp_path: Path) -> Path:
    return fetch_source(
        source, tmp_path / "target", downloads=tmp_path / "downloads", log=tmp_path / "log"
    )


def test_an_archive_is_unpacked_to_its_top(tmp_path: Path) -> None:
    sdist = make_sdist(tmp_path)
    source = ArchiveSource(url=str(sdist), file_name=sdist.name, sha256=sha256(sdist))
    tree = fetch(source, tmp_path)
    assert tree.name == "demo-1.0"
    assert (tree / "setup.py").read_text(encoding="utf-8") == "old = 1\n"


def test_a_file_is_found_by_its_address(tmp_path: Path) -> None:
    folder = tmp_path / "with blank + ü"
    folder.mkdir()
    sdist = make_sdist(folder)
    source = ArchiveSource(url=sdist.as_uri(), file_name=sdist.name, sha256=sha256(sdist))
    assert (fetch(source, tmp_path) / "setup.py").exists()


def test_a_changed_file_is_refused_though_the_cache_has_the_old_one(tmp_path: Path) -> None:
    sdist = make_sdist(tmp_path)
    source = ArchiveSource(url=str(sdist), file_name=sdist.name, sha256=sha256(sdist))
    fetch(source, tmp_path)
    make_sdist(tmp_path, "demo-2.0").replace(sdist)
    with pytest.raises(HashMismatchError):
        fetch(source, tmp_path)


def test_another_hash_is_refused_before_unpacking(tmp_path: Path) -> None:
    sdist = make_sdist(tmp_path)
    source = ArchiveSource(url=str(sdist), file_name=sdist.name, sha256="0" * 64)
    with pytest.raises(HashMismatchError, match="expected 0000"):
        fetch(source, tmp_path)
    assert not (tmp_path / "target").exists()
    assert not list((tmp_path / "downloads").rglob("*.tar.gz"))


def test_a_damaged_download_is_fetched_again(tmp_path: Path) -> None:
    sdist = make_sdist(tmp_path)
    digest = sha256(sdist)
    cached = tmp_path / "downloads" / digest[:2] / digest / sdist.name
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"half")
    source = ArchiveSource(url=str(sdist), file_name=sdist.name, sha256=digest)
    assert (fetch(source, tmp_path) / "setup.py").exists()


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.invalid", *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_commit_is_fetched_by_its_hash(tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    git(upstream, "init", "-q")
    (upstream / "setup.py").write_text("first\n", encoding="utf-8")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "first")
    first = git(upstream, "rev-parse", "HEAD")
    (upstream / "setup.py").write_text("second\n", encoding="utf-8")
    git(upstream, "commit", "-qam", "second")
    tree = fetch(GitSource(url=f"file://{upstream}", commit=first), tmp_path)
    assert (tree / "setup.py").read_text(encoding="utf-8") == "first\n"


@pytest.mark.parametrize(
    "output",
    ["build/old.o", "dist/a.whl", "wheelhouse/a.whl", ".wheelfarm/x", "x.egg-info/PKG-INFO"],
)
def test_a_projects_own_outputs_are_no_source(tmp_path: Path, output: str) -> None:
    project = tmp_path / "project"
    # A package of the project's own may well be called build.
    for name in ("setup.py", "package/build/__init__.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x", encoding="utf-8")
    before = folder_fingerprint(project)
    (project / output).parent.mkdir(parents=True)
    (project / output).write_text("x", encoding="utf-8")
    assert folder_fingerprint(project) == before
    tree = fetch(FolderSource(folder=project), tmp_path)
    found = sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())
    assert found == ["package/build/__init__.py", "setup.py"]
    (project / "package/build/__init__.py").write_text("y", encoding="utf-8")
    assert folder_fingerprint(project) != before


def tar_with(folder: Path, member: tarfile.TarInfo) -> Path:
    path = folder / "hostile.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(member)
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("../outside"),
        tarfile.TarInfo("/etc/outside"),
        tarfile.TarInfo("a/../../outside"),
        tarfile.TarInfo("c:\\outside"),
        link("a", "/etc/passwd"),
        link("a/b", "../../outside"),
        link("a", "../outside", tarfile.LNKTYPE),
        link("device", "", tarfile.CHRTYPE),
    ],
    ids=lambda member: f"{member.name}->{member.linkname}",
)
def test_hostile_archives_are_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    with pytest.raises(UnsafeArchiveError):
        unpack(tar_with(tmp_path, member), tmp_path / "target")


def test_a_zip_bomb_is_refused_by_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wheelfarm.files.MAX_UNPACKED", 1000)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * 1001)
    with pytest.raises(UnsafeArchiveError, match="claims"):
        unpack(path, tmp_path / "target")


def test_a_cut_archive_is_bad_input(tmp_path: Path) -> None:
    sdist = make_sdist(tmp_path)
    sdist.write_bytes(sdist.read_bytes()[:40])
    with pytest.raises(BadInputError, match="no readable archive"):
        unpack(sdist, tmp_path / "target")


@given(
    st.sampled_from(["gz", "bz2", "xz", "zip"]),
    st.integers(0, 300),
    st.binary(min_size=1, max_size=8),
    st.integers(0, 60),
)
def test_no_damage_of_an_archive_breaks_unpacking(
    tmp_path_factory: pytest.TempPathFactory, form: str, at: int, damage: bytes, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = folder / f"demo.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("demo-1.0/setup.py", "old = 1\n" * 20)
    else:
        with tarfile.open(path, f"w:{form}") as tar:  # type: ignore[call-overload] # a known form
            info = tarfile.TarInfo("demo-1.0/setup.py")
            info.size = 200
            tar.addfile(info, io.BytesIO(bytes(range(200))))
    data = path.read_bytes()
    data = data[:at] + damage + data[at + len(damage) :]
    path.write_bytes(data[: max(0, len(data) - cut)])
    with contextlib.suppress(BadInputError):
        unpack(path, folder / "target")


def test_an_encrypted_archive_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "demo.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo/setup.py", "x")
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x03\x04") + 6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(BadInputError, match=r"no readable archive: .*encrypted"):
        unpack(path, tmp_path / "target")


def patched_tree(tmp_path: Path, text: str) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "setup.py").write_text(text, encoding="utf-8")
    (tmp_path / "change.patch").write_text(PATCH, encoding="utf-8")
    return tree


def test_a_patch_applies_inside_another_checkout(tmp_path: Path) -> None:
    # git apply, run below a repository, would otherwise skip the files and report success.
    git(tmp_path, "init", "-q")
    tree = patched_tree(tmp_path, "old = 1\n")
    apply_patches(tree, (tmp_path / "change.patch",), log=tmp_path / "log")
    assert (tree / "setup.py").read_text(encoding="utf-8") == "new = 2\n"


def test_a_patch_that_does_not_apply_stops(tmp_path: Path) -> None:
    tree = patched_tree(tmp_path, "other = 3\n")
    with pytest.raises(PatchError, match=r"change\.patch does not apply"):
        apply_patches(tree, (tmp_path / "change.patch",), log=tmp_path / "log")
    assert (tree / "setup.py").read_text(encoding="utf-8") == "other = 3\n"


def test_a_patch_script_runs_in_the_tree(tmp_path: Path) -> None:
    tree = patched_tree(tmp_path, "old = 1\n")
    script = tmp_path / "patch.py"
    script.write_text("open('setup.py', 'w').write('by script')", encoding="utf-8")
    run_patch_script(tree, script, log=tmp_path / "log")
    assert (tree / "setup.py").read_text(encoding="utf-8") == "by script"
    script.write_text("raise SystemExit('no such line')", encoding="utf-8")
    with pytest.raises(PatchError, match="no such line"):
        run_patch_script(tree, script, log=tmp_path / "log")
