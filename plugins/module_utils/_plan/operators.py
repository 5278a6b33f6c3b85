# SPDX-License-Identifier: GPL-3.0-or-later

"""The operators that a run installs, and their charts and packages. An operator that another party installed is used
unchanged and is never part of this plan.
"""

from __future__ import annotations

import dataclasses
import typing

from .._check.operators.needed import check
from .._model.intent.intent import Intent
from .._model.operators.drivers import OF_GPUS, OF_NICS
from .._model.operators.olm import OPENSHIFT_CATALOGS
from .._model.operators.operators import (
    CHANGES_NODES,
    GPU,
    KUEUE,
    MADE_FOR,
    NETWORK,
    NFD,
    SRIOV,
    TABLE,
    TRAINER,
    Needed,
    Operator,
    OperatorChart,
    OperatorsSeen,
    list_needed_operators,
)
from .._model.operators.sriov_operator import OlmObject
from .._model.run.findings import FAIL
from .._render.cluster.names import MANAGED_BY, Object
from .._render.cluster.operators import render_worker_sources
from .operator_requests import ChartWish, OperatorRequests, PackageWish

#: operators of which another release, or other values, can restart drivers of nodes. They drain the nodes for that
#: operators with webhooks of failurePolicy Fail for the jobs of all namespaces [kubernetes-sigs/kueue
#: charts/kueue/templates/webhook/webhook.yaml]
_GUARDS = (KUEUE,)


@dataclasses.dataclass(frozen=True)
class Release:
    """A Helm release that a run installs or upgrades.

    :ivar operator: name of the operator
    :ivar release: name of the release
    :ivar chart: name, path or OCI address of the chart
    :ivar repository: address of the chart repository; empty if the chart is not in one
    :ivar values: values for the chart
    :ivar drains: whether an upgrade can restart drivers of nodes, for which the operator drains the nodes
    :ivar serves: whether the operator runs, or has run
    :ivar pinned: whether the user chose the chart or its version
    :ivar chosen: whether the user chose the values
    :ivar guards: whether its webhooks refuse objects of all namespaces while it does not serve, so that it must not
        stay if it never serves
    """

    operator: str
    release: str
    namespace: str
    chart: str
    repository: str
    version: str
    values: dict[str, typing.Any]
    drains: bool = False
    serves: bool = True
    pinned: bool = False
    chosen: bool = False
    guards: bool = False


def list_duplicates(seen: OperatorsSeen) -> tuple[str, ...]:
    """Return the names of the operators that are installed more than once in the cluster. A run that needs one of them
    installs no operator at all.

    :param seen: state of the operators in the cluster
    """
    names = [item.operator for item in seen.controllers]
    return tuple(operator.name for operator in TABLE if names.count(operator.name) > 1)


def _list_needed_operators(intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests) -> list[Needed]:
    rows = list_needed_operators(intent, seen.job, seen.olm)
    if any(row.operator.name in list_duplicates(seen) for row in rows) or seen.errors:
        # what was not read may be there
        return []
    return [row for row in rows if row.operator.name not in wishes.leave]


def list_releases(intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests) -> tuple[Release, ...]:
    """Return the Helm releases in the order of installation: those of operators that are missing, and those that an
    earlier run installed. Return an empty tuple if OLM installs operators.

    :param seen: state of the operators in the cluster
    :param wishes: settings with which the user changes the installation of the operators
    """
    if seen.olm:
        return ()
    rows = [(row.operator, find_chart(row.operator, wishes)) for row in _list_needed_operators(intent, seen, wishes)]
    return tuple(
        Release(
            operator.name,
            chart.release,
            chart.namespace,
            chart.reference,
            chart.repository,
            chart.version,
            collect_values(operator, intent, wishes),
            operator.name in CHANGES_NODES,
            _has_served(operator, seen),
            _is_pinned(operator, wishes),
            wishes.charts.get(operator.name, ChartWish()).values is not None,
            operator.name in _GUARDS,
        )
        for operator, chart in rows
        if chart is not None and operator.name not in seen.untrusted and _ours_to_make(operator, chart, seen)
    )


def _is_pinned(operator: Operator, wishes: OperatorRequests) -> bool:
    wish, default = wishes.charts.get(operator.name, ChartWish()), operator.chart.reference if operator.chart else ""
    return bool(wish.version) or wish.chart not in (None, "", default)


def _has_served(operator: Operator, seen: OperatorsSeen) -> bool:
    """Return whether the operator runs or has run: one of its pods is ready, its configuration object has a state, or a
    driver that it installs is ready on a node.
    """
    kinds: tuple[str, ...] = {NETWORK: OF_NICS, GPU: OF_GPUS}.get(operator.name, ())
    return (
        any(item.operator == operator.name and item.ready for item in seen.controllers)
        or any(item.kind == operator.configuration and item.state for item in seen.configurations)
        or any(item.kind in kinds and item.ready for item in seen.drivers)
    )


