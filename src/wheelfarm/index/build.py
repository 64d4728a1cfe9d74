"""From a store to a site: what changed since the last build is rendered, all else stays."""

import contextlib
import gc
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wheelfarm.index.change import Change, FilesMode
from wheelfarm.index.channels import Lines, Placement
from wheelfarm.index.common import ALL, Summaries, common_pages, whole_manifest
from wheelfarm.index.history import Generation, History, PastStore
from wheelfarm.index.package import Staged
from wheelfarm.index.parallel import office
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.shipped import Shipped
from wheelfarm.index.state import SiteState
from wheelfarm.index.storage import check_storage
from wheelfarm.index.tree import SiteTree
from wheelfarm.model.wheel_name import Label
from wheelfarm.store.model import Catalogue
from wheelfarm.store.protocol import StoreReader

#: Sees what a build is about to do, and raises to stop it.
Guard = Callable[[Change, Summaries], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """What a build did: packages and wheels on the site, pages written and removed."""

    packages: int
    wheels: int
    rendered: tuple[str, ...]
    written: int
    removed: int


def build_site(
    store: StoreReader,
    tree: SiteTree,
    config: SiteConfig,
    shipped: Shipped,
    *,
    files: FilesMode = "link",
    full: bool = False,
    grid: Mapping[str, Any] | None = None,
    guards: tuple[Guard, ...] = (),
) -> Built:
    """Bring a site's folder to the store's state; on any exception it stays as it was.

    ``full`` renders everything again and looks at each page that stands, so that damaged ones are
    written anew; the outcome is the same. ``grid`` are the farm's decisions for
    the coverage page. Raises what a guard raises, and
    BlobMissingError where a file that a page would link to is not in the store.
    """
    files_folder = store.folder()
    store_folder = None if files_folder is None else files_folder.parent
    tree.check_place(store_folder)
    with tree.locked(), _no_collection():
        tree.check_content(store_folder)
        before = SiteState.load(tree)
        build = _Build(store, before, config, shipped)
        staged = build.staged(tree, full=full)
        change = Change(tree, before, full=full)
        summaries = build.describe(change, staged)
        pages = common_pages(summaries, build.placement, config, grid or {"cells": {}})
        _common(change, pages, summaries, full=full)
        check_storage(store, {each.package: each.listed for each in staged})
        for guard in guards:
            guard(change, summaries)
        change.place_files(store, files)
        written, removed = len(change.writes), len(change.removals)
        after = build.after(summaries, change)
        if after != before or change.writes or change.removals:
            history = History(tree)
            change.note(build.remembered(history, {**asdict(config), "files": files}))
            change.commit(after)
            history.forget()
        return Built(
            packages=len(summaries),
            wheels=sum(int(summary["wheels"]) for summary in summaries.values()),
            rendered=tuple(sorted(each.package for each in staged)),
            written=written,
            removed=removed,
        )


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Switch the collector of reference cycles off: a build makes millions of values and none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Build:
    """The store's state against what the last build saw; each catalogue is read at most once."""

    def __init__(
        self, store: StoreReader, before: SiteState, config: SiteConfig, shipped: Shipped
    ) -> None:
        self.store = store
        self.before = before
        self.config = config
        self.shipped = shipped
        self.heads = dict(store.heads())
        self.inputs = ""
        self.placement = Placement(Lines({}), shipped)
        self._catalogues: dict[str, Catalogue] = {}

    def staged(self, tree: SiteTree, *, full: bool) -> Sequence[Staged]:
        """Stage the pages of every package that is new, or all where what they share is."""
        changed = [name for name in sorted(self.heads) if full or not self._same(name)]
        with office(tree, self._read(changed), "new") as first:
            self._place(changed, first.labels())
            everything = sorted(self.heads)
            if self.inputs == self.before.inputs or changed == everything:
                return self._in_order(first.staged(self.placement, self.config, full=full))
        with office(tree, self._read(everything), "all") as second:
            second.labels()
            return self._in_order(second.staged(self.placement, self.config, full=full))

    def describe(self, change: Change, staged: Sequence[Staged]) -> Summaries:
        """Note what happens to each package; return what common pages say of those with wheels."""
        summaries = {name: known["summary"] for name, known in self.before.packages.items()}
        for name in sorted(self.before.packages.keys() - self.heads.keys()):
            change.drop(name)
            del summaries[name]
        for each in staged:
            change.package(each)
            summaries[each.package] = each.summary
        return {name: summaries[name] for name in sorted(summaries) if summaries[name]["wheels"]}

    def after(self, summaries: Summaries, change: Change) -> SiteState:
        """Return what the next build finds."""
        nothing = {"wheels": 0, "labels": []}
        packages = {
            name: {"token": token, "summary": dict(summaries.get(name, nothing))}
            for name, token in self.heads.items()
        }
        return SiteState(inputs=self.inputs, packages=packages, pages=change.common_hashes)

    def remembered(self, history: History, config: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the files by which one can come back to this state."""
        newest = history.newest()
        last = {} if newest is None else newest.packages
        self._read([name for name in self.heads if name not in last])
        same = {name: last[name] for name in self.heads if name not in self._catalogues}
        data = {name: catalogue.data for name, catalogue in self._catalogues.items()}
        return history.remember(data, same, config)

    def _read(self, packages: list[str]) -> list[Catalogue]:
        for package in packages:
            if package not in self._catalogues:
                self._catalogues[package] = self.store.catalogue(package)
                # Another host may have been faster than we: remember the state that is rendered.
                self.heads[package] = self._catalogues[package].head
        return [self._catalogues[package] for package in packages]

    def _place(self, changed: list[str], found: frozenset[str]) -> None:
        """Find the site's channels from the labels of all its wheels."""
        labels = set(found)
        for name in self.heads.keys() - set(changed):
            labels.update(self.before.packages[name]["summary"]["labels"])
        lines = Lines.of(map(Label.parse, sorted(labels)), self.shipped)
        self.placement = Placement(lines, self.shipped)
        self.inputs = _inputs(self.config, lines, self.shipped)

    def _in_order(self, staged: Sequence[Staged]) -> Sequence[Staged]:
        return sorted(staged, key=lambda each: each.package)

    def _same(self, package: str) -> bool:
        known = self.before.packages.get(package)
        return known is not None and known["token"] == self.heads[package]


def _common(
    change: Change, pages: Mapping[str, bytes], summaries: Summaries, *, full: bool
) -> None:
    """Note the common pages; the manifest in one piece stays where nothing that it holds is new."""
    index = "manifest/index.json"
    change.common(pages)
    if not full and index not in change.writes and (change.tree.root / ALL).exists():
        change.keep_common(ALL)
    else:
        parts = ((name, change.read(f"manifest/packages/{name}.json")) for name in summaries)
        change.common({ALL: whole_manifest(pages[index], parts)})
    change.settle()


def roll_back(
    store: StoreReader, tree: SiteTree, shipped: Shipped, *, number: int | None = None
) -> Generation:
    """Return the site to an earlier build: the one before the newest, or the one named.

    Generations after it are forgotten; the store stays as it is, and the next build shows it again.
    """
    history = History(tree)
    target = history.target(number)
    config = dict(target.config)
    files: FilesMode = "copy" if config.pop("files", "link") == "copy" else "link"
    past = PastStore(history, target, store)
    build_site(past, tree, SiteConfig(**config), shipped, files=files)
    for generation in history.generations():
        if generation.number > target.number:
            history.drop(generation)
    return target


def _inputs(config: SiteConfig, lines: Lines, shipped: Shipped) -> str:
    """Return a hash of everything but the records that pages depend on."""
    document = {
        "config": asdict(config),
        "lines": [each.path for each in lines.combinations()],
        "shipped": shipped.digest,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
