# SPDX-License-Identifier: GPL-3.0-or-later

"""What is expected of a row, and which nodes show it. Check ids: ``tuning.cpu``, ``tuning.memory``, ``tuning.kernel``,
``tuning.pci``, ``tuning.gpu``, ``tuning.kubelet`` and ``tuning.network``, as the row says."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.vendors import NVIDIA, find_vendor
from ..._model.base.errors import ParseError
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.node.hca import NodeHcas
from ..._model.node.tuning import NodeTuning, RowReading
from ..._model.node.tuning_rows.gpu import LEAST_DRIVER
from ..._model.node.tuning_rows.row import Level, TuningRow, fits, rule_of
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, ok
from ..._parse.node.tuning import parse_cpu_list

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
#: names in a line for the reader
_MOST = 5
#: that a GPU has none of them is no answer
_OF_EACH_GPU = ("gpu_slowed",)
Nodes = typing.Mapping[str, NodeTuning]
#: by node the names of its HCAs that are NICs of other vendors than NVIDIA
Strangers = typing.Mapping[str, typing.Collection[str]]


@dataclasses.dataclass(frozen=True)
class ExpectedValue:
    """The value that is expected of a row.

    :ivar rule: empty: nothing
    :ivar level: of what does not fit
    :ivar source: who expects it
    """

    rule: str
    level: Level
    source: str

    @property
    def text(self) -> str:
        return f"{self.rule.replace('|', ' or ')} ({self.source})"


@dataclasses.dataclass(frozen=True)
class JudgedRow:
    """:ivar told: nodes of which a finding says that the row is not as it should be, or is unread"""

    row: TuningRow
    findings: tuple[Finding, ...]
    told: frozenset[str]


def wanted(intent: Intent, row: TuningRow) -> ExpectedValue:
    """Return the intent's own word before the profile's."""
    tuning = intent.cluster.tuning
    if row.name in tuning.expected:
        return ExpectedValue(rule_of(tuning.expected[row.name]) or "", "fail", "the intent")
    if row.name == "gpu_driver" and tuning.cuda is not None:
        least = LEAST_DRIVER.get(int(tuning.cuda.partition(".")[0]))
        return ExpectedValue(f">={least}" if least else "", "fail", f"CUDA {tuning.cuda}")
    if row.name == "ib_umad" and not any(map(is_infiniband, intent.fabrics)):
        return ExpectedValue("", row.level, row.source)
    rule = {"training": row.training, "inference": row.inference}.get(tuning.profile, "")
    return ExpectedValue(rule, row.level, f"profile {tuning.profile}: {row.source}")


def find_strangers(nodes: typing.Mapping[str, NodeHcas]) -> Strangers:
    """Return the HCAs of each node for which NVIDIA's tools are of no use."""
    return {
        name: frozenset(hca.name for hca in node.hcas if find_vendor(hca) is not NVIDIA) for name, node in nodes.items()
    }


def choose_remedy(row: TuningRow, nodes: typing.Mapping[str, typing.Iterable[RowReading]], strangers: Strangers) -> str:
    """Return how a row is set at the HCAs that show it, by their vendor.

    :param nodes: of each node the readings that say where
    """
    kinds = {
        hca in strangers.get(name, ())
        for name, readings in nodes.items()
        for reading in readings
        for hca in reading.where
    }
    if not row.elsewhere or True not in kinds:
        return row.remedy
    return f"NICs of NVIDIA: {row.remedy} Others: {row.elsewhere}" if False in kinds else row.elsewhere


def judge(intent: Intent, row: TuningRow, nodes: Nodes, strangers: Strangers) -> JudgedRow:
    """Return findings about one row of all nodes; it is never without one."""
    want = wanted(intent, row)
    off: dict[str, tuple[RowReading, ...]] = {}
    unread: dict[str, str] = {}
    for name, node in nodes.items():
        why, readings = explain_why_unread(node, row.name), node.rows.get(row.name, ())
        asked = bool(want.rule) and want.level == "fail" and want.source == "the intent"
        wrong = tuple(reading for reading in readings if want.rule and not fits(want.rule, reading.value))
        # an interface of the network is not there for each HCA
        if why is None and asked and not wrong and row.check != "network":
            why = _explain_what_is_missing(node, row.name)
        if why is not None:
            unread[name] = why
        if wrong:
            off[name] = wrong
        elif asked and not readings and why is None:
            off[name] = (RowReading("absent"),)
    findings = [*_report_off(row, want, off, len(nodes), strangers), *_report_unread(row, want, unread, len(nodes))]
    return JudgedRow(row, tuple(findings) or (_as_expected(row, want, nodes),), frozenset({*off, *unread}))


