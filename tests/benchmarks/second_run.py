# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the second site.yml takes against the first, on the lab: ``build/venv/bin/python -m tests.benchmarks.second_run`` after 'make lab'.

The baseline is the first run on a bare cluster, made so by teardown.yml. The second run changes nothing, yet proves all of it anew.
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

ROOT = pathlib.Path(__file__).parent.parent.parent
ANSIBLE = pathlib.Path(sys.executable).parent / "ansible-playbook"


def run(playbook: str, **variables: typing.Any) -> typing.Tuple[float, str]:
    """Run a playbook on the lab; its seconds and its output."""
    start = time.monotonic()
    done = subprocess.run(
        [ANSIBLE, "-i", "inventory/lab", playbook, "-e", json.dumps(variables)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{playbook} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return time.monotonic() - start, done.stdout


def main() -> None:
    run("teardown.yml", teardown_operator=True)
    with tempfile.TemporaryDirectory() as folder:
        first, _output = run("site.yml", rdma_report_dir=folder)
        second, output = run("site.yml", rdma_report_dir=folder)
    changed = sum(int(number) for number in re.findall(r"\bchanged=(\d+)", output))
    print(f"first run {first:.0f} s, second run {second:.0f} s with changed={changed}: ratio {second / first:.2f} (goal: 0.25 at most)")


if __name__ == "__main__":
    main()
