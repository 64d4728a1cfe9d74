"""What a build will write, host and remove, noted first and then done."""

from collections.abc import Mapping
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.index.package import Staged, compare
from wheelfarm.index.state import SiteState, load_package
from wheelfarm.index.tree import SiteTree
from wheelfarm.store.protocol import StoreReader, metadata_key

#: How a site hosts a directory store's files: by one symbolic link, or as files of its own.
FilesMode = Literal["link", "copy"]


class Change:
    """The difference between a site as it stands and as it should be.

    ``writes`` maps pages, ``remember`` files of the state to the names of staged files.
    """

    def __init__(self, tree: SiteTree, before: SiteState, *, full: bool = False) -> None:
        self.tree = tree
        self.writes: dict[str, str] = {}
        self.removals: set[str] = set()
        self.remember: dict[str, str] = {}
        self.hosted: list[str] = []
        self.gone: set[str] = set()
        self.common_hashes: dict[str, str] = {}
        self._before = before
        self._full = full
        self._stage = tree.stage("common")

    def package(self, staged: Staged) -> None:
        """Note what a package's rendering changes."""
        self.writes |= staged.pages.writes
        self.removals |= staged.removals
        self.gone |= staged.gone
        self.hosted += staged.hosted
        self.remember[f"packages/{staged.package}.json"] = staged.state

    def drop(self, name: str) -> None:
        """Note that the store has a package no more."""
        old = load_package(self.tree, name)
        if old is not None:
            self.removals |= old.pages.keys()
            self.gone |= set(old.files)

    def common(self, pages: Mapping[str, bytes]) -> None:
        """Note pages over all packages."""
        old = self._before.pages
        compared = compare(self.tree, self._stage, pages, old, full=self._full)
        self.writes |= compared.writes
        self.common_hashes |= compared.hashes

    def keep_common(self, name: str) -> None:
        """Note a common page that stays as it is without being rendered."""
        self.common_hashes[name] = self._before.pages[name]

    def settle(self) -> None:
        """Let the common pages of the last build go that this one did not note."""
        self.removals |= self._before.pages.keys() - self.common_hashes.keys()

    def note(self, remember: Mapping[str, bytes]) -> None:
        """Note files of the state, by path in its folder."""
        self.remember |= {path: self._stage.write(data) for path, data in remember.items()}

    def read(self, path: str) -> bytes:
        """Return a page as it will be."""
        name = self.writes.get(path)
        return (self.tree.root / path).read_bytes() if name is None else self.tree.staged(name)

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
        self.note({"state.json": after.to_bytes()})
        self.tree.change(self.writes, self.removals - self.writes.keys(), self.remember)
