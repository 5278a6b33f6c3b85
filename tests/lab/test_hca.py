# SPDX-License-Identifier: GPL-3.0-or-later

"""The emulated HCA, as a guest of its own shows it: what the commands of an operator say, RDMA between two VFs, and VFs
that come and go without end.

One guest runs all of ``hca_rows``; it needs no lab. ``LAB_HCA_CYCLES`` is how often its VFs come and go.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import typing

import pytest

from dev.steps import StepError
from lab import hca_guest

pytestmark = pytest.mark.thorough

CYCLES = int(os.environ.get("LAB_HCA_CYCLES", "1000"))
SCRIPT = pathlib.Path(__file__).with_name("hca_rows")
#: for the rest, and for each cycle: the kernel alone waits 1.1 s in it
SECONDS, CYCLE_SECONDS = 1200, 15
HCAS = ("3c", "4d", "5e", "9c", "bc", "dc")
VFS = [f"0000:3c:{devfn >> 3:02x}.{devfn & 7}" for devfn in range(1, 9)]
#: state, physical state, LID and carrier of the first VF
ACTIVE, NO_LINK = ["4: ACTIVE", "5: LinkUp", "0x103", "1"], ["1: DOWN", "2: Polling", "0x0", "0"]
#: what a kernel says that has found a mistake in itself
MISTAKES = re.compile(
    r"WARNING:|BUG:|\bOops\b|Call Trace|general protection|Unable to handle|possible recursive locking|blocked for more"
    r" than|"
    r"waiting for \S+ to become free|refcount_t:|list_(add|del) corruption|use-after-free|stack guard|soft lockup|rcu:"
    r" INFO"
)


@pytest.fixture(scope="session", name="outcome")
def outcome_fixture() -> hca_guest.Outcome:
    return hca_guest.run_script(
        f"CYCLES={CYCLES}\n{SCRIPT.read_text(encoding='utf-8')}", SECONDS + CYCLES * CYCLE_SECONDS
    )


@pytest.fixture(name="said")
def said_fixture(outcome: hca_guest.Outcome) -> typing.Mapping[str, str]:
    """What each part of the script said."""
    _before, *parts = re.split(r"^=== (.+)\n", outcome.output, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2]))


def test_functions_are_where_they_should_be(said: typing.Mapping[str, str]) -> None:
    assert said["lspci"].splitlines() == [
        f"{bus}:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]"
        for bus in HCAS
    ]
    nodes = {line.split()[0]: line.split()[1] for line in said["place"].splitlines()}
    assert nodes == {"3c": "0", "4d": "0", "bc": "1", "dc": "1", "5e": "0", "9c": "1"}
    assert len({line.split()[2] for line in said["place"].splitlines()}) == len(HCAS), "a group of the IOMMU for each"


@pytest.mark.parametrize(
    "text",
    [
        "LnkSta:\tSpeed 32GT/s, Width x16",
        "RlxdOrd+",
        "MaxPayload 512 bytes, MaxReadReq 512 bytes",
        "Single Root I/O Virtualization (SR-IOV)",
        "Initial VFs: 8, Total VFs: 8",
        "(64-bit, prefetchable) [size=32M]",
        "Alternative Routing-ID Interpretation (ARI)",
        "[PN] Part number: MCX75310AAS-NEAT",
        "Kernel driver in use: mlx5_core",
    ],
)
def test_what_pci_express_says(said: typing.Mapping[str, str], text: str) -> None:
    assert text in said["express"]


def test_the_root_port_has_access_control(said: typing.Mapping[str, str]) -> None:
    assert "Access Control Services" in said["root-port"]
    assert "Root Port" in said["root-port"]


def test_a_switch_is_between_the_root_port_and_the_hca(said: typing.Mapping[str, str]) -> None:
    assert re.findall(r"Express \(v2\) (\w+) Port", said["switch"]) == ["Upstream", "Downstream", "Downstream"]
    assert re.findall(r"secondary=(\w\w)", said["switch"]) == ["3b", "3c", "3d"]
    assert said["switch"].count("Access Control Services") == 2, "of the ports downward"


def test_devlink_says_what_firmware_a_pf_has(said: typing.Mapping[str, str]) -> None:
    versions = {"fw.version": "28.41.1000", "fw": "28.41.1000"}
    assert json.loads(said["devlink"])["info"] == {
        "pci/0000:3c:00.0": {
            "driver": "mlx5_core",
            "versions": {"fixed": {"fw.psid": "MT_0000000838"}, "running": versions, "stored": versions},
        }
    }


def test_a_gpu_comes_below_the_switch_of_its_hca_and_goes(said: typing.Mapping[str, str]) -> None:
    before, gpu, ways, others, node, memory, direct, redirected, after = said["gpu"].splitlines()
    assert all("No such file" in line and "0000:5f:00.0" in line for line in (before, after))
    assert gpu == "5f:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330]"
    assert ways == others == "/sys/devices/pci0000:5b/0000:5b:01.0/0000:5c:00.0"
    assert node == "0"
    assert int(memory.split()[0], 16) >= 1 << 36
    assert "ReqRedir- CmpltRedir-" in direct and "ReqRedir+ CmpltRedir+" in redirected


def test_a_port_is_one_of_infiniband(said: typing.Mapping[str, str]) -> None:
    values = dict(line[len("/sys/class/infiniband/mlx5_0/") :].split(":", 1) for line in said["port"].splitlines())
    assert values == {
        "node_guid": "e89e:4903:0001:0000",
        "sys_image_guid": "e89e:4903:0001:0000",
        "fw_ver": "28.41.1000",
        "hca_type": "MT4129",
        "board_id": "MT_0000000838",
        "node_type": "1: CA",
        "ports/1/state": "4: ACTIVE",
        "ports/1/phys_state": "5: LinkUp",
        "ports/1/rate": "400 Gb/sec (4X NDR)",
        "ports/1/lid": "0x102",
        "ports/1/sm_lid": "0x1",
        "ports/1/link_layer": "InfiniBand",
        "ports/1/gids/0": "fe80:0000:0000:0000:e89e:4903:0001:0000",
        "ports/1/pkeys/0": "0xffff",
    }


def test_a_netdev_is_one_of_ipoib(said: typing.Mapping[str, str]) -> None:
    assert re.search(
        r"mtu 4092 .*link/infiniband 00:00:02:02:fe:80:00:00:00:00:00:00:e8:9e:49:03:00:01:00:00 brd"
        r" 00:ff:ff:ff:ff:12:40:1b",
        said["netdev"],
    )
    assert "Speed: 400000Mb/s" in said["netdev"]
    assert "driver: mlx5_core[ib_ipoib]" in said["netdev"] and "bus-info: 0000:3c:00.0" in said["netdev"]


def test_ipoib_of_the_kernel_leaves_the_netdevs_alone(said: typing.Mapping[str, str]) -> None:
    assert said["ipoib"].splitlines() == ["loaded", str(len(HCAS)), str(len(HCAS))]


def test_a_port_is_what_it_is_told(said: typing.Mapping[str, str]) -> None:
    *files, description, carrier, state, physical, without, _refused, _refused2, _refused3, _refused4 = said[
        "told"
    ].splitlines()
    assert dict(line.rpartition("ports/1/")[2].split(":", 1) for line in files) == {
        "state": "4: ACTIVE",
        "lid": "0x9",
        "sm_lid": "0x4",
        "rate": "50 Gb/sec (1X HDR)",
        "counters/symbol_error": "12",
        "counters/port_xmit_data": "123456789012",
        "counters/link_downed": "0",
        "hw_counters/out_of_buffer": "0",
    }
    assert (description, carrier, state, physical, without) == ("worker-1 mlx5_4", "1", "1: DOWN", "2: Polling", "0")
    assert said["told"].count("write error: Invalid argument") == 4


def test_a_card_goes_comes_back_and_has_sriov_and_room_for_vfs_or_not(said: typing.Mapping[str, str]) -> None:
    lines = said["found-anew"].splitlines()
    assert sum("No such file" in line for line in lines) == 3
    without, greedy, whole = (
        [line for line in lines if "No such file" not in line][first : first + 3] for first in (0, 3, 6)
    )
    assert (without[:2], greedy[:2], whole[:2]) == (["0", "mlx5_4"], ["1", "mlx5_4"], ["1", "mlx5_4"])
    assert greedy[2].split()[0] == "0x0000000000000000" and int(whole[2].split()[0], 16) >= 1 << 36


def test_firmware_stays_over_a_reset_and_shows_when_the_function_is_found_anew(said: typing.Mapping[str, str]) -> None:
    lines = said["firmware"].splitlines()
    refused = [line for line in lines if "rror" in line or "No such" in line]
    assert [line for line in lines if line not in refused] == [
        *("4 0x020700 InfiniBand 32", "4", "4 0x020700 InfiniBand 32"),
        # without a VF there is no SR-IOV
        *("0x020000", "Ethernet", "4: ACTIVE", "1"),
        *("0x020000", "Ethernet", "1", "driver: mlx5_core"),
        "8 0x020700 InfiniBand 32",
    ]
    assert len(refused) == 3
    assert all(
        text in line
        for text, line in zip(("Numerical result out of range", "sriov_totalvfs", "Invalid argument"), refused)
    )


def test_a_numa_node_can_be_told_otherwise(said: typing.Mapping[str, str]) -> None:
    assert said["numa"].splitlines() == ["0", "1"]


def test_vfs_come(said: typing.Mapping[str, str]) -> None:
    total, numvfs, *lines = said["vfs"].splitlines()
    assert (total, numvfs) == ("8", "8")
    assert lines[:8] == [
        f"{vf[5:]} Infiniband controller [0207]: Mellanox Technologies ConnectX Family mlx5Gen Virtual Function"
        " [15b3:101e]"
        for vf in VFS
    ]
    links = [line.split() for line in lines[8:]]
    assert [(address, driver) for address, driver, _rdma, _netdev in links] == [(vf, "mlx5_core") for vf in VFS]
    assert [rdma for _address, _driver, rdma, _netdev in links] == [f"mlx5_{number}" for number in range(6, 14)]
    assert len({netdev for *_others, netdev in links}) == 8


def test_what_the_kernel_refuses(said: typing.Mapping[str, str]) -> None:
    assert "Device or resource busy" in said["refused"] and "Numerical result out of range" in said["refused"]


def vf_line(text: str, vf: int) -> str:
    (line,) = (line for line in text.splitlines() if line.strip().startswith(f"vf {vf} "))
    return line


def test_netlink_sets_and_tells_guids_and_links(said: typing.Mapping[str, str]) -> None:
    before = vf_line(said["vf-lines-before"], 7)
    assert (
        "NODE_GUID 00:00:00:00:00:00:00:00, PORT_GUID 00:00:00:00:00:00:00:00, link-state disable, trust off" in before
    )
    for vf in (0, 1):
        guids = f"NODE_GUID 02:00:00:00:00:00:01:0{vf}, PORT_GUID 02:00:00:00:00:00:02:0{vf}"
        assert f"{guids}, link-state disable" in vf_line(said["guids"], vf)
        assert f"{guids}, link-state enable" in vf_line(said["enabled"], vf)
    assert "link-state disable" in vf_line(said["enabled"], 2)


def test_carrier_and_port_follow_the_link(said: typing.Mapping[str, str]) -> None:
    # a netdev that is down has no carrier to tell of
    assert said["disabled"].splitlines()[-2:] == ["0", "1: DOWN"]
    carrier, state, gid, node_guid, line = said["enabled"].splitlines()[-5:]
    assert (carrier, state) == ("1", "4: ACTIVE")
    assert (gid, node_guid) == ("fe80:0000:0000:0000:0200:0000:0000:0200", "0200:0000:0000:0100")
    assert "fe:80:00:00:00:00:00:00:02:00:00:00:00:00:02:00 brd" in line and "LOWER_UP" in line


def test_a_subnet_manager_that_does_not_serve_vfs_leaves_them_at_init(said: typing.Mapping[str, str]) -> None:
    assert said["without-virtualization"].splitlines() == ["2: INIT", "5: LinkUp", "0xffff", "0", "4: ACTIVE", *ACTIVE]


def test_a_guid_of_ones_is_none(said: typing.Mapping[str, str]) -> None:
    assert said["guid-of-ones"].splitlines() == [*NO_LINK, *ACTIVE]


def test_partitions_keep_apart_and_let_meet(said: typing.Mapping[str, str]) -> None:
    lines = [line for line in said["partitions"].splitlines() if "write error" not in line]
    limited, full, usual = (line for line in lines if "received" in line)
    assert (" 0 received" in limited, " 2 received" in full, " 2 received" in usual) == (True, True, True)
    default = ["0xffff", "0x0000", "0x0000", "0xffff", "0xffff"]
    assert [line for line in lines if "received" not in line] == [
        "0x7fff",
        "0x8001",
        "0x0000",
        "0xffff",
        "0x7fff",
        *default,
    ]
    assert said["partitions"].count("Invalid argument") == 3


def test_rdma_between_two_vfs(said: typing.Mapping[str, str]) -> None:
    assert "3 packets transmitted, 3 received, 0% packet loss" in said["ping"]
    assert said["rping"].count("ping data: rdma-ping-") == 3
    assert "ended with 0" in said["bandwidth"], said["bandwidth"]
    for text in ("Transport type : IB", "Link type       : IB", "Mtu             : 4096[B]", "rdma_cm QPs\t : ON"):
        assert text in said["bandwidth"]
    assert re.search(r"^ 65536 +20 +\d", said["bandwidth"], re.MULTILINE)


def test_functions_go_from_below_what_uses_them(said: typing.Mapping[str, str]) -> None:
    assert said["unbind-under-traffic"].splitlines()[0] == "2", "both ends of the traffic were there"
    assert {"unbound", "bound"} <= set(said["unbind-under-traffic"].splitlines())
    away = said["away-under-traffic"].splitlines()
    assert "away" in away and not [line for line in away if line.startswith("ib")]


def test_an_rdma_device_goes_to_a_network_namespace(said: typing.Mapping[str, str]) -> None:
    mode, alone, *others = said["exclusive"].splitlines()
    assert "netns exclusive" in mode
    assert alone == "with the interface alone: 0 0"
    # and no other device
    assert [line.split()[1] for line in others if "node_type" in line] == [
        line.split()[0] + ":" for line in others if line.split()[-1:] == ["0200000000000100"]
    ]
    assert len([line for line in others if "mlx5_" in line]) == 2


def test_frames_go_by_the_wire_and_stay_in_their_fabric(said: typing.Mapping[str, str]) -> None:
    received, of_other_fabric, sent = map(int, said["wire"].splitlines())
    assert received > 0 and sent > 0
    assert of_other_fabric == 0


def test_vfs_come_and_go(said: typing.Mapping[str, str]) -> None:
    assert said["cycles"].splitlines()[-1] == f"cycles: {CYCLES}", said["cycles"]
    free = [int(line.split()[1]) for line in said["cycles"].splitlines()[:-1]]
    # caches fill in the first ones
    assert free[-1] > free[min(len(free) - 1, 1)] - 8192, "no memory is left behind"


def test_driver_and_module_come_and_go(said: typing.Mapping[str, str]) -> None:
    assert "unbound" in said["pf-unbind"] and "bound" in said["pf-unbind"].splitlines()
    assert "0000:3c:00.1" not in said["pf-unbind"]
    assert said["unload"].splitlines()[0] == "unloaded"
    assert "Infiniband" not in said["unload"]
    assert said["loaded-again"].splitlines() == ["loaded", str(len(HCAS))]


def test_an_hca_has_as_many_vfs_as_a_connectx_7(said: typing.Mapping[str, str]) -> None:
    assert said["many"].splitlines() == ["127", "40", "40", "0000:3c:05.0", "40", "0200:0000:0000:0139", "4: ACTIVE"]


def test_hcas_whose_buses_would_overlap_are_refused(said: typing.Mapping[str, str]) -> None:
    assert said["near"].count("Invalid parameters") == 2


def test_the_kernel_found_no_mistake(outcome: hca_guest.Outcome, said: typing.Mapping[str, str]) -> None:
    taint = int(said["taint"])
    assert (taint >> 7 & 1, taint >> 9 & 1, taint >> 14 & 1) == (
        0,
        0,
        0,
    ), "no oops, no warning, no lockup, also of what its log has no room for any more"
    assert [line for line in outcome.log.splitlines() if MISTAKES.search(line)] == []


#: of three HCAs: VFs, type of the link
FIRMWARE_SCRIPT = """
cat /proc/sys/kernel/random/boot_id
for bus in 3c 4d bc; do
  function=/sys/bus/pci/devices/0000:$bus:00.0
  echo "$(cat $function/sriov_totalvfs 2> /dev/null || echo none) $(cat $function/infiniband/*/ports/1/link_layer)"
