"""Properties of the choice: order never matters, and one wheel more never makes it worse."""

import contextlib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from tests.resolve.shelf import Shelf, candidate, host, names
from wheelfarm.errors import BadInputError
from wheelfarm.model.arch import Arch
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.choose import parse_wanted
from wheelfarm.resolve.coverage import module_covers
from wheelfarm.resolve.host import Gpu, Host
from wheelfarm.resolve.pages import html_page
from wheelfarm.resolve.ranking import rank
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.resolve.rules import failures, refused_by_version
from wheelfarm.values import replace

ARCHS = ["6.1", "8.0", "8.6", "9.0", "9.0a", "12.0"]
HOSTS = [
    host(gpu="8.6", driver="580.65"),
    host(gpu="9.0,8.0", driver="570.26"),
    host(torch="2.13.0+cu130"),
    host(torch="none", gpu="8.6", driver="580.65"),
    host(torch="none"),
    host(python_version="3.13t"),
]


@st.composite
def wheels(draw: st.DrawFn) -> Candidate:
    package = draw(st.sampled_from("ab"))
    version = draw(st.sampled_from(["1.0", "1.2", "1.10", "2.0rc1"]))
    label = draw(st.sampled_from(["cu128torch2.8", "cu130torch2.13", "cu130torch2.14"]))
    tags = draw(st.sampled_from(["cp311-cp311", "cp310-abi3", "cp313-cp313t", "py3-none"]))
    platform = draw(st.sampled_from(["manylinux_2_28_x86_64", "linux_x86_64", "win_amd64"]))
    build = draw(st.sampled_from(["", "1-", "2-"]))
    modules = [
        {"path": f"m{index}.so", "sass": archs, "ptx": archs[-1:]}
        for index, archs in enumerate(
            draw(st.lists(st.lists(st.sampled_from(ARCHS), min_size=1, unique=True), max_size=2))
        )
    ]
    needs = draw(st.sampled_from([[], ["torch"], ["b"] if package == "a" else []]))
    return candidate(
        f"{package}-{version}+{label}-{build}{tags}-{platform}.whl",
        modules=modules,
        requires_dist=needs,
        torch_axis=draw(st.sampled_from(["linked", "free"])),
        yanked=draw(st.sampled_from([None, None, "x"])),
    )


shelves = st.lists(wheels(), max_size=8, unique_by=lambda each: str(each.entry.name))


def answer(candidates: list[Candidate], machine: Host, *packages: str) -> Resolution:
    return Shelf(candidates).resolve(machine, *packages)


@settings(max_examples=60, deadline=None)
@given(shelves, st.sampled_from(HOSTS), st.randoms())
def test_the_order_of_pages_never_changes_the_answer(
    candidates: list[Candidate], machine: Host, random: object
) -> None:
    first = answer(candidates, machine, "a", "b")
    shuffled = list(candidates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    second = answer(shuffled, machine, "b", "a")
    assert names(first) == names(second)
    assert first.answer.ok == second.answer.ok


@settings(max_examples=60, deadline=None)
@given(shelves, wheels(), st.sampled_from(HOSTS))
def test_one_wheel_more_never_makes_the_answer_worse(
    candidates: list[Candidate], more: Candidate, machine: Host
) -> None:
    before = answer(candidates, machine, "a")
    if more.package != "a" or any(each.entry.name == more.entry.name for each in candidates):
        return
    after = answer([*candidates, more], machine, "a")
    if not before.answer.ok:
        return
    assert after.answer.ok
    old, new = before.answer.target, after.answer.target
    if (old.torch, old.accelerator) != (new.torch, new.accelerator):
        assert new.torch is not None
        assert old.torch is not None
        assert new.torch >= old.torch
        return
    ranks = [
        rank(each.candidate, found.answer.target)
        for found in (before, after)
        for each in found.choices
        if each.candidate.package == "a"
    ]
    assert ranks[0] <= ranks[1]


@settings(max_examples=50, deadline=None)
@given(shelves, st.sampled_from(HOSTS))
def test_a_chosen_wheel_has_code_for_every_gpu(candidates: list[Candidate], machine: Host) -> None:
    for choice in answer(candidates, machine, "a").choices:
        for gpu in machine.capabilities:
            for module in choice.candidate.entry.modules or ():
                driver = machine.driver_cuda.value
                assert module_covers(module, gpu, None, driver)


@settings(max_examples=100, deadline=None)
@given(
    wheels(),
    st.sampled_from(["linked", "free", "stable_abi", "abi_flag", None]),
    st.sampled_from(["a", "a>1.0", "a<2", "a==1.10"]),
    st.sampled_from(HOSTS),
)
def test_what_a_version_alone_refuses_no_rule_would_accept(
    wheel: Candidate, axis: TorchAxis | None, wish: str, machine: Host
) -> None:
    wheel = replace(wheel, torch_axis=axis)
    target = answer([], machine, "a").answer.target
    text = wheel.serves.version_text
    if refused_by_version(text, axis, parse_wanted(wish), target):
        assert list(failures(wheel, parse_wanted(wish), target))


def test_ranks_of_different_files_differ() -> None:
    target = answer([], host(), "a").answer.target
    one = candidate("x-1.0+cu130torch2.14-cp311-cp311-linux_x86_64.whl")
    two = candidate("x-1.0+cu130torch2.14-cp310-abi3-linux_x86_64.whl")
    assert rank(one, target) != rank(two, target)


@given(st.text(max_size=200))
def test_any_page_is_read_without_a_traceback(text: str) -> None:
    html_page("x", f"<a href='{text}'>{text}</a>{text}", "https://wheels.invalid/x/", HOSTS[0])


@given(st.text(max_size=60))
def test_any_wish_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadInputError):
        parse_wanted(text)


def test_every_name_in_the_wild_is_read_printed_back_and_judged(shared_reference: Path) -> None:
    lines = (shared_reference / "wheel_names.txt").read_text(encoding="utf-8").split()
    assert len(lines) >= 1500
    shelf = Shelf(tells=False)
    for line in lines:
        assert str(WheelName.parse(line)) == line
        shelf.candidates.append(candidate(line, proven=False))
    packages = {each.package for each in shelf.candidates}
    served = 0
    for machine in HOSTS[:3]:
        for package in sorted(packages):
            found = shelf.resolve(machine, package)
            served += found.answer.ok
            for choice in found.choices:
                chosen = choice.candidate
                torch = machine.torch.value
                assert chosen.label.torch is None or torch is not None
                if chosen.label.torch is not None and torch is not None:
                    assert Version(str(chosen.label.torch)) == Version(
                        f"{torch.major}.{torch.minor}"
                    )
    assert served > 0


def test_a_gpu_prints_itself() -> None:
    assert str(Gpu(index=1, capability=Arch(8, 6))) == "GPU 1 (8.6)"
