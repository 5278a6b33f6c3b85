# SPDX-License-Identifier: GPL-3.0-or-later

"""Published figures of collectives beside what the formula says, and the table of docs/collectives.md that is made of
them.

``python -m tests.unit.check.published_collectives`` writes the table into the page.
"""

from __future__ import annotations

import dataclasses
import pathlib
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.floor import (
    SHARE,
    SHARES,
    Algorithm,
    NodeFigure,
    Shape,
    compute_bandwidth_floor,
)

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/collectives.md"
BEGIN, END = "<!-- made by 'python -m tests.unit.check.published_collectives' -->\n", "<!-- end -->"

#: of a link's rate that ib_write_bw reaches [NVIDIA/nccl issue 2409: 392 of 400 Gb/s]. Of the published runs no rate of
#: a rail is known
PERFTEST = 0.98
#: bus bandwidth of all_reduce within one HGX H100, in GB/s [NVIDIA/nccl-tests issues 212 and 290: 480 and 476]
HGX_H100 = 480.0

COREWEAVE = "coreweave/nccl-tests, README, May 2026"
OCI = "oracle-quickstart/oci-hpc, multi_node_active_healthcheck.py, May 2026"
CRE = "NVIDIA/cluster-readiness-engine, docs/api-reference/validation-results.md, October 2026"
AICR = "NVIDIA/aicr, validators, up to 0.21"
CVS = "ROCm/cvs, August 2026"
DRANET = "kubernetes-sigs/dranet, examples for AKS, August 2026"
CHS = "GoogleCloudPlatform/cluster-health-scanner"


@dataclasses.dataclass(frozen=True)
class Published:
    """One figure.

    :ivar kind: run: somebody measured it; floor: somebody asks for it; fault: somebody measured it and found a fault
    :ivar gbs: in GB/s of bus bandwidth
    :ivar shape: nodes and GPUs of each; None where it is not published, or nothing goes over the network
    :ivar rails: rails of a node, and Gb/s of each
    :ivar algorithm: that is assumed; none of the sources says it
    :ivar node: what one node alone reaches, in GB/s
    :ivar unexplained: what the formula does not tell; empty where the figure lies between floor and bound
    """

    system: str
    kind: typing.Literal["run", "floor", "fault"]
    gbs: float
    source: str
    shape: typing.Optional[Shape] = None
    rails: typing.Optional[tuple[int, float]] = None
    algorithm: typing.Optional[Algorithm] = "ring"
    collective: str = "all_reduce"
    node: typing.Optional[float] = None
    library: str = "NCCL"
    size: str = ""
    unexplained: str = ""

    @property
    def bound(self) -> typing.Optional[float]:
        """What the formula says, in GB/s."""
        if self.shape is None or self.rails is None:
            return None
        count, rate = self.rails
        node = NodeFigure(self.node) if self.node else None
        found = compute_bandwidth_floor(
            self.collective, self.shape, [PERFTEST * rate] * count, self.algorithm, node, library=self.library
        )
        return found.bound_gbs if found else None

    @property
    def share(self) -> typing.Optional[float]:
        """Of the bound that was published."""
        return None if self.bound is None else self.gbs / self.bound

    @property
    def asked(self) -> float:
        """The share that the stage asks for."""
        return SHARES.get((self.library, self.collective), SHARE)


EIGHT = (8, 400.0)
NIC_UNKNOWN = "The rate of a NIC is not published: 400G would carry 49 GB/s, 800G 98 GB/s"
NO_NETWORK = "NVLink alone: the formula is about the network"

