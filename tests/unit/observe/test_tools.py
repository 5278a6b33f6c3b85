# SPDX-License-Identifier: GPL-3.0-or-later

"""Observers that run a tool, against stand-ins that behave as the real ones were seen to: exit codes, words, hangs."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ToolMissing
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import LostManager, SeenTopology
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import PingTask, PortName
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    Acs,
    GpuDriver,
    NodePlatform,
    SriovCapability,
    VfMemory,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.infiniband import ibping, subnet, umad
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import platform, sysfs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import dump_fts
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import (
    PLACED,
    Tree,
    add_igb,
    add_infiniband_vfs,
    add_six_hcas,
    bridge,
    resource,
    space,
    sriov_body,
)
from lab.processes import wait_until

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "infiniband-diags"
MASTER = "sminfo: sm lid 4 sm guid 0xb83fd20300e00001, activity count 456 priority 8 state 3 SMINFO_MASTER"


class Tools:
    """A folder of programs that is all the PATH there is."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        for name in ("cat", "sleep", "sh", "timeout"):
            (folder / name).symlink_to(shutil.which(name) or "")

    def add(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "$@" >>{self.folder}/{name}.calls\n{script}\n')
        path.chmod(0o755)

    def calls(self, name: str) -> list[str]:
        path = self.folder / f"{name}.calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def tools(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    folder = tmp_path / "bin"
    folder.mkdir()
    made = Tools(folder)
    monkeypatch.setattr(command, "_FOLDERS", ())
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(subnet, "_LOOK_SECONDS", 0.05)
    return made


def records(activity: int) -> str:
    return (FIXTURES / "saquery_smir.txt").read_text().replace("457", str(activity))


# command


def test_a_program_that_hangs_is_ended_with_its_children(tools: Tools) -> None:
    tools.add("hang", f"sleep 600 & echo $! >{tools.folder}/child; wait")
    started = time.monotonic()
    finished = command.run([str(tools.folder / "hang"), "-x"], 0.5)
    assert finished.rc is None and time.monotonic() - started < 20
    assert "hang -x did not end within 0.5 s" in finished.failure
    child = int((tools.folder / "child").read_text())
    # it was killed, and a busy machine takes a moment to end it
    assert wait_until(lambda: not alive(child), 20)


def alive(pid: int) -> bool:
    """Whether a process still runs; one that is dead and not yet fetched by its parent does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_output_that_is_not_utf8_is_kept(tools: Tools) -> None:
    tools.add("odd", r"printf 'caf\351\n'; printf 'w\377\n' >&2; exit 3")
    finished = command.run([str(tools.folder / "odd")], 10)
    assert (finished.rc, finished.stdout) == (3, "caf\\xe9\n")
    assert "ended with exit code 3" in finished.failure and "w\\xff" in finished.failure


def test_a_missing_tool_names_its_package(tools: Tools) -> None:
    with pytest.raises(ToolMissing, match=r"sminfo is not installed\. Install the package infiniband-diags"):
        subnet.read_subnets([subnet.PortQuery(PortName("mlx5_0", 1))])


# subnets


def test_ports_to_ask_are_those_of_physical_functions_on_infiniband(tmp_path: pathlib.Path) -> None:
    tree = Tree(tmp_path)
    add_six_hcas(tree)
    add_igb(tree)
    (tmp_path / "class/infiniband/mlx5_1/ports/1/phys_state").write_text("2: Polling\n")
    (tmp_path / "class/infiniband/mlx5_1/ports/1/state").write_text("1: DOWN\n")
    (tmp_path / "class/infiniband/mlx5_2/ports/1/link_layer").write_text("Ethernet\n")
    ports = subnet.list_infiniband_ports(sysfs.read_node([str(tmp_path)]))
    assert [port.name.device for port in ports] == ["mlx5_0", "mlx5_1", "mlx5_3", "mlx5_4", "mlx5_5"]
    assert [bool(port.why_not) for port in ports] == [False, True, False, False, False]
    assert "DOWN" in ports[1].why_not and "Polling" in ports[1].why_not and ports[0].sm_lid


def test_each_port_is_asked_once(tools: Tools) -> None:
    tools.add("sminfo", f"echo '{MASTER}'")
    tools.add("smpquery", "exit 1")
    questions = [subnet.PortQuery(PortName(f"mlx5_{index}", 1)) for index in (0, 1)]
    first, second, third = subnet.read_subnets(
        [*questions, subnet.PortQuery(PortName("mlx5_2", 1), "the port is DOWN")]
    )
    assert first.master is not None
    assert (first.master.guid, first.master.state, second.rdma_device) == ("0xb83fd20300e00001", "MASTER", "mlx5_1")
    assert (third.master, third.error) == (None, "the port is DOWN")
    assert sorted(tools.calls("sminfo")) == ["-C mlx5_0 -P 1", "-C mlx5_1 -P 1"] and tools.calls("smpquery") == []


@pytest.mark.parametrize(
    ("script", "lost"),
    [
        (
            (
                f'[ "$5" = portinfo ] && exec cat {FIXTURES}/smpquery_portinfo_manager.txt; cat'
                f" {FIXTURES}/smpquery_nodedesc.txt"
            ),
            LostManager(7, "sm-1 mlx5_0", True),
        ),
        (
            f'[ "$5" = portinfo ] && exec cat {FIXTURES}/smpquery_portinfo.txt; cat {FIXTURES}/smpquery_nodedesc.txt',
            LostManager(7, "sm-1 mlx5_0", False),
        ),
        (f"cat {FIXTURES}/smpquery_no_answer.txt; exit 255", LostManager(7)),
    ],
)
def test_where_nobody_answers_the_managers_port_is_asked(tools: Tools, script: str, lost: LostManager) -> None:
    tools.add("sminfo", f"cat {FIXTURES}/sminfo_no_sm.txt; exit 255")
    tools.add("smpquery", script)
    (seen,) = subnet.read_subnets([subnet.PortQuery(PortName("mlx5_0", 1), sm_lid=7)])
    assert seen.silent and seen.lost == lost and seen.cut_off is (lost.description is None)
    assert tools.calls("smpquery")[0] == "-C mlx5_0 -P 1 portinfo 7"


def test_silence_counts_when_it_lasts(tools: Tools, tmp_path: pathlib.Path) -> None:
    # the first question stays without an answer, as when its datagrams are lost
    tools.add(
        "sminfo",
        f"if [ -e {tmp_path}/asked ]; then echo '{MASTER}'; else : >{tmp_path}/asked; cat {FIXTURES}/sminfo_no_sm.txt;"
        " exit 255; fi",
    )
    tools.add("smpquery", "exit 1")
    (seen,) = subnet.read_subnets([subnet.PortQuery(PortName("mlx5_0", 1), sm_lid=7)])
    assert seen.master is not None
    assert seen.master.guid == "0xb83fd20300e00001" and not seen.silent and seen.error is None
    assert len(tools.calls("sminfo")) == 2 and tools.calls("smpquery") == []


def test_no_manager_is_an_answer(tools: Tools) -> None:
    tools.add("sminfo", f"cat {FIXTURES}/sminfo_no_sm.txt; cat {FIXTURES}/sminfo_no_sm.stderr >&2; exit 255")
    tools.add("smpquery", "exit 1")
    (seen,) = subnet.read_subnets([subnet.PortQuery(PortName("mlx5_0", 1))])
    assert seen.error is not None
    assert seen.master is None and "ended with exit code 255" in seen.error and "iberror: failed: query" in seen.error
    assert seen.silent and tools.calls("smpquery") == [], "the port has no LID of a manager"


def test_a_tool_that_can_not_ask_is_not_silence(tools: Tools) -> None:
    tools.add(
        "sminfo",
        "echo \"sminfo: iberror: failed: Failed to open 'mlx5_0' port '1'\"; for i in 1 2 3; do echo 'ibwarn: no umad'"
        " >&2; done; exit 255",
    )
    tools.add("smpquery", "exit 1")
    (seen,) = subnet.read_subnets([subnet.PortQuery(PortName("mlx5_0", 1))])
    assert seen.master is None and not seen.silent
    assert (
        seen.error
        == "sminfo -C mlx5_0 -P 1 ended with exit code 255: sminfo: iberror: failed: Failed to open 'mlx5_0' port"
        " '1'; ibwarn: no umad"
    )


def test_what_stands_between_a_tool_and_a_port_is_named_by_its_layer(tmp_path: pathlib.Path) -> None:
    roots, devices, port = [str(tmp_path / "sys")], tmp_path / "dev", PortName("mlx5_1", 2)
    assert umad.find_barrier(port, roots, str(devices)) == "module"
    folder = tmp_path / "sys" / "class" / "infiniband_mad"
    folder.mkdir(parents=True)
    (folder / "abi_version").write_text("5\n")
    for number, (device, place) in enumerate((("mlx5_1", "1"), ("mlx5_10", "2"), ("mlx5_1", "2"))):
        assert umad.find_barrier(port, roots, str(devices)) == "port"
        (folder / f"umad{number}").mkdir()
        (folder / f"umad{number}" / "ibdev").write_text(f"{device}\n")
        (folder / f"umad{number}" / "port").write_text(f"{place}\n")
    assert umad.find_barrier(port, roots, str(devices)) == "device"
    devices.mkdir()
    (devices / "umad2").touch()
    assert umad.find_barrier(port, roots, str(devices)) is None


def test_who_may_not_open_the_device_lacks_the_right(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may open everything, so the answer of the kernel is given here."""
    folder = tmp_path / "class" / "infiniband_mad" / "umad0"
    folder.mkdir(parents=True)
    (folder / "ibdev").write_text("mlx5_0")
    (folder / "port").write_text("1")
    (tmp_path / "umad0").touch()
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append((path, mode)))
    assert umad.find_barrier(PortName("mlx5_0", 1), [str(tmp_path)], str(tmp_path)) == "right"
    assert asked == [(str(tmp_path / "umad0"), os.R_OK | os.W_OK)]


