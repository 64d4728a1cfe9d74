"""What is new upstream, held against a farm: facts come in, proposals with a difference go out.

Only additions are proposed from what pages show. A line is called retired where the *newest* torch
of all has no wheel of it, which is said of pages that were read whole; nothing is ever concluded
from a page that could not be read.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.http import Client
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.versions import Minor
from wheelfarm.reading import read_text
from wheelfarm.recipes.load import POLICY_FILE, RECIPE_FILE
from wheelfarm.recipes.model import Farm, PyPISource
from wheelfarm.recipes.pypi import list_sdists, newest_sdist
from wheelfarm.upstream.facts import dump_facts, read_sources
from wheelfarm.upstream.model import UpstreamFacts
from wheelfarm.upstream.refresh import Refreshed, refresh

NewsKind = Literal["rows", "line", "retired-line", "version", "compiler"]

#: NVIDIA's compiler on PyPI; from CUDA 13 its project has the bare name.
COMPILER_PROJECT = "nvidia-cuda-nvcc"


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """One thing that is new: what, of what, and the proposal in a sentence."""

    kind: NewsKind
    subject: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """All news, the changed files' texts by path in the farm, and what could not be looked at."""

    news: tuple[News, ...]
    changes: Mapping[str, tuple[str, str]]
    unread: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """The hash of the news alone: the same news has the same one, whatever the day."""
        rows = sorted((item.kind, item.subject) for item in self.news)
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]

    @property
    def diff(self) -> str:
        """The proposed changes of the farm's files, as a unified difference."""
        parts: list[str] = []
        for path, (old, new) in sorted(self.changes.items()):
            parts += difflib.unified_diff(
                old.splitlines(keepends=True),
                new.splitlines(keepends=True),
                f"a/{path}",
                f"b/{path}",
            )
        return "".join(parts)

    def issue(self) -> str:
        """Return the text of an issue; its last line holds the fingerprint."""
        lines = [f"- **{item.kind}** `{item.subject}`: {item.text}" for item in self.news]
        lines += [f"- could not look: {text}" for text in self.unread]
        body = "\n".join(lines)
        patch = f"\n\n```diff\n{self.diff}```" if self.changes else ""
        return f"{body}{patch}\n\n<!-- wheelfarm-watch {self.fingerprint} -->\n"


def watch(
    farm: Farm, facts: UpstreamFacts, *, client: Client, index: str, base_url: str
) -> Watched:
    """Look at PyTorch's pages and at PyPI, and return what is new for the farm.

    A source that cannot be read is named in ``unread`` and says nothing else.
    """
    news: list[News] = []
    unread: list[str] = []
    changes: dict[str, tuple[str, str]] = {}
    try:
        refreshed = refresh(facts, client=client, base_url=base_url)
    except CouldNotLookError as error:
        unread.append(f"PyTorch's pages: {error.what}")
    else:
        news += _rows(refreshed)
        news += _lines(farm, refreshed.facts)
        changes |= _policy_changes(farm, refreshed)
    for source, found in _versions(farm, client, index, changes):
        if isinstance(found, str):
            unread.append(f"{source}: {found}")
        else:
            news.append(found)
    compiler = _compiler(farm, client, index)
    if isinstance(compiler, str):
        unread.append(f"{COMPILER_PROJECT}: {compiler}")
    else:
        news += compiler
    return Watched(news=tuple(news), changes=changes, unread=tuple(unread))


def _rows(refreshed: Refreshed) -> Iterable[News]:
    return (
        News(kind="rows", subject=row, text="PyTorch published it; the grid grows by it")
        for row in refreshed.added
    )


def _lines(farm: Farm, facts: UpstreamFacts) -> Iterable[News]:
    """Yield CUDA lines that the newest torch has and the farm does not, and the other way round."""
    newest = max((release.torch for release in facts.releases), default=None)
    current = {
        release.accelerator.version
        for release in facts.releases
        if release.torch == newest and release.accelerator.version is not None
    }
    for cuda in sorted(current - set(farm.policy.supported_cudas)):
        yield News(
            kind="line",
            subject=f"CUDA {cuda}",
            text=f"torch {newest} has it, the farm's supported_cudas does not",
        )
    for cuda in sorted(set(farm.policy.supported_cudas) - current):
        yield News(
            kind="retired-line",
            subject=f"CUDA {cuda}",
            text=f"torch {newest} has no wheel of it; what is published for it stays",
        )


