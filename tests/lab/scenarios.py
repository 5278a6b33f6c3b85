# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults as data: how each is injected, and the finding that must name it. The tests run them, and docs/faults.md is
made from them."""

from __future__ import annotations

import dataclasses
import typing

from lab.build.images import PAUSE_IMAGE

from .conftest import SETTINGS


@dataclasses.dataclass(frozen=True)
class Injection:
    """A fault of the lab.

    :ivar name: as 'python -m lab fault' takes it
    :ivar target: its options
    :ivar after: text in the playbook's output after which it is injected; empty: before the playbook starts
    :ivar times: how often that text must be there
    """

    name: str
    target: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    after: str = ""
    times: int = 1

    @property
    def words(self) -> list[str]:
        return [word for key, value in self.target.items() for word in (f"--{key}", value)]


@dataclasses.dataclass(frozen=True)
class Expected:
    """A finding that must come of it.

    :ivar fault: what is wrong, as an admin would say it
    :ivar subject: of the finding; * stands for any text
    :ivar says: texts that must be in its measured, expected or why
    :ivar remedy: text that must be in its remedy
    :ivar how: words for the page, where no injection of its own makes it
    """

    fault: str
    check: str
    subject: str
    says: tuple[str, ...]
    remedy: str
    status: str = "fail"
    how: str = ""

    @property
    def stage(self) -> str:
        return self.check.partition(".")[0]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One run of a playbook with one fault, or with several on different subjects.

    :ivar in_make_test: part of 'make test', which has one of each kind; all of them are 'make faults', and take longer
        than CI should
    :ivar playbook_succeeds: the playbook must end with exit code 0 although the fault is there
    :ivar heals: playbook that must end well with the lab's own intent once the fault is taken back, and leaves the lab
        as it was
    :ivar how: words for the page, where variables are what injects it
    """

    name: str
    playbook: str
    expected: tuple[Expected, ...]
    injections: tuple[Injection, ...] = ()
    variables: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    how: str = ""
    playbook_succeeds: bool = False
    in_make_test: bool = False
    heals: str = ""


@dataclasses.dataclass(frozen=True)
class NotInjected:
    """A fault that the lab cannot inject, why, and the test that proves its finding from facts."""

    fault: str
    why: str
    finding: str
    test: str


def intent(**changes: typing.Any) -> list[dict[str, typing.Any]]:
    """The lab's fabrics with virtual functions, keys of ``storage`` replaced; a mapping is merged into the one that is
    there.

    The others would only be waited for again in each scenario.
    """

    def merged(fabric: dict[str, typing.Any]) -> dict[str, typing.Any]:
        return {
            **fabric,
            **{
                key: {**fabric[key], **value} if isinstance(value, dict) and key in fabric else value
                for key, value in changes.items()
            },
        }

    return [
        merged(fabric) if fabric["name"] == "storage" else fabric
        for fabric in SETTINGS["rdma_fabrics"]
        if "virtual_functions" in fabric
    ]


def alone(**changes: typing.Any) -> list[dict[str, typing.Any]]:
    """The fabric ``storage`` of ``intent``: two pods, where ``compute`` has eight that would be measured again in each
    scenario."""
    return [fabric for fabric in intent(**changes) if fabric["name"] == "storage"]