def find_chart(operator: Operator, wishes: OperatorRequests) -> typing.Optional[OperatorChart]:
    """Return the chart of an operator with the user's changes; None if the operator has no chart. A chart that the user
    replaced does not inherit repository and version.

    :param wishes: settings with which the user changes the installation of the operators
    """
    wish, chart = wishes.charts.get(operator.name, ChartWish()), operator.chart
    if chart is None:
        return None
    # a chart of the user's own is not in our repository, and its version is not ours
    own = wish.chart is not None and wish.chart != chart.reference
    return OperatorChart(
        reference=wish.chart or chart.reference,
        version=wish.version or ("" if own else chart.version),
        namespace=wish.namespace or chart.namespace,
        release=wish.release or chart.release,
        repository=wish.repository or ("" if own else chart.repository),
    )


def list_versions(wishes: OperatorRequests, olm: bool) -> dict[str, str]:
    """Return the version that a run would install, by operator. An operator without a known version is left out.

    :param olm: whether operators are installed by the cluster's OLM instead of Helm. The version that the user requests
        of OLM comes before that of the chart
    """
    charts = {operator.name: find_chart(operator, wishes) for operator in TABLE}
    found = {name: chart.version for name, chart in charts.items() if chart is not None}
    if olm:
        found.update({name: wish.version for name, wish in wishes.packages.items() if wish.version})
    return {name: version for name, version in found.items() if version}


def _ours_to_make(operator: Operator, chart: OperatorChart, seen: OperatorsSeen) -> bool:
    found = next((item for item in seen.controllers if item.operator == operator.name), None)
    if found is None:
        # labels that somebody writes would be written twice
        return not seen.held_by_olm(operator) and not (operator.name == NFD and seen.has_labels)
    same = (found.release, found.name.partition("/")[0]) == (chart.release, chart.namespace)
    return found.origin == "helm" and same and operator.name in seen.made


def collect_values(operator: Operator, intent: Intent, wishes: OperatorRequests) -> dict[str, typing.Any]:
    """Return the Helm values of an operator's chart, by key: the user's values if there are any, else the values that
    follow from the intent. The latter disable the operators that the chart bundles, since a run installs these
    separately.

    :param wishes: settings with which the user changes the installation of the operators
    """
    wish = wishes.charts.get(operator.name)
    if wish is not None and wish.values is not None:
        return dict(wish.values)
    rdma = {"driver": {"rdma": {"enabled": True}}} if intent.cluster.host.gpudirect == "peermem" else {}
    found: dict[str, dict[str, typing.Any]] = {
        NFD: {"worker": {"config": {"sources": render_worker_sources()}}},
        SRIOV: {"sriovOperatorConfig": {"deploy": True}},
        NETWORK: {"nfd": {"enabled": False}, "sriovNetworkOperator": {"enabled": False}},
        GPU: {"nfd": {"enabled": False}, **rdma},
        TRAINER: {"jobset": {"install": False}},
    }
    return found.get(operator.name, {})


def list_namespaces(made: typing.Iterable[Release]) -> tuple[Object, ...]:
    """Return the Namespace objects of the Helm releases. Only the Namespace of the SR-IOV operator has the label by
    which the teardown removes it.

    :param made: Helm releases that the run installs
    """
    found: dict[str, Object] = {}
    for item in made:
        mark = dict(MANAGED_BY) if item.operator == SRIOV else {MADE_FOR: item.operator}
        # what these operators run on nodes changes the node
        labels = {**mark, "pod-security.kubernetes.io/enforce": "privileged"}
        found.setdefault(
            item.namespace,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": item.namespace, "labels": labels}},
        )
    return tuple(found.values())


def list_packages(intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests) -> tuple[dict[str, typing.Any], ...]:
    """Return the packages for the module ``olm`` in the order of installation: those of operators that are missing, and
    those that OLM installed and may upgrade. Return an empty tuple if the cluster does not use OLM.

    :param seen: state of the operators in the cluster
    :param wishes: settings with which the user changes the installation of the operators
    """
    if not seen.olm:
        return ()
    return tuple(
        {
            **found,
            "upgrade": intent.cluster.disruption != "none" or row.operator.name not in CHANGES_NODES,
            **({"operator": row.operator.name} if row.operator.name in CHANGES_NODES else {}),
        }
        for row in _list_needed_operators(intent, seen, wishes)
        if _wants_package(row.operator, seen, wishes) and (found := find_package(row.operator, wishes)) is not None
    )


def _wants_package(operator: Operator, seen: OperatorsSeen, wishes: OperatorRequests) -> bool:
    if seen.packages.get(operator.name):
        return _has_requested_package(operator, seen, wishes)
    there = [item for item in seen.controllers if item.operator == operator.name]
    # of somebody else, or labels that somebody else writes
    return all(item.origin == "olm" for item in there) and not (operator.name == NFD and not there and seen.has_labels)


