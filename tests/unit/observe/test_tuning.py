# SPDX-License-Identifier: GPL-3.0-or-later

"""How a node is tuned, read from trees of a sysfs and a procfs: equal values together, an unread row never an absent
one."""

from __future__ import annotations

import gzip
import os
import pathlib
import stat
import struct
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import NodeTuning
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import sysfs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.tuning import gpu, network
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.tuning.node import read_tuning
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.tuning.rows import Rows
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_six_hcas, guid

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
CPUS = 256
#: rows that the configuration space shows
_OF_CONFIG = (
    "max_read_request",
    "max_payload",
    "relaxed_ordering",
    "relaxed_ordering_gpu",
    "relaxed_ordering_root",
    "acs",
)
#: MaxReadReq 4096, MaxPayload 256, relaxed ordering on, as a ConnectX-7 shows it
CONTROL = b"\x30\x59"
ROOT_PORT, UPSTREAM, DOWN_GPU, DOWN_HCA = "0000:17:01.0", "0000:18:00.0", "0000:19:00.0", "0000:19:01.0"
GPU, HCA = "0000:1a:00.0", "0000:1b:00.0"

Shown = dict[str, tuple[str, ...]]


def config(control: bytes = CONTROL, acs: typing.Optional[int] = None) -> bytes:
    raw = bytearray(4096)
    raw[0x06], raw[0x34], raw[0x60:0x62], raw[0x64:0x6A] = 0x10, 0x60, b"\x10\x00", b"\xe2\x8f\x00\x10" + control
    if acs is not None:
        raw[0x100:0x108] = bytes([0x0D, 0, 1, 0, 0x5F, 0, acs, 0])
    return bytes(raw)


def kernel_of(name: str) -> str:
    return (FIXTURES / "kernel-config" / f"{name}.config").read_text(encoding="utf-8")


