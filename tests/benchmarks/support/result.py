# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every benchmark answers, and how it is shown. A figure says nothing alone: each has a baseline or a peer of the
same run.

A benchmark is a file of this folder with ``main(arguments) -> results``. ``--smallest`` needs no lab, no cluster and a
few seconds, for the tests.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import typing

Arguments = typing.Optional[typing.Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Result:
    """One figure.

    :ivar what: was measured
    :ivar size: of the work, in words
    :ivar value: in ``unit``
    :ivar ratio: of the value to that of ``baseline``; 1 for a baseline itself
    :ivar baseline: what it is compared with, measured in the same run
    """

    what: str
    size: str
    value: float
    unit: str
    ratio: float
    baseline: str
    note: str = ""


Results = tuple[Result, ...]


def parser(description: typing.Optional[str]) -> argparse.ArgumentParser:
    """With the options that all benchmarks have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument(
        "--smallest",
        action="store_true",
        help="the smallest size, without a lab or a cluster: shows that the benchmark works, not how fast",
    )
    made.add_argument("--json", action="store_true", help="print the results as JSON")
    return made


def show(results: typing.Iterable[Result], as_json: bool = False) -> Results:
    """Print the results as a table, or as JSON."""
    shown = tuple(results)
    if as_json:
        print(json.dumps([dataclasses.asdict(result) for result in shown]))
        return shown
    rows = [("what", "size", "value", "", "ratio", "to", "")]
    rows += [
        (item.what, item.size, f"{item.value:.4g}", item.unit, f"{item.ratio:.3g}", item.baseline, item.note)
        for item in shown
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip())
    return shown
