# SPDX-License-Identifier: GPL-3.0-or-later

"""site.yml on a cluster that it has set up before."""

from __future__ import annotations

import pytest

from .conftest import Lab

SITE = "site.yml"
#: the stages that change nodes or the cluster; the others read, or measure between pods of their own, which takes three
#: quarters of a run
CHANGING = ("validate", "platform", "tuning", "operators", "network")
#: hosts of the play recap
HOSTS = ("localhost", "worker-1", "worker-2")
#: of a whole run, on a slow machine
SECONDS = 3600.0


def test_a_second_run_of_the_stages_that_change_something_changes_nothing(lab: Lab) -> None:
    run = lab.playbook(SITE, "--tags", ",".join(CHANGING), seconds=SECONDS)
    assert run.code == 0, run.end
    assert {host: run.recap(host, "changed") for host in HOSTS} == dict.fromkeys(HOSTS, 0), run.end
    assert set(run.records) >= set(CHANGING)


@pytest.mark.thorough
def test_a_second_run_of_all_stages_changes_nothing_and_is_green(lab: Lab) -> None:
    run = lab.playbook(SITE, seconds=SECONDS)
    assert run.code == 0, run.end
    assert {host: run.recap(host, "changed") for host in HOSTS} == dict.fromkeys(HOSTS, 0), run.end
