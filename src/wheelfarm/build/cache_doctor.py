"""Prove a compiler cache: a cache and a toolkit come in, one verdict per known fault goes out.

Every check compiles for real, through a seat of its own, in an empty cache. A cache served a stale
object where the new one has the old one's bytes, lacks the text that an edit put in, or was made
without the tool that was put in another's place.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm import files
from wheelfarm.build.cache import CompilerCache
from wheelfarm.build.calls import read_calls
from wheelfarm.build.handoff import results_in
from wheelfarm.build.seat_setup import Seat, SeatSpec, prepare_seat
from wheelfarm.run import run
from wheelfarm.values import replace

Status = Literal["pass", "fail"]

_DAY = 86400
_ARCHS = ("-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90")
_KERNEL = """\
#include <shared.h>
#ifndef __CUDA_ARCH__
const char* host_text() { return "host-pass-HOST" SHARED EXTRA; }
#endif
__global__ void kernel(float* x) {
#if __CUDA_ARCH__ >= 900
  x[0] += ARCH.0f;
#else
  x[0] += 3.0f;
#endif
}
"""
_HOST = '#include <shared.h>\nconst char* text() { return "unit-" SHARED; }\n'
_HEADER = '#define SHARED "shared-TEXT"\n#ifndef EXTRA\n#define EXTRA "none"\n#endif\n'


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One fault that a cache may have, whether this one has it, and what was seen."""

    id: str
    summary: str
    status: Status
    evidence: str


def examine(
    cache: CompilerCache, toolkit: Path, folder: Path, *, path: str = os.defpath
) -> tuple[Check, ...]:
    """Return one check per fault, in the order in which they were looked at.

    ``toolkit`` is a CUDA root, ``folder`` an empty folder to work in. Raises CouldNotLookError,
    ProgramFailedError where a compiler is not there or does not work at all.
    """
    own = replace(cache, folder=folder / "cache", kept=None)
    own.folder.mkdir(parents=True)
    bench = _Bench(own, toolkit, folder, path)
    return tuple(bench.checks())


