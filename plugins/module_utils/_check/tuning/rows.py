# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the values of the tuning rows of all nodes with the expected values. A row is one observable property of a
node. The row determines the check id: ``tuning.cpu``, ``tuning.memory``, ``tuning.kernel``, ``tuning.pci``,
``tuning.gpu``, ``tuning.kubelet`` or ``tuning.network``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.vendors import NVIDIA, find_vendor
from ..._model.base.errors import ParseError
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.node.hca import NodeHcas
from ..._model.node.tuning import NodeTuning, RowReading
from ..._model.node.tuning_rows.gpu import LEAST_DRIVER
from ..._model.node.tuning_rows.row import Level, TuningRow, rule_accepts, rule_of
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, build_pass
from ..._parse.node.tuning import parse_cpu_list
from . import unread as unread_texts

#: id by the check that a row names
CHECKS = {
    "cpu": "tuning.cpu",
    "memory": "tuning.memory",
    "kernel": "tuning.kernel",
    "pci": "tuning.pci",
    "gpu": "tuning.gpu",
    "kubelet": "tuning.kubelet",
    "network": "tuning.network",
}
#: measured value of a setting that the node does not have
ABSENT = "not present on the node"
#: names in a line for the reader
_MOST = 5
AGAIN = "Then run stage tuning again."
#: that a GPU has none of them is no answer
_OF_EACH_GPU = ("gpu_slowed", "gpu_link_speed")
#: source of an expected value in rdma_cluster.tuning
_INTENT = "the intent"
Nodes = typing.Mapping[str, NodeTuning]
#: by node the names of its HCAs that are NICs of other vendors than NVIDIA
Strangers = typing.Mapping[str, typing.Collection[str]]


@dataclasses.dataclass(frozen=True)
class ExpectedValue:
    """The rule that the value of a tuning row (one observable property of a node) must satisfy, and the status of a
    value that does not.

    :ivar rule: rule for the value; empty if no value is expected
    :ivar level: status of a value that violates the rule
    :ivar source: origin of the rule: the intent, a CUDA version or a profile
    :ivar meaning: what the rule means, as the end of a text; empty if it needs no explanation
    """

    rule: str
    level: Level
    source: str
    meaning: str = ""

    @property
    def text(self) -> str:
        return f"{self.describe_rule()}{self.meaning} ({self.source})"

    def describe_rule(self) -> str:
        """Return the rule in words."""
        return self.rule.replace("|", " or ").replace(">=", "at least ").replace("<=", "at most ")


@dataclasses.dataclass(frozen=True)
class JudgedRow:
    """A tuning row (one observable property) of all nodes, with the findings on it.

    :ivar row: tuning row that was judged
    :ivar findings: findings on the values of the row
    :ivar told: names of the nodes for which a finding reports that the value is wrong or unread
    """

    row: TuningRow
    findings: tuple[Finding, ...]
    told: frozenset[str]


def get_expected_value(intent: Intent, row: TuningRow) -> ExpectedValue:
    """Return the expected value of a tuning row, and its source. The intent has precedence over the profile."""
    tuning = intent.cluster.tuning
    if row.name in tuning.expected:
        rule = rule_of(tuning.expected[row.name]) or ""
        return ExpectedValue(rule, "fail", _INTENT, row.explain_rule(rule))
    if row.name == "gpu_driver" and tuning.cuda is not None:
        least = LEAST_DRIVER.get(int(tuning.cuda.partition(".")[0]))
        return ExpectedValue(f">={least}" if least else "", "fail", f"CUDA {tuning.cuda}")
    if row.name == "ib_umad" and not any(map(is_infiniband, intent.fabrics)):
        return ExpectedValue("", row.level, row.source)
    rule = {"training": row.training, "inference": row.inference}.get(tuning.profile, "")
    return ExpectedValue(rule, row.level, f"profile {tuning.profile}; source: {row.source}", row.explain_rule(rule))


