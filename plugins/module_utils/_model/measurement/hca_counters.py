# SPDX-License-Identifier: GPL-3.0-or-later

"""The error counters of RDMA devices, and by how much they rose during a measurement. Created by _run, read by _check.

Names of counters are those of the files in sysfs, and of ``ethtool -S`` for the network interface of an Ethernet port.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.devices import RdmaDevice
from ..boundary.form import Bound
from ..boundary.kubernetes import Subdomain
from ..boundary.numbers import Count, Counter, Seconds
from ..boundary.words import Word

#: error counters of one device
MOST_COUNTERS = 256
#: priorities of an Ethernet port
_PRIORITIES = range(8)

#: of which one is a fault: NVSentinel's NIC monitor takes each rise of the first four for fatal. The last one is
#: link_downed of an Ethernet port, which the kernel counts for the network interface
FATAL = (
    "link_downed",
    "excessive_buffer_overrun_errors",
    "local_link_integrity_errors",
    "rnr_nak_retry_err",
    "carrier_down_count",
)
#: counters that mean a lost, damaged or refused packet, by the driver that has them [Linux:
#: drivers/infiniband/core/sysfs.c; hw/mlx5/counters.c; hw/bnxt_re/hw_counters.c; hw/irdma/verbs.c;
#: sw/rxe/rxe_hw_counters.c; net/ethernet/mellanox/mlx5/core/en_stats.c; net/ethernet/broadcom/bnxt/bnxt_ethtool.c;
#: net/ethernet/intel/ice/ice_ethtool.c; amd/node-scraper for ionic]. Those that rise when a queue pair is closed
#: (req_cqe_error and the like), or with adaptive routing (out_of_sequence), are not among them
ERRORS_OF: dict[str, tuple[str, ...]] = {
    "port": (
        "symbol_error",
        "link_error_recovery",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_xmit_discards",
        "port_xmit_constraint_errors",
        "port_rcv_constraint_errors",
    ),
    "network interface": ("rx_crc_errors", "rx_frame_errors"),
    "mlx5_ib": (
        "local_ack_timeout_err",
        "packet_seq_err",
        "implied_nak_seq_err",
        "rx_icrc_encapsulated",
        "out_of_buffer",
        "duplicate_request",
        "roce_slow_restart",
        "roce_adp_retrans_to",
        "resp_local_length_error",
        "req_remote_invalid_request",
        "req_remote_access_errors",
        "resp_remote_access_errors",
    ),
    "mlx5_core": (
        "rx_discards_phy",
        "tx_discards_phy",
        "rx_crc_errors_phy",
        "tx_errors_phy",
        *(f"rx_prio{number}_{what}" for number in _PRIORITIES for what in ("discards", "buf_discard", "cong_discard")),
    ),
    "bnxt_re": (
        "tx_roce_errors",
        "rx_roce_errors",
        "tx_roce_discards",
        "rx_roce_discards",
        "to_retransmits",
        "seq_err_naks_rcvd",
        "max_retry_exceeded",
        "rnr_naks_rcvd",
        "missing_resp",
        "unrecoverable_err",
    ),
    "bnxt_en": ("rx_fcs_err_frames", *(f"rx_discard_packets_cos{number}" for number in _PRIORITIES)),
    "irdma": ("ip4InDiscards", "ip6InDiscards", "ip4InTruncatedPkts", "ip6InTruncatedPkts", "tcpRetransSegs"),
    "ice": ("rx_dropped_nic", "rx_crc_errors_nic", "tx_dropped_link_down_nic"),
    "ionic_rdma": (
        "tx_rdma_ack_timeout",
        "tx_rdma_retx_pkts",
        "req_rx_pkt_seq_err",
        "req_rx_impl_nak_seq_err",
        "req_rx_rnr_retry_err",
        "req_tx_retry_excd_err",
        "resp_tx_pkt_seq_err",
        "resp_rx_dup_request",
        "resp_rx_outof_buf",
        "rx_rdma_mtu_discard_pkts",
    ),
    "rdma_rxe": ("rcvd_rnr_err", "rcvd_seq_err", "retry_exceeded_err", "retry_rnr_exceeded_err", "send_err"),
}
ERRORS = frozenset((*FATAL, *(name for names in ERRORS_OF.values() for name in names)))
#: counters of flow and congestion control, and of packets out of order. A network without loss has them under load
CONGESTION_OF: dict[str, tuple[str, ...]] = {
    "mlx5_ib": ("np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "np_ecn_marked_roce_packets", "out_of_sequence"),
    "mlx5_core": tuple(f"{way}_prio{number}_pause" for number in _PRIORITIES for way in ("rx", "tx")),
    "bnxt_re": ("rx_cnp_pkts", "tx_cnp_pkts", "rx_ecn_marked_pkts"),
    "bnxt_en": tuple(f"{way}_pfc_ena_frames_pri{number}" for number in _PRIORITIES for way in ("rx", "tx")),
    "irdma": ("cnpHandled", "cnpIgnored", "cnpSent", "RxECNMrkd"),
    "ice": tuple(f"{way}_priority_{number}_xoff_nic" for number in _PRIORITIES for way in ("rx", "tx")),
    "ionic_rdma": ("rx_rdma_cnp_pkts", "tx_rdma_cnp_pkts", "rx_rdma_ecn_pkts"),
    "rdma_rxe": ("out_of_seq_request",),
}
CONGESTION = frozenset(name for names in CONGESTION_OF.values() for name in names)
#: where a counter of the port stays: it has 16, 8 or 4 bits [Linux: drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR]
MAXIMUM = {
    "symbol_error": 65535,
    "link_error_recovery": 255,
    "link_downed": 255,
    "port_rcv_errors": 65535,
    "port_rcv_remote_physical_errors": 65535,
    "port_xmit_discards": 65535,
    "port_xmit_constraint_errors": 255,
    "port_rcv_constraint_errors": 255,
    "local_link_integrity_errors": 15,
    "excessive_buffer_overrun_errors": 15,
}


@dataclasses.dataclass(frozen=True)
class HcaErrors:
    """The changes of the error counters of an RDMA device during a measurement. The device is that of a pod, or its
    physical function on the node.

    :ivar node: name of the node
    :ivar device: name of the RDMA device
    :ivar seconds: time between the two readings, in seconds
    :ivar read: number of error counters that the device has
    :ivar grown: growth of each error counter that rose, by name
    :ivar lower: names of error counters that are lower than before, because a program reset them
    :ivar stuck: names of error counters that are at their maximum, so that growth cannot be seen
    :ivar once: names of error counters that only one of the two readings has
    :ivar why: reason why the changes are not known; empty if they are known
    :ivar congestion: growth of each counter of congestion and flow control that rose, by name; these are no errors
    """

    ONCE = ("node", "device")

    node: Subdomain
    device: RdmaDevice
    seconds: Seconds = 0.0
    read: Count = 0
    grown: typing.Annotated[dict[Word, Counter], Bound("error counters of a device", MOST_COUNTERS)] = (
        dataclasses.field(default_factory=dict)
    )
    lower: typing.Annotated[tuple[Word, ...], Bound("error counters of a device", MOST_COUNTERS)] = ()
    stuck: typing.Annotated[tuple[Word, ...], Bound("error counters of a device", MOST_COUNTERS)] = ()
    once: typing.Annotated[tuple[Word, ...], Bound("error counters of a device", MOST_COUNTERS)] = ()
    why: str = ""
    congestion: typing.Annotated[dict[Word, Counter], Bound("counters of congestion", MOST_COUNTERS)] = (
        dataclasses.field(default_factory=dict)
    )
