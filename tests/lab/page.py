# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/faults.md, made from the scenarios: ``python -m tests.lab.page > docs/faults.md``."""

from __future__ import annotations

from .olm_scenarios import OLM_SCENARIOS
from .scenarios import NO_ROOM, NOT_INJECTED, SCENARIOS, Scenario

HEAD = """# Faults and their findings

What can be wrong, the finding that names it, and what helps. Each row of the first table is a test: the fault is
injected for real into the lab, the playbook is run as a user would, and the finding's id, subject, status and words are
asserted, then the fault is taken back. `make faults` runs them all, `make test` one of each kind, and `make openshift`
those of OLM. This page is made from those tests (`python -m tests.lab.page > docs/faults.md`) and a test holds the two
together. `*` stands for any text.

## Injected in the lab

| fault | how it is injected | playbook | finding | it says | remedy |
|---|---|---|---|---|---|
"""

OTHER = """
## Proven elsewhere

What cannot be injected in the lab, or needs no playbook to be injected; the finding is proven by the test named here.

| fault | why not above | finding | test |
|---|---|---|---|
"""


def page() -> str:
    rows = [
        _row(scenario, index) for scenario in (*SCENARIOS, *OLM_SCENARIOS) for index in range(len(scenario.expected))
    ]
    others = [_line(other.fault, other.why, f"`{other.finding}`", f"`{other.test}`") for other in NOT_INJECTED]
    return HEAD + "".join(rows) + OTHER + "".join(others)


def _row(scenario: Scenario, index: int) -> str:
    expected = scenario.expected[index]
    finding = f"`{expected.check}` on `{expected.subject}`: {expected.status}"
    says = "; ".join(f'"{text}"' for text in expected.says)
    return _line(expected.fault, how(scenario, index), f"`{scenario.playbook}`", finding, says, expected.remedy)


def how(scenario: Scenario, index: int) -> str:
    """Several faults on different subjects have a finding each, in the same order; else all that is injected makes the
    one finding. A finding that no injection of its own makes has the words of the scenario."""
    if scenario.expected[index].how:
        return scenario.expected[index].how
    made = scenario.injections
    if len(scenario.expected) > 1:
        # what all of them need comes first
        made = made[len(NO_ROOM) :] if made[: len(NO_ROOM)] == NO_ROOM else made
        made = made[index : index + 1]
    ways = [
        f"`{' '.join(['lab/fault', item.name, 'on', *item.words])}`" + (" while it runs" if item.after else "")
        for item in made
    ]
    return ", ".join([*ways, *filter(None, [scenario.how])])


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    print(page(), end="")
