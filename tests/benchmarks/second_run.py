# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the second site.yml takes against the first, on the lab: ``build/venv/bin/python
tests/benchmarks/second_run.py`` after 'make lab'.

The baseline is the first run on a bare cluster, made so by teardown.yml. The second run changes nothing, yet proves all
of it anew. The goal is a quarter. Without a lab, ``--smallest`` runs the stage validate twice: that is the frame around
the stages alone, and says nothing of the goal.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

ROOT = pathlib.Path(__file__).parent.parent.parent
ANSIBLE = pathlib.Path(sys.executable).parent / "ansible-playbook"
ON_THE_LAB = ROOT / "lab/ansible-playbook"
LAB = "inventory/lab"


def run(playbook: str, inventory: str = LAB, **variables: typing.Any) -> tuple[float, int]:
    """Run a playbook; its seconds, and how many tasks changed something."""
    start = time.monotonic()
    done = subprocess.run(
        [ON_THE_LAB if inventory == LAB else ANSIBLE, "-i", inventory, playbook, "-e", json.dumps(variables)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{playbook} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return time.monotonic() - start, sum(int(number) for number in re.findall(r"\bchanged=(\d+)", done.stdout))


def main(arguments: Arguments = None) -> Results:
    options = parser(__doc__).parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if options.smallest:
            size, playbook, inventory = (
                "stage validate, without a cluster",
                "playbooks/validate.yml",
                "inventory/example",
            )
        else:
            size, playbook, inventory = "site.yml on the lab", "site.yml", LAB
            run("teardown.yml", teardown_operator=True)
        variables = {
            "rdma_report_dir": folder,
            **({"ansible_python_interpreter": sys.executable} if options.smallest else {}),
        }
        first, first_changed = run(playbook, inventory, **variables)
        second, second_changed = run(playbook, inventory, **variables)
    baseline = "first run"
    return show(
        [
            Result(baseline, size, first, "s", 1.0, baseline, f"changed={first_changed}"),
            Result("second run", size, second, "s", second / first, baseline, f"changed={second_changed}"),
        ],
        options.json,
    )


if __name__ == "__main__":
    main()
