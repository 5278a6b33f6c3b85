# SPDX-License-Identifier: GPL-3.0-or-later

"""Check how the NICs of an Ethernet fabric treat RoCE: as the fabric specifies, and all of them the same. Check id:
``tuning.roce``.

PFC must be configured on both ends of a link. If only one end pauses, the other end loses packets under load. These are
settings of each port. The RDMA device of a bond sends through the ports of all its functions, so each of them is
judged.
"""

from __future__ import annotations

import re
import typing

from ..._analysis.fleet.bonds import list_parts
from ..._analysis.fleet.hcas_of_fabric import Member, resolve_members
from ..._analysis.fleet.vendors import NVIDIA, Vendor, find_vendor
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first, parse_number
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import find_traits, is_infiniband, owns_rdma
from ..._model.node.hca import Hca, NodeHcas, ObservedHcas
from ..._model.node.tuning import NodeTuning, Roce
from ..._model.node.tuning_rows.roce import BY_NVIDIA, BY_OPERATOR
from ..._model.node.tuning_rows.row import TuningRow, rule_accepts, rule_of
from ..._model.node.tuning_rows.table import ROWS
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, build_pass
from . import unread as unread_texts
from .rows import AGAIN, ExpectedValue, Nodes, describe_value, explain_why_unread, join_node_names, join_remedies

CHECK = "tuning.roce"
_ROWS = tuple(row for row in ROWS if row.check == "roce")
#: what only NVIDIA's driver packages show, or only after somebody made a folder: advice, whatever the fabric says
_SHOWN_BY_SOME = ("roce_ecn", "roce_traffic_class", "roce_tos")
#: settings of an RDMA device; all others are settings of a port
_OF_DEVICE = ("roce_traffic_class", "roce_tos")
#: in place of the words of NVIDIA's operator
_BY_UNIT = "Run this command on the node now, and in a systemd unit at each boot: "
#: in place of the command of NVIDIA's packages
_BY_IPROUTE = "dcb apptrust set dev INTERFACE order dscp."
#: meaning of the names in the commands
_PLACES = {
    "INTERFACE": " INTERFACE is the network interface of the HCA (netdev in the output of rdma link).",
    "DEVICE": " DEVICE is the RDMA device of the HCA (the output of rdma link shows it).",
}
_ENABLED = "roceOptimized.enabled: true"
#: values of NVIDIA's operator, which the remedies of the rows contain
_USUAL = {"roce_pfc": "3", "roce_dscp": "26:3", "roce_ecn": "3", "roce_traffic_class": "106", "roce_tos": "106"}
#: places of the remedies with the value
_WITH_VALUES = {
    "roce_pfc": ("3:on",),
    "roce_dscp": ("dscp-prio 26:3",),
    "roce_ecn": ("enable/3",),
    "roce_traffic_class": ("echo 106",),
    "roce_tos": ("-t 106",),
}
_VALUE = re.compile(r"\A[0-9]{1,3}(?::[0-7])?\Z")
#: a payload of 4096 bytes and the headers around it
_LEAST_MTU = 4220

#: node and HCA
_Place = tuple[str, str]
_ByValue = typing.Mapping[str, typing.Sequence[_Place]]
_Vendors = typing.Mapping[_Place, typing.Optional[Vendor]]


