"""How long an index takes: from nothing, with nothing new, and with one wheel changed.

Usage: PYTHONPATH=.:src python benchmarks/index.py [COUNT ...]   (default: 1000 10000 30000)

Beside each stands a writer of bare HTML links over the same file names (no hashes, no JSON, no
channels, no manifest), so that a machine's speed cancels out. Processor time is what our own
process used; on a busy machine it says more than the clock.
"""

import html
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.many_wheels import fill_store
from wheelfarm.index.build import build_site
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.shipped import ShippedTorch
from wheelfarm.index.tree import SiteTree
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.publish import yank
from wheelfarm.upstream.facts import committed_facts


def timed(do: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and the processor seconds of a call."""
    wall, processor = time.perf_counter(), time.process_time()
    do()
    return time.perf_counter() - wall, time.process_time() - processor


def bare_links(store: DirectoryStore, folder: Path) -> None:
    """Write a page of bare links per package, and one per package and local tag."""
    for package in store.heads():
        names = [str(document["filename"]) for document in store.catalogue(package).documents()]
        pages = {package: names}
        for name in names:
            pages.setdefault(f"{name.split('-')[1].partition('+')[2]}/{package}", []).append(name)
        for path, listed in pages.items():
            target = folder / path / "index.html"
            target.parent.mkdir(parents=True, exist_ok=True)
            lines = (
                f'<a href="{html.escape(each)}">{html.escape(each)}</a><br>' for each in listed
            )
            target.write_text("\n".join(lines))


def measure(count: int, folder: Path) -> None:
    """Measure one size and print its lines."""
    shipped = ShippedTorch.of(committed_facts())
    store = DirectoryStore(folder / "store")
    fill_store(store, shipped, count)
    tree = SiteTree(folder / "site")

    def build() -> None:
        build_site(store, tree, SiteConfig(), shipped)

    bare, used = timed(lambda: bare_links(store, folder / "bare"))
    rows = [("bare HTML links, from nothing", bare, used)]
    rows.append(("from nothing", *timed(build)))
    rows.append(("nothing new", *timed(build)))
    yank(store, [min(store.catalogue("package-00").records)], "benchmark")
    rows.append(("one wheel changed", *timed(build)))
    for name, wall, processor in rows:
        print(
            f"{count:6} wheels  {name:30} {wall:7.2f} s  {wall / bare:6.2f} x bare"
            f"  {processor:6.2f} s of processor, {processor / used:5.2f} x bare"
        )


def additions() -> None:
    """Add ten million times: what a quiet core of this kind does in 0.5 s."""
    total = 0
    for number in range(10_000_000):
        total += number


def main() -> None:
    """Measure every size that was asked for."""
    print(f"ten million additions: {timed(additions)[1]:.2f} s of processor")
    for count in [int(word) for word in sys.argv[1:]] or [1_000, 10_000, 30_000]:
        folder = Path(tempfile.mkdtemp(prefix="wheelfarm-benchmark-"))
        try:
            measure(count, folder)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
