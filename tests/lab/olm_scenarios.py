# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of OLM as data, in the style of the other scenarios. Each begins without the operator, in a lab with OLM
(``make openshift``)."""

from __future__ import annotations

import dataclasses
import typing

from lab import bundle, description, olm

from .scenarios import OPERATORS, Expected, Injection, Scenario

NAMESPACE = description.read().operator_namespace
SUBJECT = f"package {bundle.PACKAGE}"
CHECK = "operators.olm"
_GROUP = "operators.coreos.com"
#: what could not be installed serves no node: nobody waits long for it
_SOON = {"operators_wait_seconds": 10}


@dataclasses.dataclass(frozen=True)
class OlmScenario(Scenario):
    """:ivar objects: of somebody else, that are there meanwhile"""

    objects: tuple[typing.Mapping[str, typing.Any], ...] = ()


def _wish(**changes: str) -> dict[str, typing.Any]:
    """Variables with other keys for the package than the inventory's."""
    own = {"namespace": NAMESPACE, "source": olm.CATALOG, "source_namespace": olm.NAMESPACE}
    return {"operators_packages": {bundle.PACKAGE: {**own, **changes}}, **_SOON}


def _object(kind: str, name: str, spec: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    version = "v1" if kind == "OperatorGroup" else "v1alpha1"
    return {
        "apiVersion": f"{_GROUP}/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": dict(spec),
    }


_OWN_GROUP = _object("OperatorGroup", "somebody", {"targetNamespaces": [NAMESPACE]})

OLM_SCENARIOS: tuple[OlmScenario, ...] = (
    OlmScenario(
        "catalog-gone",
        OPERATORS,
        (
            Expected(
                "the server of OLM's catalog is gone",
                CHECK,
                SUBJECT,
                ("nothing installed, failed", f"catalog {olm.NAMESPACE}/{olm.CATALOG} does not answer"),
                "OLM runs no pod for this catalog. Start the server at ",
            ),
        ),
        (Injection("catalog-gone"),),
        _SOON,
        heals=OPERATORS,
    ),
    OlmScenario(
        "channel-absent",
        OPERATORS,
        (
            Expected(
                "a channel that the package does not have",
                CHECK,
                SUBJECT,
                (
                    "nothing installed, failed",
                    "OLM cannot resolve the installation",
                    "no operators found in channel nightly of package sriov-network-operator",
                ),
                "Correct channel: kubectl get packagemanifest sriov-network-operator",
            ),
        ),
        variables=_wish(channel="nightly"),
        how="`operators_packages.sriov-network-operator.channel: nightly`",
        heals=OPERATORS,
    ),
    OlmScenario(
        "requirement-missing",
        OPERATORS,
        (
            Expected(
                "an operator that requires an API which nobody owns",
                CHECK,
                SUBJECT,
                (
                    f"{bundle.PACKAGE}.v{bundle.INCOMPLETE_VERSION}, failed",
                    "waits for its requirements",
                    bundle.REQUIRED[0],
                ),
                "Install the missing requirements",
            ),
        ),
        variables=_wish(channel=bundle.INCOMPLETE),
        how=(
            f"`operators_packages.sriov-network-operator.channel: {bundle.INCOMPLETE}`, of which the bundle requires it"
        ),
    ),
    OlmScenario(
        "two-operator-groups",
        OPERATORS,
        (
            Expected(
                "two OperatorGroups in the operator's namespace",
                CHECK,
                SUBJECT,
                ("nothing installed, failed", f"namespace {NAMESPACE} has 2 OperatorGroups (another, somebody)"),
                "Keep one of them, for example ",
            ),
        ),
        variables=_SOON,
        how="two objects of this kind are applied",
        heals=OPERATORS,
        objects=(_OWN_GROUP, _object("OperatorGroup", "another", {"targetNamespaces": [NAMESPACE]})),
    ),
    OlmScenario(
        "approval-awaited",
        OPERATORS,
        (
            Expected(
                "an InstallPlan of somebody else's Subscription, which waits for its approval",
                CHECK,
                SUBJECT,
                (
                    "nothing installed, failed",
                    "waits for approval",
                    f"linerate.rdma does not manage Subscription {NAMESPACE}/theirs",
                ),
                "Ask the owner of the Subscription to approve the InstallPlan: kubectl",
            ),
        ),
        variables=_SOON,
        how="a Subscription with `installPlanApproval: Manual` is applied",
        objects=(
            _OWN_GROUP,
            _object(
                "Subscription",
                "theirs",
                {
                    "name": bundle.PACKAGE,
                    "channel": bundle.CHANNEL,
                    "source": olm.CATALOG,
                    "sourceNamespace": olm.NAMESPACE,
                    "installPlanApproval": "Manual",
                },
            ),
        ),
    ),
)