done
case $BOOT in
  0) echo "vfs=16,3,8 sriov=1,1,0 ethernet=0,1" > /opt/session/firmware && reboot -ff ;;
  1)
    echo 16 > /sys/bus/pci/devices/0000:3c:00.0/sriov_numvfs
    ls -d /sys/bus/pci/devices/0000:3c:00.0/virtfn*/infiniband/* | wc -l
    echo "vfs=17" > /opt/session/firmware && reboot -ff
    ;;
esac
"""


def test_firmware_is_what_it_is_told_to_be_at_a_boot_of_the_guest_itself() -> None:
    outcome = hca_guest.run_script(FIRMWARE_SCRIPT, SECONDS, (*hca_guest.PARAMETERS, "total_vfs=16"))
    first, *lines = outcome.output.replace("Rebooting.\n", "").splitlines()
    assert lines[:3] == ["16 InfiniBand"] * 3
    assert lines[3] != first, "another boot"
    assert lines[4:8] == ["16 InfiniBand", "3 Ethernet", "none InfiniBand", "16"]
    # and the third boot has no module, for this number of VFs
    assert outcome.code == 1 and "Invalid parameters" in lines[8]
    assert "the firmware of 3c cannot have more VFs than total_vfs" in outcome.log


def test_a_panic_ends_the_guest() -> None:
    with pytest.raises(StepError, match="ended before its script"):
        hca_guest.run_script("echo 0 > /proc/sys/kernel/printk\necho c > /proc/sysrq-trigger\n", SECONDS)
