# SPDX-License-Identifier: GPL-3.0-or-later

"""A first look: ``playbooks/demo.yml`` in an environment of its own, which has ansible-core and what it needs. Wants
neither root nor the lab.

Fails where the fleet as it should be is not green, or where the other one does not show each fault that was drawn in,
and no other one.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

from .setup import link_checkout, make_environment
from .steps import ANSIBLE_ENV, BUILD, ROOT, StepError, guarded

ENVIRONMENT = BUILD / "venv-demo"
FOLDER = BUILD / "demo"
#: for each fault the finding that names it; tests/unit/truth/demo.py draws them in
DRAWN = {
    ("discover.pcie", "demo-07 mlx5_6"),
    ("fabric.uplinks", "demo-leaf-5-2"),
    ("fabric.rate", "demo-12 mlx5_3"),
    *(("platform.bios", f"demo-23 mlx5_{number}") for number in range(8)),
}
#: says of the whole fabric what fabric.rate says of the cable
SUMMED_UP = {("fabric.capability", "compute")}


def main() -> int:
    make_environment(ENVIRONMENT, ROOT / "dev" / ("demo-3.10.txt" if sys.version_info < (3, 11) else "sanity-2.18.txt"))
    link_checkout()
    shutil.rmtree(FOLDER, ignore_errors=True)
    code = play(ENVIRONMENT / "bin" / "ansible-playbook", FOLDER)
    wrong = [] if code else differing(FOLDER)
    if wrong:
        raise StepError("\n".join(wrong), "This is a mistake in this checkout: see what was changed last.")
    return code


def play(program: pathlib.Path, folder: pathlib.Path) -> int:
    """Run the playbook as users do.

    :param folder: for facts and reports
    :returns: exit code of ansible-playbook
    """
    shown = {
        "ANSIBLE_STDOUT_CALLBACK": "linerate.rdma.stages",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    }
    path = {"PATH": f"{program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    command = [str(program), "linerate.rdma.demo", "-e", json.dumps({"rdma_report_dir": str(folder)})]
    return subprocess.call(command, cwd=ROOT, env={**shown, **os.environ, **ANSIBLE_ENV, **path})


def differing(folder: pathlib.Path) -> list[str]:
    """What is not as drawn, one line each."""
    healthy, faulty = (_not_passed(folder / name / "judged" / "report.json") for name in ("healthy", "faulty"))
    found = [f"{check} on {subject}: is not found, and was drawn in" for check, subject in sorted(DRAWN - faulty)]
    found += [
        f"{check} on {subject}: is found, and was not drawn in" for check, subject in sorted(faulty - DRAWN - SUMMED_UP)
    ]
    return found + [
        f"{check} on {subject}: is found in the fleet that is as it should be" for check, subject in sorted(healthy)
    ]


def _not_passed(report: pathlib.Path) -> set[tuple[str, str]]:
    """The findings of a report that are no pass, but those of stages that were not run."""
    stages = json.loads(report.read_text(encoding="utf-8"))["stages"]
    findings = (finding for stage in stages if stage["state"] != "skipped" for finding in stage["findings"])
    return {(finding["check"], finding["subject"]) for finding in findings if finding["status"] != "pass"}


if __name__ == "__main__":
    guarded(main)
