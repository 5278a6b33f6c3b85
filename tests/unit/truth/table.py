# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run does not notice, and why that is no false green. The tests hold each row to what the checks do;
docs/truth.md is made of it."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS as TUNING

from .breaks import Case

_BAD = ("broken", "another's")
BROKEN, NUMBER, LESS, OTHER = ("broken",), ("more", "less"), ("less",), ("another's",)
INFINIBAND, ROCE = "InfiniBand", "RoCE"


@dataclasses.dataclass(frozen=True)
class Row:
    """Some facts that may be broken.

    :ivar kinds: of fact, as the folder of the report has them
    :ivar facts: fields; * stands for any text. Each must be there, and none may be noticed
    :ivar hows: ways to break it; empty: all
    :ivar on: fleets of InfiniBand, or of RoCE; empty: both
    :ivar warns: a finding warns of it, and the gate stays open
    """

    kinds: tuple[str, ...]
    facts: tuple[str, ...]
    why: str
    hows: tuple[str, ...] = ()
    on: str = ""
    warns: bool = False

    def named(self, case: Case) -> list[tuple[str, str]]:
        """Kind and text of each of its facts that is that of the case."""
        if (
            case.kind not in self.kinds
            or (self.hows and case.how not in self.hows)
            or (self.on and (self.on == ROCE) != case.roce)
        ):
            return []
        return [(case.kind, fact) for fact in self.facts if _pattern(fact).fullmatch(case.fact)]


@functools.cache
def _pattern(text: str) -> typing.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"))


def _under(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names)


_PF, _VF = "node.hcas(PF).", "node.hcas(VF)"
_LOOKS = ("hcas", "hcas_after_network", "hcas_in_use")
_TOPOLOGY = "node[].topology."

_NAMES = "A name for the reader; nothing is judged by it."
_CARD = "It describes the card; what the card can do is measured."
_UNSELECTED = "This intent does not select by it."
_MADE = "VFs are there, which proves that they can be made."
_RUNS = "What a fabric needs of it is proven by sysfs and PCI; what waits for a reset is of the next one."
_UNASKED = "What a fabric needs of it is proven by sysfs and PCI; a setting that the intent asks for counts."
_NOT_WISHED = "No fabric needs it; where the intent asks for it, it counts."
_WAITS = "What runs is right; what waits for a reset is warned of."
_SLOT = "What a slow slot costs is measured by stage bandwidth."
_PULLED = "It tells beforehand how an image will be pulled. That it was is proven by the pods of stage bandwidth."
_LATER = "Stages network and virtual_functions judge what the operator makes of a node; here it only tells causes."
_FIRST = (
    "Stage operators has judged it; after the network is made only what the operator wants and reports of functions"
    " counts."
)
_ETHERNET = "Nothing of Ethernet is known by it."
_EXPLAINS = "It explains what is absent, and nothing is."
_PROVEN = "The packets that came back prove the server."
_BEFORE = "Before the network is made a node need not have VFs; stage virtual_functions looks again."
_IN_FORCE = "All machines have the configuration that the pool wants."
_DONE = (
    "Stages discover and fabric have judged it; after the network is made VFs are judged, and what they carry by stage"
    " bandwidth."
)
_INTERFACE = "Names and addresses of an interface of the node, which pods do not use."
_CNI = "The CNI plugin sets it when a pod takes the VF; where the intent asks for it, a pod of ours does."
_ONE_VF = (
    "The link of a VF comes up when a pod takes it. Stage bandwidth proves it for one VF of each HCA; no"
    " measurement uses the other VFs."
)
_UNLIKE = "A VF that differs from most free ones; stage bandwidth measures one VF of each HCA."
_ETHERNET_ONLY = "Nothing of InfiniBand is known by it."
_BOUGHT = "iblinkinfo says that the two ends of the link can't do more: it runs as it was bought."
_MANAGER = "The subnet manager is asked itself; where it is, is for the reader."
_DERIVED = "The parser works it out of the same lines as what is judged."

_SPEED = "It costs speed, which stage bandwidth measures; what the intent expects would fail."
_NO_BMC = "A node whose BMC the inventory does not name is not asked."
_TELLS = "It tells who sets the BIOS what to write, and what is in the way."

_VF_PARTS = (
    "rdma_device",
    "netdevs*",
    "pci",
    "pci.vendor",
    "pci.device*",
    "pci.driver",
    "pci.numa_node",
    "pci.link*",
    "node_*",
    "firmware",
    "board",
    "hca_type",
)
_VF_IN_USE = (
    "name",
    "rdma_device",
    "netdevs",
    "pci.vendor",
    "pci.device*",
    "pci.driver",
    "pci.numa_node",
    "pci.link*",
    "node_*",
    "firmware",
    "board",
    "hca_type",
    "ports*",
    "sriov*",
    "physical_function",
    "vf_index",
    "unread",
)
_VF_MORE = ("ports*", "sriov*", "vf_index", "administration*", "unread")

_KIND = ("cpu_model", "gpu_model", "hca_model")
_KERNEL_LOGS = ("kernel_log", "kernel_log_corrected", "kernel_log_programs")
_ROCE_ROWS = tuple(row.name for row in TUNING if row.check == "roce")
_SHOWN_BY_SOME = ("roce_ecn", "roce_traffic_class", "roce_tos")
_ADVICE = tuple(row.name for row in TUNING if row.alike and row.level == "warn")
#: those of them that decide how HCAs reach the memory of GPUs: stage bandwidth measures from the memory of the host
_TO_GPUS = ("relaxed_ordering_gpu", "gpu_link_width", "gpu_link_speed", "gpu_nic_path", "acs", "gpu_mig")
_GPU_MEMORY = (
    "It costs speed between HCAs and GPU memory. Stages collectives and training measure it, where the intent asks for"
    " them; stage bandwidth measures from the memory of the host."
)


def _rows(names: typing.Iterable[str], *parts: str) -> tuple[str, ...]:
    return tuple(f"node.rows[{name}]{part}" for name in names for part in parts)


