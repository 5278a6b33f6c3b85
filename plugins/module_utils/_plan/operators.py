# SPDX-License-Identifier: GPL-3.0-or-later

"""Which operators a run installs, and how. What somebody else installed is used as it is, and never named here."""

from __future__ import annotations

import dataclasses
import typing

from .._check.operators.needed import check
from .._model.base.errors import RdmaError
from .._model.base.load import load
from .._model.intent.intent import Intent
from .._model.operators.olm import OPENSHIFT_CATALOGS
from .._model.operators.operators import (
    GPU,
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
    needed,
)
from .._model.run.findings import FAIL
from .._render.cluster.names import MANAGED_BY, Object
from .._render.cluster.operators import render_worker_sources


@dataclasses.dataclass(frozen=True)
class ChartWish:
    """The changes of a chart that a user asks for: a mirror, another version, values of their own. Nothing, or an empty
    text, leaves it.

    :ivar values: instead of those that follow from the intent
    """

    chart: typing.Optional[str] = None
    repository: typing.Optional[str] = None
    version: typing.Optional[str] = None
    namespace: typing.Optional[str] = None
    release: typing.Optional[str] = None
    values: typing.Optional[dict[str, typing.Any]] = None


@dataclasses.dataclass(frozen=True)
class PackageWish:
    """The same of a package of OLM: ``channel`` and ``version`` are the catalog's choice unless they are named."""

    package: typing.Optional[str] = None
    namespace: typing.Optional[str] = None
    channel: typing.Optional[str] = None
    version: typing.Optional[str] = None
    source: typing.Optional[str] = None
    source_namespace: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class OperatorRequests:
    """:ivar charts: by operator
    :ivar packages: by operator
    :ivar leave: operators that somebody else installs
    """

    charts: dict[str, ChartWish] = dataclasses.field(default_factory=dict)
    packages: dict[str, PackageWish] = dataclasses.field(default_factory=dict)
    leave: tuple[str, ...] = ()

    def unknown(self) -> tuple[str, ...]:
        """Return the names that are of no operator."""
        return tuple(sorted({*self.charts, *self.packages, *self.leave} - {operator.name for operator in TABLE}))


def collect_requests(charts: typing.Any, packages: typing.Any, leave: typing.Any) -> OperatorRequests:
    """Of the options of a module.

    :raises RdmaError: a name is of no operator, or a key is none
    """
    found: OperatorRequests = load(
        OperatorRequests, {"charts": charts, "packages": packages, "leave": leave}, "operators"
    )
    if found.unknown():
        raise RdmaError(
            f"there is no operator {', '.join(found.unknown())}",
            f"Name one of: {', '.join(operator.name for operator in TABLE)}",
        )
    return found


@dataclasses.dataclass(frozen=True)
class Release:
    """A Helm release that a run makes, or brings to what is wanted."""

    operator: str
    release: str
    namespace: str
    chart: str
    repository: str
    version: str
    values: dict[str, typing.Any]


def refused(seen: OperatorsSeen) -> tuple[str, ...]:
    """Operators of which there are two or more: a run then installs nothing."""
    names = [item.operator for item in seen.controllers]
    return tuple(operator.name for operator in TABLE if names.count(operator.name) > 1)


def _list_needed_operators(intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests) -> list[Needed]:
    rows = needed(intent, seen.job, seen.olm)
    if any(row.operator.name in refused(seen) for row in rows) or seen.errors:
        # what was not read may be there
        return []
    return [row for row in rows if row.operator.name not in wishes.leave]


def list_releases(intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests) -> tuple[Release, ...]:
    """Releases of Helm, in the order in which they are made: of operators that are not there, and of those that a run
    has made before."""
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
        )
        for operator, chart in rows
        if chart is not None and operator.name not in seen.untrusted and _ours_to_make(operator, chart, seen)
    )


def find_chart(operator: Operator, wishes: OperatorRequests) -> typing.Optional[OperatorChart]:
    """With what the user has otherwise."""
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


def _ours_to_make(operator: Operator, chart: OperatorChart, seen: OperatorsSeen) -> bool:
    found = next((item for item in seen.controllers if item.operator == operator.name), None)
    if found is None:
        # labels that somebody writes would be written twice
        return not seen.held_by_olm(operator) and not (operator.name == NFD and seen.labelled)
    same = (found.release, found.name.partition("/")[0]) == (chart.release, chart.namespace)
    return found.origin == "helm" and same and (operator.name == SRIOV or operator.name in seen.made)


def collect_values(operator: Operator, intent: Intent, wishes: OperatorRequests) -> dict[str, typing.Any]:
    """Values of a chart that follow from the intent; no chart brings an operator that is in the table by itself."""
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
    """Namespaces of the releases. That of the SR-IOV operator goes with the teardown, where it is asked to; others
    stay."""
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
    """Packages for the module ``olm``, in the order in which they are needed: of operators that are not there, or that
    OLM has, perhaps newer now."""
    if not seen.olm:
        return ()
    return tuple(
        found
        for row in _list_needed_operators(intent, seen, wishes)
        if _wants_package(row.operator, seen) and (found := find_package(row.operator, wishes)) is not None
    )


def _wants_package(operator: Operator, seen: OperatorsSeen) -> bool:
    if seen.packages.get(operator.name):
        return True
    there = [item for item in seen.controllers if item.operator == operator.name]
    # of somebody else, or labels that somebody else writes
    return all(item.origin == "olm" for item in there) and not (operator.name == NFD and not there and seen.labelled)


def find_package(operator: Operator, wishes: OperatorRequests) -> typing.Optional[dict[str, typing.Any]]:
    """Return a row for the module ``olm``, with what the user has otherwise; None where no catalog has it."""
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


def unconfigured(intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests) -> tuple[tuple[Operator, str], ...]:
    """Operators that OLM has installed, with their namespaces, and that lack the object without which they do
    nothing."""
    found = []
    for row in _list_needed_operators(intent, seen, wishes):
        done = [
            item
            for item in seen.packages.get(row.operator.name, ())
            if item.kind == "ClusterServiceVersion" and item.phase == "Succeeded"
        ]
        if (
            done
            and row.operator.configuration
            and all(item.kind != row.operator.configuration for item in seen.configurations)
        ):
            found.append((row.operator, done[0].namespace))
    return tuple(found)


def list_rows(intent: Intent, seen: OperatorsSeen, nodes: typing.Sequence[str]) -> tuple[dict[str, typing.Any], ...]:
    """Return the table of what is needed, for who calls the module: by what, and whether it is there and serves."""
    by_name = {finding.subject: finding for finding in check(intent, seen, nodes)}
    return tuple(
        {
            "operator": row.operator.name,
            "why": list(row.why),
            "serves": by_name[row.operator.name].status != FAIL and by_name[row.operator.name].status != "unknown",
            "seen": by_name[row.operator.name].measured,
            "remedy": by_name[row.operator.name].remedy,
        }
        for row in needed(intent, seen.job, seen.olm)
    )
