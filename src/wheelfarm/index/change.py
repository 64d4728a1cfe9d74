"""What a build will write, host and remove, noted first and then done."""

from collections.abc import Iterable, Mapping
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.index.render import Rendered
from wheelfarm.index.state import PackageState, SiteState, digest, load_package, package_bytes
from wheelfarm.index.tree import SiteTree
from wheelfarm.store.protocol import StoreReader, metadata_key

#: How a site hosts a directory store's files: by one symbolic link, or as files of its own.
FilesMode = Literal["link", "copy"]


class Change:
    """The difference between a site as it stands and as it should be."""

    def __init__(self, tree: SiteTree, before: SiteState) -> None:
        self.tree = tree
        self.writes: dict[str, bytes] = {}
        self.removals: set[str] = set()
        self.remember: dict[str, bytes] = {}
        self.hosted: list[str] = []
        self.gone: set[str] = set()
        self.common_hashes: dict[str, str] = {}
        self._before = before

    def package(self, name: str, token: str, rendered: Rendered) -> None:
        """Note what a package's rendering changes; one without wheels has no pages."""
        old = load_package(self.tree, name)
        listed = bool(rendered.summary["wheels"])
        hashes = self._compare(rendered.pages if listed else {}, {} if old is None else old.pages)
        known = set(() if old is None else old.files)
        gone = known - set(rendered.hosted)
        self.gone |= gone
        self.hosted += rendered.hosted
        state = PackageState(
            token=token, pages=hashes, files=rendered.hosted, summary=rendered.summary
        )
        self.remember[f"packages/{name}.json"] = package_bytes(state)

    def drop(self, name: str) -> None:
        """Note that the store has a package no more."""
        old = load_package(self.tree, name)
        if old is not None:
            self.removals |= old.pages.keys()
            self.gone |= set(old.files)

    def common(self, pages: Mapping[str, bytes]) -> None:
        """Note the pages over all packages."""
        self.common_hashes = self._compare(pages, self._before.pages)

    def keep_common(self, names: Iterable[str]) -> None:
        """Note common pages that stay as they are without being rendered."""
        for name in names:
            self.removals.discard(name)
            self.common_hashes[name] = self._before.pages[name]

    def place_files(self, store: StoreReader, mode: FilesMode) -> None:
        """Host the files that pages will link to.

        Raises BadInputError where a store elsewhere has no address for them.
        """
        folder = store.folder()
        if not self.hosted and mode == "copy":
            return
        if folder is None:
            if self.hosted:
                message = f"the files of {store.location} are not on this machine"
                hint = "say where they are served, with --files-url"
                raise BadInputError(message, hint=hint)
            return
        if mode == "link":
            self.tree.link_folder("files", folder)
            self.tree.link_folder("reports", folder.parent / "reports")
            return
        if (self.tree.root / "reports").is_symlink():
            (self.tree.root / "reports").unlink()
        for key in self.hosted:
            for each in (key, metadata_key(key)):
                source = store.local(each)
                if source is not None:
                    self.tree.place(each, source)

    def commit(self, after: SiteState) -> None:
        """Write, remove and remember, all or nothing."""
        if not (self.tree.root / "files").is_symlink():
            self.removals |= self.gone | set(map(metadata_key, self.gone))
        self.remember["state.json"] = after.to_bytes()
        self.tree.change(self.writes, self.removals - self.writes.keys(), self.remember)

    def _compare(self, pages: Mapping[str, bytes], old: Mapping[str, str]) -> dict[str, str]:
        hashes = {path: digest(data) for path, data in pages.items()}
        for path, value in hashes.items():
            if old.get(path) != value or not (self.tree.root / path).exists():
                self.writes[path] = pages[path]
        self.removals |= old.keys()
        self.removals -= hashes.keys()
        return hashes
