"""From a store to a site: what changed since the last build is rendered, all else stays."""

import contextlib
import gc
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from wheelfarm.index.change import Change, FilesMode
from wheelfarm.index.channels import Lines, Placement
from wheelfarm.index.common import ALL, Summaries, common_pages, whole_manifest
from wheelfarm.index.history import Generation, History, PastStore
from wheelfarm.index.parallel import render_all
from wheelfarm.index.render import Rendered, SiteConfig, labels_of
from wheelfarm.index.rows import Row, rows_of
from wheelfarm.index.shipped import Shipped
from wheelfarm.index.state import SiteState
from wheelfarm.index.storage import check_storage
from wheelfarm.index.tree import SiteTree
from wheelfarm.model.wheel_name import Label
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

    ``full`` renders everything again, with the same outcome; ``grid`` are the farm's decisions for
    the coverage page. Raises what a guard raises, and
    BlobMissingError where a file that a page would link to is not in the store.
    """
    with tree.locked(), _no_collection():
        before = SiteState.load(tree)
        build = _Build(store, before)
        lines = build.lines(shipped)
        inputs = _inputs(config, lines, shipped)
        packages = build.stale(everything=full or inputs != before.inputs)
        placement = Placement(lines, shipped)
        rendered = render_all({name: build.rows(name) for name in packages}, placement, config)
        change = Change(tree, before)
        summaries = build.describe(change, rendered)
        pages = common_pages(summaries, placement, config, grid or {"cells": {}})
        _whole(change, tree, pages, summaries)
        check_storage(store, {name: build.rows(name) for name in packages})
        for guard in guards:
            guard(change, summaries)
        change.place_files(store, files)
        written, removed = len(change.writes), len(change.removals)
        after = build.after(inputs, summaries, change)
        if after != before or change.writes or change.removals:
            history = History(tree)
            change.remember |= build.remembered(history, {**asdict(config), "files": files})
            change.commit(after)
            history.forget()
        return Built(
            packages=len(summaries),
            wheels=sum(int(summary["wheels"]) for summary in summaries.values()),
            rendered=tuple(sorted(rendered)),
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

    def __init__(self, store: StoreReader, before: SiteState) -> None:
        self.store = store
        self.before = before
        self.heads = dict(store.heads())
        self._rows: dict[str, list[Row]] = {}
        self._data: dict[str, bytes] = {}

    def rows(self, package: str) -> list[Row]:
        if package not in self._rows:
            state = self.store.catalogue(package)
            # Another host may have been faster than we: remember the state that is rendered.
            self.heads[package] = state.token
            self._data[package] = state.data
            self._rows[package] = rows_of(package, state.documents())
        return self._rows[package]

    def lines(self, shipped: Shipped) -> Lines:
        labels: set[str] = set()
        for package in sorted(self.heads):
            if self._same(package):
                labels.update(self.before.packages[package]["summary"]["labels"])
            else:
                labels.update(labels_of(self.rows(package)))
        return Lines.of(map(Label.parse, sorted(labels)), shipped)

    def stale(self, *, everything: bool) -> list[str]:
        return [name for name in sorted(self.heads) if everything or not self._same(name)]

    def describe(self, change: Change, rendered: Mapping[str, Rendered]) -> Summaries:
        summaries: dict[str, Mapping[str, Any]] = {}
        for name in sorted(self.heads):
            if name in rendered:
                change.package(name, self.heads[name], rendered[name])
                summary = rendered[name].summary
            else:
                summary = self.before.packages[name]["summary"]
            if summary["wheels"]:
                summaries[name] = summary
        for name in sorted(self.before.packages.keys() - self.heads.keys()):
            change.drop(name)
        return summaries

    def after(self, inputs: str, summaries: Summaries, change: Change) -> SiteState:
        nothing = {"wheels": 0, "labels": []}
        packages = {
            name: {"token": token, "summary": dict(summaries.get(name, nothing))}
            for name, token in self.heads.items()
        }
        return SiteState(inputs=inputs, packages=packages, pages=change.common_hashes)

    def remembered(self, history: History, config: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the files by which one can come back to this state."""
        generations = history.generations()
        last = generations[-1].packages if generations else {}
        for name in self.heads:
            if name not in last:
                self.rows(name)
        same = {name: last[name] for name in self.heads if name not in self._data}
        return history.remember(self._data, same, config)

    def _same(self, package: str) -> bool:
        known = self.before.packages.get(package)
        return known is not None and known["token"] == self.heads[package]


def _whole(change: Change, tree: SiteTree, pages: dict[str, bytes], summaries: Summaries) -> None:
    """Add the manifest in one piece, unless nothing that it holds has changed."""
    index = pages["manifest/index.json"]
    change.common(pages)
    if "manifest/index.json" not in change.writes and (tree.root / ALL).exists():
        change.keep_common([ALL])
        return
    parts = []
    for name in sorted(summaries):
        path = f"manifest/packages/{name}.json"
        data = change.writes.get(path)
        parts.append((name, (tree.root / path).read_bytes() if data is None else data))
    change.common({**pages, ALL: whole_manifest(index, parts)})


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
