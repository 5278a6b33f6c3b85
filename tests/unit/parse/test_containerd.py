# SPDX-License-Identifier: GPL-3.0-or-later

"""The limit of locked memory that containerd runs with, and when it needs a restart for that of the intent."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.filter.host import FilterModule
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ContainerdLimit
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.containerd import parse_containerd_limit

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIND = FilterModule().filters()["containerd_limit"]
GIB = 1 << 30


def show(loaded: str = "infinity", reload: str = "no", pid: int = 812) -> str:
    """Output of systemctl, which prints the properties in its own order."""
    return f"MainPID={pid}\nNeedDaemonReload={reload}\nLimitMEMLOCK={loaded}\n"


def limits(soft: str) -> str:
    return (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max cpu time              unlimited            unlimited            seconds   \n"
        f"Max locked memory         {soft:<20} {soft:<20} bytes     \n"
    )


@pytest.mark.parametrize(
    ("shown", "text", "expected"),
    [
        (show(), limits("unlimited"), ContainerdLimit(812, "infinity", "infinity")),
        (show("8388608", "yes"), limits("65536"), ContainerdLimit(812, "8388608", "65536", True)),
        (show("65536", pid=0), "", ContainerdLimit(0, "65536", "65536")),
    ],
)
def test_limits_of_containerd(shown: str, text: str, expected: ContainerdLimit) -> None:
    assert parse_containerd_limit(shown, text) == expected


@pytest.mark.parametrize("shown", ["", "MainPID=1\n", "MainPID=x\nLimitMEMLOCK=1\n", "MainPID=1\nLimitMEMLOCK=all\n"])
def test_other_output_is_an_error(shown: str) -> None:
    with pytest.raises(ParseError, match="systemctl show containerd"):
        parse_containerd_limit(shown)


@pytest.mark.parametrize(
    ("shown", "text", "stale"),
    [
        # a run that was killed wrote the drop-in, and restarted nothing: systemd has read it, or reads it before this
        (show("65536", "yes"), limits("65536"), False),
        (show(str(8 * GIB)), limits("65536"), True),
        (show("infinity"), limits("65536"), False),
        # it runs with the limit
        (show(str(8 * GIB), "yes"), limits(str(8 * GIB)), False),
        # another drop-in sets another limit: a restart of each run would change nothing
        (show("65536"), limits("65536"), False),
    ],
)
def test_containerd_with_an_old_limit_needs_a_restart(shown: str, text: str, stale: bool) -> None:
    cluster: dict[str, typing.Any] = {"host": {"memlock": {"by": "containerd", "limit_gib": 8}}}
    found = FIND(cluster, shown, text)
    assert found["stale"] is stale
    assert not FIND({}, shown, text)["stale"] and not FIND({}, shown, text)["may_be_stale"]
    # of files that systemd has not read, check mode does not know the limit
    assert found["may_be_stale"] is (stale or (found["reload"] and found["limit"] != str(8 * GIB)))


def test_stage_host_restarts_containerd_that_runs_without_its_drop_in() -> None:
    tasks = yaml.safe_load((ROOT / "roles/host/tasks/observe.yml").read_text(encoding="utf-8"))
    (part,) = (task for task in tasks if "block" in task)
    names = [task["name"] for task in part["block"]]
    look, restart = names.index("See what containerd runs with"), names.index("Restart containerd with it")
    assert look < restart
    assert part["block"][look]["ansible.builtin.include_tasks"]["file"] == "runtime.yml"
    # one node after the other, also where no drop-in is new
    assert "host_running.stale or (host_written is changed and host_running.pid == 0)" in part["block"][restart]["when"]
    assert part["block"][restart]["throttle"] == 1
