# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed of the schedule, and of naming what failing pairs have in common: build/venv/bin/python
tests/benchmarks/schedule.py [--hosts 1000]

Each figure is a ratio against a baseline of the same run: the pairs of one rail, each put into the first round where
both ends are free.
"""

from __future__ import annotations

import itertools
import pathlib
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.suspects import (
    Trial,
    find_suspects,
    make_trial,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.pings import Endpoint, plan
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import Place
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

HOSTS, SMALLEST = 1_000, 128
RAILS = 8
#: default of roles/reachability
SOME_ROUNDS = 31
REPEATS = 3


def greedy(hosts: int) -> dict[int, list[tuple[int, int]]]:
    """Rounds of disjoint pairs without the circle method; the rounds that an end still has free are bits of a
    number."""
    free = [(1 << 2 * hosts) - 1] * hosts
    made: dict[int, list[tuple[int, int]]] = {}
    for one, other in itertools.combinations(range(hosts), 2):
        both = free[one] & free[other]
        first = both & -both
        free[one] ^= first
        free[other] ^= first
        made.setdefault(first.bit_length() - 1, []).append((one, other))
    return made


def all_trials(hosts: int) -> list[Trial]:
    """What the default rounds measure when a leaf is dead."""
    places = [
        [Place(f"host-{host}", f"mlx5_{rail}", rail, f"leaf-{rail}-{host // 32}", host % 32) for host in range(hosts)]
        for rail in range(RAILS)
    ]
    step = hosts // SOME_ROUNDS
    pairs = (
        (rail[host], rail[(host + step * part) % hosts])
        for rail in places
        for host in range(hosts)
        for part in range(1, SOME_ROUNDS + 1)
    )
    return [
        make_trial("compute", client, server, "leaf-3-3" not in (client.leaf, server.leaf)) for client, server in pairs
    ]


def seconds(work: typing.Callable[[], typing.Any]) -> float:
    """Processor time of the fastest of some repeats, in seconds."""
    times = []
    for _repeat in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--hosts", type=int, default=HOSTS, help="128 or more: 'leaf-3-3' must be there")
    options = made.parse_args(arguments)
    hosts = SMALLEST if options.smallest else options.hosts
    rails = [
        {f"host-{host}": Endpoint(f"mlx5_{rail}", 1, 1 + host * RAILS + rail) for host in range(hosts)}
        for rail in range(RAILS)
    ]
    baseline, size = seconds(lambda: greedy(hosts)), f"{hosts} hosts, {RAILS} rails"

    def result(what: str, taken: float, note: str = "") -> Result:
        return Result(what, size, taken, "processor s", taken / baseline, "first free round, one rail", note)

    results = [result("first free round, one rail", baseline, f"{len(greedy(hosts))} rounds")]
    results.append(result(f"plan of {SOME_ROUNDS} rounds", seconds(lambda: plan(rails, SOME_ROUNDS))))
    results.append(result(f"plan of all {hosts - 1} rounds", seconds(lambda: plan(rails, None))))
    trials = all_trials(hosts)
    taken = seconds(lambda: find_suspects(trials))
    (found,) = find_suspects(trials)
    results.append(
        result(
            "name the suspect",
            taken,
            f"{found.elements[0].name} from {len(trials)} trials, of which {found.failed} failed",
        )
    )
    return show(results, options.json)


if __name__ == "__main__":
    main()
