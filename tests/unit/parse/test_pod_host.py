# SPDX-License-Identifier: GPL-3.0-or-later

"""What an observer shows of an HCA and its virtual functions: which are free, what is set for them, and by which of
them an address is reached."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import VfAdministration
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.host import parse_host, parse_throttled
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.shell import MARK
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import commands
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

PF, FIRST, SECOND, THIRD = (f"0000:3c:00.{number}" for number in range(4))
SETTINGS = json.dumps(
    [
        {
            "ifname": "eth1",
            "vfinfo_list": [
                {"vf": 0, "rate": {"max_tx": 5000, "min_tx": 0}},
                {"vf": 1, "rate": {"max_tx": 0, "min_tx": 0}},
            ],
        }
    ]
)
ADDRESSES = [
    {"ifname": "eth0", "addr_info": [{"local": "192.0.2.1", "prefixlen": 24}]},
    {
        "ifname": "eth1",
        "addr_info": [
            {"local": "fe80::1", "prefixlen": 64},
            {"local": "2001:db8::1", "prefixlen": 64},
            {"local": "10.0.0.1", "prefixlen": 24},
        ],
    },
    {"ifname": "eth1v1", "addr_info": [{"local": "fe80::2", "prefixlen": 64}]},
]
#: a pod has the first function, the second has a port that is down, another driver has none of the third
SEEN = "\n".join(
    (
        *(f"vf {number} {address}" for number, address in enumerate((FIRST, SECOND, THIRD, "0000:3c:00.4"))),
        *(
            f"net {address} {name}"
            for address, name in ((PF, "eth1"), (SECOND, "eth1v1"), (THIRD, "eth1v2"), ("0000:3c:00.4", "eth1v3"))
        ),
        *(
            f"pci {address} {name}"
            for address, name in ((PF, "mlx5_0"), (FIRST, "mlx5_1"), (SECOND, "mlx5_2"), (THIRD, "mlx5_3"))
        ),
        "active mlx5_0",
        "active mlx5_3",
        f"settings {SETTINGS}",
        f"addresses {json.dumps(ADDRESSES)}",
        f"numa {PF} 0",
        f"cpus {PF} 0-3",
        "allowed 4-7",
        "rdma []",
    )
)


def test_a_function_that_a_pod_has_is_not_free_and_an_active_one_comes_first() -> None:
    seen = parse_host(SEEN, PF)
    assert seen.free(()) == (THIRD, SECOND) and seen.free((THIRD,)) == (SECOND,)
    with pytest.raises(RdmaError, match="no network interface on the host"):
        seen.device(FIRST)
    assert seen.device(PF) == "mlx5_0"


def test_a_software_device_is_found_by_its_interface() -> None:
    seen = parse_host(SEEN.replace("rdma []", 'rdma [{"ifname": "rxe4", "netdev": "eth1v3"}]'), PF)
    assert seen.device("0000:3c:00.4") == "rxe4" and "0000:3c:00.4" in seen.free(())


def test_what_is_set_for_a_function_is_found_by_its_number() -> None:
    seen = parse_host(SEEN, PF)
    assert (seen.administration(FIRST).max_tx_rate, seen.administration(SECOND).max_tx_rate) == (5000, 0)
    assert seen.administration(THIRD) == seen.administration("0000:ff:00.0") == VfAdministration()
    assert parse_host(SEEN.replace(SETTINGS, "torn"), PF).administration(FIRST) == VfAdministration()


def test_an_address_that_others_reach_is_ipv4_if_there_is_one_and_never_local_to_the_link() -> None:
    seen = parse_host(SEEN, PF)
    assert (seen.address(PF), seen.address(SECOND)) == ("10.0.0.1", None)
    assert parse_host(SEEN.replace('"10.0.0.1"', '"torn"'), PF).address(PF) == "2001:db8::1"


def test_an_address_leads_by_a_function_where_no_other_interface_has_its_network() -> None:
    seen = parse_host(SEEN, PF)
    assert seen.leads(PF, "10.0.0.2") and not seen.leads(PF, "192.0.2.2") and not seen.leads(PF, "198.51.100.1")
    assert not parse_host(SEEN.replace("192.0.2.1", "10.0.0.9"), PF).leads(PF, "10.0.0.2")


@pytest.mark.parametrize(
    ("allowed", "tools", "near"),
    [("0-7", "", True), ("4-7", "", False), ("0-7", "\nmissing taskset", None), ("0-1", "\nmissing taskset", True)],
)
def test_whether_the_tool_is_near_to_the_hca(allowed: str, tools: str, near: object) -> None:
    assert parse_host(SEEN.replace("allowed 4-7", f"allowed {allowed}{tools}"), PF).probe.near(PF) is near


def test_nothing_is_near_where_nothing_is_known() -> None:
    assert parse_host(SEEN, PF).probe.near(SECOND) is None


def test_periods_without_cpus_are_read_of_either_cgroup() -> None:
    assert parse_throttled("nr_periods 10\nnr_throttled 4\nthrottled_time 5\n") == 4
    assert parse_throttled("") is None and parse_throttled("nr_throttled x") is None


def test_the_probe_runs_in_a_shell_that_has_no_such_hca_and_what_runs_ends_with_the_connection() -> None:
    # an observer stays when the run goes: what it was asked to do must not
    ended = subprocess.run(
        commands.render_host_shell("0000:ff:1f.7"),
        input="1 sleep 600\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    greeting, mark, _rest = ended.stdout.partition(f"\n{MARK} 0 0\n")
    assert ended.returncode == 0 and mark
    seen = parse_host(greeting, "0000:ff:1f.7")
    assert (seen.functions, seen.netdevs) == ({}, {})


@contextlib.contextmanager
def shell_of_host(shell: str, line: str = "", pause: str = "") -> typing.Iterator[subprocess.Popen[str]]:
    """The shell of an observer, with all that it started ended in the end.

    :param line: of the shell, before which it says ``begun`` and pauses, as on a busy node
    :param pause: seconds
    """
    argv = [shell, *commands.render_host_shell("0000:ff:1f.7")[1:]]
    if line:
        (place,) = [number for number, word in enumerate(argv) if f"    {line}" in word]
        argv[place] = argv[place].replace(f"    {line}", f"    echo begun; sleep {pause}; {line}", 1)
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end(process: subprocess.Popen[str], command: str, said: str) -> int:
    """Start a command, and end the connection as soon as the shell has said something; return the exit code of the
    shell."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"1 {command}\n")
    process.stdin.flush()
    assert any(line == said for line in process.stdout)
    process.stdin.close()
    return process.wait(timeout=60)