def check(intent: Intent, observed: typing.Mapping[str, ObservedHcas], nodes: Nodes) -> typing.Iterator[Finding]:
    """Compare the RoCE settings of the HCAs (trust mode, PFC, ECN, DSCP) with those of the intent, for each fabric that
    owns HCAs with RDMA over Ethernet.

    :param observed: HCAs of each node
    :param nodes: tuning of each node
    """
    hcas = {
        name: seen.value
        for name, seen in observed.items()
        if seen.value is not None and seen.error is None and name in nodes
    }
    fabrics = [
        fabric
        for fabric in intent.fabrics
        if not is_infiniband(fabric) and owns_rdma(fabric) and find_traits(fabric).members
    ]
    if not fabrics:
        yield from _report_no_fabric(intent)
    for fabric in fabrics:
        members = resolve_members(fabric, hcas, {}).members
        ports = {
            (name, hca.name): hca
            for name, of_node in members.items()
            for hca in _list_ports(fabric, hcas[name], of_node)
        }
        devices = [place for place, hca in ports.items() if hca.rdma_device]
        if not devices:
            why = (
                "The fabric has no HCA with an RDMA device, or its HCAs were not read, so its RoCE settings are"
                " unknown."
            )
            remedy = (
                "Follow the remedies of the findings of stage discover. Without such findings, correct select of"
                f" the fabric '{fabric.name}'. Then run stages discover and tuning again."
            )
            yield Finding(
                CHECK,
                fabric.name,
                UNKNOWN,
                "0 HCAs with an RDMA device",
                "at least 1 HCA with an RDMA device",
                why,
                remedy,
            )
            continue
        vendors = {place: find_vendor(hca) for place, hca in ports.items()}
        for row in _ROWS:
            places = devices if row.name in _OF_DEVICE else list(ports)
            yield from _check_row(intent, fabric, row, places, nodes, vendors)


def _list_ports(fabric: Fabric, node: NodeHcas, members: typing.Iterable[Member]) -> typing.Iterator[Hca]:
    """Yield the HCAs of a node whose ports carry the RDMA packets of a fabric: its members that have an RDMA device,
    the functions whose bond such a device serves, and all functions of a bond that the fabric selects. Each HCA is
    yielded once.

    :param node: HCAs of the node
    :param members: HCAs of the node that belong to the fabric
    """
    devices = {member.hca.name for member in members if member.hca.rdma_device}
    parts = {hca.name for of_bond in list_parts(fabric, node).values() for hca, _netdev in of_bond} if devices else ()
    for hca in node.hcas:
        carrier = node.carrier(hca)
        if not hca.is_virtual and (
            hca.name in devices or hca.name in parts or (carrier is not None and carrier.name in devices)
        ):
            yield hca


def _report_no_fabric(intent: Intent) -> typing.Iterator[Finding]:
    """Yield a failed finding for each RoCE setting for which the intent sets an expected value although no fabric has
    RoCE NICs that could be judged by it. A setting whose value is null expects nothing.
    """
    for row in _ROWS:
        if intent.cluster.tuning.expected.get(row.name) is not None:
            why = "This setting applies only to HCAs of Ethernet fabrics with RDMA, and the intent has no such fabric."
            remedy = f"Remove {row.name} from rdma_cluster.tuning.expected, then run stage tuning again."
            expected = f"{row.what}: {rule_of(intent.cluster.tuning.expected[row.name])} (the intent)"
            yield Finding(
                CHECK, f"rdma_cluster.tuning.expected.{row.name}", FAIL, "no fabric with RoCE", expected, why, remedy
            )


def _fit_remedy(remedy: str, group: typing.Iterable[_Place], vendors: _Vendors) -> str:
    """Return the remedy for a group of HCAs.

    For NICs of other vendors, the tools of NVIDIA's operator and packages are replaced by commands that work on each
    NIC. A group of both has both remedies.

    :param remedy: remedy for NICs of NVIDIA
    :param group: HCAs, each as name of its node and its own name
    :param vendors: PCI vendor ID of each HCA
    """
    others = remedy.replace(BY_OPERATOR, _BY_UNIT).replace(BY_NVIDIA, _BY_IPROUTE)
    joined = join_remedies(remedy, others, {vendors[place] != NVIDIA for place in group})
    return joined + "".join(text for name, text in _PLACES.items() if name in joined)


def _fill_in(row: TuningRow, want: ExpectedValue) -> str:
    """Return the remedy of a RoCE setting with the expected value in its commands, instead of the values of NVIDIA's
    operator.

    :param row: tuning row of the RoCE setting
    :param want: value that the HCAs must have
    """
    if row.name not in _WITH_VALUES or not _VALUE.match(want.rule):
        return row.remedy
    remedy = row.remedy
    for text in _WITH_VALUES[row.name]:
        remedy = remedy.replace(text, text.replace(_USUAL[row.name], want.rule))
    if row.name in ("roce_traffic_class", "roce_tos"):
        return remedy.replace(_ENABLED, f"{_ENABLED} and roceOptimized.qos.tos: {want.rule}")
    if row.name == "roce_pfc" and want.rule != _USUAL[row.name]:
        priorities = ",".join(str(int(str(number) == want.rule)) for number in range(8))
        return remedy.replace(_ENABLED, f"{_ENABLED} and roceOptimized.qos.pfc: {priorities}")
    return remedy


