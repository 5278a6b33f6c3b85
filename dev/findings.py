# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/findings: a page for each finding, made of its explanation and of the faults of the lab. ``python
-m dev.findings`` writes it."""

from __future__ import annotations

import pathlib
import re
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import BESIDE
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES, never_waived
from tests.lab import page as lab
from tests.lab.olm_scenarios import OLM_SCENARIOS
from tests.lab.scenarios import NOT_INJECTED, SCENARIOS

from .explained import EXPLAINED
from .explained.explanation import Explanation
from .steps import ROOT

FOLDER = ROOT / "docs" / "findings"
#: those of the frame, whatever the stage
FRAME = "stage"
_KINDS = {**{stage: f"Stage {stage}" for stage in STAGES}, "teardown": "The teardown", FRAME: "Any stage"}
_INDEX = """# Findings

What each finding of a report means, what it looks at, its causes with the likeliest first, commands to look by hand,
and what to do. The report leads from each finding to its page. The pages are made of `dev/explained` (`python -m
dev.findings`), and a test compares them with the checks.

In commands, what is in capitals is yours to put in: `NODE` as `kubectl get nodes` names it, `ADDRESS` the PCI address
of a function (`0000:3c:00.0`), `DEVICE` a network interface, `LID` and `PORT` of a port on InfiniBand, `NAMESPACE`,
`POD` and `NAME` of objects, `IMAGE`, `MIRROR` and `FILE`. `mlx5_0` stands for any HCA. Commands on InfiniBand and on
PCI want root, on the node.
"""


def pages() -> dict[str, str]:
    """Texts by the names of their files."""
    found = {f"{name}.md": _page(name, explanation) for name, explanation in EXPLAINED.items()}
    return {"README.md": _index(), **found}


def _index() -> str:
    parts = [_INDEX.rstrip()]
    for kind in dict.fromkeys(name.partition(".")[0] for name in EXPLAINED):
        rows = [
            f"| [{name}]({name}.md) | {_first(item.means)} |"
            for name, item in EXPLAINED.items()
            if name.startswith(f"{kind}.")
        ]
        parts += [f"\n## {_title(kind)}\n", "| finding | what it means |", "|---|---|", *rows]
    return "\n".join(parts) + "\n"


def _title(kind: str) -> str:
    return (
        _KINDS.get(kind)
        or {"job": "A training job", "nic_map": "A NIC map", "stack": "The stack beside a training job"}[kind]
    )


def _first(text: str) -> str:
    """Its first sentence."""
    return re.split(r"(?<=[.])\s", text, maxsplit=1)[0].replace("|", "\\|")


def _page(name: str, item: Explanation) -> str:
    kind = name.partition(".")[0]
    where = f"[{_title(kind)}]({_home(kind)})" if kind != FRAME else "Any stage"
    shown = f"<stage>{name[len(FRAME) :]}" if kind == FRAME else name
    parts = [
        f"# `{shown}`",
        f"{where}. [All findings](README.md).",
        item.means,
        *_when(name),
        "## What is looked at",
        item.measured,
        "## Causes, the likeliest first",
        "\n".join(f"{number}. {cause}" for number, cause in enumerate(item.causes, 1)),
        "## Look by hand",
        "\n".join(["```console", *[f"$ {command}" for command in item.look], "```"]),
        "## What to do",
        item.remedy,
        "## In the lab",
        *_in_the_lab(name),
        "## Waive it",
        _waiver(name, shown),
    ]
    return "\n\n".join(parts) + "\n"


def _home(kind: str) -> str:
    """The document that lists the checks, from docs/findings."""
    return "../job.md" if kind in BESIDE else f"../../roles/{kind}/README.md"


def _when(name: str) -> list[str]:
    """The rows of the role's README: it is told once what closes the gate."""
    kind = name.partition(".")[0]
    if kind == FRAME:
        return []
    home = (FOLDER / _home(kind)).resolve()
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in home.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    found = [
        [_moved(cell, home.parent) for cell in row[1:]]
        for row in rows
        if name in re.findall(r"`([a-z_]+\.[a-z_]+)`", row[0])
    ]
    if kind in BESIDE:
        return [f"A pass says: {row[0]}." for row in found]
    return ["| about | not a pass when |\n|---|---|\n" + "\n".join(f"| {row[0]} | {row[1]} |" for row in found)]


def _moved(text: str, folder: pathlib.Path) -> str:
    """Relative links of a document, as they are from docs/findings."""

    def moved(link: typing.Match[str]) -> str:
        target, mark, heading = link[1].partition("#")
        if target.startswith("https://"):
            return link[0]
        place = (folder / target).resolve() if target else folder / "README.md"
        up = FOLDER if place.is_relative_to(ROOT / "docs") else FOLDER.parent
        steps = "../" if up == FOLDER else "../../"
        return f"]({steps}{place.relative_to(up.parent)}{mark}{heading})"

    return re.sub(r"\]\(([^)]+)\)", moved, text)


def _in_the_lab(name: str) -> list[str]:
    """How it is injected, and else which test proves it."""
    injected = [
        f"- {expected.fault}: {lab.how(scenario, index) or 'nothing is injected'}, then `{scenario.playbook}`:"
        f" {expected.status}"
        for scenario in (*SCENARIOS, *OLM_SCENARIOS)
        for index, expected in enumerate(scenario.expected)
        if expected.check == name
    ]
    elsewhere = [
        f"- {other.fault}: {other.why}; proven by `{other.test}`"
        for other in NOT_INJECTED
        if name in other.finding.split(", ")
    ]
    if not injected and not elsewhere:
        return ["No fault of [the lab](../lab.md) is asserted to lead to it; the unit tests of its check prove it."]
    told = ["Injected for real, by a test that asserts this finding:" if injected else "", "\n".join(injected)]
    return [part for part in (*told, "\n".join(elsewhere)) if part]


def _waiver(name: str, shown: str) -> str:
    if name.startswith(f"{FRAME}.") or never_waived(name):
        return (
            "No waiver covers it: a wrong intent can be corrected, and a stage that failed or did not run has proven"
            " nothing."
        )
    if name.startswith(("teardown.", *[f"{kind}." for kind in BESIDE])):
        return "It closes no gate of a run, so there is nothing to waive."
    lines = (
        "rdma_waivers:",
        f"  - check: {shown}",
        '    subject: "*"  # better: the one that the finding names',
        "    reason: who decided it, why, and until when",
    )
    example = "\n".join(["```yaml", *lines, "```"])
    return (
        "Where it is right to go on all the same. The report prints the reason beside each finding that it"
        f" covers.\n\n{example}"
    )


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