#: takes no signal for some seconds, as a process does that is not the command yet: the shell gives it its own handler
#: until then
DEAF = "sh -c 'trap : TERM; echo deaf; sleep {}; trap - TERM; exec sleep 600'"


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_command_that_is_ended_while_it_starts_ends(shell: str) -> None:
    # the connection ends before the shell knows the process that it has started
    with shell_of_host(shell, "child=$!", "1") as process:
        assert end(process, "sleep 600", "begun\n") == 0


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_command_that_has_not_taken_the_first_signal_is_ended_by_the_next(shell: str) -> None:
    with shell_of_host(shell) as process:
        assert end(process, DEAF.format(0.5), "deaf\n") == 0


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_command_that_has_not_taken_the_first_signal_ends_also_where_the_shell_did_not_wait_for_it_yet(
    shell: str,
) -> None:
    # no other signal comes that would break the wait
    with shell_of_host(shell, 'wait "$child"', "1") as process:
        assert end(process, DEAF.format(2), "begun\n") == 0


def test_free_functions_among_many_links_take_a_bounded_time() -> None:
    """Functions were compared with each link, and a message was made of all links for each."""
    lines = [f"vf {number} 0000:3c:00.1" for number in range(4_000)]
    told = json.dumps([{"ifname": f"d{number}", "netdev": f"e{number}"} for number in range(8_000)])
    host = parse_host("\n".join([*lines, "net 0000:3c:00.1 eth0", f"rdma {told}"]), "0000:3c:00.0")
    with bounded(1):
        assert host.free(()) == ()


def test_more_functions_than_a_port_has_are_left_out() -> None:
    told = "\n".join(f"vf {number} 0000:3c:00.1" for number in range(10_000))
    assert len(parse_host(told, "0000:3c:00.0").functions) == 4_096
