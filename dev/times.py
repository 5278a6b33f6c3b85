# SPDX-License-Identifier: GPL-3.0-or-later

"""What each part of the tests took: a table at the end of a run, ``build/times.json``, and what it was before, in
docs/lab.md.

``python -m dev.times`` writes the last run into the table of docs/lab.md, which later runs are compared with. Nothing
fails by it: a machine has other work.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import typing

from .blocks import put_block, read_block
from .steps import BUILD, ROOT, StepError, guarded, say

FILE = BUILD / "times.json"
PAGE = ROOT / "docs" / "lab.md"
#: of builds: on a machine that has none of them yet, and on one that has all
NEW, FILLED = "new", "filled"
#: the part that tells; the name of another part that builds begins with it
BUILDS = "lab build"
_STATES = (NEW, FILLED)
_HEAD = (
    "| part | new machine: s | of a processor: s | builds cached: s | of a processor: s |\n|---|---:|---:|---:|---:|\n"
)
#: what grew less is the machine's mood
_GREW, _GREW_SECONDS = 1.2, 10.0


@dataclasses.dataclass(frozen=True)
class Time:
    """What a part took.

    :ivar wall: seconds
    :ivar processor: seconds of it and of all that it has waited for; what goes on without it, as guests do, is not in
        them
    :ivar cached: whether all that it builds was there; nothing where it builds nothing or does not say
    """

    part: str
    wall: float
    processor: float
    cached: typing.Optional[bool] = None
    failed: bool = False


#: seconds, and seconds of a processor where they are known
Before = tuple[float, typing.Optional[float]]
#: state, part
Known = dict[str, dict[str, Before]]


def state_of(times: typing.Iterable[Time]) -> str:
    """Whether the machine had the builds of the lab; those on demand say nothing of the others."""
    return NEW if any(time.part == BUILDS and time.cached is False for time in times) else FILLED


def show(times: typing.Sequence[Time], known: Known) -> list[str]:
    """Lines of a table: each part, what it took before, and what grew."""
    before = known.get(state_of(times), {})
    width = max(len("part"), *(len(time.part) for time in times)) if times else len("part")
    lines = [f"{'part':{width}}  {'s':>6}  {'processor s':>11}  {'builds':>6}  {'before':>6}"]
    for time in times:
        cached = {None: "-", True: "cached", False: "made"}[time.cached]
        seconds, _processor = before.get(time.part, (None, None))
        then = "-" if seconds is None else f"{seconds:.0f}"
        line = f"{time.part:{width}}  {time.wall:6.0f}  {time.processor:11.0f}  {cached:>6}  {then:>6}"
        if time.failed:
            line += "  FAILED"
        elif seconds is not None and time.wall > max(seconds * _GREW, seconds + _GREW_SECONDS):
            line += f"  {time.wall - seconds:.0f} s more"
        lines.append(line)
    return lines


def keep(size: str, times: typing.Sequence[Time], total: float, path: pathlib.Path = FILE) -> None:
    """Write a run down.

    :param total: its seconds
    """
    parts = [dataclasses.asdict(time) for time in times]
    data = {
        "size": size,
        "processors": os.cpu_count(),
        "state": state_of(times),
        "seconds": round(total, 1),
        "parts": parts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def read_page(page: str) -> Known:
    """What the table of docs/lab.md says.

    :raises StepError: the page has no such table, or a row of it can't be read
    """
    known: Known = {state: {} for state in _STATES}
    for line in read_block(page, "dev.times", PAGE).splitlines()[2:]:
        part, *figures = (cell.strip() for cell in line.strip("|").split("|"))
        try:
            new, new_processor, filled, filled_processor = (
                None if figure == "-" else float(figure) for figure in figures
            )
        except ValueError as error:
            raise StepError(
                f"{PAGE.name} has a row of times that is none: {line}",
                "Take it away, or give the command: python -m dev.times",
            ) from error
        for state, wall, processor in ((NEW, new, new_processor), (FILLED, filled, filled_processor)):
            if wall is not None:
                known[state][part] = (wall, processor)
    return known


def put_times(page: str, times: typing.Sequence[Time], names: typing.Iterable[str]) -> str:
    """The text of docs/lab.md with these times; what they don't tell of stays.

    :param names: of all parts, in their order; rows of others go
    :raises StepError: the page has no table; nothing was measured
    """
    measured = {time.part: (time.wall, time.processor) for time in times if not time.failed}
    if not measured:
        raise StepError(f"{FILE.name} has no part that went well", "Give the command once 'make test' is green.")
    known = read_page(page)
    known[state_of(times)].update(measured)
    rows = []
    for name in names:
        figures = [figure for state in _STATES for figure in known[state].get(name, (None, None))]
        if any(figure is not None for figure in figures):
            rows.append(
                f"| {name} | {' | '.join('-' if figure is None else f'{figure:.0f}' for figure in figures)} |\n"
            )
    return put_block(page, "dev.times", PAGE, _HEAD + "".join(rows))


def main() -> None:
    from .parts import PARTS

    if not FILE.exists():
        raise StepError(
            f"{FILE.relative_to(ROOT)} is not there: no run has ended here", "Give the command after 'make test'."
        )
    times = [Time(**part) for part in json.loads(FILE.read_text(encoding="utf-8"))["parts"]]
    PAGE.write_text(put_times(PAGE.read_text(encoding="utf-8"), times, [part.name for part in PARTS]), encoding="utf-8")
    say(f"{PAGE.relative_to(ROOT)}: {len(times)} parts, builds: {state_of(times)}")


if __name__ == "__main__":
    guarded(main)