def test_the_layer_is_looked_at_only_of_a_port_that_could_not_be_asked(tools: Tools, tmp_path: pathlib.Path) -> None:
    """The words are those of libibumad, without ib_umad."""
    words = (
        "ibwarn: [7] get_abi_version: can't read ABI version from /sys/class/infiniband_mad/abi_version (No such file"
        " or directory): is ib_umad module loaded?"
    )
    tools.add(
        "sminfo",
        f'[ $2 = mlx5_1 ] && {{ echo "{MASTER}"; exit 0; }}; echo "{words}" >&2; echo "sminfo: iberror: failed: Failed'
        ' to open"; exit 255',
    )
    tools.add("smpquery", "exit 1")
    first, second = subnet.read_subnets(
        [subnet.PortQuery(PortName(f"mlx5_{index}", 1)) for index in range(2)], [str(tmp_path)]
    )
    assert (first.barrier, second.barrier) == ("module", None) and "is ib_umad module loaded?" in (first.error or "")
    tools.add("sminfo", f"cat {FIXTURES}/sminfo_no_sm.txt; exit 255")
    (silent,) = subnet.read_subnets([subnet.PortQuery(PortName("mlx5_0", 1))], [str(tmp_path)])
    assert silent.silent and silent.barrier is None


def test_a_line_beside_a_failure_is_not_believed(tools: Tools) -> None:
    tools.add("sminfo", f"echo '{MASTER}'; exit 1")
    tools.add("smpquery", "exit 1")
    (seen,) = subnet.read_subnets([subnet.PortQuery(PortName("mlx5_0", 1))])
    assert seen.master is None and seen.error