def explain_why_unread(node: NodeTuning, row: str) -> typing.Optional[str]:
    """Return why a row of a node is not known; None where it is."""
    if row in node.unread:
        return node.unread[row]
    if row not in node.rows:
        return "the answer of node_info has no such row"
    silent = _collect_row_devices(node, "gpu_model") - _collect_row_devices(node, row) if row in _OF_EACH_GPU else ()
    return f"nvidia-smi says nothing of {names(sorted(silent))}" if silent else None


def _collect_row_devices(node: NodeTuning, row: str) -> set[str]:
    return {name for reading in node.rows.get(row, ()) for name in reading.where}


#: rows that list the GPUs and the HCAs of a node
_DEVICES = (("gpu_model", "GPU"), ("hca_model", "HCA"))


def _explain_what_is_missing(node: NodeTuning, row: str) -> typing.Optional[str]:
    """Return which GPUs, HCAs or CPUs do not show a row that others of the node show; None where all do."""
    mine = _collect_row_devices(node, row)
    for listed, what in _DEVICES:
        theirs = _collect_row_devices(node, listed)
        if mine & theirs and theirs - mine:
            return f"no reading of {what} {names(sorted(theirs - mine))}"
    online = _read_cpus(reading.value for reading in node.rows.get("cpus_online", ()))
    shown_by = _read_cpus(mine)
    if not online or not shown_by or shown_by >= online:
        return None
    return f"no reading of {len(online - shown_by)} of {len(online)} CPUs"


def _read_cpus(texts: typing.Iterable[str]) -> frozenset[int]:
    """Return the CPUs of some lists; none where one of these is no list of CPUs."""
    try:
        return frozenset().union(*map(parse_cpu_list, texts))
    except ParseError:
        return frozenset()


def names(nodes: typing.Iterable[str]) -> str:
    """Return the first ones of many, for the reader."""
    found = list(nodes)
    return ", ".join(found[:_MOST]) + (f" and {len(found) - _MOST} more" if len(found) > _MOST else "")


def shown(readings: typing.Iterable[RowReading]) -> str:
    """Values with what shows them."""
    return "; ".join(
        f"{reading.value} ({names(reading.where)})" if reading.where else reading.value for reading in readings
    )


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
                shown(readings),
                expected,
                row.harm,
                choose_remedy(row, {name: readings}, strangers),
            )
        return
    for together in _group_nodes_by_key(
        {name: tuple(reading.value for reading in readings) for name, readings in off.items()}
    ):
        measured = (
            f"{shown(off[together[0]])} on"
            f" {together[0]}{f', and on {len(together) - 1} more' if len(together) > 1 else ''}"
        )
        why = f"{len(together)} of {count} nodes. {row.harm}"
        remedy = choose_remedy(row, {name: off[name] for name in together}, strangers)
        yield Finding(CHECKS[row.check], f"{row.name} of {names(together)}", WARN, measured, expected, why, remedy)


def _report_unread(
    row: TuningRow, want: ExpectedValue, unread: typing.Mapping[str, str], count: int
) -> typing.Iterator[Finding]:
    """Of a row that would fail nobody knows whether it does; of advice it is told."""
    expected = f"{row.what}: {want.text}" if want.rule else row.what
    status: Status = UNKNOWN if want.rule and want.level == "fail" else WARN
    groups = (
        [[name] for name in unread]
        if status == UNKNOWN
        else _group_nodes_by_key({name: (_extract_failure_kind(why),) for name, why in unread.items()})
    )
    for together in groups:
        subject = f"{together[0]} {row.name}" if status == UNKNOWN else f"{row.name} of {names(together)}"
        why = f"It could not be read on {len(together)} of {count} nodes, so it is not known: {unread[together[0]]}."
        yield Finding(
            CHECKS[row.check],
            subject,
            status,
            "not known",
            expected,
            why,
            f"Read it by hand on {together[0]}, as root; or give it what it lacks.",
        )


def _as_expected(row: TuningRow, want: ExpectedValue, nodes: Nodes) -> Finding:
    counts: dict[str, int] = {}
    for node in nodes.values():
        for value in {reading.value for reading in node.rows.get(row.name, ())}:
            counts[value] = counts.get(value, 0) + 1
    most = sorted(counts, key=lambda value: (-counts[value], value))
    measured = ", ".join(f"{value} on {counts[value]}" for value in most[:_MOST]) + (
        f" and {len(most) - _MOST} more" if len(most) > _MOST else ""
    )
    told = f"{row.what}: not judged; {row.source}" if row.source and not want.rule else row.what
    return ok(
        CHECKS[row.check],
        row.name,
        f"{measured} of {len(nodes)} nodes" if counts else "no node has it",
        f"{row.what}: {want.text}" if want.rule else told,
    )


def _group_nodes_by_key(keys: typing.Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Return the nodes of one key, together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, key in keys.items():
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def _extract_failure_kind(why: str) -> str:
    """Return the kind of failure, without its file or function: of a thousand nodes each has its own."""
    return why.rpartition(": ")[2]
