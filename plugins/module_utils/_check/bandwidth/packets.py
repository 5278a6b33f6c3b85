# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, the packets of the queue pairs that were measured: their size against the MTU of the fabric, and on
RoCE their version and traffic class. Check id: ``bandwidth.packets``. A smaller MTU in pods than on nodes
hardly lowers the figures."""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.floors import PairLimits
from ..._analysis.fleet.paths.packets import ROCE_V1_VENDORS, find_least_mtu, is_index_of_roce_v1
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.profiles import carries_rdma, is_infiniband
from ..._model.measurement.pairs import PairResult
from ..._model.run.findings import WARN, Finding, build_pass
from .pairs import subject_of

_CHECK = "bandwidth.packets"


def check_packets(ground: PairLimits, pairs: typing.Iterable[PairResult]) -> typing.Iterator[Finding]:
    """Yield a warning for each fault of the packets of a fabric: their size is unknown or too small, they are RoCE v1,
    or ib_write_bw did not set the traffic class of the fabric. If there is no fault, yield a pass. Yield nothing if no
    pair was measured over RDMA, or if the intent sets neither MTU nor ``roce`` and no packets are small.

    :param ground: limits of the pairs of the fabric
    :param pairs: measured pairs of the fabric
    """
    fabric = ground.fabric
    measured = [pair for pair in pairs if pair.transport == "RDMA" and pair.average_gbps and not pair.failure]
    least = find_least_mtu([fabric])
    versions = fabric.roce is not None and fabric.pods.connection == "tcp" and not is_infiniband(fabric)
    tight = [pair for pair in measured if fabric.mtu is None and _lowers_floor(ground, pair)]
    wanted_class = None if fabric.roce is None or is_infiniband(fabric) else fabric.roce.traffic_class
    if (
        not measured
        or not carries_rdma(fabric)
        or (least is None and wanted_class is None and not versions and not tight)
    ):
        return
    wanted = [f"packets of at least {least} bytes"] if least is not None else []
    wanted += [f"packets that leave {fabric.line_rate.fraction:g} of the link for data"] if tight else []
    wanted += ["RoCE v2"] if versions else []
    wanted += [f"traffic class {wanted_class}"] if wanted_class is not None else []
    expected, found = ", ".join(wanted), []
    unread = [
        pair
        for pair in measured
        if (least is not None and pair.packet_bytes is None) or (versions and pair.gid_index is None)
    ]
    if unread:
        why = (
            "perftest did not report the MTU or the GID index of the queue pairs of these pairs, so their packets could"
            " not be verified."
        )
        remedy = (
            "Set pods.image of the fabric to an image with a newer perftest, whose output contains Mtu and GID"
            " index, then run stage bandwidth again."
        )
        found.append((f"packet size unknown: {_list(ground, unread)}", why, remedy))
    small = [pair for pair in measured if least is not None and pair.packet_bytes is not None]
    small = [pair for pair in small if (pair.packet_bytes or 0) < (least or 0)]
    if small:
        sizes = join_first([str(size) for size in sorted({pair.packet_bytes or 0 for pair in small})], 4)
        why = (
            f"The MTU of the fabric ({fabric.mtu}) allows packets of {least} bytes, but the interface in the pod, the"
            " VF or the port has a smaller MTU. Packet headers use a larger share of the link."
        )
        remedy = (
            "Run stages network and virtual_functions again, and follow the remedies of their findings on the"
            " MTU. If they have none, compare active_mtu (run ibv_devinfo on both nodes) and the MTU of the"
            " switch ports with mtu of the fabric, and raise the smaller one. Then run stage bandwidth again."
        )
        found.append((f"packets of {sizes} bytes: {_list(ground, small)}", why, remedy))
    if tight:
        sizes = join_first([str(size) for size in sorted({pair.packet_bytes or 0 for pair in tight})], 4)
        why = (
            "The packets are so small that their headers take a large part of the link. So no pair can reach"
            " line_rate.fraction of it, and the minimum of these pairs is lower. The intent sets no MTU, and the"
            " usual MTU of 1500 allows packets of 1024 bytes."
        )
        remedy = (
            "If the switches have an MTU of at least 4200, set mtu of the fabric to 4200 (9000 for switches with jumbo"
            " frames), then run stages network and bandwidth again."
        )
        found.append((f"packets of {sizes} bytes: {_list(ground, tight)}", why, remedy))
    told = [pair for pair in measured if versions and pair.gid_index is not None and _has_v1(ground, pair)]
    old = [pair for pair in told if is_index_of_roce_v1(pair.gid_index or 0)]
    if old:
        why = (
            "Even GID indexes of these devices are RoCE v1. Packets of RoCE v1 have no IP header and therefore no DSCP,"
            " so switches put them into another queue than that of roce.dscp. The figures apply to that other queue."
        )
        remedy = (
            "Read the GIDs in the pod (show_gids, or /sys/class/infiniband/DEVICE/ports/*/gid_attrs/types). If the pod"
            " has no GID of RoCE v2, give its interface an address (ipam of the fabric). If the pod has one, set"
            " pods.image to an image with a newer perftest, which selects that GID. Then run stage bandwidth again."
        )
        found.append((f"RoCE v1: {_list(ground, old)}", why, remedy))
    other = [pair for pair in measured if pair.traffic_class != wanted_class and wanted_class is not None]
    if other:
        why = (
            "ib_write_bw did not set the traffic class of the fabric (roce.dscp). Unless the nodes set it themselves,"
            " these packets have DSCP 0, and the figures apply to the queue of best effort."
        )
        remedy = (
            "Set pods.image to an image whose ib_write_bw --help lists --tclass (with pods.connection: rdma_cm, --tos)."
            " Then run stage bandwidth again. On nodes with NVIDIA's driver packages, stage tuning compares the traffic"
            " class of each device (roce_traffic_class)."
        )
        found.append((f"traffic class not set: {_list(ground, other)}", why, remedy))
    for text, why, remedy in found:
        yield Finding(_CHECK, fabric.name, WARN, text, expected, why, remedy)
    if not found:
        sizes = join_first([str(size) for size in sorted({pair.packet_bytes or 0 for pair in measured} - {0})], 4)
        text = f"packets of {sizes or 'an unknown number of'} bytes in {count_of(len(measured), 'measurement')}"
        yield build_pass(_CHECK, fabric.name, text, expected)


def _lowers_floor(ground: PairLimits, pair: PairResult) -> bool:
    """Return whether the minimum of a pair is what its packets leave for data, and not ``line_rate.fraction``.

    :param ground: limits of the pairs of the fabric
    """
    most, floor = ground.limit_by_packets(pair), ground.floor(pair)[0]
    return most is not None and floor == ground.ways * most


def _has_v1(ground: PairLimits, pair: PairResult) -> bool:
    """Return whether the client's HCA has GIDs of RoCE v1, as with drivers of some vendors. Return True also if
    the vendor is unknown.

    :param ground: limits of the pairs of the fabric
    """
    pod, node = ground.pods.get(pair.client_end), ground.nodes.get(pair.client)
    hca = node.at(pod.physical_function or pod.pci) if node and pod else None
    return hca is None or hca.pci is None or hca.pci.vendor in ROCE_V1_VENDORS


def _list(ground: PairLimits, pairs: typing.Sequence[PairResult]) -> str:
    subjects = dict.fromkeys(subject_of(ground.fabric, pair) for pair in pairs)
    return join_first([subject[len(ground.fabric.name) + 1 :] for subject in subjects], 4)