# fabrics

STANDBY = (
    records(9)
    .replace("LID...................4", "LID...................10")
    .replace("e00001", "e00061")
    .replace("SMState...............3", "SMState...............2")
)
PORT = PortName("mlx5_0", 1)


@pytest.fixture
def fabric(tools: Tools) -> Tools:
    """The tools of a sound fabric. The records of its administration are those of the file ``first``; after the first
    look, of ``second``."""
    tools.add("ibnetdiscover", f'cat {FIXTURES}/ibnetdiscover.txt; : >"$6"')
    tools.add("iblinkinfo", f'[ -e "$6" ] && cat {FIXTURES}/iblinkinfo_line.txt')
    tools.add("ibqueryerrors", f'[ -e "$6" ] && cat {FIXTURES}/ibqueryerrors_errors.txt; exit 1')
    tools.add("dump_fts", f"cat {FIXTURES}/dump_fts_brief.txt")
    tools.add(
        "sminfo", f"case $5 in 10) cat {FIXTURES}/sminfo_standby.txt ;; *) cat {FIXTURES}/sminfo_master.txt ;; esac"
    )
    looks = (
        f"cat {tools.folder}/first; [ -e {tools.folder}/seen ] && cat {tools.folder}/second >{tools.folder}/first; :"
        f" >{tools.folder}/seen"
    )
    tools.add("saquery", f'[ "$5" = -s ] && exec cat {FIXTURES}/saquery_issm.txt; {looks}')
    (tools.folder / "first").write_text(records(457) + STANDBY)
    (tools.folder / "second").write_text(
        records(470) + STANDBY.replace("ActCount..............9", "ActCount..............12")
    )
    return tools


def read(activity: float = 30, errors: float = 0.1) -> SeenTopology:
    (seen,) = subnet.read_fabrics([PORT], subnet.SubnetLimits(5, activity, errors))
    return seen


def test_a_fabric_is_walked_once_and_read_by_all_tools(fabric: Tools) -> None:
    seen = read()
    assert seen.topology is not None
    assert seen.capabilities is not None
    assert len(seen.topology.links) == 28 and len(seen.capabilities.slow) == 56
    assert seen.errors is not None
    assert seen.errors.later is not None
    assert seen.errors.first == seen.errors.later and len(seen.errors.later.ports) == 4 and seen.errors.seconds >= 0.1
    assert len(fabric.calls("ibnetdiscover")) == 1 and len(fabric.calls("ibqueryerrors")) == 2
    (walked,) = {
        line.split("--load-cache ")[1].split()[0]
        for tool in ("iblinkinfo", "ibqueryerrors")
        for line in fabric.calls(tool)
    }
    assert fabric.calls("ibnetdiscover") == [f"-C mlx5_0 -P 1 --cache {walked}"] and not os.path.exists(walked)


def test_master_standby_and_a_count_that_rises(fabric: Tools) -> None:
    managers = read().managers
    assert managers is not None
    assert [(port.lid, port.manager and port.manager.state) for port in managers.ports] == [
        (4, "MASTER"),
        (10, "STANDBY"),
    ]
    assert (managers.master, managers.activity_first, managers.activity_later, managers.others_refreshed) == (
        "0xb83fd20300e00001",
        457,
        470,
        True,
    )


def test_a_manager_that_does_not_sweep_keeps_its_count(fabric: Tools) -> None:
    (fabric.folder / "second").write_text(records(457) + STANDBY)
    managers = read(activity=1).managers
    assert managers is not None
    assert (managers.activity_first, managers.activity_later) == (457, 457) and typing.cast(
        float, managers.activity_seconds
    ) >= 1


def test_a_count_that_rises_without_a_sweep(fabric: Tools) -> None:
    """A standby that polls the master raises its count; only a sweep refreshes the record of the standby. Seen with
    opensm at sweep_interval 0."""
    (fabric.folder / "second").write_text(records(470) + STANDBY)
    managers = read(activity=1).managers
    assert managers is not None
    assert (managers.activity_first, managers.activity_later, managers.others_refreshed) == (457, 470, False)


