"""Rendering many packages on all cores: a pure function over values, order plays no part."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping

from wheelfarm.index.channels import Placement
from wheelfarm.index.render import Rendered, SiteConfig, render
from wheelfarm.index.rows import Row

#: Below this many wheels another process costs more than it saves.
WORTH_IT = 4000

_Work = tuple[Mapping[str, list[Row]], Placement, SiteConfig]
_work: list[_Work] = []


def render_all(
    packages: Mapping[str, list[Row]], placement: Placement, config: SiteConfig
) -> dict[str, Rendered]:
    """Return every package's rendering.

    Large sites use a process per core, where the system can fork and nothing else runs in this
    process: children then see the rows without a copy.
    """
    wheels = sum(map(len, packages.values()))
    workers = min(len(packages), os.cpu_count() or 1)
    able = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    if wheels < WORTH_IT or workers < 2 or not able:  # noqa: PLR2004 - one worker is us
        return {name: render(name, rows, placement, config) for name, rows in packages.items()}
    _work.append((packages, placement, config))
    try:
        with multiprocessing.get_context("fork").Pool(workers, _quiet) as pool:
            return dict(pool.imap_unordered(_render, packages))
    finally:
        _work.clear()


def _quiet() -> None:
    """Let a worker end without a word: Ctrl-C is the parent's to handle, and to pass on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _render(name: str) -> tuple[str, Rendered]:
    packages, placement, config = _work[0]
    return name, render(name, packages[name], placement, config)