def _choose_expected_value(intent: Intent, fabric: Fabric, row: TuningRow) -> ExpectedValue:
    tuning, roce = intent.cluster.tuning, fabric.roce or Roce()
    if row.name in tuning.expected:
        return ExpectedValue(rule_of(tuning.expected[row.name]) or "", "fail", "the intent")
    rule = {
        "roce_trust": "dscp",
        "roce_pfc": str(roce.priority),
        "roce_dscp": f"{roce.dscp}:{roce.priority}",
        "roce_ecn": str(roce.priority),
        "roce_traffic_class": str(roce.traffic_class),
        "roce_tos": str(roce.traffic_class),
        "mtu": f">={_LEAST_MTU}",
    }[row.name]
    if fabric.roce is not None:
        return ExpectedValue(
            rule, "warn" if row.name in (*_SHOWN_BY_SOME, "mtu") else "fail", f"roce of the fabric '{fabric.name}'"
        )
    return ExpectedValue(
        rule if tuning.profile != "none" else "", "warn", f"profile {tuning.profile}; source: {row.source}"
    )


def _is_fitting_value(row: TuningRow, rule: str, value: str) -> bool:
    """Return whether an observed value satisfies a rule.

    The value of roce_dscp or roce_ecn is a list that may contain further items beside the one of the rule. The value of
    any other tuning row must satisfy the rule as a whole, so PFC may not be on for another priority.

    :param row: tuning row of the value
    :param rule: rule that the value must satisfy
    :param value: observed value, as text
    """
    if row.name == "roce_ecn":
        return rule in _parse_number_ranges(value)
    return rule in value.split() if row.name == "roce_dscp" else rule_accepts(rule, value)


def _parse_number_ranges(text: str) -> set[str]:
    """Return the numbers in a list of ranges such as ``0-7`` or ``3,4``. Numbers above 7 are left out.

    :param text: numbers and ranges, separated by commas
    """
    found: set[str] = set()
    for part in text.split(","):
        low, _dash, high = part.partition("-")
        first, last = parse_number(low), parse_number(high or low)
        if first is not None and last is not None:
            found.update(str(number) for number in range(first, min(last, 7) + 1))
    return found


def _check_row(
    intent: Intent,
    fabric: Fabric,
    row: TuningRow,
    places: typing.Sequence[_Place],
    nodes: Nodes,
    vendors: _Vendors,
) -> typing.Iterator[Finding]:
    want = _choose_expected_value(intent, fabric, row)
    by_value: dict[str, list[_Place]] = {}
    unread: dict[_Place, str] = {}
    for place in places:
        value = _find_hca_value(nodes[place[0]], row.name, place[1])
        why = explain_why_unread(nodes[place[0]], row.name)
        if value is not None:
            by_value.setdefault(value, []).append(place)
        elif (
            why is not None
            or row.name not in _SHOWN_BY_SOME
            or intent.cluster.tuning.expected.get(row.name) is not None
        ):
            unread[place] = why or unread_texts.MISSING
    off = {
        value: group for value, group in by_value.items() if want.rule and not _is_fitting_value(row, want.rule, value)
    }
    found = [
        *_report_off(fabric, row, want, off, len(places), vendors),
        *_report_unread(fabric, row, want, unread, len(places), vendors),
    ]
    if not (off and want.level == "fail"):
        found += _check_sides(fabric, row, want, by_value, off, vendors)
    if found:
        yield from found
        return
    measured = join_first([f"{value} on {len(group)}" for value, group in by_value.items()], 8) or "no HCA reports it"
    expected = f"{row.what}: {want.text}" if want.rule else row.what
    yield build_pass(CHECK, f"{fabric.name} {row.name}", f"{measured} of {len(places)} HCAs", expected)


def _find_hca_value(node: NodeTuning, row: str, hca: str) -> typing.Optional[str]:
    return next((reading.value for reading in node.rows.get(row, ()) if hca in reading.where), None)


