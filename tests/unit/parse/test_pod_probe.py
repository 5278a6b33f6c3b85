# SPDX-License-Identifier: GPL-3.0-or-later

"""The probe in the pods: the device of the pod's own function is found, and never another pod's."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.probe import ProbeError, parse
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.commands import render_shell
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

# two siw devices in sight, of which one is another pod's; links as `rdma -j link` of iproute2 6.15 prints them
SIW = """\
env PCIDEVICE_OPENSHIFT_IO_IGBVF=0000:01:10.4
speed 0000:01:10.4 2.5 GT/s PCIe
width 0000:01:10.4 1
rate siw2 2.5 Gb/sec (1X SDR)
rdma [{"ifindex":0,"ifname":"siw3","port":1,"state":"DOWN","physical_state":"LINK_UP"},{"ifindex":1,"ifname":"siw2","port":1,"state":"ACTIVE","netdev":"net1"} ]
"""  # noqa: E501
MLX = """\
env PCIDEVICE_NVIDIA_COM_MLX=0000:3C:00.2,0000:4d:00.3
pci 0000:3c:00.2 mlx5_16
pci 0000:4d:00.3 mlx5_21
speed 0000:3c:00.2 32.0 GT/s PCIe
width 0000:3c:00.2 16
rate mlx5_16 400 Gb/sec (4X NDR)
rate mlx5_21 400 Gb/sec (4X NDR)
"""


def test_device_by_netdev_where_pci_does_not_say() -> None:
    probe = parse(SIW)
    assert probe.device("net1") == "siw2"
    assert probe.rates == {"siw2": 2.5}
    assert probe.pcie == {"0000:01:10.4": 2.0}


def test_device_by_pci_address() -> None:
    probe = parse(MLX)
    assert probe.device("net1", "0000:3c:00.2") == "mlx5_16"
    assert probe.device("net2", "0000:4d:00.3") == "mlx5_21"
    assert probe.rates["mlx5_16"] == 400.0
    assert probe.pcie == {"0000:3c:00.2": pytest.approx(504.12, abs=0.01)}


def test_a_device_for_management_alone_is_none_of_the_pod() -> None:
    planes = "env PCIDEVICE_A=0000:0b:00.0\npci 0000:0b:00.0 mlx5_0\npci 0000:0b:00.0 smi1\n"
    assert parse(planes + "verbs mlx5_0\n").device("net1", "0000:0b:00.0") == "mlx5_0"
    for verbs in ("", "verbs mlx5_0\nverbs smi1\n", "verbs mlx5_9\n"):
        with pytest.raises(ProbeError, match="more than one RDMA device on net1: mlx5_0, smi1"):
            parse(planes + verbs).device("net1", "0000:0b:00.0")


def test_the_probe_names_the_devices_with_verbs(tmp_path: pathlib.Path) -> None:
    function = tmp_path / "bus/pci/devices/0000:0b:00.0"
    for device in ("mlx5_0", "smi1"):
        (function / "infiniband" / device).mkdir(parents=True)
    (function / "infiniband_verbs/uverbs0").mkdir(parents=True)
    (function / "infiniband_verbs/uverbs0/ibdev").write_text("mlx5_0\n", encoding="utf-8")
    command = [word.replace("/sys/", f"{tmp_path}/") for word in render_shell("0000:0b:00.0")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert parse(done.stdout).device("net1", "0000:0b:00.0") == "mlx5_0"


NUMA = "numa 0000:3c:00.2 1\ncpus 0000:3c:00.2 8-15,24-31\nphysfn 0000:3c:00.2 0000:3C:00.0\n"


@pytest.mark.parametrize(
    ("more", "cpus", "text", "far"),
    [
        (NUMA + "allowed 10-11,14,30-40\n", "10-11,14,30-31", "on CPUs 10-11,14,30-31 of NUMA node 1", False),
        (NUMA + "allowed 0-7\n", "", "on other CPUs (0-7) than those of the HCA's NUMA node 1 (8-15,24-31)", True),
        # where the pod may run is not known, so that it is not known to be far
        (NUMA, "", "on other CPUs (not known) than those of the HCA's NUMA node 1 (8-15,24-31)", False),
        (NUMA + "allowed 8\nmissing taskset\n", "", "not bound to a NUMA node: the image has no taskset", False),
        (
            "numa 0000:3c:00.2 -1\ncpus 0000:3c:00.2 0-3\nallowed 0-3\n",
            "",
            "not bound to a NUMA node: sysfs reports none",
            False,
        ),
        (NUMA.replace("24-31", "24-") + "allowed 8\n", "", "not bound to a NUMA node: sysfs reports none", False),
        ("", "", "not bound to a NUMA node: sysfs reports none", False),
    ],
)
def test_cpus_of_the_hca_s_numa_node(more: str, cpus: str, text: str, far: bool) -> None:
    assert parse(MLX + more).binding("0000:3c:00.2") == (cpus, text, far)


@pytest.mark.parametrize(
    "cpus", ["0-65536", ",".join(["0-1000"] * 70), ",".join(map(str, range(513))), "0-99999," * 2000 + "0"]
)
def test_a_list_of_more_cpus_than_any_machine_has_is_not_trusted(cpus: str) -> None:
    with bounded(1):
        probe = parse(f"numa 0000:3c:00.2 1\ncpus 0000:3c:00.2 {cpus}\nallowed {cpus}\n")
    assert probe.binding("0000:3c:00.2").text == "not bound to a NUMA node: sysfs reports none"


def test_the_cpus_of_all_functions_of_a_pod_have_a_limit() -> None:
    probe = parse(
        "".join(f"numa 0000:{bus:02x}:00.0 0\ncpus 0000:{bus:02x}:00.0 0-65535\n" for bus in range(20))
        + "allowed 0-65535\n"
    )
    assert [bool(probe.binding(f"0000:{bus:02x}:00.0").cpus) for bus in range(20)] == [True] * 16 + [False] * 4


def test_physical_function_and_missing_tools() -> None:
    probe = parse(MLX + NUMA + "missing rping\n")
    assert probe.functions == {"0000:3c:00.2": "0000:3c:00.0"}
    assert probe.missing == ("rping",)


def test_ambiguity_is_refused() -> None:
    with pytest.raises(ProbeError, match="more than one RDMA device on net1: mlx5_16, mlx5_21"):
        parse(MLX).device("net1")


def test_no_device_says_what_is_in_sight() -> None:
    with pytest.raises(
        ProbeError,
        match=r"no RDMA device on net2 \(0000:01:10.4\); visible RDMA devices: siw2 on net1, siw3 on no netdev",
    ):
        parse(SIW).device("net2")
    with pytest.raises(ProbeError, match="no PCIDEVICE"):
        parse("").device("net1")


@given(st.text(), st.text(max_size=8))
def test_any_text(text: str, interface: str) -> None:
    probe = parse(text)
    try:
        assert probe.device(interface) in text
    except ProbeError as error:
        assert str(error)


@given(st.lists(st.sampled_from((SIW + MLX).splitlines()), max_size=12), st.integers(0, 200))
def test_mutated_lines(lines: list[str], cut: int) -> None:
    probe = parse("\n".join(lines)[:cut])
    try:
        assert probe.device("net1")
    except ProbeError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("rate", "speed", "width"),
    [
        ("0", "0.0", "16"),
        ("0.001", "0.000001", "16"),
        ("400", "32.0", "0"),
        ("400", "32.0", "900"),
        ("400", "1024", "32"),
    ],
)
def test_what_no_link_can_have_is_not_known(rate: str, speed: str, width: str) -> None:
    address = "0000:3c:00.1"
    found = parse(f"rate mlx5_0 {rate} Gb/sec (4X NDR)\nspeed {address} {speed} GT/s PCIe\nwidth {address} {width}\n")
    assert (found.rates, found.pcie) == ({} if rate != "400" else {"mlx5_0": 400.0}, {})


def test_allowed_cpus_in_any_number_of_lines_are_counted_together() -> None:
    """A node made 31 KiB of them cost two seconds."""
    with bounded(1):
        parse("allowed 0-65535\n" * 100_000)


def test_the_error_of_a_pod_names_some_of_any_number_of_devices() -> None:
    """It is told of each rail of the node, in the one fact of all nodes."""
    links = json.dumps([{"ifname": f"mlx5_{number}", "netdev": f"eth{number}"} for number in range(20_000)])
    with pytest.raises(ProbeError) as caught:
        parse(f"rdma {links}").device("net1")
    assert "and 19988 more" in str(caught.value) and len(str(caught.value)) < 1_000