DISCOVER, FABRIC, REACHABILITY, PLATFORM, OPERATORS, NETWORK, VIRTUAL_FUNCTIONS, HOST, BANDWIDTH = (
    f"playbooks/{stage}.yml"
    for stage in (
        "discover",
        "fabric",
        "reachability",
        "platform",
        "operators",
        "network",
        "virtual_functions",
        "host",
        "bandwidth",
    )
)
#: what stage host shall give and prove
MEMLOCK = {"memlock": {"by": "containerd", "limit_gib": 1, "proof_mib": 64}}
NO_SUCH_NIC = {"vendor": "8086", "device": "1583", "netdev": ["eth1"]}
#: an HCA of each worker proves nothing of its BIOS by itself, so that the BMC is asked
NO_ROOM = tuple(
    Injection("pf-without-room", {"worker": worker, "device": "mlx5_0"}) for worker in ("worker-1", "worker-2")
)
#: both pods of a measurement run
PODS_READY = "pod is ready"
#: one of two measurements is done, the other runs
MEASURED = "5 pings"

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "clock-ahead",
        DISCOVER,
        (
            Expected(
                "clocks of two nodes 3 h apart",
                "discover.clock",
                "worker-2",
                ("3.0 h", "ahead of the controller", "Certificates, tokens and Leases"),
                "chronyc makestep",
            ),
        ),
        (Injection("clock-ahead", {"worker": "worker-2"}),),
    ),
    Scenario(
        "umad-absent",
        FABRIC,
        (
            Expected(
                "no device nodes of ib_umad on a worker",
                "fabric.hcas",
                "worker-2 compute",
                ("0 HCAs; 6 could not be queried", "no device node /dev/infiniband/umad*", "worker-2 mlx5_0"),
                "udevadm trigger --subsystem-match=infiniband_mad",
                status="unknown",
            ),
        ),
        (Injection("umad-absent", {"worker": "worker-2"}),),
    ),
    Scenario(
        "subnet-managers-killed",
        FABRIC,
        (
            Expected(
                "no subnet manager: all were killed",
                "fabric.one_master",
                "compute",
                ("no subnet manager", "sm-1 mlx5_0", "has ended"),
                (
                    "On that machine, read the log of the subnet manager and start it again (opensm: journalctl -u"
                    " opensm, systemctl start opensm)."
                ),
            ),
        ),
        (Injection("sm-killed", {"fabric": "fabric-1"}),),
        in_make_test=True,
    ),
    Scenario(
        "subnet-managers-hang",
        FABRIC,
        (
            Expected(
                "subnet manager that hangs: it runs and does not answer",
                "fabric.one_master",
                "compute",
                ("the subnet manager hangs: sm-1 mlx5_0",),
                "On that machine, read the log of the subnet manager and restart it",
            ),
        ),
        (Injection("sm-stopped", {"fabric": "fabric-1"}),),
    ),
    Scenario(
        "standby-took-over",
        FABRIC,
        (
            Expected(
                "the master killed, the standby took over",
                "fabric.standby",
                "compute",
                ("no standby",),
                ("Start a second subnet manager with a lower priority on another machine"),
                status="warn",
            ),
        ),
        (Injection("sm-master-killed", {"fabric": "fabric-1"}),),
        playbook_succeeds=True,
    ),
    Scenario(
        "two-masters",
        FABRIC,
        (
            Expected(
                "two masters",
                "fabric.one_master",
                "compute",
                ("2 masters", "sm-1 mlx5_0", "worker-1 mlx5_0"),
                (
                    "stop all of these subnet managers except one, check their logs, and give each its own"
                    " priority. Then run stage fabric again."
                ),
            ),
        ),
        (Injection("second-master", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "leaf-cut",
        FABRIC,
        (
            Expected(
                "leaf switch cut off",
                "fabric.island",
                "*fabric-1-leaf-2*",
                ("cut off", "all links from these switches to the other switches are down"),
                "check the ports that lead to other switches",
            ),
        ),
        (Injection("leaf-cut", {"fabric": "fabric-1"}),),
    ),
    Scenario(
        "swapped-cables",
        FABRIC,
        (
            Expected(
                "swapped cables: two HCAs on each other's leaf",
                "fabric.rails",
                "compute",
                ("worker-1: rail ", "(mlx5_0) on", "(mlx5_1) on"),
                "Compare the ports under 'measured' with the cabling plan",
            ),
        ),
        (Injection("swapped-cables", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "ports",
        FABRIC,
        (
            Expected(
                "one port unlinked",
                "fabric.hcas",
                "worker-1 compute",
                ("mlx5_0",),
                "check the cable and the switch port of each port that it does not show as Active",
            ),
            Expected(
                "a link with one lane of four",
                "fabric.rate",
                "worker-2 mlx5_4",
                ("100 Gb/s", "4X"),
                (
                    "Otherwise reseat or replace the cable or the transceiver while no job uses the link. Then run"
                    " stage fabric again."
                ),
            ),
            Expected(
                "symbol errors that grow",
                "fabric.errors_growing",
                "worker-2 mlx5_1",
                ("SymbolErrorCounter +",),
                "clean and reseat the cable at both ends",
            ),
        ),
        (
            Injection("link-cut", {"worker": "worker-1", "device": "mlx5_0"}),
            Injection("link-narrow", {"worker": "worker-2", "device": "mlx5_4"}),
            Injection("errors-growing", {"worker": "worker-2", "device": "mlx5_1", "counter": "symbol_error"}),
        ),
    ),
    Scenario(
        "counters",
        FABRIC,
        (
            Expected(
                "packets that are discarded",
                "fabric.errors_growing",
                "worker-2 mlx5_1",
                ("PortXmitDiscards +", "(congestion)"),
                "Repair the device behind the port that receives too slowly",
            ),
            Expected(
                "a counter at its maximum",
                "fabric.errors_growing",
                "worker-2 mlx5_4",
                ("at the maximum: SymbolErrorCounter 65535",),
                "Clear the counters",
                status="unknown",
            ),
        ),
        (
            Injection("errors-growing", {"worker": "worker-2", "device": "mlx5_1", "counter": "port_xmit_discards"}),
            Injection(
                "error-counters",
                {"worker": "worker-2", "device": "mlx5_4", "counter": "symbol_error", "value": "65535"},
            ),
        ),
    ),
    Scenario(
        "hca-missing",
        FABRIC,
        (
            Expected(
                "HCA missing on one node",
                "fabric.hcas",
                "worker-1 compute",
                ("3 HCAs",),
                "run lspci and dmesg on worker-1, and repair or install the missing HCA",
            ),
        ),
        (Injection("hca-missing", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "iommu-off-in-the-bios",
        PLATFORM,
        (
            Expected(
                "VT-d is off in the BIOS",
                "platform.iommu",
                "worker-2",
                ("off in the BIOS", "The BMC reports: IntelVTforDirectedI_O_VT_d__1E32 Disable"),
                "linerate.rdma.bios",
                status="warn",
            ),
        ),
        (Injection("iommu-off", {"worker": "worker-2"}),),
        playbook_succeeds=True,
    ),
    Scenario(
        "bmcs-that-do-not-answer",
        PLATFORM,
        (
            Expected(
                "a BMC is dead",
                "platform.bios",
                "worker-1 mlx5_0",
                ("The BMC of the node reports no settings", "refused"),
                "the BMC must respond",
                status="unknown",
            ),
            Expected(
                "a BMC with a wrong password",
                "platform.bios",
                "worker-2 mlx5_0",
                ("The BMC of the node reports no settings", "password"),
                "BMC",
                status="unknown",
            ),
            # the emulated NIC proves it without
            Expected(
                "a BMC that is not needed",
                "platform.bios",
                "worker-1 eth1",
                (),
                "",
                status="pass",
                how="`lab/fault bmc-dead on --worker worker-1`; the NIC shows room for its VFs without the BMC",
            ),
        ),
        (*NO_ROOM, Injection("bmc-dead", {"worker": "worker-1"}), Injection("bmc-password", {"worker": "worker-2"})),
    ),
    Scenario(
        "bmcs-that-can-not-be-asked",
        PLATFORM,
        (
            Expected(
                "a BMC that is too slow",
                "platform.bios",
                "worker-1 mlx5_0",
                ("The BMC of the node reports no settings", "5 s"),
                "",
                status="unknown",
            ),
            Expected(
                "a BMC with an expired certificate",
                "platform.bios",
                "worker-2 mlx5_0",
                ("The BMC of the node reports no settings", "expired"),
                "",
                status="unknown",
            ),
        ),
        (*NO_ROOM, Injection("bmc-slow", {"worker": "worker-1"}), Injection("bmc-expired", {"worker": "worker-2"})),
        {"platform_bmc_seconds": 5},
    ),
    Scenario(
        "bios-that-can-not-be-set",
        PLATFORM,
        (
            Expected(
                "SR-IOV is off in the BIOS",
                "platform.bios",
                "worker-1 mlx5_0",
                ("SriovGlobalEnable Disabled",),
                "racadm jobqueue delete",
            ),
            Expected(
                "a job that holds the BIOS", "platform.roll", "worker-1", ("BIOS sriov", "JID_"), "run the stage again"
            ),
            Expected(
                "a BMC in lockdown", "platform.roll", "worker-2", ("BIOS sriov", "lockdown"), "run the stage again"
            ),
        ),
        (
            *NO_ROOM,
            Injection("sriov-off", {"worker": "worker-1"}),
            Injection("bmc-job", {"worker": "worker-1"}),
            Injection("bmc-locked", {"worker": "worker-2"}),
            Injection("sriov-off", {"worker": "worker-2"}),
        ),
        {
            "platform_settle": True,
            "rdma_cluster": {**SETTINGS["rdma_cluster"], "bios": {"sriov": True}, "disruption": "reboot"},
        },
    ),
    # of the two BMCs that of worker-2 has an ETag
    Scenario(
        "bios-that-somebody-else-sets",
        PLATFORM,
        (
            Expected(
                "settings that change while they are set",
                "platform.roll",
                "worker-2",
                ("with 412", "another client changes its settings at the same time"),
                "Find and stop the other client, then rerun.",
            ),
        ),
        (Injection("sriov-off", {"worker": "worker-2"}), Injection("bmc-contended", {"worker": "worker-2"})),
        {
            "platform_settle": True,
            "rdma_cluster": {**SETTINGS["rdma_cluster"], "bios": {"sriov": True}, "disruption": "reboot"},
        },
    ),
    Scenario(
        "thp-of-one-node",
        "playbooks/tuning.yml",
        (Expected("THP differs", "tuning.alike", "thp*worker-2*", ("never on worker-2",), "", status="warn"),),
        (Injection("thp", {"worker": "worker-2"}),),
        playbook_succeeds=True,
    ),
    Scenario(
        "hca-slots",
        DISCOVER,
        (
            Expected(
                "a card with 8 lanes of 16",
                "discover.pcie",
                "worker-1 mlx5_0",
                ("32 GT/s x8", "trained down"),
                "Reseat the card",
                "warn",
            ),
            Expected(
                "a card at Gen4",
                "discover.pcie",
                "worker-2 mlx5_1",
                ("16 GT/s x16", "older generation"),
                "Reseat the card",
                "warn",
            ),
        ),
        (
            Injection("pcie-narrow", {"worker": "worker-1", "device": "mlx5_0"}),
            Injection("pcie-gen4", {"worker": "worker-2", "device": "mlx5_1"}),
        ),
        playbook_succeeds=True,
    ),
    Scenario(
        "numa-node-of-one-hca",
        DISCOVER,
        (
            Expected(
                "an HCA of which the BIOS names another NUMA node than elsewhere",
                "discover.numa",
                "0000:3c:00.0",
                ("NUMA node 0 on worker-1, 1 on worker-2", "no value is the most frequent"),
                "NPS (AMD) or SNC (Intel)",
                "warn",
            ),
        ),
        (Injection("numa-other", {"worker": "worker-2", "device": "mlx5_0"}),),
        playbook_succeeds=True,
    ),
    Scenario(
        "hca-on-ethernet",
        DISCOVER,
        (
            Expected(
                "an HCA whose port is set to Ethernet",
                "discover.fleet",
                "worker-1",
                ("5 InfiniBand HCAs", "This HCA is set to Ethernet: mlx5_5"),
                "mstconfig -d 0000:dc:00.0 set LINK_TYPE_P1=1",
                "warn",
            ),
        ),
        (Injection("firmware-ethernet", {"worker": "worker-1", "device": "mlx5_5"}),),
        playbook_succeeds=True,
    ),
    Scenario(
        "partition-of-one-hca",
        FABRIC,
        (
            Expected(
                "an HCA in another partition than the others",
                "fabric.partitions",
                "compute",
                (
                    "1 of 8 ports do not share a partition with all others",
                    "worker-1 mlx5_0 has 0x8001",
                    "The most frequent keys are 0xffff",
                ),
                "in partitions.conf of opensm",
            ),
        ),
        (Injection("pkey-other", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "read-request-of-one-hca",
        "playbooks/tuning.yml",
        (
            Expected(
                "MaxReadReq 128 on one card",
                "tuning.pci",
                "max_read_request of worker-1",
                ("128 (mlx5_0); 512 (mlx5_1",),
                "setpci -s ADDRESS CAP_EXP+8.w=5000:7000",
                status="warn",
            ),
        ),
        (Injection("read-request-small", {"worker": "worker-1", "device": "mlx5_0"}),),
        playbook_succeeds=True,
    ),
    Scenario(
        "acs-beside-an-hca",
        "playbooks/tuning.yml",
        (
            Expected(
                "ACS on the path between a GPU and its HCA",
                "tuning.pci",
                "acs of worker-1",
                ("redirect (0000:3b:00.0", "halves the rate of GPUDirect RDMA"),
                "pci=disable_acs_redir",
                status="warn",
            ),
            Expected(
                "a GPU of which no nvidia-smi says whether it slows itself down",
                "tuning.gpu",
                "worker-1 gpu_slowed",
                ("nvidia-smi exists neither on the node",),
                "Run ansible worker-1 --become -m linerate.rdma.node_info -a gather_subset=tuning",
                status="unknown",
                how="the same, which gives the worker a GPU: no image of the lab has `nvidia-smi`",
            ),
        ),
        (Injection("acs-redirects", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "vf-guids",
        VIRTUAL_FUNCTIONS,
        (
            Expected(
                "a VF without a GUID",
                "virtual_functions.guids",
                "compute worker-1 mlx5_0 0000:3c:00.0",
                ("1 of 2 VFs without a valid GUID", "has assigned no GUID to these VFs", "GUID is not valid"),
                "read the log of the config daemon on worker-1",
            ),
            Expected(
                "a VF whose driver has another GUID than its PF",
                "virtual_functions.guids",
                "compute worker-1 mlx5_1 0000:4d:00.0",
                (
                    "1 of 2 VFs with another GUID",
                    "were changed in the physical function after the driver bound the VFs",
                ),
                "/sys/bus/pci/drivers/mlx5_core/unbind",
            ),
            Expected(
                "two VFs with one GUID",
                "virtual_functions.guids",
                "0x02c0ffee00000001",
                ("on 2 functions", "worker-2 mlx5_"),
                "Give each node its own file /etc/sriov-operator/infiniband/guids",
            ),
        ),
        (
            Injection("vf-guid-zero", {"worker": "worker-1", "device": "mlx5_0"}),
            Injection("vf-guid-unread", {"worker": "worker-1", "device": "mlx5_1"}),
            Injection("vf-guid-twice", {"worker": "worker-2", "device": "mlx5_0"}),
            Injection("vf-guid-twice", {"worker": "worker-2", "device": "mlx5_1"}),
        ),
    ),
    Scenario(
        "vf-links",
        VIRTUAL_FUNCTIONS,
        (
            Expected(
                "a subnet manager that does not serve VFs",
                "virtual_functions.link_state",
                "compute worker-1 mlx5_4 0000:bc:00.0",
                ("The links of these VFs are up, but the subnet manager does not activate their ports",),
                "virt_enabled 2 in its opensm.conf",
            ),
            Expected(
                "a VF that was given back with GUIDs of ones",
                "virtual_functions.guids",
                "compute worker-1 mlx5_5 0000:dc:00.0",
                ("1 of 2 VFs without a valid GUID", "to ff:ff:ff:ff:ff:ff:ff:ff. It does this when a pod ends"),
                "Set a different GUID for each VF on worker-1",
            ),
            Expected(
                "a VF that a crashed pod has left in its network namespace",
                "virtual_functions.stuck",
                "compute worker-2 mlx5_4 0000:bc:00.0",
                ("1 of 2 VFs", "in network namespaces without processes", "lost-bc"),
                "ip netns delete lost-bc",
                "warn",
            ),
        ),
        (
            Injection("vf-unserved", {"worker": "worker-1", "device": "mlx5_4"}),
            Injection("vf-guid-ones", {"worker": "worker-1", "device": "mlx5_5"}),
            Injection("vf-stuck", {"worker": "worker-2", "device": "mlx5_4"}),
        ),
    ),
    Scenario(
        "plugin-offers-fewer",
        VIRTUAL_FUNCTIONS,
        (
            Expected(
                "a device plugin that offers fewer VFs than the kernel has",
                "virtual_functions.allocatable",
                "compute worker-1",
                (
                    "7 openshift.io/mlx_compute",
                    "The node has all 8 functions. The device plugin does not detect some of them",
                ),
                "kubectl get pods -A -o wide -l app=sriov-device-plugin",
            ),
        ),
        (Injection("plugin-offers-fewer", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "pf-without-sriov",
        PLATFORM,
        (
            Expected(
                "SR-IOV is off in the firmware",
                "platform.sriov",
                "worker-1 mlx5_0",
                (
                    "absent",
                    "the function offers no VFs in its PCI configuration space",
                ),
                "mstconfig -d 0000:3c:00.0 set SRIOV_EN=1",
            ),
        ),
        (Injection("pf-without-sriov", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "firmware-with-one-function",
        PLATFORM,
        (
            Expected(
                "more VFs are asked for than the firmware has",
                "platform.sriov",
                "worker-1 mlx5_4",
                ("sriov_totalvfs 1", "The function can create at most 1 VFs, but the fabric 'compute' requires 2 VFs"),
                "Raise the number of virtual functions in the firmware of the NIC:"
                " mstconfig -d 0000:bc:00.0 set NUM_OF_VFS=",
            ),
        ),
        (Injection("firmware-one-vf", {"worker": "worker-1", "device": "mlx5_4"}),),
    ),
    Scenario(
        "hca-lost-at-a-reset",
        PLATFORM,
        (
            Expected(
                "an HCA that does not come back from a reset",
                "platform.returned",
                "worker-1",
                (
                    "missing or slower: mlx5_0 (0000:3c:00.0)",
                    "The node had them before its reset.",
                ),
                "Run lspci -nn on the node",
            ),
        ),
        (
            Injection("hca-lost-at-reset", {"worker": "worker-1", "device": "mlx5_0"}),
            Injection("sriov-off", {"worker": "worker-1"}),
        ),
        {
            "platform_settle": True,
            "rdma_cluster": {**SETTINGS["rdma_cluster"], "bios": {"sriov": True}, "disruption": "reboot"},
        },
    ),
    Scenario(
        "firmware-waits",
        PLATFORM,
        (
            Expected(
                "SR-IOV that is off in the firmware after the next reset",
                "platform.firmware",
                "worker-1 mlx5_0",
                ("SRIOV_EN changes to False(0) at the next reset", "reset pending"),
                "mstconfig -d 0000:3c:00.0 -y set SRIOV_EN=True",
                "warn",
            ),
            Expected(
                "a port that is on Ethernet after the next reset",
                "platform.firmware",
                "worker-1 mlx5_1",
                ("LINK_TYPE_P1 changes to ETH(2) at the next reset", "reset pending"),
                "mstconfig -d 0000:4d:00.0 -y set LINK_TYPE_P1=IB",
                "warn",
            ),
        ),
        (
            Injection("firmware-sriov-waits", {"worker": "worker-1", "device": "mlx5_0"}),
            Injection("firmware-ethernet-waits", {"worker": "worker-1", "device": "mlx5_1"}),
        ),
        playbook_succeeds=True,
    ),
    Scenario(
        "server-unreachable",
        REACHABILITY,
        (
            Expected(
                "an ibping server that nothing reaches",
                "reachability.port",
                "compute * worker-2 mlx5_1 port 1",
                ("pings from this port: 0 of 1 without loss; pings to this port: 0 of 1 without loss",),
                "or else of the findings reachability.pair of this port. Then run stage reachability again.",
            ),
        ),
        (Injection("ibping-unreachable", {"worker": "worker-2", "device": "mlx5_1"}),),
    ),
    Scenario(
        "management-messages-lost",
        REACHABILITY,
        (
            Expected(
                "30 % of the management messages to one port are lost",
                "reachability.pair",
                "compute *worker-2 mlx5_1*",
                (
                    "messages lost",
                    "Messages are lost on the path",
                ),
                "Repair the link on the path whose error counters increase",
            ),
        ),
        (Injection("mad-loss", {"worker": "worker-2", "device": "mlx5_1", "percent": "30"}),),
    ),
    Scenario(
        "too-many-functions",
        NETWORK,
        (
            Expected(
                "numVfs above sriov_totalvfs",
                "network.lint_functions",
                "storage *",
                (
                    "numVfs(9)",
                    "exceed the maximum allowed value(7) interface(eth1)",
                ),
                "Lower virtual_functions of the fabric, or raise the number of virtual functions in the firmware",
            ),
        ),
        variables={"rdma_fabrics": intent(virtual_functions=9)},
        how="`virtual_functions: 9`, the NIC has 7 at most",
    ),
    Scenario(
        "no-nic-selected",
        NETWORK,
        (
            Expected(
                "policy that selects no NIC",
                "network.lint_select",
                "storage worker-1",
                ("nearest is eth1", "deviceID is 10c9, and the policy requires 1583"),
                "Correct select of fabric storage, or correct the reason under 'why'",
            ),
        ),
        variables={"rdma_fabrics": intent(select=NO_SUCH_NIC), "rdma_waivers": []},
        how='`select.device: "1583"`, which no node has',
    ),
    Scenario(
        "no-nic-selected-webhook",
        NETWORK,
        (
            Expected(
                "policy that selects no NIC, the linter waived",
                "network.policy_accepted",
                "storage SriovNetworkNodePolicy linerate-storage",
                ("no supported NIC is selected by the nicSelector",),
                "Compare select of the fabric with status.interfaces in kubectl get sriovnetworknodestates -A -o yaml",
            ),
            Expected(
                "objects of a fabric that was taken out of the intent",
                "network.leftover",
                "NetworkAttachmentDefinition macvlan-fast",
                ("for fabric fast, which the current intent does not contain",),
                "kubectl delete networkattachmentdefinition macvlan-fast -n training",
                "warn",
            ),
        ),
        variables={
            "rdma_fabrics": intent(select=NO_SUCH_NIC),
            "rdma_waivers": [{"check": "network.lint_*", "subject": "storage*", "reason": "the webhook shall judge"}],
        },
        how=(
            "the same, with a waiver on `network.lint_*`, and the fabrics without virtual functions taken out of"
            " `rdma_fabrics`"
        ),
        in_make_test=True,
    ),
    Scenario(
        "vf-without-carrier",
        BANDWIDTH,
        (
            Expected(
                "VF administratively down",
                "bandwidth.rping",
                "storage *",
                ("RDMA_CM_EVENT_ADDR_ERROR",),
                "POD -- ip addr for each of the two pods, and the same with rdma link",
            ),
        ),
        (Injection("vf-down", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "cable-pulled-while-pods-measure",
        BANDWIDTH,
        (
            Expected(
                "the cable of an HCA is pulled while pods measure",
                "bandwidth.rping",
                "compute *",
                ("RDMA_CM_EVENT_ADDR_ERROR",),
                "Correct the network of the pod that lacks an address or a device",
            ),
        ),
        # the pods of four rails on two nodes
        (Injection("hca-cable-pulled", {"worker": "worker-1", "device": "mlx5_0"}, PODS_READY, 8),),
        {"rdma_fabrics": [fabric for fabric in intent() if fabric["name"] == "compute"]},
    ),
    Scenario(
        "slow-node",
        BANDWIDTH,
        (
            Expected(
                "one slow node (its link is limited)",
                "bandwidth.floor",
                "storage *",
                ("The pair is slower than its links allow",),
                "Follow the remedy of the finding bandwidth.suspect, which names the end at fault",
            ),
        ),
        (Injection("slow-node", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "slow-direction",
        BANDWIDTH,
        (
            Expected(
                "one slow pair (one direction is limited)",
                "bandwidth.floor",
                "storage worker-2 -> worker-1",
                ("The pair is slower than its links allow",),
                "Follow the remedy of the finding bandwidth.suspect, which names the end at fault",
            ),
        ),
        (Injection("slow-direction", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "vf-limited",
        BANDWIDTH,
        (
            Expected(
                "a rate limit of a virtual function",
                "bandwidth.floor",
                "storage worker-2 -> worker-1",
                ("of worker-2, VF ", "to 0.003 Gb/s (max_tx_rate 3)"),
                "Run on worker-2, as root: ip link set eth1 vf ",
            ),
        ),
        # the emulated NIC does not keep to the limit, so that the pods' own queues do
        (
            Injection("vf-limited", {"worker": "worker-2"}),
            Injection("slow-direction", {"worker": "worker-2"}, PODS_READY, 2),
        ),
    ),
    Scenario(
        "rdma-dropped",
        BANDWIDTH,
        (
            Expected(
                "RDMA dropped in silence: a hang, not an error",
                "bandwidth.rping",
                "storage *",
                (
                    "did not end within the limit, and printed no error",
                    "its packets are dropped on the path without an error",
                ),
                "allow UDP port 4791",
            ),
        ),
        (Injection("rdma-dropped", {"worker": "worker-2"}, PODS_READY, 2),),
        # a hang lasts as long as the tool may
        variables={"rdma_fabrics": alone(pods={"limit_seconds": 15})},
    ),
    Scenario(
        "address-gone",
        BANDWIDTH,
        (
            Expected(
                "wrong interface: the address is not on the VF",
                "bandwidth.rping",
                "storage worker-2 -> worker-1",
                ("RDMA_CM_EVENT_ADDR_ERROR, error -19",),
                "POD -- ip addr for each of the two pods, and the same with rdma link",
            ),
        ),
        (Injection("address-gone", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "wrong-connection",
        BANDWIDTH,
        (
            Expected(
                "queue pairs that do not fit: GIDs exchanged over TCP, where only the RDMA CM connects",
                "bandwidth.measured",
                "storage *",
                ("Unable to Connect the HCA's through the link",),
                "On iWARP set pods.connection: rdma_cm",
            ),
        ),
        variables={"rdma_fabrics": alone(pods={"connection": "tcp"})},
        how="`pods.connection: tcp` on iWARP",
    ),
    Scenario(
        "server-killed",
        BANDWIDTH,
        (
            Expected(
                "server killed in the middle: a good-looking table, exit code 1",
                "bandwidth.measured",
                "storage *",
                ("the server was killed (exit code 137)",),
                "look for a killed process. Run stage bandwidth again, and while it runs, kubectl",
            ),
        ),
        (Injection("server-killed", {"worker": "worker-2"}, PODS_READY, 2),),
        # one direction alone has its server there: it must still run when the fault looks
        variables={"rdma_fabrics": alone(pods={"iterations": 1000})},
    ),
    Scenario(
        "pod-evicted",
        BANDWIDTH,
        (
            Expected(
                "pod evicted in the middle",
                "bandwidth.measured",
                "storage *",
                ("The pod ended during the measurement: it was evicted or deleted",),
                "and correct the cause that the events of the pod",
            ),
        ),
        (Injection("pod-evicted", {"worker": "worker-2"}, MEASURED),),
        # long enough to be hit in the middle
        variables={"rdma_fabrics": alone(pods={"iterations": 1000})},
    ),
    Scenario(
        "image-without-tools",
        BANDWIDTH,
        (
            Expected(
                "image without the tools",
                "bandwidth.pod",
                "storage *",
                ("The image lacks a tool",),
                "Set pods.image to an image with perftest and the utilities of rdma-core",
            ),
        ),
        variables={"rdma_fabrics": alone(pods={"image": PAUSE_IMAGE})},
        how="`pods.image` without a shell and without rping",
    ),
    Scenario(
        "memlock-low",
        HOST,
        (
            Expected(
                "memlock too low",
                "host.memlock",
                "storage worker-1",
                ("ulimit -l 8 MiB", "Couldn't register MR"),
                "Run systemctl restart containerd on worker-1, so that it uses the drop-in",
            ),
            Expected(
                "containerd has another limit than the intent",
                "host.containerd",
                "worker-1",
                ("systemd reads another drop-in of containerd.service after the one of linerate.rdma",),
                "Run systemctl cat containerd on worker-1",
                how="the same: the fault is a drop-in that systemd reads last",
            ),
        ),
        (Injection("memlock-low", {"worker": "worker-1"}),),
        variables={"rdma_fabrics": alone(), "rdma_cluster": {**SETTINGS["rdma_cluster"], "host": MEMLOCK}},
    ),
    Scenario(
        "label-absent",
        OPERATORS,
        (
            Expected(
                "label of node-feature-discovery absent",
                "operators.label",
                "worker-2",
                (
                    "feature.node.kubernetes.io/network-sriov.capable is absent",
                    (
                        "No worker of node feature discovery (node-feature-discovery/node-feature-discovery-worker) is"
                        " on the node"
                    ),
                ),
                "Compare nodeSelector and tolerations of the DaemonSet",
            ),
        ),
        (Injection("label-absent", {"worker": "worker-2"}),),
        heals=NETWORK,
    ),
    Scenario(
        "label-sources",
        OPERATORS,
        (
            Expected(
                "node feature discovery leaves out the source of the label",
                "operators.label",
                "worker-*",
                (("The worker creates no labels of its source network, because core.labelSources is all, -network."),),
                "Add network to core.labelSources",
            ),
        ),
        (Injection("label-sources"),),
        # nobody waits for what does not come
        variables={"operators_install": False},
        heals=NETWORK,
    ),
    Scenario(
        "label-whitelist",
        OPERATORS,
        (
            Expected(
                "the whitelist of node feature discovery leaves out the NIC's class",
                "operators.label",
                "worker-*",
                (
                    "feature.node.kubernetes.io/pci-8086.sriov.capable is absent",
                    "but the worker creates labels only for the classes 03, 0b40, 12.",
                ),
                "to sources.pci.deviceClassWhitelist",
            ),
        ),
        variables={
            "operators_install": False,
            "rdma_cluster": {
                **SETTINGS["rdma_cluster"],
                "node_selector": {"feature.node.kubernetes.io/pci-8086.sriov.capable": "true"},
            },
        },
        how=(
            "`rdma_cluster.node_selector` asks for a label of PCI, and node feature discovery has the whitelist that it"
            " comes with"
        ),
    ),
    Scenario(
        "webhook-left",
        NETWORK,
        (
            Expected(
                "webhook without an endpoint",
                "network.attachment_accepted",
                "storage *",
                (
                    "left-behind.sriovnetwork.openshift.io",
                    "does not exist: its operator was removed, but its webhook remained",
                ),
                "delete the configuration that names this Service",
            ),
        ),
        (Injection("webhook-left"),),
        variables={"rdma_fabrics": intent()},
        heals=NETWORK,
    ),
    Scenario(
        "definition-older",
        NETWORK,
        (
            Expected(
                "a definition of an older version of the operator",
                "network.attachment_accepted",
                "storage *",
                ("does not have the field", "maxTxRate"),
                "Upgrade the operator with its definitions",
            ),
        ),
        (Injection("definition-older"),),
        variables={"rdma_fabrics": intent()},
        heals=NETWORK,
    ),
    Scenario(
        "policy-overlap",
        NETWORK,
        (
            Expected(
                "policy overlap",
                "network.lint_overlap",
                "storage worker-1 eth1",
                ("virtual functions 0 to 3 in this policy, 0 to 3 in policy foreign-policy",),
                "Give each policy separate virtual functions",
            ),
        ),
        (Injection("foreign-policy"),),
        heals=NETWORK,
    ),
    Scenario(
        "vf-in-another-vlan",
        VIRTUAL_FUNCTIONS,
        (
            Expected(
                "VFs that pods get are in another VLAN than the intent says",
                "virtual_functions.settings",
                "storage worker-*",
                (
                    "vlan 100, vlan_qos 2, trust on",
                    "vlan 200, vlan_qos 2, trust on",
                    "The CNI plugin has given the VF to a pod with other settings",
                ),
                "compare 'sriov-storage' with network of the fabric",
            ),
        ),
        variables={"rdma_fabrics": intent(network={"vlan": 200})},
        how="the intent asks for VLAN 200, and the network that is there has 100",
    ),
    Scenario(
        "daemon-hangs-during-the-wait",
        NETWORK,
        (
            Expected(
                "the operator's config daemon hangs during the wait",
                "network.allocatable",
                "storage worker-1",
                (
                    "The wait ended before the node was ready for the fabric.",
                    "syncStatus is Succeeded, but that status is older than the policy",
                ),
                "Correct the error in the log of the config daemon on the node (pods sriov-network-config-daemon).",
            ),
        ),
        (Injection("daemon-frozen", {"worker": "worker-1"}),),
        variables={
            "rdma_fabrics": intent(virtual_functions=3),
            "rdma_cluster": {**SETTINGS["rdma_cluster"], "wait_seconds": 60},
        },
        heals=NETWORK,
    ),
    Scenario(
        "node-lost-during-the-wait",
        NETWORK,
        (
            Expected(
                "node lost during the wait",
                "network.allocatable",
                "storage worker-2",
                ("NotReady",),
                "restore its power, its kubelet (systemctl status kubelet) or its management network.",
            ),
        ),
        (
            Injection("daemon-frozen", {"worker": "worker-2"}),
            Injection("worker-frozen", {"worker": "worker-2"}, "storage worker-1", 1),
        ),
        variables={
            "rdma_fabrics": intent(virtual_functions=3),
            "rdma_cluster": {**SETTINGS["rdma_cluster"], "wait_seconds": 300},
        },
        heals=NETWORK,
    ),
    Scenario(
        "restarts-during-the-wait",
        NETWORK,
        (
            Expected(
                "the operator's config daemon killed during the wait",
                "network.allocatable",
                "storage worker-1",
                ("3 allocatable after",),
                "",
                status="pass",
            ),
            Expected(
                "API server restarted during the wait",
                "network.allocatable",
                "storage worker-2",
                ("3 allocatable after",),
                "",
                status="pass",
            ),
        ),
        (
            Injection("daemon-killed", {"worker": "worker-1"}, "storage worker-1", 1),
            Injection("api-restart", {}, "storage worker-1", 1),
        ),
        variables={"rdma_fabrics": intent(virtual_functions=3)},
        playbook_succeeds=True,
        heals=NETWORK,
    ),
)

NOT_INJECTED: tuple[NotInjected, ...] = (
    NotInjected(
        "a pod on other CPUs than those of its HCA's NUMA node",
        "the guests have one NUMA node",
        "bandwidth.floor",
        "tests/unit/check/test_check_bandwidth.py::test_an_hca_that_runs_on_the_wrong_cpus_is_said_beside_a_low_figure",
    ),
    NotInjected(
        "an address range that is too small",
        "no fault of the lab: an intent",
        "validate.addresses",
        "tests/lab/test_addresses.py::test_too_small_a_range_is_refused_by_arithmetic",
    ),
    NotInjected(
        "an address range inside of the network of the services",
        "no fault of the lab: an intent",
        "network.address_overlap",
        "tests/lab/test_addresses.py::test_a_range_in_the_network_of_the_services_is_refused_before_anything_is_made",
    ),
    NotInjected(
        "an address of a pod that is long gone",
        "an object that the test makes",
        "network.addresses",
        "tests/lab/test_addresses.py::test_an_address_of_a_pod_that_is_gone_is_warned_of",
    ),
    NotInjected(
        "pods of an earlier run that was interrupted",
        "the test kills the playbook in the lab",
        "changes of stage bandwidth",
        "tests/lab/test_faults.py::test_what_an_interrupted_measurement_left_is_removed_and_named",
    ),
    NotInjected(
        "two runs at once",
        "the test starts both",
        "the second one waits, or is refused by the name of the first",
        "tests/lab/test_at_once.py::test_two_runs_at_once_do_not_disturb_each_other",
    ),
    NotInjected(
        "a run that hung, and was taken over",
        "the test plays the API server and the clock",
        "the run ends before it makes or deletes anything",
        "tests/unit/run/test_lease.py::test_the_run_that_lost_it_writes_nothing_more",
    ),
    NotInjected(
        "a controller without library, kubeconfig, rights or Helm, told before the first node is looked at",
        "no fault of the lab: the controller",
        "validate.api_server",
        "tests/unit/check/test_controller.py::test_what_is_missing_closes_the_gate_where_a_stage_needs_it_and_warns_where_none_does",
    ),
    NotInjected(
        "multus that runs everywhere but on our nodes, and a NotReady node of somebody else",
        "the lab's multus is no DaemonSet",
        "operators.multus",
        "tests/unit/observe/test_sriov_operator.py::test_where_multus_is_ready_not_how_often",
    ),
    NotInjected(
        "a user without rights",
        "a user that the test makes in the lab",
        "operators.rights",
        "tests/lab/test_access.py::test_who_may_only_look_is_told_which_rights_are_missing",
    ),
    NotInjected(
        "expired credentials",
        "a certificate that the test makes",
        "the run ends",
        "tests/lab/test_access.py::test_an_expired_certificate_is_named_as_such",
    ),
    NotInjected(
        "a drain that a PodDisruptionBudget blocks",
        "the lab's operator does not drain: it would move itself",
        "network.allocatable",
        "tests/unit/run/test_sync.py::test_a_blocked_drain_names_pod_and_budget_and_ends",
    ),
    NotInjected(
        "a node that reboots again and again",
        "no reboot is ever needed in the lab",
        "network.allocatable",
        "tests/unit/run/test_sync.py::test_a_reboot_loop_ends_at_the_second_boot",
    ),
    NotInjected(
        "a MachineConfigPool that is paused or degraded",
        "no OpenShift",
        "network.drain",
        "tests/unit/check/test_plan.py::test_a_machine_config_pool_that_gets_no_further_stops",
    ),
    NotInjected(
        "a setting of the BIOS that does not take",
        "the test resets the node",
        "platform.roll",
        "tests/lab/test_roll.py::test_a_setting_that_does_not_take_is_told_and_not_tried_again",
    ),
    NotInjected(
        "the addresses of two BMCs exchanged",
        "the test exchanges them in the inventory",
        "platform.bmc_identity",
        "tests/lab/test_roll.py::test_two_exchanged_bmcs_are_refused_and_nobody_is_reset",
    ),
    NotInjected(
        "a Lease that is lost in the middle of a roll",
        "the test deletes it while a node is drained",
        "nothing is written or reset any more",
        "tests/lab/test_roll.py::test_a_roll_whose_lease_is_deleted_resets_nobody",
    ),
    NotInjected(
        "RDMA namespaces in exclusive mode, and a network without the CNI plugin rdma",
        "the kernel changes the mode only while no pod has a network namespace",
        "network.lint_rdma",
        "tests/unit/check/test_linter.py::test_rdma_mode_and_plugin_go_together",
    ),
    NotInjected(
        "the link of a VF is disabled while a pod has the VF",
        "the test makes the pod",
        "virtual_functions.link_state",
        "tests/lab/test_link_of_a_pod.py::test_a_link_that_is_disabled_under_a_pod_is_named",
    ),
    NotInjected(
        "a virtual function without a driver",
        "the SR-IOV operator binds it again within a minute",
        "virtual_functions.driver",
        "tests/unit/check/test_check_virtual_functions.py::test_driver",
    ),
    NotInjected(
        "one node with another firmware",
        "the emulated HCAs have one firmware version",
        "platform.firmware",
        "tests/unit/check/test_firmware.py::test_the_odd_one_is_named_with_what_is_usual",
    ),
    NotInjected(
        "governor of one node",
        "an emulated CPU has no clock that could be set",
        "tuning.alike",
        "tests/unit/check/test_tuning.py::test_one_of_a_thousand_with_another_governor_is_found",
    ),
    NotInjected(
        "a GPU that is throttled",
        "a GPU beside an emulated HCA is a PCI function alone",
        "tuning.gpu",
        "tests/unit/check/test_tuning.py::test_a_fault_is_named_once",
    ),
    NotInjected(
        "PFC on one side only",
        "no NIC with DCB in the lab",
        "tuning.network",
        "tests/unit/check/test_tuning.py::test_pfc_on_one_side_only_fails_whatever_is_expected",
    ),
    NotInjected(
        "two HCAs with one GUID",
        "the simulator takes no second one",
        "fabric.guids",
        "tests/unit/check/test_check_fabric.py::test_guids_that_two_devices_have",
    ),
)