def find_other_vendors(nodes: typing.Mapping[str, NodeHcas]) -> Strangers:
    """Return the names of the HCAs that are from other vendors than NVIDIA, by node.

    NVIDIA's tools do not apply to them.
    """
    return {
        name: frozenset(hca.name for hca in node.hcas if find_vendor(hca) is not NVIDIA) for name, node in nodes.items()
    }


def choose_remedy(row: TuningRow, nodes: typing.Mapping[str, typing.Iterable[RowReading]], strangers: Strangers) -> str:
    """Return the remedy for a wrong value of a tuning row: the remedy for NVIDIA's HCAs, that for HCAs of other
    vendors, or both, depending on the HCAs that have the value.

    :param nodes: values of each node, with the HCAs that have them
    :param strangers: HCAs of other vendors than NVIDIA, by node
    """
    kinds = {
        hca in strangers.get(name, ())
        for name, readings in nodes.items()
        for reading in readings
        for hca in reading.where
    }
    return f"{join_remedies(row.remedy, row.elsewhere or row.remedy, kinds)} {AGAIN}"


def join_remedies(of_nvidia: str, of_others: str, strangers: typing.Container[bool]) -> str:
    """Return the remedy for NVIDIA's NICs, that for NICs of other vendors, or both.

    :param strangers: whether the NICs are of other vendors than NVIDIA: True, False, or both if there are NICs of each
    """
    if True not in strangers or of_others == of_nvidia:
        return of_nvidia
    return f"For NICs of NVIDIA: {of_nvidia} For other NICs: {of_others}" if False in strangers else of_others


def judge(
    intent: Intent,
    row: TuningRow,
    nodes: Nodes,
    strangers: Strangers,
    devices: typing.Mapping[str, typing.AbstractSet[str]],
) -> JudgedRow:
    """Compare the values of one tuning row on all nodes with the expected value, and report nodes on which it could not
    be read. There is at least one finding.

    :param row: tuning row (one observable property) to judge
    :param nodes: tuning of each node
    :param strangers: HCAs of other vendors than NVIDIA, by node
    :param devices: HCAs of the fabrics with an RDMA device, by node
    """
    want = get_expected_value(intent, row)
    off: dict[str, tuple[RowReading, ...]] = {}
    unread: dict[str, str] = {}
    for name, node in nodes.items():
        why, readings = explain_why_unread(node, row.name), node.rows.get(row.name, ())
        asked = bool(want.rule) and want.level == "fail" and want.source == _INTENT
        wrong = tuple(reading for reading in readings if want.rule and not rule_accepts(want.rule, reading.value))
        # an interface of the network is not there for each HCA
        if why is None and asked and not wrong and row.check != "network":
            why = _explain_what_is_missing(node, row.name, devices.get(name, frozenset()))
        if why is not None:
            unread[name] = why
        if wrong:
            off[name] = wrong
        elif asked and not readings and why is None:
            off[name] = (RowReading(ABSENT),)
    findings = [*_report_off(row, want, off, len(nodes), strangers), *_report_unread(row, want, unread, len(nodes))]
    return JudgedRow(row, tuple(findings) or (_as_expected(row, want, nodes),), frozenset({*off, *unread}))


def explain_why_unread(node: NodeTuning, row: str) -> typing.Optional[str]:
    """Return why the value of a tuning row on a node is not known; None if it is known.

    :param node: tuning of the node
    :param row: name of the tuning row (one observable property of a node)
    """
    if row in node.unread:
        return node.unread[row]
    if row not in node.rows:
        return unread_texts.MISSING
    silent = _list_nvidia_gpus(node) - _collect_row_devices(node, row) if row in _OF_EACH_GPU else ()
    return f"nvidia-smi does not report {join_node_names(sorted(silent))}" if silent else None


def _list_nvidia_gpus(node: NodeTuning) -> set[str]:
    """Return the PCI addresses of the GPUs of NVIDIA. nvidia-smi does not report GPUs of other vendors."""
    models = (reading for reading in node.rows.get("gpu_model", ()) if reading.value.startswith("10de:"))
    return {address for reading in models for address in reading.where}