def _report_off(
    fabric: Fabric, row: TuningRow, want: ExpectedValue, off: _ByValue, count: int, vendors: _Vendors
) -> typing.Iterator[Finding]:
    expected = f"{row.what}: {want.text}"
    for value, group in off.items():
        if want.level == "fail":
            for node, hca in group:
                subject = f"{fabric.name} {node} {hca} {row.name}"
                remedy = f"{_fit_remedy(_fill_in(row, want), [(node, hca)], vendors)} {AGAIN}"
                yield Finding(CHECK, subject, FAIL, describe_value(value), expected, row.harm, remedy)
        else:
            why = f"This applies to {len(group)} of {count_of(count, 'HCA')}. {row.harm}"
            subject = f"{fabric.name} {row.name} of {_list_names(group)}"
            remedy = f"{_fit_remedy(_fill_in(row, want), group, vendors)} {AGAIN}"
            yield Finding(CHECK, subject, WARN, describe_value(value), expected, why, remedy)


def _report_unread(
    fabric: Fabric,
    row: TuningRow,
    want: ExpectedValue,
    unread: typing.Mapping[_Place, str],
    count: int,
    vendors: _Vendors,
) -> typing.Iterator[Finding]:
    """Report HCAs whose RoCE setting could not be read: one finding for each vendor, and for each node if the intent
    requires the setting.

    :param row: tuning row of the RoCE setting
    :param want: value that the HCAs must have
    :param unread: reason for each HCA
    :param count: number of HCAs of the fabric
    :param vendors: vendor of each HCA, for the remedy
    """
    status: Status = UNKNOWN if want.level == "fail" and want.rule else WARN
    groups: dict[tuple[str, typing.Optional[Vendor]], list[_Place]] = {}
    for place in unread:
        groups.setdefault((place[0] if status == UNKNOWN else "", vendors[place]), []).append(place)
    for (node, vendor), group in groups.items():
        subject = f"{fabric.name} {node} {row.name}" if node else f"{fabric.name} {row.name} of {_list_names(group)}"
        reason = unread[group[0]]
        yield Finding(
            CHECK,
            subject,
            status,
            "not read",
            unread_texts.describe_expected(row, want.text if want.rule else ""),
            unread_texts.explain(reason, len(group), count, "HCA"),
            unread_texts.choose_remedy(reason, group[0][0], row, vendor),
        )


def _check_sides(
    fabric: Fabric, row: TuningRow, want: ExpectedValue, by_value: _ByValue, off: _ByValue, vendors: _Vendors
) -> typing.Iterator[Finding]:
    """Report HCAs of a fabric whose value of a RoCE setting differs from that of most of them, unless another finding
    already reports the value. Different PFC settings fail, since a NIC that relies on the pauses of the other end loses
    packets. Other differences are warnings.

    :param row: tuning row of the RoCE setting
    :param want: value that the HCAs must have
    :param by_value: HCAs by their value of the setting
    :param off: entries of ``by_value`` whose value differs from the expected value
    :param vendors: PCI vendor IDs of the HCAs, for the remedy
    """
    if len(by_value) < 2:
        return
    usual = max(by_value, key=lambda value: (len(by_value[value]), value not in off))
    expected = f"{row.what}: the same on all HCAs of the fabric and on their switches"
    for value, group in by_value.items():
        if value == usual or (row.name != "roce_pfc" and value in off):
            continue
        status: Status = FAIL if row.name == "roce_pfc" else WARN
        why = (
            f"{count_of(len(group), 'HCA has', 'HCAs have')} this value, and"
            f" {count_of(len(by_value[usual]), 'HCA has', 'HCAs have')} {describe_value(usual)}. A link with"
            " different settings at its two ends loses packets under load, or stalls."
        )
        yield Finding(
            CHECK,
            f"{fabric.name} {row.name} of {_list_names(group)}, on one side only",
            status,
            describe_value(value),
            expected,
            why,
            f"{_fit_remedy(_fill_in(row, want), group, vendors)} {AGAIN}",
        )


def _list_names(places: typing.Iterable[_Place]) -> str:
    return join_node_names(f"{node} {hca}" for node, hca in places)