def test_a_manager_that_hangs_beside_the_master(fabric: Tools) -> None:
    fabric.add(
        "sminfo",
        f'[ "$5" = 10 ] && {{ cat {FIXTURES}/sminfo_bad_lid.txt; exit 255; }}; cat {FIXTURES}/sminfo_master.txt',
    )
    managers = read().managers
    assert managers is not None
    first, second = managers.ports
    assert second.error is not None
    assert first.manager is not None and second.manager is None and "iberror" in second.error


def test_an_administration_that_fails_leaves_the_topology(fabric: Tools) -> None:
    fabric.add("saquery", "echo 'Query SA failed: Connection timed out'; exit 110")
    seen = read()
    assert seen.managers is not None
    assert seen.managers.error is not None
    assert seen.topology is not None and seen.managers.ports == () and "Connection timed out" in seen.managers.error


def test_of_a_part_without_a_manager_only_the_topology_is_read(fabric: Tools) -> None:
    fabric.add("sminfo", f"cat {FIXTURES}/sminfo_no_sm.txt; exit 255")
    seen = read()
    assert seen.topology is not None and (seen.managers, seen.capabilities, seen.errors) == (None, None, None)
    assert seen.forwarding is None
    assert fabric.calls("saquery") == fabric.calls("ibqueryerrors") == fabric.calls("dump_fts") == []


def test_forwarding_tables_are_read_once_without_names(fabric: Tools) -> None:
    seen = read()
    assert seen.forwarding is not None and seen.forwarding.error is None
    assert {table.guid for table in seen.forwarding.tables} == {
        table.guid for table in dump_fts.parse((FIXTURES / "dump_fts.txt").read_text())
    }
    assert fabric.calls("dump_fts") == ["-C mlx5_0 -P 1 -n"]
    assert load(SeenTopology, json.loads(json.dumps(to_data(seen)))) == seen


@pytest.mark.parametrize("script", ["echo garbage; exit 0", "echo 'no umad' >&2; exit 255", "sleep 60"])
def test_forwarding_tables_that_can_not_be_read_say_why(fabric: Tools, script: str) -> None:
    fabric.add("dump_fts", script)
    seen = subnet.read_fabric(PORT, subnet.SubnetLimits(1, 0.2, 0.1))
    assert seen.topology is not None and seen.errors is not None
    assert seen.forwarding is not None and seen.forwarding.tables == ()
    assert seen.forwarding.error and "dump_fts" in seen.forwarding.error


@pytest.mark.parametrize(
    "script", ["echo 'Query SA failed: Connection timed out'; exit 0", "echo 'no umad' >&2; exit 255", "sleep 60"]
)
def test_counters_that_can_not_be_read_say_why(fabric: Tools, script: str) -> None:
    fabric.add("ibqueryerrors", script)
    seen = subnet.read_fabric(PORT, subnet.SubnetLimits(1, 0.2, 0.1))
    assert seen.errors is not None
    assert seen.errors.error is not None
    assert seen.errors.later is None and (
        "Query SA failed" in seen.errors.error or "no umad" in seen.errors.error or "did not end" in seen.errors.error
    )
    fabric.add("iblinkinfo", script)
    capabilities = subnet.read_fabric(PORT, subnet.SubnetLimits(1, 0.2, 0.1)).capabilities
    assert capabilities is not None and capabilities.error


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "at least one node"),
        ("echo garbage; exit 0", "line of a node"),
        ("echo x >&2; exit 1", "ended with exit code 1"),
        ("sleep 60", "did not end"),
    ],
)
def test_a_topology_that_fails_says_why(fabric: Tools, script: str, words: str) -> None:
    fabric.add("ibnetdiscover", script)
    seen = subnet.read_fabric(PORT, subnet.SubnetLimits(1, 0.2, 0.1))
    assert seen.error is not None
    assert seen.topology is None and words in seen.error


# ibping