def _collect_row_devices(node: NodeTuning, row: str) -> set[str]:
    return {name for reading in node.rows.get(row, ()) for name in reading.where}


#: rows that list the GPUs and the HCAs of a node
_DEVICES = (("gpu_model", "GPU"), ("hca_model", "HCA"))


def _explain_what_is_missing(node: NodeTuning, row: str, devices: typing.AbstractSet[str]) -> typing.Optional[str]:
    """Return a text with the GPUs, HCAs or CPUs of a node that have no value of a tuning row although other devices of
    the same kind have one. Return None if none is missing.

    :param node: tuning of the node
    :param row: name of the tuning row (one observable property of a node)
    :param devices: names of the HCAs of the fabrics, including those that the tuning does not list
    """
    mine = _collect_row_devices(node, row)
    for listed, what in _DEVICES:
        theirs = _collect_row_devices(node, listed) | (devices if listed == "hca_model" else frozenset())
        if mine & theirs and theirs - mine:
            return f"{unread_texts.NO_VALUE} {what} {join_node_names(sorted(theirs - mine))}"
    online = _read_cpus(reading.value for reading in node.rows.get("cpus_online", ()))
    shown_by = _read_cpus(mine)
    if not online or not shown_by or shown_by >= online:
        return None
    return f"{unread_texts.NO_VALUE} {len(online - shown_by)} of {len(online)} CPUs"


def _read_cpus(texts: typing.Iterable[str]) -> frozenset[int]:
    """Return the CPU numbers in several lists, such as ``0-3,8``. Return an empty set if a text is not a valid list.

    :param texts: lists of CPUs
    """
    try:
        return frozenset().union(*map(parse_cpu_list, texts))
    except ParseError:
        return frozenset()


def join_node_names(nodes: typing.Iterable[str]) -> str:
    """Return the names of nodes or devices as text: the first ``_MOST`` names, and the number of further names."""
    found = list(nodes)
    return ", ".join(found[:_MOST]) + (f" and {len(found) - _MOST} more" if len(found) > _MOST else "")


def name_source(count: int) -> str:
    """Return a sentence that names the files with the values of all nodes, with a space before it.

    The text is empty if the finding lists all of its nodes.

    :param count: number of nodes that the finding is about
    """
    return " The files facts/tuning/NODE.json of the run have the values of all nodes." if count > _MOST else ""


def describe_value(value: str) -> str:
    """Return a measured value as text for a finding: the value itself, or ``an empty value`` if it is empty."""
    return value or "an empty value"


def describe_readings(readings: typing.Iterable[RowReading]) -> str:
    """Return the values of a tuning row as text, each with the devices that have it in parentheses.

    :param readings: values of the row on one node
    """
    return "; ".join(
        f"{describe_value(reading.value)} ({_name_places(reading.where)})"
        if reading.where
        else describe_value(reading.value)
        for reading in readings
    )


def _name_places(places: typing.Sequence[str]) -> str:
    """Return the devices or the CPU lists that have a value as text, with the noun of the CPUs.

    :param places: names of GPUs or HCAs, or lists of CPUs such as ``0-255``
    """
    text = join_node_names(places)
    if not all(place[:1].isdigit() and _read_cpus([place]) for place in places):
        return text
    return f"CPU {text}" if len(_read_cpus(places)) == 1 else f"CPUs {text}"


def _report_off(
    row: TuningRow,
    want: ExpectedValue,
    off: typing.Mapping[str, tuple[RowReading, ...]],
    count: int,
    strangers: Strangers,
) -> typing.Iterator[Finding]:
    expected = f"{row.what}: {want.text}"
    if want.level == "fail":
        for name, readings in off.items():
            yield Finding(
                CHECKS[row.check],
                f"{name} {row.name}",
                FAIL,
                describe_readings(readings),
                expected,
                _explain_harm(row, want, readings),
                f"{_name_asked_value(row, want)}{choose_remedy(row, {name: readings}, strangers)}",
            )
        return
    for together in _group_nodes_by_key(
        {name: tuple(reading.value for reading in readings) for name, readings in off.items()}
    ):
        more = f" and on {count_of(len(together) - 1, 'more node')}" if len(together) > 1 else ""
        measured = f"{describe_readings(off[together[0]])} on {together[0]}{more}"
        why = f"This applies to {len(together)} of {count_of(count, 'node')}. {row.harm}{name_source(len(together))}"
        remedy = choose_remedy(row, {name: off[name] for name in together}, strangers)
        yield Finding(
            CHECKS[row.check], f"{row.name} of {join_node_names(together)}", WARN, measured, expected, why, remedy
        )


