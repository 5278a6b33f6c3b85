# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed of the schedule, and of naming what failing pairs have in common: build/venv/bin/python tests/benchmarks/schedule.py

Each figure is a ratio against a baseline of the same run: the pairs of one rail, each put into the first round where both ends are free.
"""

from __future__ import annotations

import itertools
import pathlib
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.suspects import Trial, suspects, trial
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import Place
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.pings import Endpoint, plan

HOSTS = 1_000
RAILS = 8
#: default of roles/reachability
SOME_ROUNDS = 31
REPEATS = 3


def greedy(hosts: int) -> typing.Dict[int, typing.List[typing.Tuple[int, int]]]:
    """Rounds of disjoint pairs without the circle method; the rounds that an end still has free are bits of a number."""
    free = [(1 << 2 * hosts) - 1] * hosts
    made: typing.Dict[int, typing.List[typing.Tuple[int, int]]] = {}
    for one, other in itertools.combinations(range(hosts), 2):
        both = free[one] & free[other]
        first = both & -both
        free[one] ^= first
        free[other] ^= first
        made.setdefault(first.bit_length() - 1, []).append((one, other))
    return made


def all_trials() -> typing.List[Trial]:
    """What the default rounds measure when a leaf is dead."""
    places = [[Place(f"host-{host}", f"mlx5_{rail}", rail, f"leaf-{rail}-{host // 32}", host % 32) for host in range(HOSTS)] for rail in range(RAILS)]
    step = HOSTS // SOME_ROUNDS
    pairs = ((rail[host], rail[(host + step * part) % HOSTS]) for rail in places for host in range(HOSTS) for part in range(1, SOME_ROUNDS + 1))
    return [trial("compute", client, server, "leaf-3-3" not in (client.leaf, server.leaf)) for client, server in pairs]


def seconds(work: typing.Callable[[], typing.Any]) -> float:
    """Processor time of the fastest of some repeats, in seconds."""
    times = []
    for _repeat in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    rails = [{f"host-{host}": Endpoint(f"mlx5_{rail}", 1, 1 + host * RAILS + rail) for host in range(HOSTS)} for rail in range(RAILS)]
    baseline = seconds(lambda: greedy(HOSTS))
    print(f"baseline: first free round for the pairs of {HOSTS} hosts on one rail: {baseline:.2f} s, {len(greedy(HOSTS))} rounds")
    for name, most in ((f"{SOME_ROUNDS} rounds", SOME_ROUNDS), (f"all {HOSTS - 1} rounds", None)):
        taken = seconds(lambda most=most: plan(rails, most))
        print(f"plan of {HOSTS} hosts on {RAILS} rails, {name}: {taken:.2f} s (ratio {taken / baseline:.2f})")
    trials = all_trials()
    taken = seconds(lambda: suspects(trials))
    (found,) = suspects(trials)
    print(f"{found.elements[0].name} named from {len(trials)} trials, of which {found.failed} failed: {taken:.2f} s (ratio {taken / baseline:.2f})")


if __name__ == "__main__":
    main()