def _has_requested_package(operator: Operator, seen: OperatorsSeen, wishes: OperatorRequests) -> bool:
    """Return whether OLM installed the operator from the package that the run requests, or has not installed it at all.
    An operator that OLM installed from another package is used as it is, because a second installation would work on
    the same objects. Only a ClusterServiceVersion in the namespace of a Deployment of the operator counts, because any
    tenant can create one in its own namespace.
    """
    wanted = find_package(operator, wishes)
    objects = seen.packages.get(operator.name, ())
    spaces = {item.name.partition("/")[0] for item in seen.controllers if item.operator == operator.name}
    versions = {
        (item.namespace, item.name)
        for item in objects
        if item.kind == "ClusterServiceVersion" and item.namespace in spaces
    }
    made = {(item.namespace, item.version): item.package for item in objects if item.kind == "Subscription"}
    if not versions or wanted is None or wanted["package"] in made.values():
        return True
    return any(place not in made and place[1].startswith(_list_prefixes(operator, wishes)) for place in versions)


def find_package(operator: Operator, wishes: OperatorRequests) -> typing.Optional[dict[str, typing.Any]]:
    """Return the entry of an operator for the option ``operators`` of the module ``olm``, with the user's changes.
    Return None if no catalog has the operator.

    :param wishes: settings with which the user changes the installation of the operators
    """
    wish, package = wishes.packages.get(operator.name, PackageWish()), operator.package
    if package is None:
        return None
    namespace = wish.namespace or package.namespace
    return {
        "package": wish.package or package.name,
        "namespace": namespace,
        "channel": wish.channel,
        "version": wish.version,
        "source": wish.source or package.source,
        "source_namespace": wish.source_namespace or OPENSHIFT_CATALOGS,
        "target_namespaces": [namespace] if package.own_namespace else [],
    }


def may_restart_drivers(intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests) -> bool:
    """Return whether the run installs or upgrades an operator that restarts drivers of nodes. OLM upgrades an operator
    only if the user requests a version.

    :param seen: state of the operators in the cluster
    :param wishes: settings with which the user changes the installation of the operators
    """
    if not seen.olm:
        return any(release.drains for release in list_releases(intent, seen, wishes))
    return any(
        row.operator.name in CHANGES_NODES
        and row.operator.package is not None
        and _wants_package(row.operator, seen, wishes)
        and (not seen.packages.get(row.operator.name) or _requests_version(row.operator, wishes))
        for row in _list_needed_operators(intent, seen, wishes)
    )


def _requests_version(operator: Operator, wishes: OperatorRequests) -> bool:
    wish = wishes.packages.get(operator.name)
    return wish is not None and bool(wish.version)


def list_unconfigured_operators(
    intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests
) -> tuple[tuple[Operator, OlmObject], ...]:
    """Return the operators, each with its ClusterServiceVersion, that OLM has installed but that have no configuration
    object yet. Without this object they do nothing.

    :param seen: state of the operators in the cluster
    :param wishes: settings with which the user changes the installation of the operators
    """
    found = []
    for row in _list_needed_operators(intent, seen, wishes):
        done = [
            item
            for item in seen.packages.get(row.operator.name, ())
            if item.kind == "ClusterServiceVersion"
            and item.phase == "Succeeded"
            # another package can have the kind in another API group
            and item.name.startswith(_list_prefixes(row.operator, wishes))
        ]
        if (
            done
            and row.operator.configuration
            and all(item.kind != row.operator.configuration for item in seen.configurations)
        ):
            # where a run and another client have installed it, the version of the run counts
            found.append((row.operator, next((item for item in done if is_installed_by_run(item, seen)), done[0])))
    return tuple(found)


def is_installed_by_run(version: OlmObject, seen: OperatorsSeen) -> bool:
    """Return whether a Subscription of the collection has installed a ClusterServiceVersion. Only then a run configures
    the operator, because an admin who installed it decides on the configuration.

    :param version: the ClusterServiceVersion
    :param seen: state of the operators in the cluster
    """
    return any(
        item.kind == "Subscription"
        and item.ours
        and (item.namespace, item.version) == (version.namespace, version.name)
        for items in seen.packages.values()
        for item in items
    )


def _list_prefixes(operator: Operator, wishes: OperatorRequests) -> tuple[str, ...]:
    """Return the beginnings of the names of the ClusterServiceVersions of the package that the run requests."""
    asked = wishes.name_packages().get(operator.name, "")
    usual = (operator.package.csv,) if operator.package is not None else ()
    return (*usual, f"{asked}.") if asked else usual


def list_rows(intent: Intent, seen: OperatorsSeen, nodes: typing.Sequence[str]) -> tuple[dict[str, typing.Any], ...]:
    """Return a mapping for each needed operator, for the result of the module: the reasons why it is needed (``why``),
    its observed state (``seen``), whether it works (``serves``), and the remedy.

    :param seen: state of the operators in the cluster
    :param nodes: names of the nodes of the run
    """
    by_name = {finding.subject: finding for finding in check(intent, seen, nodes)}
    return tuple(
        {
            "operator": row.operator.name,
            "why": list(row.why),
            "serves": by_name[row.operator.name].status != FAIL and by_name[row.operator.name].status != "unknown",
            "seen": by_name[row.operator.name].measured,
            "remedy": by_name[row.operator.name].remedy,
        }
        for row in list_needed_operators(intent, seen.job, seen.olm)
    )
