"""The seat: a compiler call comes in, and an object (real, cached or empty) and a record go out.

This program stands where nvcc and the host compilers stand. It runs as ``python -I -S`` from a
folder that ``seat_setup`` prepares, with the standard library alone. Per call it decides whether
the unit is this shard's (the compiler runs, through the cache), another's (an empty object and a
depfile are written), or no unit at all (the compiler runs). Every call that reaches the cache has
one form: see ``docs/sharding.md``.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import sys

from wheelfarm.build.seat_arguments import Command, language_of, parse, split
from wheelfarm.build.seat_files import (
    content_of,
    depfile_of,
    escaped,
    holds_exactly,
    read_inputs,
    remove,
    size_of,
    write_whole,
)
from wheelfarm.build.seat_floor import is_shared_link, link
from wheelfarm.build.seat_paths import Paths, plain_name, shard_of
from wheelfarm.build.seat_probe import is_probe
from wheelfarm.build.seat_record import Record
from wheelfarm.build.seat_run import Finished, cache_result, read_counters, run_program, wait_for

# The typing module is slow to import, and only a type checker needs it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Set for every program that the seat starts: a seat inside a compiler stands aside.
INSIDE = "WHEELFARM_SEAT_INSIDE"
_LINKS = ("link", "compile and link in one call")


class Seat:
    """One call: the configuration of the build, the tool that was asked for, and its words."""

    def __init__(self, config: dict[str, Any], tool: str, words: list[str]) -> None:
        self.config = config
        self.tool = tool
        self.role: str = config["tools"][tool]["role"]
        self.real: str = config["tools"][tool]["path"]
        self.words = words
        self.here = os.getcwd()
        self.mode: str = config["mode"]
        self.paths = Paths(config["root"], config["links"], config["folders"], config["temporary"])
        self.record = Record(self.role, tool, words, self.here)

    def answer(self) -> int:
        """Carry out the call and return its exit status."""
        command = parse(self.role, self.with_environment_flags())
        reason = self.not_a_unit(command)
        if reason:
            return self.really(command, reason)
        if command.output and len(command.sources) > 1:
            return self.really(command, "one output for several sources")
        for source in command.sources:
            status = self.unit(command, source)
            if status != 0:
                return status
        return 0

    def with_environment_flags(self) -> list[str]:
        """Return the words with NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS in their places."""
        if self.role != "nvcc":
            return self.words
        before = split(os.environ.get("NVCC_PREPEND_FLAGS", ""))
        after = split(os.environ.get("NVCC_APPEND_FLAGS", ""))
        return [*before, *self.words, *after]

    def not_a_unit(self, command: Command) -> str:
        """Return why a call is always carried out for real, empty for a compile of units."""
        sources = command.sources
        reasons = (
            (command.query, "query"),
            (is_probe(command, self.here), "probe"),
            (command.no_object, "no object"),
            (not command.compiles and not sources, _LINKS[0]),
            (not command.compiles, _LINKS[1]),
            (not sources, "nothing to compile"),
            (all(language_of(source).startswith("assembler") for source in sources), "assembly"),
        )
        return next((reason for holds, reason in reasons if holds), "")

    def unit(self, command: Command, source: str) -> int:
        """Compile one unit, or stand in for it."""
        stem = os.path.splitext(os.path.basename(source))[0]
        output = command.output or f"{stem}.o"
        record = self.record = Record(self.role, self.tool, self.words, self.here)
        record.unit = self.paths.unit(source, self.here)
        record.output = self.paths.unit(output, self.here)
        record.kind = dict(command.inputs)[source]
        record.size = size_of(source)
        if self.is_ours():
            return self.compile(command, source, output)
        return self.stand_in(command, source, output)

    def is_ours(self) -> bool:
        """Return whether this job compiles the unit of the record."""
        if self.mode == "census":
            return False
        if self.mode != "shard":
            return True
        units: dict[str, int] = self.config["units"]
        shard = units.get(f"{self.record.unit} => {self.record.output}")
        if shard is None:
            shard = units.get(self.record.unit)
        if shard is None:
            self.record.planned = False
            shard = shard_of(self.record.unit, self.config["shards"])
        return shard in {0, self.config["shard"]}

    def stand_in(self, command: Command, source: str, output: str) -> int:
        """Write the empty object and, where one is asked for, a depfile."""
        self.record.action = "stub"
        if not os.path.exists(source):
            sys.stderr.write(f"{self.tool}: {source}: no such file\n")
            return self.record.write(self.config["log"], 1)
        write_whole(output, self.config["stub"])
        if command.dependencies:
            targets = " ".join(command.targets) or output
            write_whole(depfile_of(command, output), f"{targets}: {source}\n".encode())
        self.remember(output)
        return self.record.write(self.config["log"], 0)

    def remember(self, output: str) -> None:
        """Keep the call, so that a link of an executable can ask for the real object."""
        call = (self.tool, self.words, self.here, output)
        write_whole(self.remembered(output), marshal.dumps(call))

    def remembered(self, output: str) -> str:
        """Return the file that keeps the call which an empty object stands for."""
        name = os.path.join(self.here, output).replace("/", "%")
        return f"{self.config['folder']}/stubbed/{name[-200:]}"

    def compile(self, command: Command, source: str, output: str) -> int:
        """Compile a unit through the cache, and directly where the cache cannot."""
        self.record.action = "compile"
        own = f"{self.config['folder']}/work/{os.getpid()}-{os.path.basename(output)}"
        words = self.safe_words(command, source, output, f"{own}.d")
        # The depfile's name alone differs from run to run.
        self.record.safe = words[:-1]
        environment = self.environment()
        if command.threads:
            # Not in argv: the number of threads would be part of the cache's key.
            environment["NVCC_APPEND_FLAGS"] = f"--threads {command.threads}"
        finished = self.compiled(command, words, environment, own)
        if finished.killed:
            self.record.alone = True
            finished = self.compiled(command, words, environment, own)
        self.record.keep(finished.seconds, finished.peak)
        sys.stdout.buffer.write(finished.out)
        sys.stderr.buffer.write(finished.err)
        if finished.killed:
            sys.stderr.write(self.memory_message(finished.peak))
        if finished.status == 0:
            self.deliver_dependencies(command, output, f"{own}.d")
        else:
            remove(f"{own}.d")
        return self.record.write(self.config["log"], finished.status)

    def compiled(
        self, command: Command, words: list[str], environment: dict[str, str], own: str
    ) -> Finished:
        """Return how the compile ended: through the cache, or without it where that must be."""
        finished = self.through_cache(command, words, environment, own)
        return finished or self.gated([self.compiler(), *words], environment, own)

    def memory_message(self, peak: int) -> str:
        """Return what is said of a unit that was killed twice, the second time alone."""
        return (
            f"seat: {self.record.unit} was killed, also when it ran alone; its compilers "
            f"held {peak / 1024 / 1024:.1f} GiB. It needs a machine with more memory, fewer "
            "nvcc threads or fewer architectures.\n"
        )

    def safe_words(self, command: Command, source: str, output: str, depfile: str) -> list[str]:
        """Return the one form of a compile that the cache may see."""
        options = list(command.options)
        for position in command.paths:
            options[position] = self.paths.stable(options[position], self.here)
        language = dict(command.inputs)[source]
        words = ["-ccbin", self.config["host"]] if self.role == "nvcc" else []
        words += options
        if self.role == "nvcc" and self.config["names_source"]:
            # Symbols without linkage get a hash of the source's absolute path in their names.
            words += ["-Xcudafe", f"--orig_src_path_name=/{plain_name(self.record.unit)}"]
        if language and language != language_of(source):
            words += ["-x", language]
        depfile = os.path.relpath(depfile, self.here)
        source = self.paths.stable_source(source, self.here)
        output = self.paths.stable(output, self.here)
        return [*words, "-c", source, "-o", output, "-MD", "-MF", depfile]

    def compiler(self) -> str:
        """Return the real compiler, as a path that is alike on all machines where it can be."""
        return self.paths.stable(self.real, self.here) if self.role == "nvcc" else self.real

    def environment(self) -> dict[str, str]:
        """Return the environment of what the seat starts: no seat, and no settings of a cache."""
        seat = self.config["bin"]
        result = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CCACHE_", "SCCACHE_", "NVCC_"))
        }
        folders = [part for part in result.get("PATH", "").split(":") if part != seat]
        result["PATH"] = ":".join(folders)
        result["LC_ALL"] = "C"
        result[INSIDE] = "1"
        return result

    def through_cache(
        self, command: Command, words: list[str], environment: dict[str, str], own: str
    ) -> Finished | None:
        """Return how the cache's run ended, None where the compiler must run without it."""
        cache = self.config["cache"]
        self.record.cache = "none"
        if not cache:
            return None
        if command.bypass:
            self.record.cache, self.record.reason = "bypass", command.bypass
            return None
        statistics = f"{own}.stats"
        environment = {**environment, **cache["environment"], "CCACHE_STATSLOG": statistics}
        finished = self.gated([cache["program"], self.compiler(), *words], environment, own)
        counters = read_counters(statistics)
        self.record.cache, self.record.reason = cache_result(cache["kind"], counters)
        if finished.status == 0 or "compile_failed" in counters or finished.killed:
            return finished
        said = finished.err.decode(errors="replace").strip() or f"exit status {finished.status}"
        self.record.cache, self.record.reason = "bypass", f"cache error: {said[-400:]}"
        return None

    def gated(self, words: list[str], environment: dict[str, str], own: str) -> Finished:
        """Run a compiler beside the others; one that was killed, alone once they have ended."""
        alone = self.record.alone
        folder = self.config["folder"]
        with open(f"{folder}/gate.lock", "ab") as gate, open(f"{folder}/run.lock", "ab") as lock:
            fcntl.flock(gate, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            if not alone:
                fcntl.flock(gate, fcntl.LOCK_UN)
            return run_program(words, environment, own)

    def deliver_dependencies(self, command: Command, output: str, depfile: str) -> None:
        """Write the caller's depfile from the compiler's, and keep that one for comparisons."""
        try:
            with open(depfile, encoding="utf-8", errors="surrogateescape") as stream:
                text = stream.read()
        except OSError:
            return
        inputs = read_inputs(text)
        if command.dependencies:
            targets = " ".join(command.targets) or output
            names = [escaped(self.paths.original(name)) for name in inputs]
            lines = f"{targets}: " + " \\\n  ".join(names) + "\n"
            if command.phony:
                lines += "".join(f"\n{name}:\n" for name in names[1:])
            write_whole(depfile_of(command, output), lines.encode(errors="surrogateescape"))
        kept = f"{self.config['folder']}/inputs/{os.path.basename(depfile)}"
        write_whole(kept, "\n".join(inputs).encode(errors="surrogateescape"))
        self.record.inputs = kept
        remove(depfile)

    def really(self, command: Command, reason: str) -> int:
        """Run the compiler as it was called; only the way to the seat is taken from the call."""
        record = self.record
        record.action, record.reason = "real", reason
        linking = not command.compiles and not command.query and not command.no_object
        stubs = [name for name in command.objects if self.is_stub(name)] if linking else []
        words = self.without_seat()
        if stubs and self.mode in {"plain", "link"}:
            record.reason = "an empty object at the link"
            sys.stderr.write(f"seat: {stubs[0]} is a shard's empty object; it cannot be linked\n")
            return record.write(self.config["log"], 1)
        if linking and not command.library and self.mode in {"census", "shard"}:
            status = self.make_program_real(stubs, command.objects)
            if status != 0:
                return status
        elif stubs:
            ignore = "-Wl,--unresolved-symbols=ignore-all"
            words += ["-Xlinker", ignore[4:]] if self.role == "nvcc" else [ignore]
        if reason in {"query", "probe"} and not stubs:
            record.write(self.config["log"], 0)
            os.execve(self.real, [self.real, *words], self.environment_of_call())
        if self.config["floor"] and reason in _LINKS and is_shared_link(command) and not stubs:
            status, seconds, peak = link(self, command, words)
        else:
            status, seconds, peak = wait_for([self.real, *words], self.environment_of_call())
        record.keep(seconds, peak)
        return record.write(self.config["log"], status)

    def environment_of_call(self) -> dict[str, str]:
        """Return the environment of a call that is not a unit: NVCC_*_FLAGS stay where they are."""
        kept = {name: os.environ[name] for name in _NVCC_FLAGS if name in os.environ}
        return {**self.environment(), **kept}

    def without_seat(self) -> list[str]:
        """Return the caller's words; a ``-ccbin`` that is the seat becomes the real compiler."""
        if self.role != "nvcc":
            return list(self.words)
        words: list[str] = []
        previous = ""
        for word in self.words:
            name, equals, value = word.partition("=")
            if name in _HOST_COMPILER and equals:
                words.append(f"{name}={self.host_of(value)}")
            else:
                words.append(self.host_of(word) if previous in _HOST_COMPILER else word)
            previous = word
        return words

    def host_of(self, path: str) -> str:
        """Return the compiler behind a path, which may be the seat's."""
        seat = self.config["bin"]
        found = path if "/" in path else f"{seat}/{path}"
        tool = self.config["tools"].get(os.path.basename(found))
        return tool["path"] if tool and os.path.dirname(found) == seat else path

    def is_stub(self, path: str) -> bool:
        """Return whether a file is the empty object."""
        return holds_exactly(path, self.config["stub"])

    def make_program_real(self, stubs: list[str], inputs: list[str]) -> int:
        """Make the empty objects of a program's link real, those in static libraries too."""
        for name in stubs:
            status = self.make_real(self.remembered(name))
            if status != 0:
                return status
        for archive in inputs:
            if archive.endswith(".a"):
                status = self.make_archive_real(archive)
                if status != 0:
                    return status
        return 0

    def make_archive_real(self, archive: str) -> int:
        """Replace the empty objects in a static library by real ones."""
        content = content_of(archive)
        if self.config["stub"] not in content:
            return 0
        folder = f"{self.config['folder']}/stubbed"
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", "rb") as stream:
                _, _, here, output = marshal.load(stream)
            path = os.path.join(here, output)
            if f"{os.path.basename(path)}/".encode() in content and self.is_stub(path):
                status = self.make_real(f"{folder}/{name}")
                if status == 0:
                    status = wait_for(["ar", "r", archive, path], self.environment())[0]
                if status != 0:
                    return status
        return 0

    def make_real(self, remembered: str) -> int:
        """Compile what an empty object stands for, since the build runs what is linked from it."""
        with open(remembered, "rb") as stream:
            tool, words, here, _ = marshal.load(stream)
        os.chdir(here)
        try:
            other = Seat({**self.config, "mode": "executable"}, tool, words)
            return other.answer()
        finally:
            os.chdir(self.here)


_HOST_COMPILER = ("-ccbin", "--compiler-bindir")
_NVCC_FLAGS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


def main(arguments: list[str]) -> int:
    """Run one call; ``arguments`` are the configuration, the tool's name and the call's words."""
    with open(arguments[0], "rb") as stream:
        config = marshal.load(stream)
    tool = arguments[1]
    if os.environ.get(INSIDE):
        real = config["tools"][tool]["path"]
        os.execv(real, [real, *arguments[2:]])
    return Seat(config, tool, arguments[2:]).answer()
