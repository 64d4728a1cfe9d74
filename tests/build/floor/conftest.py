"""A seat that links at a glibc floor, and a build root to link in."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from wheelfarm.build.calls import Call, read_calls
from wheelfarm.build.seat_setup import Seat, SeatSpec, prepare_seat
from wheelfarm.facts.elf import read_elf
from wheelfarm.facts.manylinux import lowest_true
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.libstdcxx import LibstdcxxChoice
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.floor.binutils import HostCompiler, host_compiler
from wheelfarm.toolkit.floor.prepare import Floor, prepare_floor

FLOOR = Minor(2, 28)
SYSTEM_PATH = "/usr/bin:/bin"

MakeFloor = Callable[[LibstdcxxChoice], Floor]


@dataclass
class Root:
    """A folder to build in; ``cxx`` and ``cc`` go through the seat."""

    path: Path
    floor: Floor
    toolkit: Path | None = None
    made: Seat | None = None

    @property
    def seat(self) -> Seat:
        if self.made is None:
            self.made = prepare_seat(
                SeatSpec(
                    root=self.path,
                    folder=self.path / "seat",
                    toolkit=self.toolkit,
                    path=SYSTEM_PATH,
                    floor=self.floor,
                )
            )
        return self.made

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.seat.bin}:{SYSTEM_PATH}"
        return {"HOME": str(self.path), **self.seat.environment, "PATH": path}

    def write(self, name: str, text: str) -> Path:
        (self.path / name).write_text(text)
        return self.path / name

    def run(self, *words: str | Path, check: bool = True) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [os.fspath(word) for word in words],
            cwd=self.path,
            env=self.environment,
            check=False,
            text=True,
            capture_output=True,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def library(self, source: str, *words: str, name: str = "made") -> BinaryFacts:
        """Compile C++ source and link it into a shared library, and read that."""
        self.write(f"{name}.cpp", source)
        self.run("g++", "-O2", "-fPIC", "-c", f"{name}.cpp", "-o", f"{name}.o")
        self.run("g++", "-shared", f"{name}.o", "-o", f"{name}.so", *words)
        return self.facts(f"{name}.so")

    def facts(self, name: str) -> BinaryFacts:
        return read_elf((self.path / name).read_bytes(), name)

    @property
    def calls(self) -> tuple[Call, ...]:
        return read_calls(self.seat.log)


def glibc_of(facts: BinaryFacts) -> Minor | None:
    """Return the lowest glibc whose systems have all that a library takes."""
    return lowest_true([facts])


@pytest.fixture(scope="session")
def compiler() -> HostCompiler:
    found = host_compiler(path=SYSTEM_PATH)
    if found.glibc <= FLOOR:
        pytest.skip(f"this machine's glibc {found.glibc} is no newer than the floor")
    return found


@pytest.fixture(scope="session")
def make_floor(compiler: HostCompiler, shared_folder: Path) -> MakeFloor:
    def make(choice: LibstdcxxChoice) -> Floor:
        cache = shared_folder / "floors"
        floor = prepare_floor(FLOOR, compiler, cache=cache, libstdcxx=choice)
        assert floor is not None
        return floor

    return make


@pytest.fixture
def root(tmp_path: Path, make_floor: MakeFloor) -> Root:
    return Root(tmp_path, make_floor("shared"))


@pytest.fixture
def static_root(tmp_path: Path, make_floor: MakeFloor) -> Root:
    return Root(tmp_path, make_floor("static"))
