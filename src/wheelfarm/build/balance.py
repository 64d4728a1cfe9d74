"""Units' costs and a number of shards come in; who compiles what, and the least makespan, go out.

All sums are of whole milliseconds, so that a partition is the same on every machine.
"""

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

_MILLISECONDS = 1000
#: Rounds of exchanges; each lowers the fullest shard, and a few dozen are the rule.
_MOST_ROUNDS = 2000


def share_out(costs: Sequence[float], shards: int) -> list[int]:
    """Return the shard (from 0) of each cost (seconds): none is empty where there are enough.

    Largest first onto the least loaded shard (Graham's LPT rule), then units of the fullest shard
    move, or change places with another shard's, as long as that lowers the fuller of the two.
    """
    sizes = [round(cost * _MILLISECONDS) for cost in costs]
    holding: list[list[int]] = [[] for _ in range(shards)]
    # The number of units breaks ties, so that no shard stays empty where costs are nothing.
    heap = [(0, 0, shard) for shard in range(shards)]
    for index in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
        load, count, shard = heapq.heappop(heap)
        holding[shard].append(index)
        heapq.heappush(heap, (load + sizes[index], count + 1, shard))
    loads = [sum(sizes[index] for index in held) for held in holding]
    for _ in range(_MOST_ROUNDS):
        if not _relieve(sizes, holding, loads):
            break
    result = [0] * len(sizes)
    for shard, held in enumerate(holding):
        for index in held:
            result[index] = shard
    return result


def _relieve(sizes: Sequence[int], holding: list[list[int]], loads: list[int]) -> bool:
    """Make the exchange that relieves the fullest shard most; return whether there is one."""
    full = loads.index(max(loads))
    best = (loads[full], -1, -1, -1)
    for shard, held in enumerate(holding):
        if shard == full:
            continue
        gap = loads[full] - loads[shard]
        for given in holding[full]:
            # Without one that comes back (-1) the unit moves; a shard never gives its last one.
            taken = (-1, *held) if len(holding[full]) > 1 else held
            for back in taken:
                shift = sizes[given] - (sizes[back] if back >= 0 else 0)
                if 0 < shift < gap:
                    fuller = max(loads[full] - shift, loads[shard] + shift)
                    best = min(best, (fuller, shard, given, back))
    _, shard, given, back = best
    if shard < 0:
        return False
    shift = sizes[given] - (sizes[back] if back >= 0 else 0)
    holding[full].remove(given)
    holding[shard].append(given)
    if back >= 0:
        holding[shard].remove(back)
        holding[full].append(back)
    loads[full] -= shift
    loads[shard] += shift
    return True


def lower_bound(costs: Sequence[float], shards: int) -> float:
    """Return seconds that no partition can undercut.

    The largest unit and the even share are two such bounds; with few units for each shard they are
    far below what is possible, since units cannot be cut. So the bound is the least time in which
    the units might fit ``shards`` bins by Martello and Toth's bound L2 of bin packing
    ("Lower bounds and reduction procedures for the bin packing problem", 1990), or in which one
    shard must take ``k + 1`` of the ``k * shards + 1`` largest.
    """
    sizes = sorted(math.floor(cost * _MILLISECONDS) for cost in costs)
    plain = max(max(costs, default=0.0), sum(costs) / shards)
    low = max(math.ceil(sum(sizes) / shards), sizes[-1] if sizes else 0, _crowded(sizes, shards))
    high = max(2 * low, 1)
    sums = [0, *accumulate(sizes)]
    while low < high:
        middle = (low + high) // 2
        if _bins(sizes, sums, middle) <= shards:
            high = middle
        else:
            low = middle + 1
    return max(plain, low / _MILLISECONDS)


def _crowded(sizes: Sequence[int], shards: int) -> int:
    """Return the most that the pigeonhole principle puts onto one shard (ascending ``sizes``)."""
    largest = sizes[::-1]
    bounds = [0]
    for each in range(1, (len(sizes) - 1) // shards + 1):
        last = each * shards + 1
        bounds.append(sum(largest[last - each - 1 : last]))
    return max(bounds)


def _bins(sizes: Sequence[int], sums: Sequence[int], capacity: int) -> int:
    """Return the bins of ``capacity`` that are needed at least (``sizes`` ascending)."""
    count = len(sizes)
    halves = bisect_right(sizes, capacity // 2)
    least = 0
    for smallest in sorted({0, *sizes[:halves]}):
        # Those above capacity - smallest are alone; the other large ones have some room left.
        alone = max(halves, bisect_right(sizes, capacity - smallest))
        low = bisect_left(sizes, smallest)
        room = (alone - halves) * capacity - (sums[alone] - sums[halves])
        rest = sums[halves] - sums[low] - room
        more = -(-rest // capacity) if rest > 0 else 0
        least = max(least, count - halves + more)
    return least
