# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark of a fleet, small. It needs what the lab builds, and no lab that is up."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.thorough
def test_a_fleet_whose_nodes_die_ends_with_the_true_list_and_without_pods() -> None:
    script = pathlib.Path(__file__).with_name("fleet.py")
    done = subprocess.run(
        [sys.executable, script, "--nodes", "12", "--seconds", "3", "--json"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    figures = {result["what"]: result["value"] for result in json.loads(done.stdout)}
    # the connection, the pod, its end, and what is asked anew after each fault
    assert 3 <= figures["requests"] / figures["nodes"] <= 25
