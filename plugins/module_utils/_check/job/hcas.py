# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule for NCCL_IB_HCA, which names the HCAs that NCCL uses."""

from __future__ import annotations

import dataclasses
import heapq
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import cut_text
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .choice import SHOWN, Choice, check_in_another_object, format_names, report_uncompared
from .scope import LintedTemplate

#: CNI plugins that give a pod a virtual function of its own, whose name is known only when the pod starts
_VIRTUAL = ("sriov", "ib-sriov")
#: beginnings of the names of all HCAs of a driver, which look like names
_DRIVERS = ("mlx4", "mlx5")
#: beginnings of names that the functions of a node share with their HCA: those of drivers, and those that rdma-core
#: makes of the place on PCI (NAME_FALLBACK) [rdma-core kernel-boot/rdma_rename.c]
_BEGINNINGS = (*_DRIVERS, "bnxt_re", "ionic", "irdma", "rocep", "roceo", "roces", "rocex", "ibp", "ibo", "ibs", "ibx")
#: nodes or pods with a finding of their own, and those that the finding on the rest names, at most
_MOST_NAMED, _MOST_FOLDED = 20, 12


def check_hcas(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that NCCL_IB_HCA of a job names exactly the HCAs that its pods get, or is not set.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, subject, expected = "job.hcas", f"{scope.subject} NCCL_IB_HCA", "exactly the HCAs that the pods get"
    setting = scope.value("NCCL_IB_HCA")
    if setting is None:
        yield build_pass(
            check,
            scope.subject,
            "NCCL_IB_HCA is not set in the job: NCCL uses every device that the pod can open",
            expected,
        )
        return
    if setting.value is None:
        yield check_in_another_object(check, subject, expected)
        return
    choice, value, remedy = (
        Choice.parse(setting.value),
        cut_text(setting.value, SHOWN),
        "Write the exact names after '=', such as =mlx5_1,mlx5_2.",
    )
    if not choice.patterns:
        yield Finding(
            check, subject, FAIL, f"'{value}'", expected, "The value names no HCA, so NCCL falls back to TCP.", remedy
        )
        return
    if scope.surroundings and scope.surroundings.pods_by_devices:
        groups, left = _judge_groups(
            scope,
            choice,
            scope.surroundings.pods_by_devices,
            lambda devices: _check_pod(check, subject, choice, devices, value),
        )
        yield from _name_first(groups, f"{subject} of pod", "pods")
        if left:
            yield report_uncompared(check, subject, value, expected, f"the devices of {count_of(left, 'pod')}")
        return
    kinds = {kind for _request, item in scope.attachments() if item for kind in item.kinds}
    # pods get functions with other names than those of the node: of these only the beginning of all names of a driver
    # excludes all
    wide = not choice.exact and any(
        f"{driver}_".startswith(pattern) for driver in _BEGINNINGS for pattern in choice.patterns
    )
    given = bool(kinds & set(_VIRTUAL)) and not wide
    groups, left = _judge_groups(
        scope,
        choice,
        scope.surroundings.nodes_by_devices if scope.surroundings else {},
        lambda names: _check_node(check, subject, choice, names, value, given),
    )
    findings = [*_name_first(groups, f"{subject} on", "nodes")]
    if left:
        findings.append(report_uncompared(check, subject, value, expected, f"the HCAs of {count_of(left, 'node')}"))
    if (
        wide
        and choice.exclude
        and not groups
        and not left
        and not (scope.surroundings and scope.surroundings.nodes_by_devices)
    ):
        why = "The value excludes all HCAs of a driver. If a pod has only such HCAs, NCCL falls back to TCP."
        few = "Exclude single HCAs by their exact names (^=mlx5_2), or remove NCCL_IB_HCA."
        findings.append(Finding(check, subject, WARN, value, "at least 1 HCA of each pod", why, few))
    named = not choice.exclude and any(
        pattern[-1:].isdigit() and pattern not in _DRIVERS for pattern in choice.patterns
    )
    if named and kinds & set(_VIRTUAL):
        why = (
            "Each pod gets a different virtual function, and its name is known only when the pod starts. At most one"
            " pod gets the named virtual function."
        )
        findings.append(
            Finding(
                check,
                subject,
                FAIL,
                value,
                expected,
                why,
                (
                    "Remove NCCL_IB_HCA. If the job needs it, determine the name when the pod starts, as the job"
                    " does that the filter linerate.rdma.render_job writes."
                ),
            )
        )
    elif named and not choice.exact:
        why = "The names are prefixes: mlx5_1 also matches mlx5_10 to mlx5_19."
        findings.append(Finding(check, subject, WARN, value, "exact names", why, remedy))
    yield from findings or [build_pass(check, subject, value, expected)]


def _judge_groups(
    scope: LintedTemplate,
    choice: Choice,
    groups: typing.Mapping[tuple[str, ...], tuple[str, ...]],
    judge: typing.Callable[[tuple[str, ...]], typing.Optional[Finding]],
) -> tuple[list[tuple[tuple[str, ...], Finding]], int]:
    """Judge each different list of devices once, until the budget of comparisons is spent.

    Return the findings, each with the names of the nodes or pods that have these devices, and the number of nodes or
    pods that were not judged because the budget is spent.

    :param choice: parsed value of NCCL_IB_HCA
    :param groups: names of the nodes or pods, by their devices
    :param judge: function that returns the finding on a list of devices; None if there is nothing to report
    """
    found: list[tuple[tuple[str, ...], Finding]] = []
    judged = 0
    for devices, names in groups.items():
        if scope.budget.is_spent or not scope.budget.spend(max(1, len(choice.patterns) * len(devices))):
            return found, sum(map(len, groups.values())) - judged
        judged += len(names)
        finding = judge(devices)
        if finding is not None:
            found.append((names, finding))
    return found, 0


def _name_first(
    groups: typing.Sequence[tuple[tuple[str, ...], Finding]], subject: str, what: str
) -> typing.Iterator[Finding]:
    """Yield the findings on the first ``_MOST_NAMED`` nodes or pods of each status, and one finding for all remaining
    nodes or pods. The number of findings thus does not depend on the number of nodes and pods.

    :param groups: pairs of the names of nodes or pods and the finding that applies to all of them
    :param subject: beginning of the subject, before the name of the node or pod
    :param what: ``nodes`` or ``pods``, for the text
    """
    for status in dict.fromkeys(finding.status for _names, finding in groups):
        mine = [(names, finding) for names, finding in groups if finding.status == status]
        count = sum(len(names) for names, _finding in mine)
        # no group needs more of its names than there are in all findings
        pairs = [(name, finding) for names, finding in mine for name in names[: _MOST_NAMED + _MOST_FOLDED]]
        first = heapq.nsmallest(_MOST_NAMED + _MOST_FOLDED, pairs, key=lambda pair: pair[0])
        for name, finding in first[:_MOST_NAMED]:
            yield dataclasses.replace(finding, subject=f"{subject} {name}")
        if count > _MOST_NAMED:
            rest = [name for name, _finding in first[_MOST_NAMED:]]
            more = f" and {count - len(first)} more" if count > len(first) else ""
            _name, finding = first[_MOST_NAMED]
            named = f"The same check of these {what} has the same status: {', '.join(rest)}{more}."
            yield dataclasses.replace(
                finding,
                subject=f"{subject} {count - _MOST_NAMED} more {what}",
                why=f"{named} {finding.why}" if finding.why else "",
            )


def _check_node(
    check: str, subject: str, choice: Choice, names: tuple[str, ...], value: str, given: bool
) -> typing.Optional[Finding]:
    """Return a failed finding if NCCL_IB_HCA names an HCA that a node does not have, or excludes all HCAs of the node.
    Return None otherwise.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param choice: parsed value of NCCL_IB_HCA
    :param names: names of the HCAs of the node
    :param value: text of NCCL_IB_HCA
    :param given: whether the pods get functions with other names than those of the node
    """
    missing = choice.unmatched(names)
    if missing:
        why = (
            f"The node has no HCA of this name: {format_names(missing)}. NCCL ignores such a name without a"
            " message. If no name matches, NCCL falls back to TCP."
        )
        remedy = (
            "Write names that exist on this node, or remove NCCL_IB_HCA. Run ls /sys/class/infiniband on each node: the"
            " names can differ between nodes."
        )
        expected = f"names of HCAs of the node: {', '.join(names) or 'none'}"
        return Finding(check, subject, FAIL, value, expected, why, remedy)
    if names and choice.exclude and not given and not any(choice.takes(name) for name in names):
        why = "The value excludes each HCA of the node, so NCCL falls back to TCP without an error."
        expected = f"at least 1 HCA of the node: {', '.join(names)}"
        return Finding(
            check,
            subject,
            FAIL,
            value,
            expected,
            why,
            "Exclude fewer HCAs, so that at least one is left, or remove NCCL_IB_HCA.",
        )
    return None


def _check_pod(check: str, subject: str, choice: Choice, devices: tuple[str, ...], value: str) -> Finding:
    left, extra = (
        [name for name in devices if not choice.takes(name)],
        [] if choice.exclude else choice.unmatched(devices),
    )
    expected = f"the devices of the pod: {', '.join(devices)}"
    if not left and not extra:
        return build_pass(check, subject, value, expected)
    parts = [f"the value leaves out {', '.join(left)}"] if left else []
    parts += [f"the pod does not have {format_names(extra)}"] if extra else []
    return Finding(
        check,
        subject,
        FAIL,
        value,
        expected,
        f"NCCL uses the devices that NCCL_IB_HCA names: {'; '.join(parts)}.",
        f"Remove NCCL_IB_HCA, or set it to ={','.join(devices)}.",
    )