PUBLISHED = (
    Published("H100, 8 nodes, NDR", "run", 356.0, COREWEAVE, Shape(8, 8), EIGHT, size="512M"),
    Published("H100, 8 nodes, NDR", "run", 380.0, COREWEAVE, Shape(8, 8), EIGHT, size="2G"),
    Published("H100, 8 nodes, NDR", "run", 386.6, COREWEAVE, Shape(8, 8), EIGHT, size="8G"),
    Published("H100, 4 nodes, 400G", "run", 365.8, "NVIDIA/nccl-tests issue 309", Shape(4, 8), EIGHT, size="16G"),
    Published(
        "H100, 2 nodes, 400G",
        "run",
        470.0,
        "NVIDIA/nccl-tests issue 309",
        Shape(2, 8),
        EIGHT,
        "nvls_tree",
        node=HGX_H100,
        size="16G",
    ),
    Published(
        "H100, 2 nodes, EFA", "run", 487.9, CRE, Shape(2, 8), (32, 100.0), "nvls_tree", node=HGX_H100, size="16G"
    ),
    Published("H100, 2 nodes, EFA", "run", 338.6, CRE, Shape(2, 8), (32, 100.0), collective="all_gather"),
    Published("H100, 2 nodes, EFA", "run", 79.1, CRE, Shape(2, 8), (32, 100.0), collective="alltoall"),
    Published(
        "H100, 400G",
        "run",
        370.0,
        "Together AI, cited in ADR-021 of NVIDIA/cluster-readiness-engine",
        Shape(4, 8),
        EIGHT,
    ),
    Published(
        "H100, 2 nodes, RoCE",
        "fault",
        231.0,
        "NVIDIA/nccl issue 2409",
        Shape(2, 8),
        EIGHT,
        "nvls_tree",
        node=HGX_H100,
        size="8G",
    ),
    Published("GB200, 4 nodes, without MNNVL", "run", 191.4, CRE, Shape(4, 4), (4, 400.0)),
    Published("GB200, 2 racks", "run", 810.0, COREWEAVE, Shape(2, 72), (72, 400.0), "tree", node=834.0, size="16G"),
    Published(
        "GB200, 20 racks",
        "run",
        405.0,
        COREWEAVE,
        Shape(20, 72),
        (72, 400.0),
        "tree",
        node=834.0,
        size="16G",
        unexplained=(
            "A rack's 72 rails carry four times as much as NVLink, and it is half of what NVLink allows. NCCL 2.26.2;"
            " the source says no more"
        ),
    ),
    Published("MI300X, 2 nodes, 400G", "run", 350.0, CVS, Shape(2, 8), EIGHT, library="RCCL", size="16G"),
    Published(
        "MI300X, 2 nodes, 400G",
        "run",
        330.0,
        CVS,
        Shape(2, 8),
        EIGHT,
        library="RCCL",
        size="8G",
        unexplained=(
            "The same two nodes reach 350 GB/s with 16G: RCCL needs larger messages than the published runs of NCCL"
        ),
    ),
    Published(
        "MI300X, 2 nodes, 400G",
        "run",
        50.0,
        CVS,
        Shape(2, 8),
        EIGHT,
        collective="alltoall",
        library="RCCL",
        unexplained=(
            "Half of what the rails carry. Each GPU sends to each other one over its own rail; a GPU's way to the other"
            " rails is not published"
        ),
    ),
    Published(
        "MI300X, 2 nodes, 400G",
        "run",
        45.0,
        CVS,
        Shape(2, 8),
        EIGHT,
        collective="alltoall",
        library="RCCL",
        unexplained="The lower end of the same source, which gives 45 to 50 GB/s",
    ),
    Published("GB300, 2 x 1 GPU, one NIC", "run", 56.0, DRANET, unexplained=NIC_UNKNOWN),
    Published("GB300, 2 x 1 GPU, two NICs", "run", 112.0, DRANET, unexplained=NIC_UNKNOWN),
    Published(
        "GB300, 2 x 1 GPU, one NIC",
        "run",
        25.0,
        DRANET,
        unexplained=f"The NIC is not near the GPU, and GPUDirect RDMA is off without a message. {NIC_UNKNOWN}",
    ),
    Published("GB200, one rack", "run", 834.0, COREWEAVE, size="8G", unexplained=NO_NETWORK),
    Published("GB200, 4 nodes, MNNVL", "run", 882.5, CRE, unexplained=NO_NETWORK),
    Published("GB300, 8 nodes, MNNVL", "run", 923.0, CRE, unexplained=NO_NETWORK),
    Published("GB300, MNNVL", "run", 843.0, "NVIDIA/aicr issue 2641", unexplained=NO_NETWORK),
    Published(
        "GB300, 2 nodes, NVLink and MNNVL",
        "run",
        599.0,
        "nebius-solutions-library pull request 1135",
        unexplained=NO_NETWORK,
    ),
    Published(
        "GB300, 2 nodes, NVLink",
        "run",
        556.0,
        "nebius-solutions-library pull request 1135",
        unexplained=NO_NETWORK,
    ),
    Published(
        "GB300, 2 nodes, InfiniBand",
        "run",
        246.0,
        "nebius-solutions-library pull request 1135",
        unexplained=(
            "The rate of its HCAs and the GPUs of a node are not published: 4 x 400G would carry 196 GB/s as a ring, 4"
            " x 800G 392 GB/s"
        ),
    ),
    Published(
        "H100, 2 nodes, RoCE",
        "floor",
        470.0,
        "NVIDIA/nccl issue 2409",
        Shape(2, 8),
        EIGHT,
        "nvls_tree",
        node=HGX_H100,
    ),
    Published("A100, 16 x 100G", "floor", 185.0, OCI, Shape(4, 8), (16, 100.0), size="1G-16G"),
    Published(
        "H100, H200, B200, GB300",
        "floor",
        440.0,
        OCI,
        Shape(2, 8),
        EIGHT,
        "nvls_tree",
        node=HGX_H100,
        size="1G-16G",
        unexplained="Nodes are not said: two",
    ),
    Published("B300, 8 x 800G", "floor", 700.0, OCI, Shape(4, 8), (8, 800.0), size="1G-16G"),
    Published("GB200-v3", "floor", 300.0, OCI, size="1G-16G", unexplained="Neither its rails nor the nodes are said"),
    Published("MI300X, MI355X", "floor", 350.0, OCI, Shape(4, 8), EIGHT, library="RCCL", size="1G-16G"),
    Published(
        "B300, one node",
        "floor",
        800.0,
        "oracle-quickstart/oci-hpc, active_healthcheck.py, May 2026",
        unexplained=NO_NETWORK,
    ),
    Published(
        "a3ultra (H200), a4 (B200)",
        "floor",
        250.0,
        CHS,
        Shape(4, 8),
        EIGHT,
        unexplained="A floor far below the links: it finds what is broken, not what is slow",
    ),
    Published("a4x (GB200)", "floor", 160.0, CHS, Shape(4, 4), (4, 400.0)),
    Published(
        "H100, EKS",
        "floor",
        300.0,
        AICR,
        Shape(2, 8),
        (32, 100.0),
        "nvls_tree",
        node=HGX_H100,
        unexplained="Below what one rail less would give",
    ),
    Published(
        "H100, AKS",
        "floor",
        100.0,
        AICR,
        Shape(2, 8),
        EIGHT,
        "nvls_tree",
        node=HGX_H100,
        unexplained="Two rails of eight would pass it",
    ),
    Published(
        "H100, GKE",
        "floor",
        250.0,
        AICR,
        Shape(2, 8),
        EIGHT,
        "nvls_tree",
        node=HGX_H100,
        unexplained="Half of the rails would nearly pass it",
    ),
    Published("GB200, NET", "floor", 40.0, AICR, Shape(2, 4), (4, 400.0), unexplained="One rail of four would pass it"),
    Published("GB200, NVLS", "floor", 500.0, AICR, unexplained=NO_NETWORK),
    Published("GB300, NVLS", "floor", 700.0, AICR, unexplained=NO_NETWORK),
    Published("nodes of NVSentinel", "floor", 350.0, "NVIDIA/NVSentinel, ADR-049", Shape(4, 8), EIGHT),
    Published(
        "preflight of NVSentinel",
        "floor",
        100.0,
        "NVIDIA/NVSentinel, preflight",
        Shape(4, 8),
        EIGHT,
        unexplained="Three rails of eight would pass it",
    ),
    Published(
        "preflight of NVSentinel, one node", "floor", 150.0, "NVIDIA/NVSentinel, preflight", unexplained=NO_NETWORK
    ),
    Published("one node of NVSentinel", "floor", 400.0, "NVIDIA/NVSentinel, ADR-049", unexplained=NO_NETWORK),
    Published("MI300X, pairs of nodes", "floor", 300.0, CVS, Shape(2, 8), EIGHT, library="RCCL"),
)

