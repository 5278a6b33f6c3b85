# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a Helm release: its installation, or its upgrade with the values that it keeps, its changes, and whether it may
begin now.
"""

from __future__ import annotations

import copy
import dataclasses
import types
import typing

from .._model.base.errors import RdmaError
from .._model.base.text import join_first
from .._model.intent.intent import Disruption
from .._model.operators.chart_versions import find_chart_version, is_older, is_same
from .._model.operators.drivers import OperatorUpgrade, UpgradeEffect
from .._model.operators.operators import GPU, NFD, SRIOV
from .mirror import merge

#: states of a revision that Helm has not completed
_UNFINISHED = ("pending-install", "pending-upgrade", "pending-rollback")
#: changed values that are named
_NAMED = 8
#: ClusterPolicy that the chart creates [NVIDIA/gpu-operator deployments/gpu-operator/templates/clusterpolicy.yaml]
_CHART_POLICY = "cluster-policy"
_EFFECT = "can restart drivers and drain nodes"
#: effect of changed values of node feature discovery
_ON_LABELS = "can remove labels of nodes, by which other operators and policies select them"
#: lists of values that keep the items of an admin beside those of the run, by operator, each with the keys above it:
#: the classes of PCI functions that node feature discovery labels, of which other operators need some
_JOINED = {NFD: (("worker", "config", "sources", "pci", "deviceClassWhitelist"),)}


@dataclasses.dataclass(frozen=True)
class DesiredRelease:
    """A release as the run wants it.

    :ivar operator: name of the operator
    :ivar version: version of the chart
    :ivar values: values that follow from the intent, or those of the user
    :ivar drains: whether the operator restarts drivers of nodes, and drains the nodes for that
    :ivar serves: whether the operator runs, or has run, whatever Helm says about the release
    :ivar pinned: whether the user chose the chart or its version
    :ivar chosen: whether the user chose the values
    """

    operator: str
    release: str
    namespace: str
    version: str
    values: typing.Mapping[str, typing.Any]
    drains: bool
    serves: bool = True
    pinned: bool = False
    chosen: bool = False


@dataclasses.dataclass(frozen=True)
class ReleasePlan:
    """The plan of a release.

    :ivar values: values of the next revision
    :ivar needed: whether Helm has to install or upgrade the release
    :ivar other_chart: whether the release has another version of the chart
    :ivar summary: the changes, as text; empty if the release is not upgraded
    :ivar wait_seconds: seconds for which a revision that is not completed must stay unchanged to count as interrupted
    :ivar upgrade: installation or upgrade of an operator that can change nodes; None if the release stays as it is,
        or if the run waits
    """

    values: dict[str, typing.Any]
    needed: bool
    summary: str = ""
    wait_seconds: int = 0
    other_chart: bool = False
    upgrade: typing.Optional[OperatorUpgrade] = None


def plan_release(
    wanted: DesiredRelease,
    there: typing.Mapping[str, typing.Any],
    disruption: Disruption,
    limit: int,
    may_wait: bool,
    waited_for: typing.Mapping[str, typing.Any] = types.MappingProxyType({}),
) -> ReleasePlan:
    """Return the plan of a release: the values of its next revision, and whether Helm must install or upgrade it.

    Values that an admin set and that the run does not set are kept. They are dropped if the first installation was not
    completed and the operator never ran. A first revision that Helm did not complete can still have a running operator,
    for example if helm was killed while it waited. A different chart or different values then count as an upgrade. A
    chart older than the installed one is refused, unless the user chose it or the operator never ran. The list of PCI
    classes of node feature discovery keeps the items of an admin, unless the user chose the values.

    :param wanted: the release as the run wants it
    :param there: status of the release, as kubernetes.core.helm_info returns it; empty if the release does not exist
    :param disruption: worst permitted effect on a node
    :param limit: timeout of Helm in seconds
    :param may_wait: whether the caller waits for a revision that another program may be working on
    :param waited_for: status, revision and time of the release ``limit`` seconds ago; empty if the caller has not
        waited
    :raises RdmaError: the release must not be upgraded now
    """
    if not there:
        values = dict(wanted.values)
        return ReleasePlan(values, True, upgrade=_describe_installation(wanted, values) if wanted.drains else None)
    state, chart = str(there.get("status") or "deployed"), str(there.get("chart") or "")
    before = there.get("values")
    before = before if isinstance(before, dict) else {}
    begun = state == "pending-install" or (state == "failed" and str(there.get("revision")) == "1")
    # values of a release that never served are possibly the reason for that
    values = dict(wanted.values) if begun and not wanted.serves else merge(before, _join_lists(before, wanted))
    changes = [] if state == "deployed" else [f"revision {there.get('revision')} is {state}"]
    installed = find_chart_version(chart)
    other = not is_same(wanted.version, installed)
    if other:
        changes.append(f"chart {chart} -> {wanted.version}")
    keys = list(_list_changed_keys(before, values))
    first = begun and not (wanted.serves and (other or keys))
    if keys:
        changes.append(f"values {join_first(keys, _NAMED)}")
    left = limit if state in _UNFINISHED and _identify(there) != _identify(waited_for) else 0
    if left and not may_wait:
        raise RdmaError(
            f"Helm release {wanted.namespace}/{wanted.release} is {state}, by its record since {there.get('updated')},"
            f" and has not been unchanged for {limit} s, so another program is possibly changing it. The release was"
            " not changed",
            f"Wait until that program ends (helm status -n {wanted.namespace} {wanted.release}). Then run stage"
            " operators again",
        )
    if is_older(wanted.version, installed) and not (wanted.pinned or left or (begun and not wanted.serves)):
        setting = f"operators_charts.{wanted.operator}"
        raise RdmaError(
            f"Helm release {wanted.namespace}/{wanted.release} has chart {chart}, which is newer than {wanted.version}"
            " of this collection: an admin, or a newer release of the collection, has upgraded it. The release and its"
            " definitions were not changed",
            f"To keep the chart, set version {installed} in {setting}, or add {wanted.operator} to operators_leave. To"
            f" go back to {wanted.version}, set version {wanted.version} in {setting}. Then run stage operators again",
        )
    if changes and wanted.drains and disruption == "none" and not first and not left:
        raise RdmaError(
            f"rdma_cluster.disruption is none, but an upgrade of Helm release {wanted.namespace}/{wanted.release}"
            f" {_EFFECT}: {'; '.join(changes)}. The release was not changed",
            "When the nodes may be drained, set rdma_cluster.disruption to drain. Otherwise keep the release: set"
            f" version {installed} in operators_charts.{wanted.operator} if only the chart differs, or add"
            f" {wanted.operator} to operators_leave. Then run stage operators again",
        )
    relabels = wanted.operator == NFD and not first and _loses_values(before, values, keys)
    if relabels and disruption == "none" and not left:
        raise RdmaError(
            f"rdma_cluster.disruption is none, but an upgrade of Helm release {wanted.namespace}/{wanted.release}"
            f" {_ON_LABELS}: {'; '.join(changes)}. The release was not changed",
            "When the labels may change, set rdma_cluster.disruption to drain. Otherwise keep the values of the"
            f" release: set the values that helm get values -n {wanted.namespace} {wanted.release} shows in"
            f" operators_charts.{wanted.operator}.values, or add {wanted.operator} to operators_leave. Then run stage"
            " operators again",
        )
    effects = [_EFFECT] * (wanted.drains and not first) + [_ON_LABELS] * relabels
    summary = "; ".join([*changes, *effects]) if changes else ""
    upgrade = None
    if changes and wanted.drains and not left:
        if not first:
            upgrade = _describe_upgrade(wanted, "; ".join(changes), before, values)
        elif not wanted.serves:
            upgrade = _describe_installation(wanted, values)
    return ReleasePlan(values, bool(changes), summary, left, other, upgrade)


def _describe_installation(wanted: DesiredRelease, values: typing.Mapping[str, typing.Any]) -> OperatorUpgrade:
    """Return the first installation of an operator. The chart of the GPU operator creates a ClusterPolicy, by which the
    operator loads its driver on all nodes with a GPU.

    :param values: values of the first revision
    """
    driver = values.get("driver")
    return OperatorUpgrade(
        wanted.operator,
        f"chart {wanted.version}",
        driver if isinstance(driver, dict) else {},
        namespace=wanted.namespace if wanted.operator == SRIOV else "",
        creates=_CHART_POLICY if wanted.operator == GPU else "",
        installs=True,
    )


def _describe_upgrade(
    wanted: DesiredRelease, text: str, before: typing.Mapping[str, typing.Any], values: typing.Mapping[str, typing.Any]
) -> OperatorUpgrade:
    """Return the upgrade of an operator that changes nodes, with those new values that determine what it does to them.

    :param text: the changes, as text
    :param before: values of the existing release
    :param values: values of the next revision
    """
    if wanted.operator == SRIOV:
        mode = _find_value(values, ("sriovOperatorConfig", "configurationMode"))
        return OperatorUpgrade(SRIOV, text, namespace=wanted.namespace, mode=mode if isinstance(mode, str) else "")
    driver = _find_value(_select_changes(before, values), ("driver",))
    return OperatorUpgrade(wanted.operator, text, driver if isinstance(driver, dict) else {})


def add_effect(planned: ReleasePlan, wanted: DesiredRelease, effect: UpgradeEffect) -> ReleasePlan:
    """Return the plan of a release with the nodes that the upgrade or the installation changes in its summary.

    :param effect: nodes of the upgrade, and the reasons against it
    :raises RdmaError: there are reasons against the upgrade
    """
    if effect.refused and planned.upgrade is not None and planned.upgrade.installs:
        on_nodes = f"{effect.text}, and " if effect.nodes else ""
        raise RdmaError(
            f"the installation of Helm release {wanted.namespace}/{wanted.release} ({planned.upgrade.text}) {on_nodes}"
            f"must not begin now: {join_first(effect.refused, between=' ')} Nothing was installed",
            f"Correct this, or add {wanted.operator} to operators_leave. Then run stage operators again",
        )
    if effect.refused:
        raise RdmaError(
            f"an upgrade of Helm release {wanted.namespace}/{wanted.release} ({planned.summary}) {effect.text}, and"
            f" must not begin now: {join_first(effect.refused, between=' ')} The release was not changed",
            f"Correct this, or keep the release: add {wanted.operator} to operators_leave. Then run stage operators"
            " again",
        )
    summary = "; ".join(filter(None, (planned.summary, effect.text)))
    return dataclasses.replace(planned, summary=summary) if effect.nodes else planned


def _join_lists(before: typing.Mapping[str, typing.Any], wanted: DesiredRelease) -> dict[str, typing.Any]:
    """Return the values that the run wants. A list of PCI classes that is in both the existing and the desired values
    contains the existing items first, then the new ones. Such lists are not joined if the user chose the values.

    :param before: values of the existing release
    """
    values = copy.deepcopy(dict(wanted.values))
    for path in () if wanted.chosen else _JOINED.get(wanted.operator, ()):
        old, new = _find_value(before, path), _find_value(values, path)
        if isinstance(old, list) and isinstance(new, list):
            new[:] = [*old, *(item for item in new if item not in old)]
    return values


def _find_value(values: typing.Any, path: typing.Sequence[str]) -> typing.Any:
    """Return the value below nested keys. Return None if one of the keys does not exist.

    :param values: tree of Helm values
    :param path: keys from the top of the tree to the value
    """
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _loses_values(
    before: typing.Mapping[str, typing.Any], after: typing.Mapping[str, typing.Any], keys: typing.Iterable[str]
) -> bool:
    """Return whether at least one changed key loses its old value. A list that only gets new items loses nothing.

    :param before: values of the existing release
    :param after: values of the next revision
    :param keys: changed keys, as :func:`_list_changed_keys` returned them
    """
    changed = ((_find_value(before, key.split(".")), _find_value(after, key.split("."))) for key in keys)
    return not all(
        isinstance(old, list) and isinstance(new, list) and all(item in new for item in old) for old, new in changed
    )


def _identify(there: typing.Mapping[str, typing.Any]) -> tuple[str, ...]:
    """Return what changes whenever a program works on a release: the number, state and time of its last revision. Helm
    writes the time by the clock of its machine, so it is compared with no other clock.

    :param there: status of the release; empty for none
    """
    return tuple(str(there.get(key)) for key in ("revision", "status", "updated"))


def _select_changes(
    before: typing.Mapping[str, typing.Any], after: typing.Mapping[str, typing.Any]
) -> dict[str, typing.Any]:
    """Return the values of the next revision that differ from those of the existing one, each below its keys.

    :param before: values of the existing release
    :param after: values of the next revision
    """
    found: dict[str, typing.Any] = {}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if old != value:
                found[key] = _select_changes(old, value)
        elif key not in before or old != value:
            found[key] = value
    return found


def _list_changed_keys(
    before: typing.Mapping[str, typing.Any], after: typing.Mapping[str, typing.Any], above: str = ""
) -> typing.Iterator[str]:
    """Yield the keys whose values differ, each with the keys above it, such as ``worker.config.sources``. The values
    themselves are not included, because they can be secrets.

    :param before: values of the existing release
    :param after: values of the next revision. A key that is only in ``before`` does not count as changed
    :param above: keys above both trees, with a dot at the end; empty at the top
    """
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            yield from _list_changed_keys(old, value, f"{above}{key}.")
        elif key not in before or old != value:
            yield f"{above}{key}"
