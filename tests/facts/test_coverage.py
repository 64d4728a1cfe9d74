"""Which GPUs a wheel runs on: NVIDIA's rules, and every module counts."""

from typing import Literal

import pytest

from wheelfarm.facts.coverage import runs_on, wheel_runs_on
from wheelfarm.facts.model import BinaryFacts, DeviceCode
from wheelfarm.model.arch import Arch


def entry(kind: Literal["sass", "ptx"], text: str) -> DeviceCode:
    return DeviceCode(kind=kind, arch=Arch.parse(text), compressed=False)


def module(sass: str = "", ptx: str = "", *, path: str = "m.so") -> BinaryFacts:
    code = [
        DeviceCode(kind="sass", arch=Arch.parse(text), compressed=False) for text in sass.split()
    ]
    code += [
        DeviceCode(kind="ptx", arch=Arch.parse(text), compressed=False) for text in ptx.split()
    ]
    return BinaryFacts(path=path, kind="elf", machine="x86_64", size=1, device_code=tuple(code))


CASES = [
    ("8.0", "", "8.0", "machine code"),
    ("8.0", "", "8.6", "machine code"),
    ("8.0", "", "8.9", "machine code"),
    ("8.0", "", "9.0", None),
    ("8.6", "", "8.0", None),
    ("8.0", "8.0", "12.0", "PTX"),
    ("9.0a", "", "9.0", "machine code"),
    ("10.0a", "", "10.3", None),
    ("10.0f", "", "10.3", "machine code"),
    ("10.0f", "", "12.0", None),
    ("", "10.0f", "12.0", None),
    ("", "9.0a", "10.0", None),
    ("8.0", "", "8.7", None),
    ("8.7", "", "8.7", "machine code"),
    ("8.7", "", "8.9", None),
]


@pytest.mark.parametrize(("sass", "ptx", "gpu", "how"), CASES)
def test_a_module_runs_by_the_rules(sass: str, ptx: str, gpu: str, how: str | None) -> None:
    assert runs_on(module(sass, ptx), Arch.parse(gpu)) == how


def test_every_module_counts() -> None:
    both = [module("8.0 9.0"), module("8.0", "8.0", path="n.so")]
    assert wheel_runs_on(both, Arch.parse("8.6")) == "machine code"
    assert wheel_runs_on(both, Arch.parse("9.0")) == "PTX"
    assert wheel_runs_on([module("9.0"), module("8.0")], Arch.parse("9.0")) is None
    assert wheel_runs_on([], Arch.parse("9.0")) is None
    assert wheel_runs_on([module("9.0"), module()], Arch.parse("9.0")) == "machine code"
