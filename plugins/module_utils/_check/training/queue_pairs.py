# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the queue pairs of a job with the fabric: the MTU, and on RoCE the version and the traffic class, by which
switches choose the queue of a packet. Check id: ``training.queue_pairs``.

The log contains these values with NCCL_DEBUG_SUBSYS=INIT,NET,ENV. A value that the log does not contain is not checked.
NCCL logs the variables that it reads with ENV alone. So a log with other variables and without NCCL_IB_TC shows that it
is not set.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.paths.packets import ROCE_V1_VENDORS, find_least_mtu, is_index_of_roce_v1
from ..._model.base.text import join_first, parse_number
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.job.nccl import NcclProcess
from ..._model.node.tuning import Roce
from ..._model.run.findings import WARN, Finding, build_pass

_CHECK = "training.queue_pairs"
#: variables that NCCL also logs without NCCL_DEBUG_SUBSYS=ENV [src NVIDIA/nccl transport/net_ib.cc, graph/paths.cc,
#: plugin/net.cc]
_WITHOUT_ENV = frozenset(("NCCL_IB_HCA", "NCCL_NET_GDR_LEVEL", "NCCL_NET_PLUGIN", "NCCL_P2P_LEVEL"))


def check(
    host: str,
    processes: typing.Sequence[NcclProcess],
    fabrics: typing.Sequence[Fabric],
    vendors: typing.AbstractSet[str] = frozenset(),
    by_node: typing.AbstractSet[str] = frozenset(),
    sends: bool = False,
) -> list[Finding]:
    """Compare the MTU, the GID index and the traffic class of the queue pairs of a host with the settings of the
    fabrics. The list is empty if the log contains none of these values.

    :param host: host name in the log
    :param processes: processes of the job on the host
    :param fabrics: fabrics that the job may use
    :param vendors: PCI vendor IDs of the HCAs of these fabrics on the node; empty if unknown
    :param by_node: traffic classes that the node sets for the HCAs of these fabrics; empty if it shows none
    :param sends: whether a channel of the host uses an HCA, so that NCCL has read NCCL_IB_TC
    """
    vendors = vendors or {fabric.select.vendor for fabric in fabrics if fabric.select.vendor}
    mtus = sorted({mtu for process in processes for mtu in process.mtus})
    indexes = sorted({index for process in processes for index in process.gid_indexes})
    classes = sorted({process.environment.get("NCCL_IB_TC", "") for process in processes} - {""})
    least = find_least_mtu(fabrics)
    said = [f"MTU {_list(mtus)}"] if mtus else []
    said += [f"GID index {_list(indexes)}"] if indexes else []
    said += [f"NCCL_IB_TC {join_first(classes)}"] if classes else []
    roce = [fabric.roce for fabric in fabrics if fabric.roce is not None]
    ethernet = all(not is_infiniband(fabric) for fabric in fabrics)
    wanted = {str(item.traffic_class) for item in roce} if ethernet else set()
    unset = bool(mtus or indexes or sends) and not classes and any(map(_shows_environment, processes))
    kept = unset and bool(by_node) and by_node <= wanted
    said += [f"traffic class {join_first(sorted(by_node))} of the node"] if wanted and kept else []
    found = [_report_unset(host, roce)] if wanted and unset and not kept else []
    if not said and not found:
        return []
    measured = ", ".join(said)
    compared = [f"MTU {least}"] if least is not None else []
    compared += [f"traffic class {join_first(sorted(wanted))}"] if wanted and (classes or kept) else []
    expected = ", ".join(compared) or "MTU and traffic class that the intent sets"
    if least is not None and mtus and mtus[0] < least:
        why = (
            f"A queue pair of this host has an MTU of {mtus[0]} bytes, because the interface of the pod, the VF, the"
            " partition or the remote port has a smaller MTU than the fabric. Headers then use a larger share of the"
            " bandwidth."
        )
        remedy = (
            "Run stages network and virtual_functions, and follow the remedies of their findings on the MTU. If"
            f" there are none, search NCCL's log of this host for 'mtu {mtus[0].bit_length() - 8}', the verbs"
            f" number of {mtus[0]} bytes: IbDev is the index of the HCA in the line 'NET/IB : Using'. Run ibv_devinfo"
            " on the nodes, and raise the MTU of the port of this HCA or of its switch port. Then run the job again,"
            " and run stage training again with the new logs."
        )
        found.append(
            Finding(
                _CHECK,
                host,
                WARN,
                f"queue pairs with MTU {_list(mtus)} bytes",
                f"all queue pairs with MTU {least} bytes",
                why,
                remedy,
            )
        )
    old = [index for index in indexes if is_index_of_roce_v1(index)]
    if ethernet and roce and old and not (vendors and vendors.isdisjoint(ROCE_V1_VENDORS)):
        why = (
            "Packets of RoCE v1 have no IP header and therefore no DSCP. Switches do not put them into the queue of"
            " roce.dscp, and do not route them."
        )
        remedy = (
            "Remove NCCL_IB_GID_INDEX from the job and the image, or set the index of RoCE v2 (run show_gids in the"
            " pod). Then run the job again, and run stage training again with the new logs."
        )
        found.append(
            Finding(_CHECK, host, WARN, f"GID index {_list(old)} (RoCE v1)", "a GID index of RoCE v2", why, remedy)
        )
    strange = [text for text in classes if _is_strange(text, {item.dscp for item in roce})]
    if ethernet and roce and strange:
        why = (
            "This traffic class has another DSCP than roce.dscp of the fabric. Switches put its packets into a queue"
            " without PFC and ECN, which loses packets."
        )
        setting = _name_setting(roce)
        remedy = f"Set {setting} in the job, and run the job again. Then run stage training again with the new logs."
        found.append(Finding(_CHECK, host, WARN, f"NCCL_IB_TC={join_first(strange)}", setting, why, remedy))
    return found or [build_pass(_CHECK, host, measured, expected)]


def _shows_environment(process: NcclProcess) -> bool:
    """Return whether the log of a process contains all variables that NCCL reads."""
    return bool(process.environment.keys() - _WITHOUT_ENV)


def _name_setting(roce: typing.Iterable[Roce]) -> str:
    return join_first(sorted({f"NCCL_IB_TC={item.traffic_class}" for item in roce}))


def _report_unset(host: str, roce: typing.Iterable[Roce]) -> Finding:
    setting = _name_setting(roce)
    why = (
        "Without this variable, NCCL sends packets of DSCP 0, unless the node sets a traffic class for the device, and"
        " stage tuning has read no such class on this node. Switches put packets of DSCP 0 into a queue without PFC and"
        " ECN, which loses packets."
    )
    remedy = (
        f"Set {setting} in the job, and run the job again. Then run stage training again with the new logs. If the"
        " program sets the traffic class of its communicators itself (ncclConfig_t.trafficClass), waive this finding."
    )
    return Finding(_CHECK, host, WARN, "NCCL_IB_TC not set", setting, why, remedy)


def _is_strange(text: str, wanted: typing.Container[typing.Optional[int]]) -> bool:
    number = parse_number(text)
    return number is not None and number >> 2 not in wanted


def _list(numbers: typing.Iterable[int]) -> str:
    return join_first([str(number) for number in numbers], 4)