@pytest.fixture
def servers(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[Tools]:
    """Servers carry a mark of this test alone, and none outlives it."""
    monkeypatch.setattr(ibping, "MARK", f"LINERATE_RDMA_TEST_{os.getpid()}")
    yield tools
    ibping.stop_servers()


def test_servers_live_until_they_are_stopped(servers: Tools) -> None:
    servers.add("ibping", "exec sleep 600")
    names = [PortName("mlx5_0", 1), PortName("mlx5_1", 2)]
    assert [(server.rdma_device, server.port, server.error) for server in ibping.start_servers(names, 60)] == [
        ("mlx5_0", 1, None),
        ("mlx5_1", 2, None),
    ]
    assert sorted(servers.calls("ibping")) == ["-S -C mlx5_0 -P 1", "-S -C mlx5_1 -P 2"]
    assert [(server.rdma_device, server.port) for server in ibping.stop_servers()] == [("mlx5_0", 1), ("mlx5_1", 2)]
    assert ibping.stop_servers() == ()


def test_a_server_that_ends_at_once_says_why(servers: Tools) -> None:
    servers.add(
        "ibping",
        "[ $3 = mlx5_1 ] && { echo \"ibpanic: Failed to open 'mlx5_1' port '1'\" >&2; exit 255; }; exec sleep 600",
    )
    good, bad = ibping.start_servers([PortName("mlx5_0", 1), PortName("mlx5_1", 1)], 60)
    assert good.error is None
    assert bad.error is not None
    assert "ended with exit code 255" in bad.error and "Failed to open" in bad.error


def refuse_to_open(_pid: int) -> int:
    """Be a kernel, or a filter of system calls, without pidfd_open(2)."""
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.mark.parametrize("opens", ["by its descriptor", "Python without descriptors", "kernel without descriptors"])
def test_signals_reach_only_a_process_that_still_has_the_mark(
    servers: Tools, monkeypatch: pytest.MonkeyPatch, opens: str
) -> None:
    """A server ends between the look and the signal, and another process gets its number."""
    if opens.startswith("Python"):
        monkeypatch.delattr(os, "pidfd_open")
    elif opens.startswith("kernel"):
        monkeypatch.setattr(os, "pidfd_open", refuse_to_open)
    servers.add("ibping", "exec sleep 600")
    ibping.start_servers([PortName("mlx5_0", 1)], 60)
    listed, looks = ibping._list_marked_processes, []
    with subprocess.Popen([SLEEP, "600"]) as other:

        def look() -> dict[int, PortName]:
            looks.append(listed())
            # until the last look the number of a server is that of the other process
            return {**looks[-1], **({other.pid: PortName("mlx5_0", 1)} if looks[-1] else {})}

        monkeypatch.setattr(ibping, "_list_marked_processes", look)
        try:
            ibping.stop_servers()
            assert other.poll() is None and looks[0] and not listed()
        finally:
            other.kill()


def test_signal_goes_to_the_process_whose_mark_was_read(servers: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is opened first: its number may be that of another one as soon as its mark was read."""
    kill, numbers = os.kill, []

    def keep(pid: int, number: int) -> None:
        numbers.append(pid)
        kill(pid, number)

    with subprocess.Popen([SLEEP, "600"], env={ibping.MARK: "mlx5_0/1", "PATH": os.defpath}) as server:
        read = ibping._read_mark

        def end_after_look(pid: int) -> typing.Optional[PortName]:
            found = read(pid)
            server.kill()
            server.wait()
            numbers.clear()
            return found

        monkeypatch.setattr(ibping, "_read_mark", end_after_look)
        monkeypatch.setattr(os, "kill", keep)
        ibping._send_signal(server.pid, signal.SIGTERM)
        assert server.returncode == -signal.SIGKILL and not numbers
    monkeypatch.setattr(ibping, "_read_mark", read)


def test_servers_of_an_interrupted_run_are_replaced(servers: Tools) -> None:
    servers.add("ibping", "exec sleep 600")
    ibping.start_servers([PortName("mlx5_0", 1)], 60)
    before = set(ibping._list_marked_processes())
    ibping.start_servers([PortName("mlx5_0", 1)], 60)
    assert before.isdisjoint(ibping._list_marked_processes())


def test_a_server_that_nobody_stops_ends_by_itself(servers: Tools) -> None:
    servers.add("ibping", "exec sleep 600")
    ibping.start_servers([PortName("mlx5_0", 1)], 1)
    deadline = time.monotonic() + 20
    while ibping._list_marked_processes() and time.monotonic() < deadline:
        os.sched_yield()
    assert not ibping._list_marked_processes()


def test_a_server_that_ignores_sigterm_is_ended(servers: Tools) -> None:
    servers.add("ibping", "trap '' TERM; while :; do sleep 1; done")
    ibping.start_servers([PortName("mlx5_0", 1)], 60)
    assert len(ibping.stop_servers()) == 1 and not ibping._list_marked_processes()


SLEEP = shutil.which("sleep") or "sleep"


@pytest.mark.parametrize("mark", ["x", "", "mlx5_0/", "mlx5_0/0", "mlx5_0/255", "mlx5_0/1x", "a/b/1", "mlx5_0/\u0661"])
def test_a_mark_that_no_run_writes_is_not_ours(servers: Tools, mark: str) -> None:
    """Any pod on the node may have such a variable, and it must neither end the stage nor be reported as a server."""
    with subprocess.Popen([SLEEP, "600"], env={ibping.MARK: mark, "PATH": os.defpath}) as other:
        try:
            assert ibping.stop_servers() == () and other.poll() is None
        finally:
            other.kill()


def test_only_the_first_bytes_of_an_environment_are_read(servers: Tools) -> None:
    """A process may declare any range of its memory as its environment: reading all of it takes any amount of
    memory."""
    large = {"PATH": os.defpath, "LARGE": "x" * 100_000}
    with subprocess.Popen([SLEEP, "600"], env={**large, ibping.MARK: "mlx5_0/1"}) as other:
        try:
            assert ibping._list_marked_processes() == {}
        finally:
            other.kill()


def test_a_server_is_found_however_large_the_environment_is(servers: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGE", "x" * 100_000)
    servers.add("ibping", "exec sleep 600")
    ibping.start_servers([PortName("mlx5_0", 1)], 60)
    assert PortName("mlx5_0", 1) in ibping._list_marked_processes().values()


def test_processes_of_other_users_are_no_servers(servers: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([SLEEP, "600"], env={ibping.MARK: "mlx5_0/1", "PATH": os.defpath}) as other:
        try:
            assert list(ibping._list_marked_processes()) == [other.pid]
            with monkeypatch.context() as patched:
                patched.setattr(os, "geteuid", lambda: 4242)
                assert ibping._list_marked_processes() == {}
        finally:
            other.kill()


def test_stop_ends_nobody_else(servers: Tools) -> None:
    servers.add("ibping", "exec sleep 600")
    with subprocess.Popen([str(servers.folder / "ibping"), "-S"]) as other:
        ibping.start_servers([PortName("mlx5_0", 1)], 60)
        ibping.stop_servers()
        assert other.poll() is None
        other.send_signal(signal.SIGKILL)


def test_clients(tools: Tools) -> None:
    tools.add(
        "ibping",
        f"for lid; do :; done; case $lid in 6) cat {FIXTURES}/ibping_flood.txt;; 13) cat"
        f" {FIXTURES}/ibping_no_server.txt;; *) exit 255;; esac",
    )
    tasks = [PingTask("mlx5_0", 1, (6, 13)), PingTask("mlx5_1", 1, (99,))]
    good, lost, failed = ibping.ping_lids(tasks, count=5, timeout_ms=100, parallel=2, limit_seconds=10)
    assert (good.transmitted, good.received, good.error) == (500, 500, None)
    assert (lost.transmitted, lost.received, lost.error) == (2, 0, None), "exit code 0 with all lost is a loss"
    assert failed.error is not None
    assert failed.rdma_device == "mlx5_1" and "ended with exit code 255" in failed.error
    assert "-C mlx5_0 -P 1 -e -f -c 5 -t 100 -L 6" in tools.calls("ibping")


#: a client that sends as many packets as it is asked to, and gets so many back
CLIENT = """\
while [ "$1" != -c ]; do shift; done
format='\\n---  (Lid 6) ibping statistics ---\\n%s packets transmitted, %s received, 0%% packet loss, time 1 ms\\n'
printf "$format" "$2"\
"""


def test_few_packets_go_first_and_then_more(tools: Tools) -> None:
    tools.add("ibping", f"{CLIENT} $2")
    (ping,) = ibping.ping_lids([PingTask("mlx5_0", 1, (6,))], count=500, timeout_ms=100, parallel=1, limit_seconds=10)
    assert (ping.transmitted, ping.received, ping.lost) == (500, 500, 0)
    assert [call.split()[7] for call in tools.calls("ibping")] == ["5", "50", "445"]


@pytest.mark.parametrize(
    ("back", "stderr", "lost"),
    [("0", "", 5), ("4", "", 1), ("4", "ibwarn: [7] _do_madrpc: retry 1 (timeout 100 ms)", 2)],
)
def test_after_a_loss_no_more_are_sent(tools: Tools, back: str, stderr: str, lost: int) -> None:
    tools.add("ibping", f"echo '{stderr}' >&2; {CLIENT} {back}")
    (ping,) = ibping.ping_lids([PingTask("mlx5_0", 1, (6,))], count=500, timeout_ms=100, parallel=1, limit_seconds=10)
    assert (ping.transmitted, ping.lost, ping.error) == (5, lost, None) and len(tools.calls("ibping")) == 1


RESENT = "echo 'ibwarn: [7] _do_madrpc: retry 1 (timeout 100 ms)' >&2"


def test_packets_that_were_late_once_are_followed_by_ten_times_as_many(tools: Tools, tmp_path: pathlib.Path) -> None:
    tools.add("ibping", f"[ -e {tmp_path}/late ] || {{ : > {tmp_path}/late; {RESENT}; }}; {CLIENT} $2")
    (ping,) = ibping.ping_lids([PingTask("mlx5_0", 1, (6,))], count=100, timeout_ms=100, parallel=1, limit_seconds=10)
    assert [call.split()[7] for call in tools.calls("ibping")] == ["5", "5", "50", "500", "445"]
    assert (ping.transmitted, ping.lost, ping.late, ping.error) == (1000, 0, 1, None)


def test_packets_that_are_late_again_are_lost(tools: Tools) -> None:
    tools.add("ibping", f"{RESENT}; {CLIENT} $2")
    (ping,) = ibping.ping_lids([PingTask("mlx5_0", 1, (6,))], count=100, timeout_ms=100, parallel=1, limit_seconds=10)
    assert (ping.transmitted, ping.lost, ping.late, ping.error) == (10, 2, 0, None)


def test_a_second_run_that_does_not_end_says_nothing(tools: Tools, tmp_path: pathlib.Path) -> None:
    tools.add("ibping", f"[ ! -e {tmp_path}/late ] || exec sleep 60; : > {tmp_path}/late; {RESENT}; {CLIENT} $2")
    (ping,) = ibping.ping_lids([PingTask("mlx5_0", 1, (6,))], count=100, timeout_ms=100, parallel=1, limit_seconds=1)
    assert (ping.transmitted, ping.lost, ping.late, ping.error) == (5, 1, 0, None)


def test_a_client_that_only_waits_is_a_loss_and_one_that_hangs_is_unknown(tools: Tools) -> None:
    tools.add("ibping", "[ $2 = mlx5_0 ] && echo 'ibwarn: [7] _do_madrpc: retry 1 (timeout 100 ms)' >&2; exec sleep 60")
    waits, hangs = ibping.ping_lids(
        [PingTask("mlx5_0", 1, (6,)), PingTask("mlx5_1", 1, (6,))], count=5, timeout_ms=100, parallel=2, limit_seconds=1
    )
    assert (waits.lost, waits.error) == (1, None)
    assert hangs.error is not None
    assert "did not end within" in hangs.error


def test_an_answer_for_another_lid_is_none(tools: Tools) -> None:
    tools.add("ibping", f"cat {FIXTURES}/ibping_ok.txt")
    (ping,) = ibping.ping_lids([PingTask("mlx5_0", 1, (7,))], count=4, timeout_ms=100, parallel=1, limit_seconds=10)
    assert ping.error is not None
    assert (ping.transmitted, ping.received) == (0, 0) and "was started for LID 7 but reports LID 6" in ping.error


def test_nothing_to_do_needs_no_tool(tools: Tools) -> None:
    assert (
        ibping.start_servers([], 60) == () and ibping.ping_lids([], 1, 1, 1, 1) == () and subnet.read_subnets([]) == ()
    )


# platform


def test_evidence_of_an_iommu(tmp_path: pathlib.Path) -> None:
    tree = Tree(tmp_path / "sys")
    add_igb(tree)
    tree.write("devices/virtual/iommu/dmar0/x", "")
    tree.link("class/iommu/dmar0", "devices/virtual/iommu/dmar0")
    for group in ("7", "9"):
        (tree.root / "kernel/iommu_groups" / group).mkdir()
    tree.link("devices/pci0000:01/0000:01:00.0/iommu_group", "kernel/iommu_groups/7")
    for table in ("DMAR", "FACP", "SSDT1"):
        tree.write(f"firmware/acpi/tables/{table}", "")
    (tmp_path / "cmdline").write_text("root=/dev/vda1 token=secret intel_iommu=on iommu=pt\n")
    seen = platform.read_platform([str(tree.root)], sysfs.read_node([str(tree.root)]), str(tmp_path / "cmdline"))
    assert (seen.iommu_devices, seen.iommu_groups, seen.acpi_tables) == (("dmar0",), 2, ("DMAR",))
    assert seen.kernel_arguments == ("intel_iommu=on", "iommu=pt"), "what is no evidence stays on the node"
    wanted = ("hugepagesz=1G", "transparent_hugepage=never", "token")
    (tmp_path / "cmdline").write_text(
        'root=/dev/vda1 token=secret note="a hugepagesz=1G b" transparent_hugepage=never iommu=pt\n'
    )
    seen = platform.read_platform(
        [str(tree.root)], sysfs.read_node([str(tree.root)]), str(tmp_path / "cmdline"), wanted=wanted
    )
    assert seen.kernel_arguments == ("transparent_hugepage=never", "iommu=pt"), "what is asked for, as a whole"
    (tmp_path / "cmdline").write_text("mitigations=off quiet mitigations=auto token=secret -- mitigations=off\n")
    undone = platform.read_platform(
        [str(tree.root)], sysfs.read_node([str(tree.root)]), str(tmp_path / "cmdline"), wanted=("mitigations=off",)
    )
    assert undone.kernel_arguments == ("mitigations=off", "mitigations=auto"), "and what may undo it"
    physical = seen.functions[0]
    assert (physical.address, physical.driver, physical.sriov_total, physical.sriov_current, physical.iommu_group) == (
        "0000:01:00.0",
        "igb",
        7,
        3,
        7,
    )
    assert [function.physical_function for function in seen.functions[1:]] == ["0000:01:00.0"] * 3
    assert seen.errors == ()


def test_evidence_of_room_for_vfs(tmp_path: pathlib.Path) -> None:
    """Two HCAs below ports of their own; the VFs of one did not fit."""
    tree = Tree(tmp_path / "sys")
    for bus, memory in (("3c", PLACED), ("4d", (0, 0x1FFFFFF, 0x2014220C))):
        folder = f"devices/pci0000:3b/0000:{bus}:01.0"
        tree.write(f"{folder}/config", bridge(int(bus, 16), int(bus, 16) + 1, [(0x000D, b"\x5f\x00\x1d\x00")]))
        files = {
            "vendor": "0x15b3",
            "device": "0x1021",
            "class": "0x020700",
            "sriov_totalvfs": "16",
            "sriov_numvfs": "0",
            "resource": resource(memory),
        }
        for name, value in files.items():
            tree.write(f"{folder}/0000:{bus}:00.0/{name}", value)
        tree.write(f"{folder}/0000:{bus}:00.0/config", space([(0x0010, sriov_body(16))]))
        tree.link(f"bus/pci/devices/0000:{bus}:00.0", f"{folder}/0000:{bus}:00.0")
    first, second = look(tree, tmp_path).functions
    assert first.capability == second.capability == SriovCapability(16, 16, 0, 1, 1, True, (0,))
    assert (first.memory, first.last_bus, first.acs) == (VfMemory((0,)), 0x3D, Acs(0x5F, 0x1D))
    assert (second.memory, second.last_bus) == (VfMemory((), (0,)), 0x4E)


def test_what_only_root_may_read_is_none(tmp_path: pathlib.Path) -> None:
    tree = Tree(tmp_path / "sys")
    add_infiniband_vfs(tree)
    folder = "bus/pci/devices/0000:3c:00.0"
    tree.write(f"{folder}/config", space([(0x0010, sriov_body(16))])[:64])
    tree.write(f"{folder}/resource", "what is this")
    seen = look(tree, tmp_path)
    assert (
        seen.functions[0].capability,
        seen.functions[0].memory,
        seen.functions[0].last_bus,
        seen.functions[0].acs,
    ) == (None,) * 4
    assert [error for error in seen.errors if "resource" in error], "a file that is not understood is said"
    # of a VF none of it is asked
    tree.write("bus/pci/devices/0000:3c:00.1/resource", "nor this")
    assert len([error for error in look(tree, tmp_path).errors if "resource" in error]) == 1


def look(tree: Tree, folder: pathlib.Path) -> NodePlatform:
    (folder / "cmdline").write_text("quiet\n")
    return platform.read_platform([str(tree.root)], sysfs.read_node([str(tree.root)]), str(folder / "cmdline"))


def test_no_iommu_is_empty_and_unread_is_none(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path / "sys")
    (tmp_path / "cmdline").write_text("quiet\n")
    seen = platform.read_platform([str(tree.root)], sysfs.read_node([str(tree.root)]), str(tmp_path / "cmdline"))
    assert (seen.iommu_devices, seen.iommu_groups, seen.acpi_tables, seen.kernel_arguments) == ((), 0, (), ())
    real = os.listdir

    def refuse(path: str) -> list[str]:
        if str(path).endswith("iommu_groups"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", refuse)
    unread = platform.read_platform([str(tree.root)], sysfs.read_node([str(tree.root)]), str(tmp_path / "cmdline"))
    assert (
        unread.iommu_groups is None
        and unread.iommu_devices == ()
        and any("iommu_groups" in error for error in unread.errors)
    )


@pytest.mark.parametrize(
    ("enforced", "lockdown", "expected"),
    [
        ("N\n", "[none] integrity confidentiality\n", False),
        ("N\n", "none [integrity] confidentiality\n", True),
        ("Y\n", None, True),
        (None, "none integrity [confidentiality]\n", True),
        ("N\n", None, False),
        (None, None, None),
        ("perhaps\n", "none\n", None),
    ],
)
def test_whether_the_kernel_takes_unsigned_modules(
    tmp_path: pathlib.Path,
    enforced: typing.Optional[str],
    lockdown: typing.Optional[str],
    expected: typing.Optional[bool],
) -> None:
    tree = Tree(tmp_path / "sys")
    tree.write("class/net/readme", "")
    for name, text in (("module/module/parameters/sig_enforce", enforced), ("kernel/security/lockdown", lockdown)):
        if text is not None:
            tree.write(name, text)
    seen = look(tree, tmp_path)
    assert seen.signed_modules is expected and not [
        error for error in seen.errors if "sig_enforce" in error or "lockdown" in error
    ]


@pytest.mark.parametrize(
    ("lockdown", "expected"),
    [
        ("[none] integrity confidentiality\n", False),
        ("none [integrity] confidentiality\n", True),
        ("none integrity [confidentiality]\n", True),
        ("none\n", None),
        (None, None),
    ],
)
def test_whether_the_kernel_is_locked_down(
    tmp_path: pathlib.Path, lockdown: typing.Optional[str], expected: typing.Optional[bool]
) -> None:
    tree = Tree(tmp_path / "sys")
    tree.write("class/net/readme", "")
    # modules that must be signed are another matter
    tree.write("module/module/parameters/sig_enforce", "Y\n")
    if lockdown is not None:
        tree.write("kernel/security/lockdown", lockdown)
    assert look(tree, tmp_path).locked_down is expected


@pytest.mark.parametrize(
    ("said", "is_open"),
    [
        (
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build "
                " (dvs-builder@U22)\nGCC version: gcc 12\n"
            ),
            True,
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n", False),
        (None, None),
    ],
)
def test_driver_of_the_gpus(tmp_path: pathlib.Path, said: typing.Optional[str], is_open: typing.Optional[bool]) -> None:
    tree = Tree(tmp_path / "sys")
    (tmp_path / "cmdline").write_text("quiet\n")
    paths = ([str(tree.root)], NodeHcas(()), str(tmp_path / "cmdline"), str(tmp_path / "nvidia/version"))
    assert platform.read_platform(*paths).gpu is None
    tree.write("module/nvidia/version", "570.86.15")
    tree.write("module/nvidia_peermem/refcnt", "0")
    tree.write("kernel/mm/memory_peers/nvidia-peermem/version", "1.0")
    tree.write("module/mlx5_core/version", "24.10-1.1.4")
    if said is not None:
        (tmp_path / "nvidia").mkdir()
        (tmp_path / "nvidia/version").write_text(said)
    seen = platform.read_platform(*paths)
    assert seen.gpu == GpuDriver("570.86.15", is_open, True, ("nvidia-peermem",), "24.10-1.1.4") and seen.errors == ()