class _Bench:
    """A build root with one CUDA unit and one host unit, compiled again and again."""

    def __init__(self, cache: CompilerCache, toolkit: Path, folder: Path, path: str) -> None:
        self.cache = cache
        self.toolkit = toolkit
        self.folder = folder
        self.path = path
        self.root = folder / "root"
        self.mark = folder / "other-tool-compiled"
        self.texts = {"HOST": "1", "ARCH": "1", "TEXT": "1"}
        self.seat = self.prepare(toolkit, path)
        self.write()

    def prepare(self, toolkit: Path, path: str) -> Seat:
        self.root.mkdir(exist_ok=True)
        return prepare_seat(
            SeatSpec(
                root=self.root,
                folder=self.root / "seat",
                toolkit=toolkit,
                cache=self.cache,
                path=path,
            )
        )

    def write(self, **texts: str) -> None:
        self.texts |= texts
        for name, template in (("a.cu", _KERNEL), ("b.cpp", _HOST), ("include/shared.h", _HEADER)):
            text = template
            for key, value in self.texts.items():
                text = text.replace(f"-{key}", f"-{value}").replace(f"{key}.0f", f"{value}.0f")
            target = self.root / name
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def cuda(self, *words: str, **variables: str) -> bytes:
        """Compile the CUDA unit without any dependency option and return the object."""
        return self.compile(("nvcc", "-c", "a.cu", *_ARCHS, *words), variables)

    def host(self) -> bytes:
        """Compile the host unit as torch does, with user headers alone in the depfile."""
        return self.compile(("g++", "-MMD", "-MF", "b.d", "-c", "b.cpp"), {})

    def compile(self, words: tuple[str, ...], variables: dict[str, str]) -> bytes:
        output = self.root / "out.o"
        output.unlink(missing_ok=True)
        path = f"{self.seat.bin}:{self.path}"
        home = {"HOME": str(self.folder)}
        environment = {**home, **self.seat.environment, "PATH": path, **variables}
        run([*words, "-isystem", "include", "-o", "out.o"], cwd=self.root, env=environment)
        return output.read_bytes()

    def said(self) -> str:
        call = read_calls(self.seat.log)[-1]
        return f"{self.cache.name}: {call.cache}" + (f" ({call.reason})" if call.reason else "")

    def served(self, id_: str, summary: str, before: bytes, after: bytes) -> Check:
        """Judge a compile that must be answered from the cache."""
        return self._check(id_, summary, ok=before == after)

    def compiled(self, id_: str, summary: str, before: bytes, after: bytes) -> Check:
        """Judge a compile that must not be answered from the cache."""
        return self._check(id_, summary, ok=before != after)

    def _check(self, id_: str, summary: str, *, ok: bool) -> Check:
        status: Status = "pass" if ok else "fail"
        return Check(id=id_, summary=summary, status=status, evidence=self.said())

    def checks(self) -> Iterator[Check]:
        yield from self._edits()
        yield from self._options()
        yield from self._compilers()

    def _edits(self) -> Iterator[Check]:
        first = self.cuda()
        yield self.served("unchanged", "an unchanged unit hits", first, self.cuda())
        if self.cache.kind == "ccache":
            found = any(results_in("ccache", self.cache.folder))
            yield self._check("handoff", "its results are where a handoff looks for them", ok=found)
        tomorrow = time.time() + _DAY
        os.utime(self.root / "include" / "shared.h", (tomorrow, tomorrow))
        yield self.served("tomorrow", "a header dated tomorrow still hits", first, self.cuda())
        for id_, summary, texts in (
            ("host-pass", "an edit that only the host pass sees misses", {"HOST": "2"}),
            ("arch-guard", "an edit under __CUDA_ARCH__ >= 900 misses", {"ARCH": "2"}),
            ("no-depfile", "without -MD, an edited -isystem header misses", {"TEXT": "2"}),
        ):
            before = self.cuda()
            self.write(**texts)
            yield self.compiled(id_, summary, before, self.cuda())
        self.host()
        self.write(TEXT="3")
        ok = b"shared-3" in self.host()
        yield self._check("mmd", "with -MMD, an edited -isystem header misses", ok=ok)

    def _options(self) -> Iterator[Check]:
        before = self.cuda()
        for id_, summary, words, variables in (
            ("append-flags", "NVCC_APPEND_FLAGS is part of the key", (), {"APPEND": '"more"'}),
            ("prepend-flags", "NVCC_PREPEND_FLAGS is part of the key", (), {"PREPEND": '"most"'}),
            ("device-code", "-dc is told from -c", ("-dc",), {}),
        ):
            flags = {
                f"NVCC_{name}_FLAGS": f"'-DEXTRA={value}'" for name, value in variables.items()
            }
            yield self.compiled(id_, summary, before, self.cuda(*words, **flags))

    def _compilers(self) -> Iterator[Check]:
        # What was compiled cannot tell: sccache makes nvcc's objects alike. The other tool itself
        # leaves a mark when it compiles.
        self.cuda()
        for id_, summary, change in (
            ("ptxas", "another ptxas behind the same nvcc misses", self._other("bin/ptxas")),
            ("cicc", "another cicc behind the same nvcc misses", self._other("nvvm/bin/cicc")),
            ("host-compiler", "another host compiler misses", self._other_host),
        ):
            toolkit, path = change()
            self.seat = self.prepare(toolkit, path)
            self.mark.unlink(missing_ok=True)
            self.cuda()
            yield self._check(id_, summary, ok=self.mark.exists())

    def _other(self, tool: str) -> Callable[[], tuple[Path, str]]:
        def change() -> tuple[Path, str]:
            toolkit = self.folder / tool.replace("/", "-")
            shutil.copytree(self.toolkit, toolkit, symlinks=True, ignore=_links_stay(self.toolkit))
            target = toolkit / tool
            self._make_folders_real(toolkit, target.parent)
            target.unlink()
            _wrap(self.toolkit / tool, target, self.mark)
            return toolkit, self.path

        return change

    def _make_folders_real(self, toolkit: Path, folder: Path) -> None:
        """Replace a linked folder by one of links, so that one file in it can be another."""
        for part in reversed([folder, *folder.parents]):
            if part.is_symlink() and part.is_relative_to(toolkit) and part != toolkit:
                source = part.resolve()
                part.unlink()
                part.mkdir()
                for entry in source.iterdir():
                    (part / entry.name).symlink_to(entry)

    def _other_host(self) -> tuple[Path, str]:
        folder = self.folder / "host"
        folder.mkdir()
        for name in ("gcc", "g++"):
            found = shutil.which(name, path=self.path)
            if found is not None:
                _wrap(Path(found), folder / name, self.mark)
        return self.toolkit, f"{folder}:{self.path}"


def _links_stay(toolkit: Path) -> Callable[[str, list[str]], list[str]]:
    """Copy a view's links as they are; records of the view are not part of the copy."""

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(".") and Path(folder) == toolkit]

    return ignored


def _wrap(program: Path, target: Path, mark: Path) -> None:
    """Write another file that does the same work, and leaves a mark when it compiles."""
    # A host compiler is asked for its version and for preprocessed text on hits too.
    script = f"""\
#!/bin/sh
case "{program.name}: $* " in g*": "*" -c "*|cicc:*|ptxas:*) : > "{mark}" ;; esac
exec "{program}" "$@"
"""
    files.write_text(target, script)
    target.chmod(0o755)