ROWS: tuple[Row, ...] = (
    # the run
    Row(
        ("run.nodes",),
        ("[]",),
        "The inventory is the user's word: a node that it does not name is none of the fleet.",
        ("left out",),
    ),
    Row(("run.variables",), ("", "[]"), "A variable that is not set can't be misspelt.", ("unread", "left out")),
    Row(("run.origins",), ("",), "It says where the user wrote a variable, for the reader."),
    Row(
        ("run.inventory_kind", "run.inventory_where"),
        ("",),
        "It says more of a source of the inventory that gave no nodes, for the reader.",
    ),
    Row(("run.unchecked_hosts",), ("",), "How a node proves its identity is no fault of the fabric.", warns=True),
    Row(
        ("run.images",),
        ("",),
        "Which images run is the user's word; a tag is refused only where the user asks for that.",
        ("broken",),
    ),
    Row(
        ("run.check_mode",),
        ("",),
        "Everything is in place, so a dry run finds the same. The report says that it was one, and is never green.",
    ),
    # HCAs, at the first look
    Row(("hcas", "hcas_after_network"), ("node.hcas(VF).name",), _NAMES),
    Row(("hcas",), ("node.hcas(PF).name",), _NAMES, ("unread", "broken"), INFINIBAND),
    Row(("hcas_after_network",), ("node.hcas(PF).name",), _NAMES, ("unread", "broken")),
    Row(("hcas_after_network",), ("node.hcas(PF).name",), _NAMES, OTHER),
    Row(
        ("hcas", "hcas_after_network"),
        _under(
            _PF,
            "netdevs[].name",
            "netdevs[].port_guid",
            "netdevs[].subnet_prefix",
            "netdevs[].queue_pair",
            "netdevs[].port",
        ),
        _INTERFACE,
    ),
    Row(("hcas_after_network",), _under(_PF, "netdevs[].hardware_address"), _INTERFACE),
    Row(("hcas",), _under(_PF, "netdevs[].hardware_address"), _INTERFACE, ("unread", "broken")),
    Row(
        ("hcas",),
        _under(_PF, "netdevs", "netdevs[]", "netdevs[].state"),
        "IPoIB of the node: RDMA over InfiniBand needs no interface.",
        on=INFINIBAND,
    ),
    Row(
        ("hcas",),
        _under(_PF, "netdevs[].state"),
        "The interface may be in another network namespace. Whether VFs carry traffic is measured by stage bandwidth.",
        on=ROCE,
        warns=True,
    ),
    Row(
        ("hcas",),
        _under(_PF, "netdevs[].mtu", "ports[].mtu"),
        "Before the network is made any MTU is right; stage virtual_functions compares it after.",
    ),
    Row(("hcas", "hcas_after_network"), _under(_PF, "netdevs[].bond"), "A bond with one part is none."),
    Row(
        ("hcas", "hcas_after_network"),
        _under(_PF, "netdevs[].bridge", "netdevs[].uppers*"),
        "A NIC may be a port of a bridge or have a VLAN. Only a change of the NIC needs to know it.",
    ),
    Row(("hcas", "hcas_after_network"), _under(_PF, "pci.vendor"), _UNSELECTED, on=INFINIBAND),
    Row(("hcas_after_network",), _under(_PF, "pci.device"), _UNSELECTED, on=INFINIBAND),
    Row(("hcas",), _under(_PF, "pci.device"), _UNSELECTED, ("unread", "broken"), INFINIBAND),
    Row(
        ("hcas",),
        _under(_PF, "pci.device"),
        "This intent does not select by it; that model runs other firmware here.",
        OTHER,
        INFINIBAND,
        warns=True,
    ),
    Row(("hcas", "hcas_after_network"), _under(_PF, "pci.device_class", "board", "hca_type"), _CARD),
    Row(("hcas_after_network",), _under(_PF, "pci.numa_node"), _CARD),
    Row(("hcas",), _under(_PF, "pci.numa_node"), _CARD, ("broken", "less", "another's", "unread", "left out")),
    Row(
        ("hcas",),
        _under(_PF, "pci.numa_node"),
        "Another NUMA node than that of its like costs speed, which stage bandwidth measures.",
        ("more",),
        warns=True,
    ),
    Row(("hcas_after_network",), _under(_PF, "firmware"), _CARD),
    Row(("hcas",), _under(_PF, "firmware"), "Not every driver shows a version.", ("unread",)),
    Row(
        ("hcas",),
        _under(_PF, "firmware"),
        "Other firmware than that of its model is no fault by itself.",
        _BAD,
        warns=True,
    ),
    Row(
        ("hcas",),
        _under(_PF, "rdma_device"),
        "Where the PCI address tells rails, the name of the device does not count; pods have those of VFs.",
        _BAD,
        ROCE,
    ),
    Row(
        ("hcas",),
        _under(_PF, "pci.driver"),
        "The port works, so something drives it; stage platform reads the driver for itself.",
        on=INFINIBAND,
        warns=True,
    ),
    Row(("hcas",), _under(_PF, "pci.link.current_speed", "pci.link.current_width"), _SLOT, ("unread",), warns=True),
    Row(
        ("hcas",),
        _under(_PF, "pci.link.slot*", "pci.link.payload*"),
        "It tells why a link is slow; how fast it is, is judged.",
    ),
    Row(
        ("hcas",),
        _under(_PF, "netdevs[].speed_gbps", "netdevs[].supported_gbps", "netdevs[].partner_gbps"),
        _ETHERNET_ONLY,
        on=INFINIBAND,
    ),
    Row(("hcas",), _under(_PF, "netdevs[].speed_gbps"), "The port shows its rate as well.", ("unread",), ROCE),
    Row(("hcas",), _under(_PF, "netdevs[].speed_gbps"), "The card can't carry so much.", ("more",), ROCE, warns=True),
    Row(
        ("hcas",),
        _under(_PF, "netdevs[].supported_gbps"),
        "The partner bounds the link, which is named: the switch offers less than the card supports.",
        ("more",),
        ROCE,
        warns=True,
    ),
    Row(("hcas",), _under(_PF, "netdevs[].supported_gbps"), "The speed is more than enough.", ("less",), ROCE),
    Row(
        ("hcas",),
        _under(_PF, "netdevs[].partner_gbps"),
        "The port bounds it, or the speed is more than enough.",
        on=ROCE,
    ),
    Row(
        ("hcas", "hcas_after_network"),
        ("node.hcas(PF).held", "node.hcas(VF).held"),
        "What is on the node is in no pod.",
    ),
    Row(("hcas_in_use",), ("node.hcas(VF in a pod).held",), "Only the settings of the VF are judged here."),
    Row(
        ("hcas_after_network",),
        tuple(
            f"node.hcas({kind}).netdevs[].{name}_gbps"
            for kind in ("PF", "VF")
            for name in ("speed", "supported", "partner")
        ),
        "Stage bandwidth judges the link by the first look.",
    ),
    Row(("hcas",), _under(_PF, "pci.link.max_speed", "pci.link.max_width"), _SLOT, ("unread", "more"), warns=True),
    Row(
        ("hcas",),
        _under(_PF, "pci.link.current_speed", "pci.link.current_width"),
        "The link is faster than the card needs.",
        ("more",),
    ),
    Row(
        ("hcas",),
        _under(_PF, "pci.link.max_speed", "pci.link.max_width"),
        "The link is faster than the card needs.",
        LESS,
    ),
    Row(
        ("hcas",),
        _under(_PF, "node_guid"),
        "Ports have GUIDs of their own; only a second owner does harm.",
        ("unread", "broken"),
        INFINIBAND,
    ),
    Row(("hcas",), _under(_PF, "node_description"), "GUIDs tell HCAs apart.", ("unread", "broken"), INFINIBAND),
    Row(
        ("hcas",),
        _under(_PF, "node_description"),
        "GUIDs tell HCAs apart; the tools of the fabric show two of one name.",
        OTHER,
        INFINIBAND,
        warns=True,
    ),
    Row(("hcas",), _under(_PF, "node_guid", "node_description"), _ETHERNET, on=ROCE),
    Row(("hcas", "hcas_after_network"), _under(_PF, "ports[].width", "ports[].speed"), "The rate is their product."),
    Row(
        ("hcas",),
        _under(_PF, "ports[].sm_lid"),
        "The manager is known by its GUID, asked through the port.",
        NUMBER,
        INFINIBAND,
    ),
    Row(
        ("hcas", "hcas_after_network"),
        _under(_PF, "ports[].pkeys*"),
        "Pods use the partition of their VF; stage bandwidth proves that packets pass.",
    ),
    Row(
        ("hcas", "hcas_after_network"),
        _under(
            _PF, "ports", "ports[]", "ports[].number", "ports[].state", "ports[].physical_state", "ports[].rate_gbps"
        ),
        "On Ethernet the network interface is judged, and what pods get of the port by stage bandwidth.",
        on=ROCE,
    ),
    Row(
        ("hcas", "hcas_after_network"),
        _under(_PF, "ports[].link_layer"),
        "On Ethernet the network interface is judged.",
        ("unread",),
        ROCE,
    ),
    Row(
        ("hcas", "hcas_after_network"), _under(_PF, "ports[].lid", "ports[].sm_lid", "ports[].guid"), _ETHERNET, on=ROCE
    ),
    Row(("hcas",), _under(_PF, "sriov.total"), "These are still as many VFs as the intent asks for.", NUMBER),
    Row(("hcas",), _under(_PF, "sriov.current"), "Before the network is made any number of VFs is right."),
    Row(
        ("hcas", "hcas_after_network"), _under(_PF, "vf_index", "administration", "sriov_absence", "unread"), _EXPLAINS
    ),
    Row(("hcas",), ("node.errors",), "What the stages need of the node was read, and is judged.", warns=True),
    Row(("hcas",), (_VF, *_under(f"{_VF}.", *_VF_PARTS, *_VF_MORE)), _BEFORE),
    Row(("hcas",), _under(f"{_VF}.", "pci.address", "physical_function"), _BEFORE, _BAD),
    Row(("hcas",), _under(f"{_VF}.", "pci.address"), _BEFORE, ("unread",)),
    Row(
        ("hcas",),
        _under(f"{_VF}.", "physical_function"),
        "It looks like one more PF; the intent does not select it.",
        ("unread",),
        ROCE,
    ),
    Row(
        ("hcas",),
        _under(f"{_VF}.", "physical_function"),
        "It looks like one more PF, which other nodes do not have.",
        ("unread",),
        INFINIBAND,
        warns=True,
    ),
    # other facts of nodes
    Row(("clock",), ("node.synchronised",), "The clock is right now, and may drift.", warns=True),
    Row(("clock",), ("node.error_seconds",), "The difference is measured."),
    Row(
        ("tuning",),
        _rows(
            (name for name in _ADVICE if name not in (*_TO_GPUS, "p2pdma", "topology_manager")), "", "[]", "[].value"
        ),
        _SPEED,
        warns=True,
    ),
    Row(
        ("tuning",),
        _rows(("topology_manager",), "", "[]", "[].value"),
        "The kubelet was read again after the roll of the nodes, and that counts; without a roll it fails.",
        on=ROCE,
        warns=True,
    ),
    Row(("tuning",), _rows(("topology_manager",), "", "[]", "[].value"), _SPEED, on=INFINIBAND, warns=True),
    Row(
        ("tuning_after_network",),
        (*_rows((row.name for row in TUNING if row.name not in ("topology_manager", "p2pdma")), "*"), "node.unread"),
        "Only what the intent asks of kernel and kubelet is judged of it; stage tuning has judged the rest.",
        on=ROCE,
    ),
    Row(
        ("tuning_after_network",),
        _rows(("topology_manager", "p2pdma"), "[].where*"),
        "It tells the reader where on the node it is so.",
        on=ROCE,
    ),
    Row(
        ("tuning_after_network",),
        _rows(("p2pdma",), "", "[]"),
        "Most kernels are built with it, and the version of the kernel is judged.",
        ("left out",),
        ROCE,
    ),
    Row(
        ("tuning",),
        _rows(("p2pdma",), "[].value"),
        "Stage host judges what it reads of the node after its roll; without a roll it judges this.",
        on=ROCE,
        warns=True,
    ),
    Row(("tuning",), _rows(_TO_GPUS, "", "[]", "[].value"), _GPU_MEMORY, warns=True),
    Row(
        ("tuning",),
        _rows(("p2pdma",), "", "[]", "[].value"),
        "nvidia-peermem, which the intent asks for, does not depend on it.",
        on=INFINIBAND,
        warns=True,
    ),
    Row(
        ("tuning",),
        _rows(("p2pdma",), "", "[]"),
        "Most kernels are built with it; what could not be read is told.",
        ("left out",),
        ROCE,
        warns=True,
    ),
    Row(
        ("tuning",),
        _rows((*_ADVICE, "cpu_model", "hca_model", *_KERNEL_LOGS), "[].where*"),
        "It tells the reader where on the node it is so.",
    ),
    Row(
        ("tuning",),
        _rows(("gpu_link_speed",), "[].where*"),
        "It tells of which GPU it is, and each GPU must have it.",
        warns=True,
    ),
    Row(
        ("tuning",),
        _rows(("pci_way",), "[]", "[].value", "[].where*"),
        "It is drawn in the report, and nothing is judged by it.",
    ),
    Row(
        ("tuning",),
        _rows((*_KIND, "pci_way", *_KERNEL_LOGS), ""),
        "What could not be read is told.",
        ("left out",),
        warns=True,
    ),
    Row(
        ("tuning",),
        _rows(_KIND, "[]", "[].value"),
        "The node is then of a kind of its own, and there is none to compare it with.",
    ),
    Row(
        ("tuning",),
        _rows(("gpu_model",), "[].where", "[].where[]"),
        "GPUs are counted; these tell of which one nvidia-smi must say something.",
        ("unread", "left out"),
    ),
    Row(
        ("tuning",),
        _rows(("gpu_clique",), "[].value"),
        "Partitions of NVLink may be intended; a job uses the network between them.",
        ("broken",),
        warns=True,
    ),
    Row(("tuning",), _rows(_KERNEL_LOGS, "[]"), "A log that was read and holds no fault says so."),
    Row(("tuning",), _rows(_KERNEL_LOGS[:2], "[].value"), "A fault of the past, which may be over.", warns=True),
    Row(
        ("tuning",),
        _rows(_KERNEL_LOGS[2:], "[].value"),
        "NVIDIA names the program as the usual cause of these Xids, not the GPU. The value is shown.",
    ),
    Row(("tuning",), _rows(_ROCE_ROWS, ""), _ETHERNET_ONLY, on=INFINIBAND),
    Row(
        ("tuning",), _rows((*_SHOWN_BY_SOME, "mtu"), "", "[].value"), "It costs speed under load.", on=ROCE, warns=True
    ),
    Row(("tuning",), _rows(_SHOWN_BY_SOME, "[]", "[].where*"), "Only NVIDIA's driver packages show it.", on=ROCE),
    Row(("tuning",), _rows(("mtu",), "[]", "[].where*"), "It costs speed under load.", on=ROCE, warns=True),
    Row(("tuning",), ("node.unread",), "No row has that name."),
    Row(
        ("node_tuning.set",),
        ("remedy", "nodes[*].why", "nodes[*].remedy"),
        "It explains what is not set, and everything is.",
    ),
    Row(
        ("node_tuning.set",),
        ("nodes",),
        "No operator sets these nodes; what the role says of each is judged.",
        BROKEN,
        INFINIBAND,
    ),
    Row(
        ("kernel_settings",),
        ("node[changes]",),
        "It tells what is new; that the role came to its end is judged.",
        ("left out",),
    ),
    Row(
        ("subnets",),
        ("node[].master.lid", "node[].master.priority", "node[].master.activity"),
        "A manager is known by its GUID.",
    ),
    Row(
        ("subnets",),
        ("node[].master.state",),
        "The managers of the fabric are asked after this, and their own word counts.",
    ),
    Row(("subnets", "topologies"), ("", "unasked node*"), "Nothing is asked of a fabric of Ethernet.", on=ROCE),
    Row(("topologies",), ("unasked node*",), "One port of a fabric shows it; the others are not asked.", on=INFINIBAND),
    Row(("ping_plan",), ("node.servers*",), _PROVEN),
    Row(
        ("ping_plan",),
        ("node.clients[].lids[]",),
        "The plan says what is asked for; each port is client and server at least once.",
        ("left out",),
    ),
    Row(("ping_servers",), ("node[]*",), _PROVEN),
    Row(("ping_servers_stopped",), ("node[]*",), "A server that can't be ended is an error of the node."),
    # the topology
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(uplink).width", f"{_TOPOLOGY}links(uplink).speed"),
        _BOUGHT,
        ("more", "less", "broken"),
    ),
    Row(
        ("topologies",),
        tuple(
            f"{_TOPOLOGY}nodes({kind}).{field}"
            for kind in ("HCA", "leaf", "manager", "spine")
            for field in ("description", "ports", "lid")
        ),
        "GUIDs tell what is what; this is for the reader.",
    ),
    Row(
        ("topologies",), (f"{_TOPOLOGY}lmc",), "Rounds of pairs need no ways; where each link is used, it is a warning."
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(*).a.lid", f"{_TOPOLOGY}links(manager).b.lid", f"{_TOPOLOGY}links(uplink).b.lid"),
        "GUIDs tell what is what; this is for the reader.",
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(HCA).b.lid",),
        "The port tells its LID itself; another one here would contradict it.",
        ("unread", "left out"),
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(*).a.port", f"{_TOPOLOGY}links(*).b.port"),
        "The number of a port tells the reader where to look; only two cables on one port do harm.",
        NUMBER,
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(HCA).a.port",),
        "The number of a port tells the reader where to look; only two cables on one port do harm.",
        OTHER,
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(uplink)",),
        "Of a leaf with fewer HCAs than the others: it may be built with fewer uplinks. How many each leaf has at"
        " least, the intent can say.",
        ("left out",),
        INFINIBAND,
        warns=True,
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(*).a.port_guid", f"{_TOPOLOGY}links(uplink).b.port_guid"),
        "Ports of switches have no GUID.",
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(manager)", *_under(f"{_TOPOLOGY}links(manager).", "width", "speed")),
        _MANAGER,
    ),
    Row(
        ("topologies",),
        (f"{_TOPOLOGY}links(manager).b.port_guid",),
        _MANAGER,
        ("broken", "more", "less", "unread", "left out"),
    ),
    Row(
        ("topologies",),
        _under(f"{_TOPOLOGY}links(HCA).", "width", "speed"),
        "The port of the HCA shows its rate itself, which counts where the link shows no more.",
        ("unread", "less", "broken"),
    ),
    Row(
        ("topologies",),
        (*(f"{_TOPOLOGY}nodes({kind}).aggregation" for kind in ("HCA", "leaf", "manager", "spine")),),
        "Then it is less than an HCA, and the ports of our HCAs are looked up all the same.",
    ),
    Row(
        ("topologies",),
        ("node[].managers.ports[]", "node[].managers.ports[].lid"),
        "The master is known by the ports of the fabric; a standby is warned of.",
    ),
    Row(
        ("topologies",),
        _under("node[].managers.ports[].manager.", "lid", "guid", "activity"),
        "The master is known by the ports of the fabric.",
    ),
    Row(
        ("topologies",),
        ("node[].managers.ports[].manager.state",),
        "A standby may be on its way to be one.",
        warns=True,
    ),
    Row(("topologies",), ("node[].managers.ports[].manager.priority",), "They are still different.", NUMBER),
    Row(("topologies",), ("node[].managers.ports[].manager.priority",), "The lower GUID wins.", OTHER, warns=True),
    Row(
        ("topologies",),
        ("node[].managers.activity_first",),
        "A manager that was started anew counts from 0.",
        ("more",),
        warns=True,
    ),
    Row(
        ("topologies",),
        ("node[].managers.activity_later",),
        "A manager that was started anew counts from 0.",
        LESS,
        warns=True,
    ),
    Row(("topologies",), ("node[].managers.activity_first",), "It still rises.", LESS),
    Row(("topologies",), ("node[].managers.activity_later",), "It still rises.", ("more",)),
    Row(("topologies",), ("node[].managers.activity_seconds",), "It rises, in whatever time."),
    Row(("topologies",), ("node[].capabilities.slow",), "A fabric of older cables runs as it was bought.", warns=True),
    Row(
        ("topologies",),
        ("node[].capabilities.links", "node[].errors.first.checked", "node[].errors.later.checked"),
        "All were looked at.",
        ("more",),
    ),
    Row(("topologies",), ("node[].capabilities.unread",), "All ends of links were read, whatever that line was."),
    Row(
        ("topologies",),
        ("node[].forwarding",),
        "Tables that were not read are warned of; tests/unit/check/test_routes.py and"
        " tests/unit/run/test_pairs_by_links.py bend tables that were.",
        warns=True,
    ),
    Row(
        ("topologies",),
        (
            "node[].errors.first.ports",
            "node[].errors.first.ports[]",
            *_under("node[].errors.first.ports[].", "guid", "port", "counters*"),
        ),
        "Three errors in 10 s: the standard allows a link of 400 Gb/s as many.",
        warns=True,
    ),
    Row(
        ("topologies",),
        _under("node[].errors.later.ports[].", "guid", "port"),
        "Three errors in 10 s: the standard allows as many.",
        warns=True,
    ),
    Row(
        ("topologies",),
        ("node[].errors.later.ports[].counters[SymbolErrorCounter]",),
        "The standard allows as many.",
        NUMBER,
        warns=True,
    ),
    Row(
        ("topologies",),
        ("node[].errors.later.ports", "node[].errors.later.ports[]", "node[].errors.later.ports[].counters"),
        "Nothing is counted any more.",
    ),
    Row(
        ("topologies",),
        ("node[].errors.later.ports[].counters[SymbolErrorCounter]",),
        "Nothing is counted any more.",
        ("left out",),
    ),
    Row(
        ("topologies",),
        ("node[].errors.first.ports[].wide", "node[].errors.later.ports[].wide"),
        "No counter is at its maximum.",
    ),
    Row(
        ("topologies",),
        ("node[].errors.first.unread", "node[].errors.later.unread"),
        "None of the ports of the fabric.",
        warns=True,
    ),
    Row(("topologies",), ("node[].errors.seconds",), "Nothing was counted, in more than the least time.", ("more",)),
    # platform
    Row(
        ("platform",),
        ("node.kernel", "node.gpu.open", "node.gpu.version"),
        "nvidia-peermem, which the intent asks for, does not depend on it.",
        on=INFINIBAND,
    ),
    Row(
        ("platform",),
        ("node.kernel", "node.gpu", "node.gpu.version", "node.gpu.open"),
        "Stage host judges what it reads of the node after its roll; without a roll it judges this.",
        on=ROCE,
    ),
    Row(
        ("platform_after_network",),
        (
            "node.machine",
            "node.kernel_arguments*",
            "node.iommu*",
            "node.acpi_tables*",
            "node.functions*",
            "node.gpu.peermem",
            "node.gpu.peer_clients*",
            "node.gpu.ofed",
            "node.errors",
            "node.boot",
            "node.signed_modules",
            "node.identity*",
            "node.uplinks*",
            "node.networks*",
            "node.addresses*",
            "node.locked_down",
        ),
        "Only what the intent asks of kernel and GPU driver is judged of it; stage platform has judged the rest.",
        on=ROCE,
    ),
    Row(
        ("platform",),
        ("node.gpu.peermem", "node.gpu.peer_clients*"),
        "DMA-BUF, which the intent asks for, does not depend on it.",
        on=ROCE,
    ),
    Row(("platform",), ("node.gpu.peer_clients[]",), "It still names peermem.", BROKEN, INFINIBAND),
    Row(
        ("platform",),
        ("node.machine", "node.kernel_arguments*", "node.gpu.ofed", "node.signed_modules"),
        "It is told beside what is judged.",
    ),
    Row(
        ("platform",),
        ("node.uplinks*",),
        "It warns where a driver container reloads the NIC of the default route; these nodes have a driver of their"
        " own.",
    ),
    Row(
        ("platform",),
        ("node.networks[]", "node.networks[].interface", "node.addresses*"),
        "What the hosts use outside of the ranges of the fabrics can't be met. That their networks were not read is"
        " noticed.",
    ),
    Row(
        ("platform",),
        ("node.locked_down",),
        "The operator may run without its plugin mellanox, and says so itself.",
        BROKEN,
        INFINIBAND,
        warns=True,
    ),
    Row(
        ("platform",),
        ("node.locked_down",),
        "A kernel that does not say it is mostly not locked down.",
        ("unread",),
        INFINIBAND,
    ),
    Row(("platform",), ("node.locked_down",), "The virtual functions are there.", on=ROCE),
    Row(
        ("platform",),
        ("node.iommu_devices[]", "node.acpi_tables[]"),
        "An IOMMU that translates is there; its name and how many do not count.",
    ),
    Row(("platform",), ("node.iommu_groups",), "There are groups, which proves the IOMMU.", NUMBER),
    Row(
        ("platform",),
        ("node.functions(PF).sriov_total",),
        "These are still as many VFs as the intent asks for.",
        NUMBER,
    ),
    Row(
        ("platform",),
        _under(
            "node.functions(PF).",
            "iommu_group",
            "physical_function",
            "unread",
            "capability.ari",
            "acs",
            "acs.capability",
            "acs.control",
        ),
        "It is told beside what is judged.",
    ),
    Row(("platform",), ("node.functions(PF).sriov_current",), "PCI proves that VFs can be made.", ("unread",)),
    Row(
        ("platform",),
        ("node.functions(PF).capability.offset", "node.functions(PF).capability.stride"),
        "All VFs are on the bus of the function.",
        NUMBER,
    ),
    Row(
        ("platform",),
        ("node.functions(PF).last_bus",),
        "All VFs are on the bus of the function.",
        ("unread", "more", "another's"),
    ),
    Row(
        ("platform",),
        _under(
            "node.functions(PF).",
            "capability.bars",
            "capability.bars[]",
            "memory",
            "memory.placed",
            "memory.placed[]",
            "memory.unplaced",
        ),
        _MADE,
        on=ROCE,
    ),
    Row(("platform",), ("node.functions(PF).capability",), _MADE, ("unread",), ROCE),
    Row(
        ("platform",),
        ("node.functions(PF).capability", "node.functions(PF).memory"),
        "The BMC of the node says that SR-IOV is on; without one it is noticed. Stage virtual_functions proves that VFs"
        " can be made.",
        ("unread",),
        INFINIBAND,
    ),
    Row(("platform",), ("node.functions(PF).last_bus",), _MADE, LESS, ROCE),
    Row(
        ("platform",),
        ("node.functions(VF)*",),
        "VFs are judged by stage virtual_functions, from what sysfs shows of them.",
    ),
    Row(
        ("platform",),
        ("node.identity.uuid",),
        "The serial number proves whose BMC it is, and a UUID that is none counts as not told.",
        ("unread", "broken"),
    ),
    Row(("platform",), ("node.identity.serials*",), "The UUID proves whose BMC it is."),
    Row(("platform",), ("node.errors",), "What the stages need of the node was read, and is judged.", warns=True),
    # its BIOS, by its BMC; the RoCE fleet asks for some of it
    Row(("bios",), ("",), _NO_BMC, ("unread",), INFINIBAND),
    Row(("bios",), ("node",), _NO_BMC, ("left out",), INFINIBAND),
    Row(("bios",), ("",), f"{_NO_BMC} {_MADE}", ("unread",), ROCE, warns=True),
    Row(("bios",), ("node",), f"{_NO_BMC} {_MADE}", ("left out",), ROCE, warns=True),
    Row(("bios",), ("node", "node.error"), _MADE, ("unread", "broken"), warns=True),
    Row(
        ("bios",),
        _under("node.", "vendor", "model", "version", "registry*", "settings_uri", "apply_times*", "jobs", "lockdown"),
        _TELLS,
    ),
    Row(("bios",), _under("node.", "last_apply", "errors", "others_pending"), _TELLS),
    Row(("bios",), ("node.identity.uuid",), "The serial number proves whose BMC it is.", ("unread",)),
    Row(("bios",), ("node.identity.serials*", "node.asserted"), "The UUID proves whose BMC it is."),
    Row(
        ("bios",),
        _under("node.settings[].attributes[].", "name", "display_name", "allowed*", "read_only", "reset_required"),
        _TELLS,
    ),
    Row(("bios",), ("node.settings[].looked_for*",), _TELLS),
    Row(
        ("bios",),
        _under("node.settings", "", "[]", "[].key", "[].attributes", "[].attributes[]"),
        f"{_MADE} Not each BIOS shows it.",
    ),
    Row(("bios",), ("node.settings[].attributes[].current",), _MADE, warns=True),
    Row(("bios",), ("node.pending_error",), _MADE, on=INFINIBAND, warns=True),
    # firmware
    Row(
        ("firmware",),
        ("", "node", "node.error", "node.hcas", "node.hcas[]", "node.hcas[].address"),
        _UNASKED,
        on=INFINIBAND,
    ),
    Row(
        ("firmware",),
        _under("node.hcas[].", "device", "psid*", "running.source", "stored.source", "settings_from", "not_asked"),
        _RUNS,
    ),
    Row(
        ("firmware",),
        _under("node.hcas[].", "running", "running.value", "stored", "stored.value", "settings[]"),
        _RUNS,
        ("unread", "left out"),
    ),
    Row(("firmware",), ("node.hcas[].settings",), _UNASKED, ("unread",), INFINIBAND),
    Row(("firmware",), _under("node.hcas[].settings[].", "name", "next", "current", "default"), _RUNS, ("unread",)),
    Row(("firmware",), _under("node.hcas[].settings[].", "name", "next", "default", "read_only"), _RUNS, BROKEN),
    Row(
        ("firmware",),
        _under("node.hcas[].settings(ATS_ENABLED)", "", ".name", ".next", ".current"),
        _NOT_WISHED,
        ("unread", "left out"),
        INFINIBAND,
    ),
    Row(("firmware",), ("node.hcas[].settings(ATS_ENABLED).name",), _NOT_WISHED, BROKEN, INFINIBAND),
    Row(("firmware",), ("node.hcas[].settings(ATS_ENABLED).current",), _WAITS, BROKEN, INFINIBAND, warns=True),
    Row(("firmware",), ("node.hcas[].settings(ATS_ENABLED).next",), _WAITS, BROKEN, warns=True),
    Row(("firmware",), _under("node.hcas[].settings(ATS_ENABLED).", "default", "read_only"), _RUNS),
    Row(("firmware",), _under("node.hcas[].", "stored.value"), "NVIDIA's operator says what is stored.", BROKEN, ROCE),
    Row(("firmware",), _under("node.hcas[].", "stored.value"), _WAITS, BROKEN, INFINIBAND, warns=True),
    Row(("firmware",), _under("node.hcas[].", "running.value", "settings[].current"), _WAITS, BROKEN, warns=True),
    Row(("firmware",), ("node.hcas[].settings[].name",), _RUNS, OTHER, INFINIBAND),
    Row(("firmware",), ("node.hcas[].settings[].name",), _WAITS, OTHER, ROCE, warns=True),
    Row(
        ("firmware",),
        _under("node.hcas[].", "running.value", "stored.value", *_under("settings[].", "next", "current")),
        _WAITS,
        OTHER,
        warns=True,
    ),
    Row(("firmware",), ("node.hcas[].errors",), _RUNS, warns=True),
    Row(
        ("nic_devices.nics",),
        (
            "",
            "devices",
            "devices[]",
            *_under(
                "devices[].",
                "name",
                "node",
                "ports*",
                "psid",
                "dpu",
                "configured",
                "updated",
                "message",
                "namespace",
                "type",
                "serial",
            ),
        ),
        _RUNS,
    ),
    Row(("nic_devices.nics",), ("devices[].firmware",), _RUNS, ("unread",)),
    Row(("nic_devices.nics",), ("devices[].firmware", "devices[].waits"), _WAITS, BROKEN, warns=True),
    Row(("nic_devices.nics",), ("errors", "unread"), _RUNS, warns=True),
    # operators, before the network
    Row(
        ("operators", "operators_after_network.operators"),
        ("says",),
        "It says why there is no config daemon, and there is one.",
    ),
    Row(
        ("operators",),
        _under("installations[].", "deployment.name", "deployment.images*", "deployment.nodes", "origin"),
        _NAMES,
    ),
    Row(("operators",), ("installations[].version",), "Which version it is decides nothing.", BROKEN),
    Row(
        ("operators",),
        ("installations[].version",),
        "Which version it is decides nothing, and the reader should know it.",
        ("unread",),
        warns=True,
    ),
    Row(
        ("operators",),
        ("installations[].resource_prefix",),
        "Stage virtual_functions counts what nodes offer under the prefix of the intent.",
        ("unread",),
        warns=True,
    ),
    Row(
        ("operators",),
        ("installations[].deployment.wanted",),
        "One of its pods is available, and acts.",
        ("more",),
        warns=True,
    ),
    Row(("operators",), ("installations[].deployment.ready",), "These are more than it takes.", ("more",)),
    Row(
        ("operators",),
        ("nodes[].labels[worker]", "nodes[].not_ready", "nodes[].machine_config"),
        "No stage asks for it here.",
    ),
    Row(
        ("operators", "operators_after_network.operators"),
        ("nodes[].unread",),
        "A number that is none is absent, and only that of our resource counts.",
    ),
    Row(
        ("operators",),
        ("nodes[].allocatable*",),
        "Stage virtual_functions counts what nodes offer after the network is made.",
    ),
    Row(
        ("operators",),
        (
            "states[].wanted*",
            "states[].interfaces*",
            "states[].last_sync_error",
            "states[].current_state",
            "states[].desired_state",
        ),
        _LATER,
    ),
    Row(("operators",), ("states[].generation", "states[].rdma_mode"), _LATER),
    Row(
        ("operators", "operators_after_network.operators"),
        ("nodes[].machine", "states[].external_drainer"),
        "The gate before drains and reboots asks the cluster anew; no link depends on it.",
        BROKEN,
    ),
    Row(
        ("operators",),
        ("states[].sync_status",),
        "The daemon reports. Whether what it does succeeds is waited for by stage network.",
        BROKEN,
    ),
    Row(
        ("operators",),
        _under("daemon.", "name", "namespace", "images*"),
        "The nodes on which it is ready count.",
    ),
    Row(("operators",), ("daemon.ready",), "These are more than it takes.", ("more",)),
    Row(
        ("operators",),
        ("daemon.wanted",),
        "Each node of the inventory has a ready pod of the present template; another node has none.",
        ("more",),
        warns=True,
    ),
    Row(("operators",), ("daemon.wanted",), "More pods run than it asks for.", ("less",)),
    Row(
        ("operators",),
        ("policies*", "supported_nics*"),
        "The linter of stage network judges by it, before anything is applied.",
    ),
    Row(("operators",), ("discovery*",), "It explains an absent label, and none is absent."),
    Row(
        ("operators",),
        ("multus", "multus[]", "multus[].name", "multus[].namespace", "multus[].images"),
        "Pods carry the mark of multus.",
    ),
    Row(
        ("operators",), ("multus[].wanted", "multus[].ready"), "The nodes of the inventory on which it is ready count."
    ),
    Row(
        ("operators",),
        ("multus_pods", "attachments", "nic_policies"),
        "It is a second proof of what is proven, or of another profile.",
    ),
    Row(("needed_operators.operators",), _under("controllers[].", "name", "version", "origin", "release"), _NAMES),
    Row(
        ("needed_operators.operators",),
        ("controllers[].wanted",),
        "One of its pods is available, and acts.",
        ("more",),
        warns=True,
    ),
    Row(("needed_operators.operators",), ("controllers[].ready",), "These are more than it takes.", ("more",)),
    Row(
        ("needed_operators.operators",),
        ("job", "olm", "labelled", "made", "drivers", "hosts", "install", "leave", "versions", "left"),
        "It is of operators that this intent does not need.",
    ),
    Row(("needed_operators.operators",), ("untrusted",), "It is of operators that this intent does not need.", BROKEN),
    Row(("needed_operators.operators",), ("configurations[].name",), _NAMES),
    Row(
        ("needed_operators.operators",),
        ("configurations",),
        "It is of operators that this intent does not need.",
        BROKEN,
        ROCE,
    ),
    Row(
        ("operators.images",),
        (
            "rules",
            "rules[]",
            "rules[].owner",
            "rules[].source",
            "rules[].mirrors*",
            "rules[].never",
            "registries.insecure*",
        ),
        _PULLED,
    ),
    Row(("operators.images",), ("registries.blocked*",), _PULLED, ("unread", "left out")),
    Row(("operators.images",), ("named",), "What is made up has no registry in front.", warns=True),
    Row(
        ("access.rights",),
        ("asked",),
        "The list of rights is made of the intent; each that is denied is named.",
        NUMBER,
    ),
    # network
    Row(
        ("applied",),
        ("(Namespace)", *_under("(Namespace).", "kind", "name", "namespace", "fabric")),
        "Objects in a namespace that is not there are refused.",
    ),
    Row(("applied",), _under("(SriovNetworkNodePolicy).", "name", "namespace"), "The collection gives the name."),
    Row(("applied",), ("(SriovIBNetwork).namespace",), "The collection gives the namespace.", on=INFINIBAND),
    Row(("applied",), ("(SriovNetwork).namespace",), "The collection gives the namespace.", on=ROCE),
    Row(
        ("applied",),
        tuple(
            f"({kind}).{name}"
            for kind in ("MachineConfig", "KubeletConfig")
            for name in ("name", "namespace", "fabric")
        ),
        "The collection gives the name, and that it was taken counts, whosever it is.",
        on=ROCE,
    ),
    Row(("applied",), ("(IPPool).fabric",), "The pool has its own name, by which it is known.", on=ROCE),
    Row(("applied",), ("*.refusal", "*.reason"), "The API server took the object."),
    Row(("applied",), ("*.warnings",), "The API server took the object; what it warns of is told."),
    Row(("applied.leftovers",), ("objects", "more"), "Another intent may need what is left.", warns=True),
    Row(("sync",), ("finished", "timed_out", "waited_seconds"), "Each node has its own state."),
    Row(
        ("sync",),
        ("nodes[].detail", "nodes[].remedy", "nodes[].matched*"),
        "What is ready is ready; the number that the node offers is judged.",
    ),
    Row(
        ("addresses",),
        ("taken", *_under("taken(", "pods)", "services)", "node)", "attachment)")),
        "What nobody uses can't be met.",
    ),
    Row(
        ("addresses",),
        ("taken(*).kind", "taken(*).owner", "taken(*).ipam", "taken(*).node"),
        "The network counts, whosever it is.",
    ),
    Row(
        ("addresses",),
        ("taken(attachment).network",),
        "A tenant may write it: it is named, and keeps no fabric from being made.",
        BROKEN,
        warns=True,
    ),
    Row(("addresses",), ("pods",), "The number of pods is for the reader.", NUMBER),
    Row(("addresses",), ("leaks",), "An address outside of the range is none of ours."),
    Row(("addresses",), ("pools",), "A pool of nv-ipam is nothing to whereabouts.", BROKEN, INFINIBAND),
    Row(
        ("addresses",),
        ("pools", "pools[]"),
        "The stage makes the pool, and waits for shares of it.",
        on=ROCE,
    ),
    Row(
        ("addresses",),
        ("pools[].kind", "pools[].namespace", "pools[].name"),
        "A pool of another name with the same range is named, and keeps no fabric from being made.",
        on=ROCE,
        warns=True,
    ),
    Row(
        ("addresses",),
        ("pools[].pods*",),
        "Pods with addresses of a pool matter only if the run changes the pool.",
        on=ROCE,
    ),
    Row(
        ("addresses",),
        ("pools[].network", "pools[].share"),
        "The stage changes the pool, and waits for shares of it.",
        on=ROCE,
        warns=True,
    ),
    Row(
        ("addresses",),
        ("unread_pools",),
        "A pool that a tenant may have created: it is named, and keeps no fabric from being made.",
        warns=True,
    ),
    Row(("addresses",), ("unclear",), "An attachment of somebody else, to be compared by hand.", warns=True),
    Row(("disruption.allowed",), ("",), "It follows from the plan, which is judged."),
    Row(("disruption.plan",), ("nodes[].action",), "The intent allows this as well.", BROKEN),
    Row(
        ("disruption.plan",),
        (
            "nodes[].reasons*",
            "nodes[].pool",
            "nodes[].driver",
            "drains",
            "pauses",
        ),
        "The plan tells it to the reader.",
    ),
    Row(("disruption.plan",), ("nodes[].pods*",), "The plan tells it to the reader.", (), ROCE),
    Row(("disruption.plan",), ("nodes[].pods",), "The intent allows drains.", (), INFINIBAND, warns=True),
    Row(("disruption.plan",), ("nodes[].listed",), "Nodes of the inventory are asked for by name."),
    Row(
        ("disruption.plan",),
        ("nodes[].lost", "nodes[].undrained", "nodes[].loses_link"),
        "The intent allows drains.",
        warns=True,
    ),
    Row(("disruption.plan",), ("nodes[].doubts*",), "The intent allows drains.", warns=True),
    Row(("disruption.plan",), ("unread", "closed*"), "Nothing is drained.", on=INFINIBAND),
    Row(("disruption.plan",), ("pools",), "An order of turns; what comes of it is judged.", on=INFINIBAND),
    Row(
        ("disruption.plan",),
        _under("pools[].", "at_once", "waves", "limit", "driver", "undrained"),
        "What comes of it is judged.",
        on=ROCE,
    ),
    Row(
        ("network_objects.unmade",),
        ("",),
        "Of a fabric that the intent has, its objects are missing among those that were applied.",
    ),
    Row(("network_objects.lint",), ("findings", "held"), "It is about no fabric of the intent."),
    Row(("rolls",), ("[].config", "[].seconds"), "It is told beside what is judged."),
    Row(("rolls",), ("[].rolls",), "It rolled once at most.", LESS),
    Row(("rolls",), ("[].others",), "Each node of the inventory has come.", warns=True),
    Row(("rolls.kubelet",), _under("wanted[].", "kind", "name", "what", "labels"), _NAMES),
    Row(
        ("rolls.kubelet",),
        ("wanted[].generated", "wanted[].generated[]"),
        "The first KubeletConfig of a pool has a name that is known.",
        ("unread", "left out"),
    ),
    Row(("rolls.kubelet",), ("others*",), "It is of another pool."),
    Row(("rolls.kubelet",), ("reached",), "All machines of the pool have come."),
    Row(
        ("rolls.kubelet",),
        ("pools[].selector*", *_under("pools[].", "paused*", "degraded", "message", "max_unavailable", "conditions")),
        _IN_FORCE,
    ),
    Row(("rolls.kubelet",), ("pools[].conditions[Degraded]",), _IN_FORCE),
    Row(("rolls.kubelet",), ("pools[].conditions[Updating]",), _IN_FORCE, ("left out",)),
    Row(
        ("rolls.kubelet",),
        ("pools[].config_selector.labels", "pools[].config_selector.labels[role]"),
        "Then it takes all MachineConfigs.",
        ("unread", "left out"),
    ),
    Row(("rolls.kubelet",), ("pools[].sources[]",), "Of somebody else.", ("left out", "broken")),
    Row(("roll_prepared.error",), ("",), "Nothing went wrong; how the pools rolled is another fact.", ("left out",)),
    # after the network
    Row(
        ("hcas_after_network",),
        _under(_PF, "rdma_device"),
        "The kernel has no two functions of one name.",
        OTHER,
    ),
    Row(
        ("hcas_after_network",),
        _under(_PF, "pci.address"),
        "The kernel has no two functions of one address.",
        OTHER,
        INFINIBAND,
    ),
    Row(
        ("hcas_after_network",),
        _under(_PF, "rdma_device"),
        "Where the PCI address tells rails, the name of the device does not count.",
        ("unread", "broken"),
        ROCE,
    ),
    Row(
        ("hcas_after_network",),
        _under(_PF, "pci.driver", "pci.link*", "netdevs[].state", "node_guid", "node_description", "sriov", "sriov.*"),
        _DONE,
    ),
    Row(
        ("hcas_after_network",),
        _under(
            _PF,
            "ports[].state",
            "ports[].physical_state",
            "ports[].rate_gbps",
            "ports[].lid",
            "ports[].sm_lid",
            "ports[].guid",
        ),
        _DONE,
        on=INFINIBAND,
    ),
    Row(("hcas_after_network",), _under(_PF, "ports[].mtu"), "The interface's MTU is compared."),
    Row(("hcas_after_network",), _under(f"{_VF}.", "rdma_device"), "It has a device, whatever its name.", _BAD),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.netdevs[].", "hardware_address"),
        "Any address of its own will do.",
        ("unread", "broken"),
    ),
    Row(("hcas_after_network",), _under(f"{_VF}.", "netdevs", "netdevs[]"), "A pod may have it.", on=ROCE, warns=True),
    Row(
        ("hcas_after_network",),
        _under(
            f"{_VF}.netdevs[].",
            "name",
            "state",
            "port_guid",
            "subnet_prefix",
            "queue_pair",
            "port",
            "bond",
            "bridge",
            "uppers*",
        ),
        "The CNI plugin sets it when a pod takes the VF.",
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.", "pci.vendor", "pci.device*", "pci.numa_node", "pci.link*", "firmware", "board", "hca_type"),
        _CARD,
    ),
    Row(("hcas_after_network",), _under(f"{_VF}.", "node_description", "vf_index", "sriov*", "unread"), _NAMES),
    Row(("hcas_after_network",), _under(f"{_VF}.", "node_guid"), _ETHERNET, on=ROCE),
    Row(
        ("hcas_after_network",),
        _under(
            f"{_VF}.ports",
            "[].number",
            "[].state",
            "[].physical_state",
            "[].link_layer",
            "[].rate_gbps",
            "[].width",
            "[].speed",
            "[].lid",
        ),
        _ONE_VF,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.ports", "[].sm_lid", "[].mtu"),
        _ONE_VF,
    ),
    Row(("hcas_after_network",), _under(f"{_VF}.ports", "", "[]"), _UNLIKE, ("unread", "left out"), warns=True),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.ports", "[].pkeys", "[].pkeys[]"),
        _UNLIKE,
        ("unread", "left out"),
        INFINIBAND,
        True,
    ),
    Row(("hcas_after_network",), _under(f"{_VF}.ports", "[].pkeys"), _ETHERNET, on=ROCE),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.", "ports[].guid"),
        "The GUID of the VF is judged, and no other's may be the same.",
        ("unread", "broken"),
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.", "administration"),
        "The driver does not show it; stage bandwidth proves the link of one VF of each HCA.",
        warns=True,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.", "administration.link_policy"),
        "The driver does not show it; stage bandwidth proves the link of one VF of each HCA.",
        ("unread",),
        warns=True,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.", "administration.link_policy"),
        "The CNI plugin sets it when a pod takes the VF.",
        BROKEN,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.administration.", "port_guid", "vlan*"),
        _CNI,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.administration.", "trust"),
        _CNI,
        on=ROCE,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.administration.", "trust", "spoof_check", "min_tx_rate"),
        "It is a setting of Ethernet.",
        on=INFINIBAND,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.administration.", "spoof_check", "min_tx_rate"),
        "Not every driver shows it.",
        ("unread",),
        ROCE,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.administration.", "max_tx_rate"),
        "Not every driver shows it.",
        ("unread",),
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.administration.", "spoof_check", "min_tx_rate"),
        _UNLIKE,
        ("broken", "more"),
        ROCE,
        warns=True,
    ),
    Row(
        ("hcas_after_network",),
        _under(f"{_VF}.administration.", "node_guid"),
        "The driver shows the GUID of the VF itself.",
        ("unread",),
        INFINIBAND,
    ),
    Row(("hcas_after_network",), _under(f"{_VF}.administration.", "node_guid"), _ETHERNET, on=ROCE),
    Row(
        ("operators_after_network.operators",),
        ("crds*", "installations*", "configs*", "daemon*", "policies*", "supported_nics*", "discovery*"),
        _FIRST,
    ),
    Row(
        ("operators_after_network.operators",),
        ("olm*", "multus*", "attachments", "nic_policies", "troubles", "namespace"),
        _FIRST,
    ),
    Row(
        ("operators_after_network.operators",),
        _under("nodes[].", "labels*", "ready", "unschedulable", "not_ready", "machine_config"),
        _FIRST,
    ),
    Row(("operators_after_network.operators",), ("errors",), "What the stage needs of it was read."),
    Row(
        ("operators_after_network.operators",),
        _under(
            "states[].interfaces[].",
            "name",
            "vendor",
            "device",
            "driver",
            "link_type",
            "total_vfs",
            "eswitch_mode",
            "admin_state",
            "vfs[].index",
            "vfs[].name",
        ),
        "The kernel shows the function itself.",
    ),
    Row(
        ("operators_after_network.operators",),
        ("states[].interfaces[].mtu", "states[].interfaces[].vfs[].guid"),
        "Older daemons do not say it.",
        ("unread",),
    ),
    Row(("operators_after_network.operators",), ("states[].interfaces[].vfs[].guid",), _ETHERNET, BROKEN, ROCE),
    Row(
        ("operators_after_network.operators",),
        ("states[].interfaces[].vfs[].mtu",),
        "The kernel shows the MTU of the VF itself.",
    ),
    Row(("operators_after_network.operators",), ("states[].generation",), "Its effect is judged: the functions."),
    Row(
        ("operators_after_network.operators",),
        ("states[].wanted_rdma_mode", "states[].rdma_mode"),
        "Older operators do not say it; its effect is judged: the RDMA devices.",
        ("unread",),
    ),
    Row(
        ("operators_after_network.operators",), ("states[].wanted[].name", "states[].wanted[].groups[].policy"), _NAMES
    ),
    Row(
        ("operators_after_network.operators",),
        ("states[].wanted[].link_type", "states[].wanted[].groups[].device_type"),
        "Where the operator wants none, the function keeps the one that it has, which the kernel shows.",
        ("unread",),
    ),
    Row(
        ("olm",),
        ("", "operators", "operators[]"),
        "Nothing is asked of OLM by the intent itself; the task that asks it ends the stage where it fails, and what an"
        " operator brings is judged as well.",
        ("unread", "left out"),
    ),
    Row(("olm",), _under("operators[].", "package", "namespace", "detail", "remedy", "subscription", "ours"), _NAMES),
    Row(
        ("olm",),
        ("operators[].upgrade",),
        "A newer version is offered; the one that is asked for is there.",
        BROKEN,
        warns=True,
    ),
    Row(
        ("vf_pods.pods",),
        _under(
            "[].",
            "name",
            "namespace",
            "device",
            "address",
            "interface",
            "rate_gbps",
            "pcie_gbps",
            "error",
            "rail",
            "physical_function",
            "cpus",
            "binding",
            "far_cpus",
            "cause",
        ),
        "What its node shows of the VF that the pod has is judged.",
    ),
    Row(
        ("hcas_in_use",),
        (_PF[:-1], f"{_PF}*", _VF, f"{_VF}.*", "node.errors"),
        "Only VFs in pods are judged here.",
    ),
    Row(
        ("hcas_in_use",),
        _under("node.hcas(VF in a pod).", *_VF_IN_USE),
        "Only the settings of the VF are judged here.",
    ),
    Row(
        ("hcas_in_use",),
        _under(
            "node.hcas(VF in a pod).administration.",
            "node_guid",
            "port_guid",
            "link_policy",
            "vlan_qos",
            "spoof_check",
            "min_tx_rate",
            "max_tx_rate",
        ),
        "The network sets nothing of it.",
    ),
    # host
    Row(("memlock.proofs",), ("[].pod", "[].device", "[].evidence", "[].hard"), "It is told beside what is judged."),
    Row(("memlock.proofs",), ("[].user",), "It is still not root.", NUMBER),
    Row(("memlock.proofs",), ("[].soft", "[].registered"), "It is more than the intent asks for.", ("more",)),
    Row(("memlock.proofs",), ("[].asked",), "What was registered is judged.", NUMBER),
    Row(("cluster_policy.policies",), ("names[]",), _NAMES, BROKEN),
    Row(
        ("cluster_policy.policies",),
        ("drivers",),
        "The ClusterPolicy configures the driver itself; where it does not, they are judged"
        " (tests/unit/owners_operators/test_drivers_of_others.py).",
        BROKEN,
    ),
    Row(
        ("cluster_policy.policies",),
        ("state",),
        "Each node of the inventory shows what was asked for.",
        BROKEN,
        INFINIBAND,
        warns=True,
    ),
    # what pods do
    Row(
        ("bandwidth",),
        _under(
            "pods[].",
            "namespace",
            "interface",
            "cpus",
            "binding",
            "far_cpus",
            "cause",
        ),
        "The measurement went through the pod, and is judged.",
    ),
    Row(
        ("bandwidth",),
        ("pods[].address",),
        "Which address of the range a pod has does not matter; what was measured over it counts.",
        ("unread",),
    ),
    Row(
        ("bandwidth",),
        ("pods[].name",),
        "The measurement went through the pod, and is judged.",
        ("unread", "broken"),
    ),
    Row(("bandwidth",), ("pods[].rate_gbps",), "What the HCA's link can do is looked up on the node."),
    Row(("bandwidth",), ("pods[].pcie_gbps",), "More than it takes.", ("more",)),
    Row(("bandwidth",), ("plans",), "How long it takes is for the reader."),
    Row(("bandwidth",), ("layers",), "It tells where a pair loses that has failed already."),
    Row(("bandwidth",), ("counted",), "It tells more of a link that has failed already."),
    Row(("bandwidth",), ("pods[].pcie_gbps",), "The rate of the port bounds the floor.", ("unread",)),
    Row(("pings",), ("node[].late",), "None of ten times as many was late.", ("more",), INFINIBAND, warns=True),
    Row(("bandwidth",), ("pairs[].pings",), "These are more than it takes.", ("more",)),
    Row(
        ("bandwidth",),
        _under("pairs[].", "ping_evidence", "evidence", "seconds", "commands*", "streams", "queue_pairs"),
        "It is told beside what is judged.",
    ),
    Row(("bandwidth",), ("pairs[].peak_gbps",), "The average counts.", ("unread", "more")),
    Row(
        ("bandwidth",),
        ("pairs[].iterations",),
        "Measured by time, it is what perftest counted; the average counts.",
        NUMBER,
    ),
    Row(
        ("bandwidth",),
        ("pairs[].packet_bytes",),
        "Larger packets than the MTU of the fabric has room for cost nothing.",
        ("more",),
    ),
    Row(
        ("bandwidth",),
        ("pairs[].packet_bytes",),
        "It is compared with the MTU of the fabric; what the pair carries is measured.",
        ("less", "unread"),
        warns=True,
    ),
    Row(("bandwidth",), ("pairs[].gid_index",), "GIDs of InfiniBand need no index.", on=INFINIBAND),
    Row(("bandwidth",), ("pairs[].gid_index",), "Odd indexes are of RoCE v2.", ("less",), ROCE),
    Row(("bandwidth",), ("pairs[].gid_index",), "What the pair carries is measured.", ("more", "unread"), ROCE, True),
    Row(("bandwidth",), ("pairs[].errors[].seconds",), "It is told beside what is judged.", on=ROCE),
    Row(
        ("bandwidth",),
        ("pairs[].errors",),
        "Stage fabric reads the errors of the ports of InfiniBand; stage bandwidth reads those of RoCE.",
        BROKEN,
        INFINIBAND,
    ),
    Row(
        ("bandwidth",),
        ("pairs[].errors[].congestion",),
        "A network without loss has pauses and congestion notifications under load.",
        BROKEN,
        ROCE,
    ),
    Row(
        ("bandwidth",),
        ("pairs[].errors[].grown",),
        "Lost packets that are sent again cost speed, which is judged; a counter of a lost link fails.",
        BROKEN,
        ROCE,
        True,
    ),
    Row(
        ("bandwidth",),
        ("pairs[].errors[].read",),
        "How many error counters there are depends on the driver; that some were read counts.",
        NUMBER,
        ROCE,
    ),
    Row(("bandwidth",), ("pairs[].again",), "It is judged like any other."),
    Row(("bandwidth",), ("pairs[].retried",), "The pair passed; of attempts that the network lost is warned.", BROKEN),
    Row(
        ("bandwidth",),
        ("pairs[].wider",),
        "A pair that is fast enough needs no second figure, and is not judged by one.",
        BROKEN,
    ),
    Row(("bandwidth",), ("pairs[].server_rail",), "Said of a pair of that rail, it is no other pair.", BROKEN),
    Row(
        ("bandwidth",),
        ("pairs[].flow_label",),
        "Rounds of pairs need no flows; where switches of Ethernet choose links by them,"
        " tests/unit/run/test_pairs_by_switches.py bends them.",
    ),
    Row(
        ("bandwidth",),
        ("pairs[].traffic_class",),
        "The figures may be of another queue of the switches than the jobs use, which is told.",
        on=ROCE,
        warns=True,
    ),
    Row(("bandwidth",), ("pairs[].traffic_class",), "InfiniBand has service levels in its place.", on=INFINIBAND),
    Row(("bandwidth",), ("pairs[].sweep", "pairs[].sweep_failure"), "The intent asks for no sweep.", on=INFINIBAND),
    Row(("bandwidth",), ("pairs[].sweep[]*",), "The sweep is for the report; the measurement is judged.", on=ROCE),
    Row(
        ("hcas",),
        _under(_PF, "name"),
        "A name for the reader; the address and the RDMA device tell the HCA.",
        OTHER,
        INFINIBAND,
    ),
    Row(("topologies",), _under(_TOPOLOGY, "links(manager).b.port_guid"), _MANAGER, OTHER, INFINIBAND),
    Row(("bandwidth",), ("pods[].name",), _NAMES, OTHER, INFINIBAND),
    Row(("bandwidth",), ("latencies*",), "The intent asks for none."),
    Row(("bandwidth",), ("leftovers",), "They are gone.", warns=True),
    Row(
        ("bandwidth.fabrics",),
        _under("[].", "measured", "worst", "median", "best", "transport"),
        "Worked out of the pairs, which stage bandwidth judges.",
    ),
    # training
    Row(("nccl_log.log",), ("versions[]",), "It is one, whatever its name.", BROKEN),
    Row(
        ("nccl_log.log",),
        _under(
            "processes[].",
            "version",
            "network",
            "oob_interface",
            "oob_address",
            "dma_buf",
            "without_ib",
            "environment",
            "choices",
            "gid_indexes",
        ),
        "Channels show what was used; this tells why. Variables whose harm the channels do not show are warned of.",
    ),
    Row(("nccl_log.log",), ("processes[].mtus",), "Small packets cost speed, and reach their end.", warns=True),
    Row(("nccl_log.log",), ("processes[].files",), "A process is in one file, whatever its name.", BROKEN),
    Row(
        ("nccl_log.log",),
        _under("processes[].devices[].", "port", "link", "rail", "gpu_direct", "reasons"),
        "That a device is listed proves nothing; channels do.",
    ),
    Row(
        ("nccl_log.log",),
        _under(
            "communicators[].",
            "name",
            *_under("ranks[].", "gpu", "bus_id", "point_to_point_channels", "trees", "rings", "nodes"),
        ),
        "It is told beside what is judged.",
    ),
    Row(("nccl_log.log",), ("communicators[].ranks[].channels",), _DERIVED, NUMBER),
    Row(("nccl_log.log",), ("communicators[].ranks[].host", "communicators[].ranks[].pid"), _DERIVED, OTHER),
    Row(("nccl_log.log",), ("communicators[].ranks[].routes(*)",), _DERIVED),
    Row(
        ("nccl_log.log",),
        _under("communicators[].ranks[].routes(*).", "direction", "connection", "proxy", "channels*", "lines"),
        _DERIVED,
    ),
    Row(("nccl_log.log",), ("communicators[].ranks[].routes(NET).transport",), _DERIVED),
    Row(("nccl_log.log",), ("communicators[].ranks[].routes(P2P).via",), _DERIVED, ("unread",)),
    Row(("nccl_log.log",), ("communicators[].ranks[].routes(NET).device",), _DERIVED, ("more", "less", "another's")),
    Row(
        ("nccl_log.log",),
        ("communicators[].ranks[].routes(P2P).device", "communicators[].ranks[].routes(P2P).gpu_direct"),
        "Nothing goes over the network.",
    ),
    Row(
        ("nccl_log.log",),
        ("processes[].devices", *_under("processes[].devices[]", "", ".index", ".name")),
        "Of a rank that has no channel over the network.",
        on=INFINIBAND,
    ),
    Row(
        ("nccl_log.log",),
        ("processes[].devices[].name",),
        "Another rank's name of a device that the host uses.",
        OTHER,
        ROCE,
    ),
    Row(
        ("nccl_log.log",),
        ("problems",),
        "It is not known whether it matters; the channels show what it did.",
        warns=True,
    ),
    Row(
        ("nccl_log.log",),
        ("endpoints*", "more_endpoints"),
        "They are of UCX, by which these jobs do not send; tests/unit/check/test_training_ucx.py has jobs that do.",
    ),
    Row(("nccl_log.log",), ("lines", "nccl_lines", "torn", "cut"), "A channel that is lost with a line is unknown."),
    Row(("operators",), ("troubles",), "What the nodes need of the operator is judged by itself.", warns=True),
    Row(("job_pods.pods",), ("[].name", "[].functions[].interface"), _NAMES),
    Row(("job_pods.pods",), ("[].functions[].rdma_device",), "The node shows it.", ("unread",)),
    Row(
        ("bandwidth",),
        ("pods[].device",),
        "What the pod calls its device is for the reader; its physical function tells the HCA.",
        ("broken", "another's"),
        INFINIBAND,
    ),
    Row(("hcas_after_network",), ("node.errors",), "What is judged was read; the other files are named.", warns=True),
    Row(
        ("operators_after_network.operators",),
        _under("states[].", "last_sync_error"),
        "It says why a sync failed, and none did.",
    ),
    Row(
        ("operators_after_network.operators",),
        _under("states[].", "current_state", "desired_state"),
        "An operator that drains nothing writes neither.",
        ("unread",),
    ),
)

#: what should be noticed, and is not yet
GAPS: tuple[Row, ...] = ()