def _policy_changes(farm: Farm, refreshed: Refreshed) -> dict[str, tuple[str, str]]:
    changes: dict[str, tuple[str, str]] = {}
    if farm.policy.upstream and refreshed.added:
        old = read_text(farm.root / farm.policy.upstream)
        changes[farm.policy.upstream] = old, dump_facts(refreshed.facts, read_sources(old))
    lines = [item.subject.removeprefix("CUDA ") for item in _lines(farm, refreshed.facts)
             if item.kind == "line"]  # fmt: skip
    ours = Accelerator.cuda(max(farm.policy.supported_cudas))
    newer = [cuda for cuda in lines if Minor.parse(cuda) > (ours.version or Minor(0, 0))]
    text = read_text(farm.root / POLICY_FILE)
    added = _with_lines(text, newer)
    if added is not None and newer:
        changes[POLICY_FILE] = text, added
    return changes


def _with_lines(text: str, cudas: Iterable[str]) -> str | None:
    """Return a policy's text with CUDA lines added to its list; None where it is written oddly."""
    for line in text.splitlines(keepends=True):
        if line.startswith("supported_cudas: [") and line.rstrip().endswith("]"):
            more = "".join(f', "{cuda}"' for cuda in cudas)
            return text.replace(line, line.rstrip()[:-1] + more + "]\n")
    return None


def _versions(
    farm: Farm, client: Client, index: str, changes: dict[str, tuple[str, str]]
) -> Iterable[tuple[str, News | str]]:
    for recipe in farm.recipes.values():
        if not isinstance(recipe.source, PyPISource):
            continue
        project, ours = recipe.source.project, recipe.source.version
        try:
            newest = newest_sdist(project, client=client, index=index).version
        except (CouldNotLookError, BadInputError) as error:
            yield project, error.what
            continue
        if newest <= ours:
            continue
        text = f"PyPI has {newest}, the recipe builds {ours}"
        yield project, News(kind="version", subject=f"{project} {newest}", text=text)
        path = (recipe.folder.resolve() / RECIPE_FILE).relative_to(farm.root).as_posix()
        old = read_text(recipe.folder / RECIPE_FILE)
        new = _with_version(old, project, ours, newest)
        if new != old:
            changes[path] = old, new


def _with_version(text: str, project: str, old: Version, new: Version) -> str:
    pinned = text.replace(f"{project}=={old}", f"{project}=={new}")
    kept = []
    for line in pinned.splitlines(keepends=True):
        stated = line.partition(":")[2].strip().strip("\"'")
        is_version = line.startswith("version:") and stated == str(old)
        kept.append(line.replace(str(old), str(new)) if is_version else line)
    return "".join(kept)


def _compiler(farm: Farm, client: Client, index: str) -> list[News] | str:
    """Return NVIDIA's compiler lines that are newer than every line of the farm."""
    try:
        found = list_wheel_versions(COMPILER_PROJECT, client=client, index=index)
    except (CouldNotLookError, BadInputError) as error:
        return error.what
    ours = max(farm.policy.supported_cudas)
    lines = sorted({Minor.of(version) for version in found if Minor.of(version) > ours})
    return [
        News(kind="compiler", subject=f"CUDA {line}", text="NVIDIA has its compiler on PyPI")
        for line in lines
    ]


def list_wheel_versions(project: str, *, client: Client, index: str) -> tuple[Version, ...]:
    """Return the versions of a project's wheels and sdists; raises as ``list_sdists`` does.

    NVIDIA's projects have wheels alone.
    """
    from packaging.utils import (  # noqa: PLC0415 - this verb's alone
        InvalidWheelFilename,
        parse_wheel_filename,
    )

    from wheelfarm.upstream.pages import links_of  # noqa: PLC0415 - as above

    versions = {sdist.version for sdist in list_sdists(project, client=client, index=index)}
    url = f"{index}/{project}/"
    answer = client.get(url, accept="text/html")
    for link in links_of(answer.body.decode("utf-8", "replace"), url):
        name = link.partition("#")[0].rpartition("/")[2]
        try:
            versions.add(parse_wheel_filename(name)[1])
        except InvalidWheelFilename:
            continue
    return tuple(sorted(versions))
