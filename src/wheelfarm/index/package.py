"""From one package's catalogue to its pages in the stage: what one process does of a build."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wheelfarm.index.channels import Placement
from wheelfarm.index.render import SiteConfig, labels_of, render
from wheelfarm.index.rows import Row, rows_of
from wheelfarm.index.state import PackageState, digest, load_package, package_bytes
from wheelfarm.index.tree import SiteTree, Stage
from wheelfarm.store.model import Catalogue


class Listed(NamedTuple):
    """A wheel that pages list: its name and hash, and whether its file is the store's own."""

    filename: str
    sha256: str
    stored: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """Pages against those of the last build: every page's hash, and the staged name of each new."""

    hashes: Mapping[str, str]
    writes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Staged:
    """One package's part of a build: its new pages wait in the stage, nothing is moved.

    ``removals`` are pages, ``gone`` keys of hosted files that the last build had and this one has
    not; ``state`` is the staged name of what the next build needs to know.
    """

    package: str
    pages: Compared
    removals: frozenset[str]
    gone: frozenset[str]
    hosted: tuple[str, ...]
    listed: tuple[Listed, ...]
    summary: Mapping[str, Any]
    state: str


class Desk:
    """Works on some packages: reads their catalogues first, and renders them when asked."""

    def __init__(self, tree: SiteTree, part: str, catalogues: Iterable[Catalogue]) -> None:
        self._tree = tree
        self._part = part
        self._catalogues = {each.package: each for each in catalogues}
        self._rows: dict[str, list[Row]] = {}

    def labels(self) -> frozenset[str]:
        """Read every catalogue and return the local versions of its wheels.

        Raises FaultsError or BadInputError where a catalogue is none.
        """
        for name, catalogue in self._catalogues.items():
            self._rows[name] = rows_of(name, catalogue.documents())
        return frozenset(label for rows in self._rows.values() for label in labels_of(rows))

    def staged(self, placement: Placement, config: SiteConfig, *, full: bool) -> Sequence[Staged]:
        """Render the packages and stage what is new; ``full`` looks at the pages themselves.

        Raises DiskFullError.
        """
        stage = self._tree.stage(self._part)
        return [
            self._package(stage, name, rows, placement, config, full=full)
            for name, rows in self._rows.items()
        ]

    def _package(
        self,
        stage: Stage,
        name: str,
        rows: list[Row],
        placement: Placement,
        config: SiteConfig,
        *,
        full: bool,
    ) -> Staged:
        old = load_package(self._tree, name) or PackageState(token="")
        rendered = render(name, rows, placement, config)
        # A package without wheels has no pages.
        pages = compare(self._tree, stage, rendered.pages if rows else {}, old.pages, full=full)
        state = PackageState(
            token=self._catalogues[name].head,
            pages=pages.hashes,
            files=rendered.hosted,
            summary=rendered.summary,
        )
        return Staged(
            package=name,
            pages=pages,
            removals=frozenset(old.pages.keys() - pages.hashes.keys()),
            gone=frozenset(old.files).difference(rendered.hosted),
            hosted=rendered.hosted,
            listed=tuple(Listed(row.filename, row.sha256, row.key is not None) for row in rows),
            summary=rendered.summary,
            state=stage.write(package_bytes(state)),
        )


def compare(
    tree: SiteTree, stage: Stage, pages: Mapping[str, bytes], old: Mapping[str, str], *, full: bool
) -> Compared:
    """Stage the pages that are not on the site yet, by the hashes that the last build noted.

    ``full`` trusts no note and reads each page, so that one that was damaged is written again.
    """
    hashes: dict[str, str] = {}
    writes: dict[str, str] = {}
    last, value = b"", ""
    for path, data in pages.items():
        if data is not last:
            last, value = data, digest(data)
        hashes[path] = value
        page = tree.root / path
        stands = old.get(path) == value and page.is_file()
        if not stands or (full and page.read_bytes() != data):
            writes[path] = stage.write(data)
    return Compared(hashes=hashes, writes=writes)
