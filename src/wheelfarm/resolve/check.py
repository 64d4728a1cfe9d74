"""Whether a lock still holds: each of its wheels is offered, unchanged, and serves its host."""

from collections.abc import Sequence

from wheelfarm.resolve.choose import Answer
from wheelfarm.resolve.lock import LockedWheel, Profile, address
from wheelfarm.resolve.locked import Lock
from wheelfarm.resolve.rules import failures


def check(lock: Lock, profiles: Sequence[Profile]) -> list[str]:
    """Return what no longer holds, a line each; empty where everything does.

    ``profiles`` are answers to the lock's own question in which its wheels were preferred.
    """
    lines = []
    for profile in profiles:
        locked = lock.of_profile(profile.name)
        answer = profile.resolution.answer
        now = {choice.candidate.package: choice for choice in answer.choices}
        asked = {each.name for each in profile.resolution.wanted}
        where = f" ({profile.name})" if profile.name else ""
        for name, wheel in sorted(locked.items()):
            choice = now.get(name)
            if choice is None and answer.ok and name not in asked:
                if not wheel.ours:
                    continue
                lines.append(f"{name}{where}: nothing that is asked for needs it")
            elif choice is None or choice.candidate.entry.sha256 != wheel.sha256:
                lines.append(f"{name}{where}: {_why(wheel, profile, answer)}")
        lines += [
            f"{name}{where}: is needed now, and not in the lock"
            for name in sorted(set(now) - set(locked))
        ]
        lines += [
            f"{miss.wanted.name}{where}: no wheel serves {answer.target}"
            for miss in answer.misses
            if miss.wanted.name not in locked
        ]
    return lines


def _why(wheel: LockedWheel, profile: Profile, answer: Answer) -> str:
    pages = profile.resolution.pages
    page = None if pages is None else pages(wheel.name)
    if page is None:
        return "the index no longer has the package"
    name = wheel.url.rpartition("/")[2].replace("%2B", "+")
    same = [each for each in page.all_candidates() if str(each.name) == name]
    if not same:
        return f"{name} is no longer offered"
    if all(each.entry.sha256 not in {None, wheel.sha256} for each in same):
        return f"{name} has other bytes now ({same[0].entry.sha256})"
    wanted = next((each for each in profile.resolution.wanted if each.name == wheel.name), None)
    if wanted is not None:
        for failure in failures(same[0], wanted, answer.target):
            return f"{name} {failure.reason}"
    if "://" in wheel.url and address(same[0]) != wheel.url:
        return f"{name} stands at another address now ({address(same[0])})"
    return f"{name} fits no longer with the other packages"