#: what the formula begins with: GB/s that ib_write_bw must reach, link by link, in Gb/s
RATES = (
    ("A100", 96.0, 100.0, OCI),
    ("H100, two ports of 200G", 192.0, 200.0, OCI),
    ("H200, B200, GB200, GB300", 384.0, 400.0, OCI),
    ("B300", 375.0, 400.0, OCI),
    ("MI300X, MI355X", 350.0, 400.0, OCI),
    ("AINIC", 327.0, 400.0, "nixl pull request 1647"),
    ("H100, RoCE", 392.0, 400.0, "NVIDIA/nccl issue 2409"),
)


def make_table() -> str:
    """The published figures, one a row, and the rates of links."""
    rows = [
        "| system | collective | published, GB/s | | bound, GB/s | share | what the formula does not tell | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for item in PUBLISHED:
        bound = "" if item.bound is None else f"{item.bound:.0f}"
        share = "" if item.share is None else f"{item.share:.2f}"
        name = f"{item.collective}{f', {item.algorithm}' if item.bound and item.collective == 'all_reduce' else ''}"
        size = f" @{item.size}" if item.size else ""
        rows.append(
            f"| {item.system} | {name} | {item.gbs:g}{size} | {item.kind} | {bound} | {share} | {item.unexplained} |"
            f" {item.source} |"
        )
    rates = ["| HCA | published, Gb/s | link, Gb/s | share | source |", "|---|---|---|---|---|"]
    rates += [
        f"| {system} | {rate:g} | {link:g} | {rate / link:.2f} | {source} |" for system, rate, link, source in RATES
    ]
    shares = ["| library | collective | share |", "|---|---|---|"]
    shares += [f"| {library} | {collective} | {share:g} |" for (library, collective), share in SHARES.items()] + [
        f"| any | any other | {SHARE:g} |"
    ]
    return "\n".join(
        [
            *rows,
            "",
            "Rates of single links, by `ib_write_bw`:",
            "",
            *rates,
            "",
            "Shares of the bound that are asked for:",
            "",
            *shares,
            "",
        ]
    )


def put_table(page: str) -> str:
    """The page with the table of today."""
    before, _begin, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{make_table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(put_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
