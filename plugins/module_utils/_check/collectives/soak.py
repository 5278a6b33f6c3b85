# SPDX-License-Identifier: GPL-3.0-or-later

"""The error counters of the HCAs before and after a soak, a long run of a group. Check id: ``collectives.soak``.

A pod reads the counters of its own functions. A virtual function counts errors of its own packets, but no errors of the
cable. So the observer of the node reads the counters of its physical function. Counters that rise when a queue pair is
closed (``req_cqe_error`` and the like), or with adaptive routing (``out_of_sequence``), are not included.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import clause, count_of
from ..._model.base.text import folded
from ..._model.measurement.collectives import HcaErrors
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

#: of which one is a fault: NVSentinel's NIC monitor takes each rise of the first four for fatal. The last one is
#: link_downed of an Ethernet port, which the kernel counts for the network interface
FATAL = (
    "link_downed",
    "excessive_buffer_overrun_errors",
    "local_link_integrity_errors",
    "rnr_nak_retry_err",
    "carrier_down_count",
)
#: names in sysfs [Linux: drivers/infiniband/core/sysfs.c; hw/mlx5/counters.c; hw/bnxt_re/hw_counters.c;
#: sw/rxe/rxe_hw_counters.c]
ERRORS = frozenset(
    (
        *FATAL,
        # of the port
        "symbol_error",
        "link_error_recovery",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_xmit_discards",
        "port_xmit_constraint_errors",
        "port_rcv_constraint_errors",
        # of the network interface of an Ethernet port
        "rx_crc_errors",
        "rx_frame_errors",
        # mlx5
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
        # bnxt_re
        "to_retransmits",
        "seq_err_naks_rcvd",
        "max_retry_exceeded",
        "rnr_naks_rcvd",
        "missing_resp",
        "unrecoverable_err",
        # rxe
        "rcvd_rnr_err",
        "rcvd_seq_err",
        "retry_exceeded_err",
        "retry_rnr_exceeded_err",
        "send_err",
    )
)
#: where a counter of the port stays: it has 16, 8 or 4 bits [Linux: drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR]
_MAXIMUM = {
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
_REMEDY = (
    "Check the findings of stage fabric on the links of this HCA, and run ethtool -S and rdma statistic on the node. On"
    " RoCE, check PFC and ECN. On InfiniBand, check the cable and the port of the switch. Then run stage collectives"
    " again."
)
#: counters in one text, at most
_MOST = 8
#: end of the subject of physical functions that were not read
PHYSICAL = ": physical functions"

Readings = typing.Mapping[str, typing.Mapping[str, int]]


def compare_readings(
    node: str, device: str, before: typing.Optional[Readings], after: typing.Optional[Readings], seconds: float
) -> HcaErrors:
    """Return by how much the error counters of an RDMA device rose during the soak, or the reason why that is unknown.

    :param before: counters of the devices of its pod before the soak; None if they could not be read
    :param after: the same counters after the soak
    :param seconds: time between the two readings
    """
    if before is None or after is None:
        return HcaErrors(node, device, seconds, why="its pod did not respond")
    first, second = before.get(device, {}), after.get(device, {})
    both = sorted(ERRORS & first.keys() & second.keys())
    if not both:
        return HcaErrors(node, device, seconds, why="sysfs in the pod shows no error counter of the HCA")
    grown = {name: second[name] - first[name] for name in both if second[name] > first[name]}
    lower = tuple(name for name in both if second[name] < first[name])
    stuck = tuple(name for name in both if second[name] == _MAXIMUM.get(name))
    once = tuple(sorted(ERRORS & (first.keys() ^ second.keys())))
    return HcaErrors(node, device, seconds, len(both), grown, lower, stuck, once)


def judge_errors(
    subject: str,
    expected: typing.Iterable[tuple[str, str]],
    found: typing.Iterable[HcaErrors],
    physical: typing.Iterable[tuple[str, str]] = (),
) -> typing.Iterator[Finding]:
    """Yield a finding on each HCA whose counters rose or are not known, and one passed finding on all others together.
    Yield one warning on all physical functions that could not be read.

    :param subject: subject of the soak
    :param expected: node and RDMA device of each HCA that took part
    :param found: counter changes that were measured
    :param physical: node and RDMA device of the physical function of each of these HCAs that is a virtual function
    """
    known = {(item.node, item.device): item for item in found}
    physical = tuple(dict.fromkeys(physical))
    unseen = [at for at in physical if at not in known]
    if unseen:
        yield _report_unseen(subject, unseen)
    expected = (*expected, *(at for at in physical if at in known))
    quiet, total, how = 0, 0, "no error counter increases"
    for node, device in expected:
        total += 1
        item = known.get((node, device), HcaErrors(node, device, why="the counters were not read"))
        name, doubts = f"{subject}: {node} {device}", _list_doubts(item)
        if item.why or not item.read:
            why = f"The error counters of this HCA could not be read: {clause(item.why)}."
            remedy = (
                "Check /sys/class/infiniband in the pod, and the driver of the HCA on the node. Then run stage"
                " collectives again."
            )
            yield Finding("collectives.soak", name, UNKNOWN, "error counters not read", how, why, remedy)
        elif item.grown and (any(counter in item.grown for counter in FATAL) or not doubts):
            fatal = [counter for counter in FATAL if counter in item.grown]
            names = [*fatal, *(counter for counter in item.grown if counter not in fatal)]
            said = ", ".join(f"{counter} +{item.grown[counter]}" for counter in names[:_MOST])
            said += f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
            first = item.grown[names[0]]
            rate = f"{3600 * first / item.seconds:.3g} {names[0]} per hour" if item.seconds else f"{first} {names[0]}"
            why = (
                f"The HCA loses or damages packets under load ({rate}). The whole collective waits for each packet that"
                " is sent again."
            )
            yield Finding("collectives.soak", name, FAIL if fatal else WARN, said, how, why, _REMEDY)
        elif doubts:
            said = "; ".join([*(what for what, _why, _remedy in doubts), *_spell_grown(item)])
            why, remedy = (" ".join(part) for part in list(zip(*doubts))[1:])
            yield Finding(
                "collectives.soak", name, UNKNOWN, said, how, why, f"{remedy} Then run stage collectives again."
            )
        else:
            quiet += 1
    if quiet:
        yield ok("collectives.soak", subject, f"no error counter of {quiet} of {total} HCAs increased", how)


def _report_unseen(subject: str, unseen: typing.Sequence[tuple[str, str]]) -> Finding:
    """Return the warning on physical functions whose counters could not be read.

    :param unseen: node and RDMA device of each
    """
    why = (
        "The pods have virtual functions, which count no errors of the cable. Their physical functions are not visible"
        " in the pods, and these nodes have no pod that inspects them, so errors of the cable during the soak are"
        " unknown."
    )
    remedy = (
        "Set rdma_observers (docs/observers.md), and run stage collectives again. Or run perfquery -x"
        " (InfiniBand) or ethtool -S (Ethernet) on these nodes before and after the soak."
    )
    measured = folded([f"{node} {device}" for node, device in unseen], _MOST)
    return Finding(
        "collectives.soak",
        f"{subject}{PHYSICAL}",
        WARN,
        f"not read: {measured}",
        "no error counter increases",
        why,
        remedy,
    )


def _spell_grown(item: HcaErrors) -> list[str]:
    return [f"{counter} +{rise}" for counter, rise in list(item.grown.items())[:_MOST]]


def _list_doubts(item: HcaErrors) -> list[tuple[str, str, str]]:
    """Return the measured value, the why and the remedy for each reason for which growth could not be observed."""
    lower, stuck, once = (", ".join(names[:_MOST]) for names in (item.lower, item.stuck, item.once))
    doubts = (
        (
            lower,
            "counters reset",
            f"Counters are lower than before, so something set them back: {lower}.",
            "Check whether the driver was reloaded, or the port was down.",
        ),
        (
            stuck,
            f"at the maximum: {stuck}",
            "A counter stays at its maximum, so an increase cannot be detected.",
            "Clear the counters: perfquery -R on the node.",
        ),
        (
            once,
            f"read once: {once}",
            "These counters were read only before the soak or only after it.",
            "Check whether the driver was reloaded, and read the files in the pod manually.",
        ),
    )
    return [(measured, why, remedy) for names, measured, why, remedy in doubts if names]


#: end of the subject of a soak that was too short, and the part of the time that it may be
DURATION, _SHORTEST = ": duration", 0.9


def judge_duration(subject: str, seconds: float, minutes: int) -> typing.Iterator[Finding]:
    """Return a finding on a soak that did not run for the time that the intent asks for; what comes late, such as a
    card that gets hot, was not seen then."""
    if seconds >= _SHORTEST * 60 * minutes:
        return
    why = (
        "The stage computes the number of iterations from the bandwidth of the test before. The nodes were faster in"
        " the soak, the program ran fewer iterations, or the results belong to a different intent."
    )
    remedy = (
        "Run stage collectives again. If the soak is still too short, increase rdma_cluster.collectives.soak_minutes."
    )
    expected = f"{count_of(minutes, 'minute')}, set by soak_minutes"
    yield Finding("collectives.soak", f"{subject}{DURATION}", UNKNOWN, f"{seconds:.0f} s", expected, why, remedy)


def report_none(name: str) -> Finding:
    """Return the finding that no soak ran because no group was suitable."""
    why = "A soak needs a test of several nodes that is verified and fast enough, and there is none."
    remedy = "Follow the remedies of the other findings of this collective, then run stage collectives again."
    return Finding(
        "collectives.soak", f"{name}, soak", UNKNOWN, "not run", "a soak, required by the intent", why, remedy
    )