def _explain_harm(row: TuningRow, want: ExpectedValue, readings: typing.Iterable[RowReading]) -> str:
    """Return the cause of a failed finding on a tuning row. The values that the row recommends have no harm, so the
    cause is the intent if the node has such a value.

    :param row: tuning row (one observable property of a node)
    :param want: expected value of the row
    :param readings: values of the row on one node
    """
    recommended = bool(row.training) and all(rule_accepts(row.training, reading.value) for reading in readings)
    if want.source != _INTENT or not recommended:
        return row.harm
    return f"The intent requires another value than the node has: rdma_cluster.tuning.expected.{row.name}."


def _name_asked_value(row: TuningRow, want: ExpectedValue) -> str:
    """Return a sentence with the value to set if the steps of the remedy name another one, with a space after it."""
    if want.source != _INTENT or not row.training or want.rule == row.training:
        return ""
    return f"Set the value that the intent requires ({want.describe_rule()}), also where these steps name another one. "


def _report_unread(
    row: TuningRow, want: ExpectedValue, unread: typing.Mapping[str, str], count: int
) -> typing.Iterator[Finding]:
    """Report the nodes on which a tuning row could not be read. The status is unknown if a wrong value would be a
    failure, else warn.

    :param want: expected value of the row
    :param unread: reason for each node on which the row could not be read, by node
    :param count: number of all nodes, including those that were read
    """
    expected = unread_texts.describe_expected(row, want.text if want.rule else "")
    status: Status = UNKNOWN if want.rule and want.level == "fail" else WARN
    groups = (
        [[name] for name in unread]
        if status == UNKNOWN
        else _group_nodes_by_key({name: (_extract_failure_kind(why),) for name, why in unread.items()})
    )
    for together in groups:
        subject = f"{together[0]} {row.name}" if status == UNKNOWN else f"{row.name} of {join_node_names(together)}"
        reason = unread[together[0]]
        why = f"{unread_texts.explain(reason, len(together), count, 'node')}{name_source(len(together))}"
        remedy = unread_texts.choose_remedy(reason, together[0], row)
        yield Finding(CHECKS[row.check], subject, status, "not read", expected, why, remedy)


def _as_expected(row: TuningRow, want: ExpectedValue, nodes: Nodes) -> Finding:
    counts: dict[str, int] = {}
    for node in nodes.values():
        for value in {reading.value for reading in node.rows.get(row.name, ())}:
            counts[value] = counts.get(value, 0) + 1
    most = sorted(counts, key=lambda value: (-counts[value], value))
    measured = ", ".join(f"{value} on {counts[value]}" for value in most[:_MOST]) + (
        f" and {len(most) - _MOST} more" if len(most) > _MOST else ""
    )
    told = f"{row.what}: not checked; {row.source}" if row.source and not want.rule else row.what
    return build_pass(
        CHECKS[row.check],
        row.name,
        f"{measured} of {len(nodes)} nodes" if counts else "not present on any node",
        f"{row.what}: {want.text}" if want.rule else told,
    )


def _group_nodes_by_key(keys: typing.Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Return the names of the nodes in groups with equal keys.

    :param keys: key of each node, by node
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, key in keys.items():
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def _extract_failure_kind(why: str) -> str:
    """Return the kind of a failed read: the text after the last colon. The file or device before the colon differs
    between nodes.

    :param why: reason for which a tuning row could not be read
    """
    return why.rpartition(": ")[2]