class Server:
    """A GPU server: 256 CPUs, a GPU and an HCA of RoCE below one switch."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.tree, self.proc, self.host = Tree(folder / "sys"), folder / "proc", folder / "host"
        write = self.tree.write
        write("devices/system/cpu/online", f"0-{CPUS - 1}")
        write("devices/system/cpu/smt/active", "1")
        write("devices/system/node/possible", "0-1")
        write("devices/system/node/has_cpu", "0-1")
        write("devices/system/cpu/isolated", "")
        write("devices/system/cpu/nohz_full", "(null)")
        for node, cpus in enumerate(("0-127", "128-255")):
            write(f"devices/system/node/node{node}/cpulist", cpus)
        for cpu in range(CPUS):
            write(f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "performance")
            write(f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver", "intel_pstate")
            for state, latency in enumerate((0, 1, 133)):
                write(f"devices/system/cpu/cpu{cpu}/cpuidle/state{state}/latency", str(latency))
                write(f"devices/system/cpu/cpu{cpu}/cpuidle/state{state}/disable", str(int(state == 2)))
        write("kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
        write("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0")
        self.file(self.proc, "swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority")
        self.file(self.proc, "cmdline", "quiet pci=realloc=off password=hunter2")
        self.file(self.proc, "cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n")
        self.file(self.proc, "sys/kernel/numa_balancing", "0")
        self.file(self.host, f"boot/config-{os.uname().release}", kernel_of("6.18-on").rstrip())
        for name, value in (("all", "2"), ("ens1np0", "1")):
            for key in ("arp_announce", "arp_ignore", "rp_filter"):
                self.file(self.proc, f"sys/net/ipv4/conf/{name}/{key}", value)
        for pid, name in ((7, "crio"), (8, "irqbalance"), (9, "sh")):
            self.process(pid, name, 8388608)
        self.file(self.host, "etc/tuned/active_profile", "hpc-compute ")
        self.file(
            self.host, "var/lib/kubelet/cpu_manager_state", '{"policyName":"static","defaultCpuSet":"0-1","checksum":1}'
        )
        self.file(
            self.host, "var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ntopologyManagerPolicy: restricted\n"
        )
        self.file(self.host, "dev/kmsg", "6,1,0,-;Linux version 6.12")
        (self.host / "dev/cpu_dma_latency").write_bytes(struct.pack("=i", 2_000_000_000))
        self._devices()

    def _devices(self) -> None:
        top = f"devices/pci0000:17/{ROOT_PORT}"
        places = {ROOT_PORT: top, UPSTREAM: f"{top}/{UPSTREAM}"}
        for bridge in (DOWN_GPU, DOWN_HCA):
            places[bridge] = f"{places[UPSTREAM]}/{bridge}"
        places[GPU], places[HCA] = f"{places[DOWN_GPU]}/{GPU}", f"{places[DOWN_HCA]}/{HCA}"
        of_bridge = ("0x8086", "0x1234", "0x060400")
        kinds = {GPU: ("0x10de", "0x2330", "0x030200"), HCA: ("0x15b3", "0x1021", "0x020000")}
        for address, folder in places.items():
            for name, value in zip(("vendor", "device", "class"), kinds.get(address, of_bridge)):
                self.tree.write(f"{folder}/{name}", value)
            for name, value in (
                ("numa_node", "0"),
                ("max_link_width", "16"),
                ("current_link_width", "16"),
                ("local_cpulist", "0-127"),
            ):
                self.tree.write(f"{folder}/{name}", value)
            self.tree.write(f"{folder}/config", config(acs=0x11))
            self.tree.link(f"bus/pci/devices/{address}", folder)
        for interrupt, cpus in ((50, "0"), (51, "0-127")):
            self.tree.write(f"{places[HCA]}/msi_irqs/{interrupt}", "msix")
            self.file(self.proc, f"irq/{interrupt}/effective_affinity_list", cpus)
        self.tree.write("kernel/iommu_groups/7/type", "identity")
        self.tree.link(f"{places[HCA]}/iommu_group", "kernel/iommu_groups/7")
        self.tree.netdev(places[HCA], "ens1np0", "94:6d:ae:00:00:01", mtu=9000)
        self.tree.rdma(places[HCA], "mlx5_0", guid(1, 0))
        self.tree.port("mlx5_0", link_layer="Ethernet")
        self.tree.write("class/net/ens1np0/qos/trust", "dscp")
        for priority in range(8):
            for side in ("roce_np", "roce_rp"):
                self.tree.write(f"class/net/ens1np0/ecn/{side}/enable/{priority}", "1")
        self.tree.write("class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106")

    @staticmethod
    def file(folder: pathlib.Path, name: str, text: str) -> pathlib.Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
        return path

    def process(self, pid: int, name: str, memlock: int, user: int = 0, inside: str = "") -> None:
        """:param inside: its id in the namespace of a container, behind a tabulator"""
        self.file(self.proc, f"{pid}/comm", name)
        self.file(self.proc, f"{pid}/limits", f"Max locked memory         {memlock:<20} {memlock:<20} bytes     ")
        users = "\t".join([str(user)] * 4)
        self.file(
            self.proc,
            f"{pid}/status",
            f"Name:\t{name}\nPid:\t{pid}\nUid:\t{users}\nGid:\t{users}\nNSpid:\t{pid}{inside}\nNSpgid:\t{pid}{inside}",
        )

    def read(self) -> NodeTuning:
        roots = [str(self.tree.root)]
        return read_tuning(roots, sysfs.read_node(roots), str(self.host), str(self.proc))

    def shown(self, row: str) -> Shown:
        return {reading.value: reading.where for reading in self.read().rows[row]}


class Tools:
    """Programs that answer from here instead of running.

    :ivar argvs: of what was run
    """

    def __init__(self) -> None:
        pfc, app = ((FIXTURES / "dcb" / name).read_text(encoding="utf-8") for name in ("pfc.json", "app.json"))
        smi = (
            (FIXTURES / "nvidia-smi/580.159.04-fabric.csv")
            .read_text(encoding="utf-8")
            .replace("00000000:00:06.0", "00000000:1A:00.0")
        )
        self.said = {"pfc": (0, pfc), "app": (0, app), "nvidia-smi": (0, smi)}
        self.argvs: list[tuple[str, ...]] = []

    def run(self, argv: typing.Sequence[str], limit_seconds: float) -> command.Finished:
        self.argvs.append(tuple(argv))
        what = next(name for name in self.said if name in argv or argv[0].endswith(name))
        rc, out = self.said[what]
        if what == "nvidia-smi" and rc == 0:
            # columns as they are asked for
            table = [line.split(", ") for line in out.splitlines()]
            known = {column[0].partition(" [")[0]: column for column in zip(*table)}
            asked = next(item for item in argv if item.startswith("--query-gpu=")).partition("=")[2].split(",")
            wrong = [name for name in asked if name not in known]
            if wrong:
                return command.Finished(
                    tuple(argv), 2, f'Field "{wrong[0]}" is not a valid field to query.\n\n', "", limit_seconds
                )
            out = "\n".join(", ".join(known[name][place] for name in asked) for place in range(len(table)))
        return command.Finished(tuple(argv), rc, out if rc == 0 else "", "" if rc == 0 else out, limit_seconds)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    found = Tools()
    monkeypatch.setattr(command, "run", found.run)
    monkeypatch.setattr(command, "require_tool", lambda tool, package: f"/usr/sbin/{tool}")
    monkeypatch.setattr(gpu, "_find_program", lambda host: ["/usr/bin/nvidia-smi"])
    return found


@pytest.fixture
def server(tmp_path: pathlib.Path, tools: Tools) -> Server:
    return Server(tmp_path)


def test_a_gpu_server_that_is_as_it_should_be(server: Server) -> None:
    node = server.read()
    shown = {row: {reading.value: reading.where for reading in readings} for row, readings in node.rows.items()}
    expected: dict[str, Shown] = {
        "governor": {"performance": ("0-255",)},
        "cpu_driver": {"intel_pstate": ("0-255",)},
        "idle_latency": {"1": ("0-255",)},
        "held_latency": {"none": ()},
        "cpu_model": {"AMD EPYC 9654 96-Core Processor": ()},
        "cpus_online": {"0-255": ()},
        "smt": {"on": ()},
        "thp": {"madvise": ()},
        "hugepages": {"0": ("2048kB",)},
        "swap_kib": {"0": ()},
        "numa_balancing": {"0": ()},
        "pci_realloc": {"off": ()},
        "memlock": {"8388608": ("crio",)},
        "irqbalance": {"runs": ()},
        "tuned": {"hpc-compute": ()},
        "kernel_log": {"none": ()},
        "kernel_log_corrected": {"none": ()},
        "kernel_log_programs": {"none": ()},
        "ib_umad": {"absent": ()},
        "numa_cpus": {"0-127": ("node 0",), "128-255": ("node 1",)},
        "pci_way": {
            f"pci0000:17 {ROOT_PORT} {UPSTREAM} {DOWN_GPU} {GPU}": (GPU,),
            f"pci0000:17 {ROOT_PORT} {UPSTREAM} {DOWN_HCA} {HCA}": ("mlx5_0",),
        },
        "hca_model": {"1021": ("mlx5_0",)},
        "max_read_request": {"4096": ("mlx5_0",)},
        "max_payload": {"256": ("mlx5_0",)},
        "relaxed_ordering": {"on": ("mlx5_0",)},
        "iommu": {"identity": ("mlx5_0",)},
        "relaxed_ordering_gpu": {"on": (GPU,)},
        "relaxed_ordering_root": {"on": (ROOT_PORT,)},
        "irq_locality": {"local": ("mlx5_0",)},
        "irq_isolated": {"apart": ("mlx5_0",)},
        "numa_told": {"yes": ("mlx5_0", GPU)},
        "p2pdma": {"on": ()},
        "gpus": {"1": ()},
        "gpu_model": {"10de:2330": (GPU,)},
        "gpu_numa": {"0": (GPU,)},
        "gpu_link_width": {"full": (GPU,)},
        "gpu_nic_path": {"PIX": (f"{GPU} mlx5_0",)},
        "acs": {"direct": (DOWN_GPU, DOWN_HCA)},
        "gpu_persistence": {"Enabled": (GPU,)},
        "gpu_slowed": {"none": (GPU,)},
        "gpu_link_speed": {"full": (GPU,)},
        "gpu_driver": {"580.159.04": (GPU,)},
        "cpu_manager": {"static": ()},
        "topology_manager": {"restricted": ()},
        "reserved_cpus": {"none": ()},
        "arp_announce": {"2": ("mlx5_0",)},
        "mtu": {"9000": ("mlx5_0",)},
        "roce_trust": {"dscp": ("mlx5_0",)},
        "roce_pfc": {"3": ("mlx5_0",)},
        "roce_dscp": {"26:3 48:6": ("mlx5_0",)},
        "roce_ecn": {"0-7": ("mlx5_0",)},
        "roce_traffic_class": {"106": ("mlx5_0",)},
        # absent, and read
        "swappiness": {},
        "memory_manager": {},
        "roce_tos": {},
        "turbo": {},
    }
    assert {row: shown[row] for row in expected} == expected
    assert node.unread == {}
    assert "hunter2" not in repr(node)


def test_the_second_port_of_a_bond_has_roce_settings_of_its_own(server: Server, tools: Tools) -> None:
    """One RDMA device serves both functions of a bond (RoCE LAG), and each port has its own trust mode, PFC and ECN."""
    first, second = (f"devices/pci0000:3b/0000:3c:00.{function}" for function in (0, 1))
    for place, folder in enumerate((first, second)):
        for name, value in (("vendor", "0x15b3"), ("device", "0x101d"), ("class", "0x020000")):
            server.tree.write(f"{folder}/{name}", value)
        server.tree.link(f"bus/pci/devices/0000:3c:00.{place}", folder)
        netdev = f"ens3f{place}np{place}"
        server.tree.netdev(folder, netdev, f"94:6d:ae:00:01:0{place}", mtu=9000, master="bond0")
        server.tree.write(f"class/net/{netdev}/qos/trust", ("dscp", "pcp")[place])
        for priority in range(8):
            for side in ("roce_np", "roce_rp"):
                server.tree.write(f"class/net/{netdev}/ecn/{side}/enable/{priority}", str(1 - place))
    server.tree.netdev(None, "bond0", "94:6d:ae:00:01:00", mtu=9000)
    server.tree.write("class/net/bond0/bonding/mode", "802.3ad 4")
    server.tree.rdma(first, "mlx5_bond_0", guid(2, 0))
    server.tree.port("mlx5_bond_0", link_layer="Ethernet")
    node = server.read()
    (part,) = [
        hca.name for hca in sysfs.read_node([str(server.tree.root)]).hcas if hca.pci and hca.pci.address[-1] == "1"
    ]
    shown = {row: {reading.value: reading.where for reading in node.rows[row]} for row in network.ROCE}
    assert shown["roce_trust"] == {"dscp": ("mlx5_0", "mlx5_bond_0"), "pcp": (part,)}
    assert shown["roce_ecn"] == {"0-7": ("mlx5_0", "mlx5_bond_0"), "none": (part,)}
    assert all(part in node.rows[row][0].where for row in ("roce_pfc", "roce_dscp", "mtu"))
    # settings of the RDMA device, and of the bond
    assert not any(part in where for row in ("roce_traffic_class", "roce_tos") for where in shown[row].values())
    assert not any(part in reading.where for reading in node.rows["arp_announce"])
    assert {argv[-1] for argv in tools.argvs if "pfc" in argv} == {"ens1np0", "ens3f0np0", "ens3f1np1"}


@pytest.mark.parametrize("of", [{"inside": "\t1"}, {"user": 1000}])
def test_a_process_of_a_container_or_of_a_user_stands_for_no_service_of_the_node(
    server: Server, of: dict[str, typing.Any]
) -> None:
    for pid, name in ((7, "containerd"), (8, "irqbalance"), (11, "crio")):
        server.process(pid, name, 65536, **of)
    assert server.shown("irqbalance") == {"absent": ()} and server.shown("memlock") == {}
    server.process(12, "containerd", 8388608)
    assert server.shown("memlock") == {"8388608": ("containerd",)}


def test_one_cpu_of_many_is_found_and_the_fact_stays_small(server: Server) -> None:
    server.tree.write("devices/system/cpu/cpu200/cpufreq/scaling_governor", "powersave")
    server.tree.write("devices/system/cpu/cpu7/cpuidle/state2/disable", "0")
    assert server.shown("governor") == {"performance": ("0-199,201-255",), "powersave": ("200",)}
    assert server.shown("idle_latency") == {"1": ("0-6,8-255",), "133": ("7",)}
    assert len(repr(server.read())) < 12_000


def test_a_program_that_holds_the_latency_keeps_cpus_awake(server: Server) -> None:
    for cpu in range(CPUS):
        server.tree.write(f"devices/system/cpu/cpu{cpu}/cpuidle/state2/disable", "0")
    assert set(server.shown("idle_latency")) == {"133"}
    (server.host / "dev/cpu_dma_latency").write_bytes(struct.pack("=i", 99))
    assert set(server.shown("idle_latency")) == {"1"} and set(server.shown("held_latency")) == {"99"}


def test_acs_on_the_way_and_interrupts_far_away(server: Server) -> None:
    server.tree.write(f"bus/pci/devices/{DOWN_HCA}/config", config(acs=0x1D))
    server.file(server.proc, "irq/51/effective_affinity_list", "130")
    assert server.shown("acs") == {"direct": (DOWN_GPU,), "redirect": (DOWN_HCA,)}
    assert server.shown("irq_locality") == {"remote": ("mlx5_0",)}


def test_interrupts_on_cpus_that_are_kept_free_for_jobs(server: Server) -> None:
    server.tree.write("devices/system/cpu/isolated", "4-255")
    assert server.shown("irq_isolated") == {"isolated": ("mlx5_0",)}, "interrupt 51 goes to 0-127"
    server.file(server.proc, "irq/51/effective_affinity_list", "1")
    assert server.shown("irq_isolated") == {"apart": ("mlx5_0",)}
    server.tree.write("devices/system/cpu/nohz_full", "1-3")
    assert server.shown("irq_isolated") == {"isolated": ("mlx5_0",)}


def test_a_node_that_is_not_told_matters_where_there_are_several(server: Server) -> None:
    server.tree.write(f"bus/pci/devices/{HCA}/numa_node", "-1")
    assert server.shown("numa_told") == {"no": ("mlx5_0",), "yes": (GPU,)}
    server.tree.write("devices/system/node/has_cpu", "0")
    assert server.shown("numa_told") == {}


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
def test_acs_is_not_judged_where_packets_go_another_way(
    server: Server, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    server.tree.write(f"bus/pci/devices/{DOWN_HCA}/config", config(acs=0x1D))
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "node", "6.18", "#1", machine)))
    # below one switch, ACS decides on Arm too
    assert server.shown("acs") == {"direct": (DOWN_GPU,), "redirect": (DOWN_HCA,)}
    direct = "devices/pci0000:97/0000:97:01.0"
    server.tree.write(f"{direct}/vendor", "0x15b3")
    server.tree.write(f"{direct}/device", "0x2100")
    server.tree.link("bus/pci/devices/0000:97:01.0", direct)
    assert server.shown("acs") == {"exempt": (DOWN_GPU, DOWN_HCA)}


def test_relaxed_ordering_of_the_ways_ends(server: Server) -> None:
    for address in (GPU, ROOT_PORT):
        server.tree.write(f"bus/pci/devices/{address}/config", config(b"\x20\x59"))
    assert server.shown("relaxed_ordering_gpu") == {"off": (GPU,)} and server.shown("relaxed_ordering_root") == {
        "off": (ROOT_PORT,)
    }
    assert server.shown("relaxed_ordering") == {"on": ("mlx5_0",)}


def test_what_the_kernel_was_built_with_is_read_where_it_is(server: Server) -> None:
    release = os.uname().release
    boot = server.host / f"boot/config-{release}"
    boot.write_text(kernel_of("6.18-off"), encoding="utf-8")
    assert server.shown("p2pdma") == {"off": ()}
    server.tree.write("module/nvidia_peermem/refcnt", "0")
    assert server.shown("p2pdma") == {"peermem": ()}
    (server.proc / "config.gz").write_bytes(gzip.compress(kernel_of("6.18-on").encode()))
    assert server.shown("p2pdma") == {"on": ()}
    (server.proc / "config.gz").write_bytes(b"\x1f\x8b cut off")
    assert "config.gz" in server.read().unread["p2pdma"]
    (server.proc / "config.gz").unlink()
    boot.unlink()
    node = server.read()
    assert node.rows["p2pdma"] == () and "neither /proc/config.gz" in node.unread["p2pdma"]
    server.file(server.host, f"usr/lib/modules/{release}/config", kernel_of("6.18-left-out").rstrip())
    assert server.shown("p2pdma") == {"peermem": ()}


def test_what_a_plain_user_can_not_read_is_no_value(server: Server) -> None:
    for address in (HCA, DOWN_GPU, ROOT_PORT, GPU):
        server.tree.write(f"bus/pci/devices/{address}/config", config()[:64])
    node = server.read()
    assert node.rows["max_read_request"] == () and node.rows["acs"][0].where == (DOWN_HCA,)
    assert all("only root can read all of it" in node.unread[row] for row in _OF_CONFIG)


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", ["governor"]),
        ("sys/devices/system/cpu/online", ["cpu_driver", "cpus_online", "governor", "idle_latency"]),
        ("sys/devices/system/cpu/cpu3/cpuidle/state1/disable", ["idle_latency"]),
        ("sys/devices/system/cpu/isolated", ["irq_isolated", "isolated"]),
        ("sys/devices/system/node/has_cpu", ["numa_told"]),
        ("sys/devices/system/node/node1/cpulist", ["numa_cpus"]),
        ("sys/kernel/mm/transparent_hugepage/enabled", ["thp"]),
        ("sys/class/net/ens1np0/mtu", ["mtu"]),
        ("sys/class/net/ens1np0/qos/trust", ["roce_trust"]),
        ("sys/class/net/ens1np0/ecn/roce_rp/enable/3", ["roce_ecn"]),
        ("sys/class/infiniband/mlx5_0/tc/1/traffic_class", ["roce_traffic_class"]),
        ("proc/sys/kernel/numa_balancing", ["numa_balancing"]),
        ("proc/sys/net/ipv4/conf/all/arp_ignore", ["arp_ignore"]),
        ("proc/irq/50/effective_affinity_list", ["irq_isolated", "irq_locality"]),
        ("proc/swaps", ["swap_kib"]),
        ("proc/7/limits", ["memlock"]),
        ("host/etc/tuned/active_profile", ["tuned"]),
        ("host/var/lib/kubelet/cpu_manager_state", ["cpu_manager"]),
        ("host/var/lib/kubelet/config.yaml", ["reserved_cpus", "topology_manager", "topology_scope"]),
    ],
)
def test_a_file_that_says_something_else_is_unread_by_its_row(
    path: str, rows: list[str], server: Server, tmp_path: pathlib.Path
) -> None:
    target = tmp_path / path
    target.write_bytes(b"\xff\xfe nonsense [")
    unread = server.read().unread
    assert sorted(unread) == rows and all(target.name in why for why in unread.values() if len(rows) < 3)


def test_a_folder_in_the_place_of_a_file_is_unread_and_not_absent(server: Server) -> None:
    path = server.proc / "sys/kernel/numa_balancing"
    path.unlink()
    path.mkdir()
    node = server.read()
    assert "Is a directory" in node.unread["numa_balancing"] and "numa_balancing" not in node.rows


def test_a_kubeconfig_is_no_configuration_of_the_kubelet(server: Server) -> None:
    server.file(server.host, "etc/kubernetes/kubelet.conf", "kind: Config\ncurrent-context: x")
    assert server.shown("topology_manager") == {"restricted": ()}
    server.file(
        server.host,
        "etc/kubernetes/kubelet.conf",
        "kind: KubeletConfiguration\ntopologyManagerPolicy: none\nreservedSystemCPUs: 0-3",
    )
    assert server.shown("topology_manager") == {"none": ()} and server.shown("reserved_cpus") == {"0-3": ()}


MAIN, DROP_INS = "var/lib/kubelet/config.yaml", "etc/openshift/kubelet.conf.d"
BY_FILES = ("--config=/var/lib/kubelet/config.yaml", f"--config-dir=/{DROP_INS}")


def of_kubelet(server: Server, *arguments: str, pid: int = 20, **of_process: typing.Any) -> None:
    server.process(pid, "kubelet", 65536, **of_process)
    (server.proc / str(pid) / "cmdline").write_text("".join(f"{item}\0" for item in ("/usr/bin/kubelet", *arguments)))


def configure(server: Server, name: str, *settings: str) -> None:
    head = ("apiVersion: kubelet.config.k8s.io/v1beta1", "kind: KubeletConfiguration")
    server.file(server.host, name, "\n".join((*head, *settings)))


@pytest.mark.parametrize(
    ("arguments", "drop_ins", "policy", "cpus"),
    [
        (BY_FILES, {}, "restricted", "0-3"),
        (BY_FILES, {"99-site.conf": ("topologyManagerPolicy: none",)}, "none", "0-3"),
        (BY_FILES, {"99-site.conf": ("reservedSystemCPUs: ''  # all for jobs",)}, "restricted", "none"),
        (BY_FILES, {"99-site.conf": ("topologyManagerPolicy: null",)}, "none", "0-3"),
        # in lexical order, those of subfolders in their place, and nothing else
        (
            BY_FILES,
            {
                "50-a/z.conf": ("topologyManagerPolicy: best-effort", "reservedSystemCPUs: 0-7"),
                "9-b.conf": ("topologyManagerPolicy: single-numa-node",),
                "10-c.conf": ("topologyManagerPolicy: none", "reservedSystemCPUs: 0-1"),
                "99-d.yaml": ("topologyManagerPolicy: none",),
            },
            "single-numa-node",
            "0-7",
        ),
        # flags override all files, and the last one counts
        (
            (*BY_FILES, "--topology-manager-policy=none", "--topology_manager_policy", "best-effort"),
            {"99-site.conf": ("topologyManagerPolicy: single-numa-node",)},
            "best-effort",
            "0-3",
        ),
        ((*BY_FILES, "--reserved-cpus=4,5", "--", "--reserved-cpus=6"), {}, "restricted", "4,5"),
        # without --config-dir no drop-in counts, and without --config no file
        (BY_FILES[:1], {"99-site.conf": ("topologyManagerPolicy: none",)}, "restricted", "0-3"),
        (BY_FILES[1:], {"99-site.conf": ("topologyManagerPolicy: best-effort",)}, "best-effort", "none"),
        (("--kubeconfig=/etc/kubernetes/kubelet.conf",), {}, "none", "none"),
    ],
)
def test_the_kubelet_is_read_as_it_merges_its_files_and_flags(
    server: Server, arguments: tuple[str, ...], drop_ins: dict[str, tuple[str, ...]], policy: str, cpus: str
) -> None:
    configure(server, MAIN, "topologyManagerPolicy: restricted", "reservedSystemCPUs: 0-3")
    for name, settings in drop_ins.items():
        configure(server, f"{DROP_INS}/{name}", *settings)
    of_kubelet(server, *arguments)
    node = server.read()
    assert {row: node.rows[row][0].value for row in ("topology_manager", "reserved_cpus")} == {
        "topology_manager": policy,
        "reserved_cpus": cpus,
    }
    assert node.unread == {}


@pytest.mark.parametrize(
    "folder",
    [
        DROP_INS,
        "etc/kubernetes/kubelet.conf.d",
        "var/lib/rancher/rke2/agent/etc/kubelet.conf.d",
        "var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
    ],
)
def test_a_drop_in_of_a_kubelet_that_is_not_found_makes_its_settings_unknown(server: Server, folder: str) -> None:
    # any user can give a process this name
    of_kubelet(server, user=1000)
    of_kubelet(server, pid=21, inside="\t1")
    (server.host / folder).mkdir(parents=True)
    assert server.shown("topology_manager") == {"restricted": ()}
    configure(server, f"{folder}/99-site.conf", "topologyManagerPolicy: none")
    node = server.read()
    assert [*node.unread] == ["reserved_cpus", "topology_manager", "topology_scope"]
    assert f"{folder}/99-site.conf: the command line of the kubelet was not found" in node.unread["topology_manager"]
    assert not {*node.unread} & {*node.rows} and "cpu_manager" in node.rows


@pytest.mark.parametrize(
    ("arguments", "drop_in", "scope"),
    [
        (BY_FILES, (), "container"),
        (BY_FILES, ("topologyManagerScope: pod",), "pod"),
        ((*BY_FILES, "--topology-manager-scope=container"), ("topologyManagerScope: pod",), "container"),
    ],
)
def test_the_scope_of_the_topology_manager_is_read(
    server: Server, arguments: tuple[str, ...], drop_in: tuple[str, ...], scope: str
) -> None:
    configure(server, f"{DROP_INS}/99-site.conf", *drop_in)
    of_kubelet(server, *arguments)
    assert server.shown("topology_scope") == {scope: ()}


@pytest.mark.parametrize(
    ("files", "process", "words"),
    [
        ((), "k3s-server", "kubelet-arg of K3s were not read (its command line)"),
        (("k3s/config.yaml",), "k3s-agent", "/etc/rancher/k3s/config.yaml)"),
        (("k3s/config.yaml.d/99-site.yaml", "k3s/config.yaml.d/note.txt"), "", "/config.yaml.d/99-site.yaml)"),
        (("rke2/config.yaml", "rke2/config.yaml.d/1.yml"), "", "kubelet-arg of RKE2 were not read"),
    ],
)
def test_the_kubelet_of_k3s_is_unread_by_the_names_of_its_files(
    server: Server, files: tuple[str, ...], process: str, words: str
) -> None:
    """The configuration of another kubelet lies on the node as well, as a node that was of kubeadm before has it."""
    assert server.shown("topology_manager") == {"restricted": ()}
    for name in files:
        server.file(server.host, f"etc/rancher/{name}", "kubelet-arg:\n- topology-manager-policy=none")
    if process:
        server.process(30, process, 65536)
    node = server.read()
    assert [*node.unread] == ["reserved_cpus", "topology_manager", "topology_scope"]
    assert words in node.unread["topology_manager"] and "note.txt" not in node.unread["topology_manager"]
    # the kubelet of RKE2 is a process, which has them as its flags
    of_kubelet(server, *BY_FILES, "--topology-manager-policy=best-effort")
    assert server.shown("topology_manager") == {"best-effort": ()} and server.read().unread == {}


def _break_drop_in(server: Server) -> None:
    server.file(server.host, f"{DROP_INS}/99-site.conf", "topologyManagerPolicy: none")


def _remove_main_file(server: Server) -> None:
    (server.host / MAIN).unlink()


def _cut_command_line(server: Server) -> None:
    of_kubelet(server, *BY_FILES, "--reserved-cpus")
    (server.proc / "20/cmdline").write_text("kubelet\0--reserved-cpus")


def _start_second_kubelet(server: Server) -> None:
    of_kubelet(server, "--topology-manager-policy=none", pid=21)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_break_drop_in, "99-site.conf"),
        (_remove_main_file, "config.yaml: the kubelet loads this file, and it does not exist"),
        (_cut_command_line, "command line of the kubelet"),
        (_start_second_kubelet, "several processes of the kubelet"),
    ],
)
def test_what_the_kubelet_merges_and_can_not_be_read_is_no_value(
    server: Server, change: typing.Callable[[Server], None], why: str
) -> None:
    of_kubelet(server, *BY_FILES)
    # a process that is about to run another program has the same arguments for a moment
    of_kubelet(server, *BY_FILES, pid=22)
    assert server.shown("topology_manager") == {"restricted": ()}
    change(server)
    node = server.read()
    assert [*node.unread] == ["reserved_cpus", "topology_manager", "topology_scope"] and why in node.unread[
        "topology_manager"
    ]
    assert not {*node.unread} & {*node.rows}


@pytest.mark.parametrize(
    ("vendor", "device", "kind"),
    [
        ("0x1002", "0x74a1", "0x120000"),  # MI300X
        ("0x1002", "0x740f", "0x038000"),  # MI210
        ("0x1da3", "0x1020", "0x120000"),  # Gaudi2
    ],
)
def test_a_gpu_of_another_vendor_has_its_rows_of_pci(
    server: Server, tools: Tools, vendor: str, device: str, kind: str
) -> None:
    folder = server.tree.root / "bus/pci/devices" / GPU
    for name, value in (("vendor", vendor), ("device", device), ("class", kind), ("current_link_width", "4")):
        (folder / name).write_text(f"{value}\n")
    (server.tree.root / "bus/pci/devices" / DOWN_HCA / "config").write_bytes(config(acs=0x1D))
    assert server.shown("gpus") == {"1": ()}
    assert server.shown("gpu_model") == {f"{vendor[2:]}:{device[2:]}": (GPU,)}
    assert server.shown("gpu_link_width") == {"x4 of x16": (GPU,)}
    assert server.shown("gpu_nic_path") == {"PIX": (f"{GPU} mlx5_0",)}
    assert server.shown("acs") == {"direct": (DOWN_GPU,), "redirect": (DOWN_HCA,)}
    assert server.shown("p2pdma") == {"on": ()}
    # of NVIDIA alone
    node = server.read()
    assert not {"gpu_driver", "gpu_slowed", "gpu_fabric", "relaxed_ordering_gpu"} & {*node.unread}
    assert node.rows["gpu_slowed"] == node.rows["relaxed_ordering_gpu"] == ()
    assert not any("--format=csv" in argv for argv in tools.argvs)


def test_the_link_of_an_amd_card_with_a_switch_is_that_of_the_card(server: Server) -> None:
    devices = server.tree.root / "bus/pci/devices"
    (devices / GPU / "vendor").write_text("0x1002\n")
    (devices / GPU / "class").write_text("0x038000\n")
    (devices / DOWN_GPU / "vendor").write_text("0x1002\n")
    (devices / DOWN_GPU / "current_link_width").write_text("8\n")
    (devices / DOWN_GPU / "max_link_width").write_text("16\n")
    assert server.shown("gpu_link_width") == {"x8 of x16": (GPU,)}


def test_other_functions_of_these_vendors_are_no_gpus(server: Server) -> None:
    (server.tree.root / "bus/pci/devices" / GPU / "vendor").write_text("0x1002\n")
    (server.tree.root / "bus/pci/devices" / GPU / "class").write_text("0x040300\n")
    assert server.shown("gpus") == server.shown("gpu_model") == {}


def test_without_a_log_of_the_kernel_nobody_knows_of_faults(server: Server) -> None:
    (server.host / "dev/kmsg").unlink()
    node = server.read()
    for row in ("kernel_log", "kernel_log_corrected", "kernel_log_programs"):
        assert "does not exist" in node.unread[row] and row not in node.rows


def test_a_fault_of_a_program_and_a_corrected_error_are_no_fault_of_a_device(server: Server) -> None:
    log = server.host / "dev/kmsg"
    log.write_text("4,1,1,-;NVRM: Xid (PCI:0000:1a:00): 31, pid=7, name=python, Ch 00000008, MMU Fault")
    assert server.shown("kernel_log") == server.shown("kernel_log_corrected") == {"none": ()}
    assert server.shown("kernel_log_programs") == {"Xid 31": ("0000:1a:00",)}
    log.write_text(f"4,1,1,-;pcieport {ROOT_PORT}: PCIe Bus Error: severity=Corrected, type=Physical Layer")
    assert server.shown("kernel_log") == server.shown("kernel_log_programs") == {"none": ()}
    assert server.shown("kernel_log_corrected") == {"PCIe error Corrected": (ROOT_PORT,)}
    log.write_text("3,1,1,-;NVRM: Xid (PCI:0000:1a:00): 79, pid=7, GPU has fallen off the bus.")
    assert server.shown("kernel_log") == {"Xid 79": ("0000:1a:00",)}
    assert server.shown("kernel_log_corrected") == server.shown("kernel_log_programs") == {"none": ()}


def test_a_driver_before_535_names_the_reasons_otherwise(server: Server, tools: Tools) -> None:
    rc, out = tools.said["nvidia-smi"]
    tools.said["nvidia-smi"] = (
        rc,
        out.replace("clocks_event_reasons", "clocks_throttle_reasons").replace(
            "0x0000000000000001", "0x0000000000000048"
        ),
    )
    assert server.shown("gpu_slowed") == {"hw_slowdown+hw_thermal": (GPU,)}
    assert sum("--format=csv" in argv for argv in tools.argvs) == 2


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("P0, 3, 5", {"gen 3 of gen 5": (GPU,)}),
        ("P0, 5, 4", {"full": (GPU,)}),
        ("P8, 1, 4", {"idle": (GPU,)}),
        ("P8, 4, 4", {"full": (GPU,)}),
        ("P2, 3, 4", {"idle": (GPU,)}),
        # a GPU that is passed to a virtual machine may not have it
        ("P0, [N/A], 5", {}),
    ],
)
def test_link_of_a_gpu_that_works_has_its_full_speed(
    server: Server, tools: Tools, link: str, shown: dict[str, typing.Any]
) -> None:
    rc, out = tools.said["nvidia-smi"]
    tools.said["nvidia-smi"] = (rc, out.replace("P0, 5, 5", link))
    assert server.shown("gpu_link_speed") == shown


def test_link_of_a_gpu_that_nvidia_smi_shows_otherwise_is_not_read(server: Server, tools: Tools) -> None:
    rc, out = tools.said["nvidia-smi"]
    tools.said["nvidia-smi"] = (rc, out.replace("P0, 5, 5", "Unknown, 5, 5"))
    assert "such as P0 5 5" in server.read().unread["gpu_link_speed"]


def test_a_driver_that_lacks_fields_of_the_nvlink_fabric_is_said(server: Server, tools: Tools) -> None:
    tools.said["nvidia-smi"] = (
        0,
        (FIXTURES / "nvidia-smi/580.159.04-row.csv").read_text("utf-8").replace("00:06", "1A:00"),
    )
    node = server.read()
    assert "does not support the field fabric.state" in node.unread["gpu_fabric"]
    assert "fabric.health.summary" in node.unread["gpu_fabric_health"] and node.rows["gpu_ecc"]
    # one command for each field that nvidia-smi refuses, and the last
    assert node.rows["gpu_link_speed"] == () and "gpu_link_speed" not in node.unread
    assert sum("--format=csv" in argv for argv in tools.argvs) == 9


@pytest.mark.parametrize(
    ("state", "status", "registration"),
    [
        ("Completed", "Success", "Success"),
        ("Completed", "Insufficient Resources", "Insufficient Resources"),
        ("In Progress", "N/A", "In Progress"),
        ("Not Started", None, "Not Started"),
        ("Not Supported", "Success", None),
        ("state  Completed", "status Success", "Success"),
        ("Completed", None, "Completed without a status"),
        (None, None, None),
    ],
)
def test_a_registration_with_the_nvlink_fabric_is_its_status_once_it_is_completed(
    state: typing.Optional[str], status: typing.Optional[str], registration: typing.Optional[str]
) -> None:
    shown = {"fabric.state": state, "fabric.status": status}
    assert gpu._read_registration({key: value for key, value in shown.items() if value}) == registration


@pytest.mark.parametrize(
    ("cluster", "clique", "read"),
    [
        ("7c9ee2a1-3b7d-4c1e-9a37-6f0a51d3c2b8", "32766", "7c9ee2a1-3b7d-4c1e-9a37-6f0a51d3c2b8.32766"),
        ("00000000-0000-0000-0000-000000000000", "0", None),
        ("7c9ee2a1-3b7d-4c1e-9a37-6f0a51d3c2b8", None, None),
        (None, "1", None),
    ],
)
def test_a_clique_is_that_of_a_domain_of_several_machines(
    cluster: typing.Optional[str], clique: typing.Optional[str], read: typing.Optional[str]
) -> None:
    shown = {"fabric.clusterUuid": cluster, "fabric.cliqueId": clique}
    assert gpu._read_clique({key: value for key, value in shown.items() if value}) == read


def in_fabric(tools: Tools, *of_gpus: str) -> None:
    """Let nvidia-smi show the fields of the NVLink fabric so; each GPU has its own line."""
    head, row = tools.said["nvidia-smi"][1].strip().split("\n")
    rows = [
        row.replace("1A:00.0", f"{26 + number:02X}:00.0").replace("N/A, N/A, N/A, N/A, N/A", shown)
        for number, shown in enumerate(of_gpus)
    ]
    tools.said["nvidia-smi"] = (0, "\n".join((head, *rows)))


def test_a_gpu_in_an_nvlink_domain_shows_its_registration_health_and_clique(server: Server, tools: Tools) -> None:
    in_fabric(tools, "Completed, Success, 7c9ee2a1-3b7d-4c1e-9a37-6f0a51d3c2b8, 32766, Healthy")
    assert server.shown("gpu_fabric") == {"Success": (GPU,)} and server.shown("gpu_fabric_health") == {
        "Healthy": (GPU,)
    }
    assert server.shown("gpu_clique") == {"7c9ee2a1-3b7d-4c1e-9a37-6f0a51d3c2b8.32766": (GPU,)}


def test_a_gpu_whose_registration_goes_on_shows_that(server: Server, tools: Tools) -> None:
    in_fabric(tools, "In Progress, N/A, N/A, N/A, N/A")
    assert server.shown("gpu_fabric") == {"In Progress": (GPU,)} and server.shown("gpu_clique") == {}


def test_a_gpu_without_a_fabric_beside_one_that_has_it_is_unread(server: Server, tools: Tools) -> None:
    in_fabric(tools, "N/A, N/A, N/A, N/A, N/A", "Completed, Success, 00000000-0000-0000-0000-000000000000, 0, N/A")
    node = server.read()
    assert "no state of the NVLink fabric for the GPU 0000:1a:00.0" in node.unread["gpu_fabric"]
    assert node.rows["gpu_clique"] == ()


def test_a_gpu_that_nvidia_smi_does_not_show_is_missed(server: Server, tools: Tools) -> None:
    rc, out = tools.said["nvidia-smi"]
    tools.said["nvidia-smi"] = (rc, out.replace("1A:00.0", "2A:00.0"))
    assert GPU in server.read().unread["gpu_ecc"]


@pytest.mark.parametrize(
    ("tool", "said", "rows"),
    [
        (
            "nvidia-smi",
            (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
            ["gpu_driver", "gpu_ecc", "gpu_slowed"],
        ),
        ("pfc", (1, "Attribute read: Operation not supported"), ["roce_pfc"]),
        ("app", (1, "Attribute read: Operation not supported"), ["roce_dscp"]),
        ("pfc", (0, "{}"), ["roce_pfc"]),
        ("app", (0, "["), ["roce_dscp"]),
    ],
)
def test_a_tool_that_fails_is_said(
    tool: str, said: tuple[int, str], rows: list[str], server: Server, tools: Tools
) -> None:
    tools.said[tool] = said
    unread = server.read().unread
    assert set(rows) <= set(unread) and all(not set(server.read().rows.get(row, ())) for row in rows)
    if said[0]:
        assert all(said[1] in unread[row] for row in rows)


def test_tools_that_are_not_there_are_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(tool: str, package: str) -> str:
        raise RdmaError(f"{tool} is not installed", f"Install {package}")

    monkeypatch.setattr(command, "require_tool", missing)
    monkeypatch.setattr(gpu, "_find_program", lambda host: None)
    server.tree.write("module/nvidia/version", "570.86.15")
    node = server.read()
    assert "dcb is not installed" in node.unread["roce_pfc"] and "roce_trust" not in node.unread
    assert "nvidia-smi" in node.unread["gpu_ecc"]
    # the kernel says this one itself
    assert [reading.value for reading in node.rows["gpu_driver"]] == ["570.86.15"] and "gpu_driver" not in node.unread


def test_nvidia_smi_of_the_driver_container_is_run_in_its_root(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "chroot").touch(mode=0o755)
    monkeypatch.setattr(command, "search_path", lambda: str(folder))
    assert gpu._find_program(str(tmp_path)) is None
    program = tmp_path / "run/nvidia/driver/usr/bin/nvidia-smi"
    program.parent.mkdir(parents=True)
    program.touch()
    assert gpu._find_program(str(tmp_path)) == [
        str(folder / "chroot"),
        str(tmp_path / "run/nvidia/driver"),
        "/usr/bin/nvidia-smi",
    ]
    (folder / "nvidia-smi").touch(mode=0o755)
    assert gpu._find_program(str(tmp_path)) == [str(folder / "nvidia-smi")]


def test_infiniband_and_no_gpu_run_no_tool(tmp_path: pathlib.Path, tools: Tools) -> None:
    tree = Tree(tmp_path / "sys")
    add_six_hcas(tree)
    roots = [str(tree.root)]
    node = read_tuning(roots, sysfs.read_node(roots), str(tmp_path), str(tmp_path))
    assert tools.argvs == [] and all(node.rows[row] == () for row in (*network.ROCE, "gpus", "gpu_ecc"))
    assert node.rows["hca_model"][0].where == tuple(f"mlx5_{index}" for index in range(6))


def test_it_runs_on_this_machine_and_changes_nothing() -> None:
    mode = os.stat("/proc/cmdline").st_mode
    node = read_tuning(["/sys"], sysfs.read_node(["/sys"]))
    assert stat.S_ISREG(mode) and node.rows["kernel"][0].value == os.uname().release
    assert not set(node.rows["cpus_online"]) & {None}


def test_equal_values_stand_together_in_natural_order() -> None:
    rows = Rows()
    for name in ("mlx5_10", "mlx5_9", "mlx5_10"):
        rows.add("mtu", 9000, name)
    rows.absent("mtu", "acs")
    rows.unread("a", "mtu")
    rows.unread("b", "mtu")
    node = rows.result()
    assert (
        node.rows["mtu"][0].where == ("mlx5_9", "mlx5_10")
        and node.rows["acs"] == ()
        and node.unread == {"mtu": "a (the first of 2 errors)"}
    )
