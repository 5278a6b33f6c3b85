# SPDX-License-Identifier: GPL-3.0-or-later

"""Find conflicts between the fabrics of a run, whatever their profiles are. Part of stage validate. Check ids:
``validate.*``.

A finding names the path of each of the two settings in the intent. Overlapping address ranges are found by
_analysis/addresses/arithmetic.py.
"""

from __future__ import annotations

import collections
import itertools
import operator
import typing

from ..._analysis.fleet.claims import why_apart
from ..._model.base.load_exactly import Unread
from ..._model.base.phrases import count_of
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.intent import ClusterIntent, Fabric, Intent
from ..._model.intent.profiles import (
    find_traits,
    is_infiniband,
    isolates_rdma,
    may_share,
    needs_nic_policy,
    owns_rdma,
)
from ..._model.run.findings import WARN, Finding, build_pass
from .refusal import end_with_rerun, format_value, refuse_value

#: a vendor here and an address there may be one HCA, which the nodes alone show
_UNCLAIMED = "no HCA that two fabrics select in the same form; stage fabric compares the HCAs of the nodes"


def check(intent: Intent) -> list[Finding]:
    """Check that the names, HCAs and RDMA modes of the fabrics do not conflict.

    For each of these three, return a finding on each conflict, or one pass. Also report keys that no fabric uses, and
    BIOS settings that contradict the fabrics.
    """
    return run_rules(
        (
            _check_unique_names,
            _check_claims,
            _check_modes,
            _report_unread_words,
            _report_words_of_sriov,
            _report_without_functions,
        ),
        intent,
    )


def _report_bad(check_id: str, subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    return refuse_value(check_id, subject, measured, expected, why, remedy)


def _check_unique_names(intent: Intent) -> list[Finding]:
    findings: list[Finding] = []
    for what, name_of, why in (
        ("name", operator.attrgetter("name"), "Findings and objects are identified by the name of the fabric."),
        (
            "resource_name",
            operator.attrgetter("resource_name"),
            "The device plugin would combine the devices of two fabrics in one pool.",
        ),
        # the attachment objects of most profiles live in the operator's namespace or in none, whatever namespace their
        # pods are in
        (
            "network.name",
            operator.attrgetter("network.name"),
            "Both fabrics would use the same attachment object, and one fabric would overwrite the other.",
        ),
        (
            "ipam.pool",
            _name_pool,
            "Each fabric would configure the pool differently, and one fabric would overwrite the other.",
        ),
    ):
        places = collections.defaultdict(list)
        for index, fabric in enumerate(intent.fabrics):
            try:
                places[name_of(fabric)].append(index)
            except Unread:
                continue
        for name, where in places.items():
            if len(where) > 1 and name:
                measured = f"{count_of(len(where), 'fabric')}: {', '.join(f'rdma_fabrics[{index}]' for index in where)}"
                findings.append(
                    _report_bad(
                        "unique_names", f"{what} {name}", measured, "1 fabric", why, f"Give each fabric its own {what}."
                    )
                )
    return findings or [
        build_pass(
            "validate.unique_names",
            "rdma_fabrics",
            "all different",
            "name, resource_name, network.name and pool differ",
        )
    ]


def _name_pool(fabric: Fabric) -> str:
    """Return the namespace and name of the fabric's address pool; empty if it has none."""
    return f"{fabric.pool.namespace}/{fabric.pool.name}" if fabric.pool else ""


def _check_claims(intent: Intent) -> list[Finding]:
    """Check that no two fabrics select the same HCA, unless their profiles can share it."""
    findings = []
    for (before, other), (index, fabric) in itertools.combinations(enumerate(intent.fabrics), 2):
        findings += run_rule(
            _check_claim, fabric, other, f"rdma_fabrics[{index}].select", f"rdma_fabrics[{before}].select"
        )
    return findings or [
        build_pass("validate.claims", "rdma_fabrics", count_of(len(intent.fabrics), "fabric"), _UNCLAIMED)
    ]


def _check_claim(fabric: Fabric, other: Fabric, place: str, other_place: str) -> typing.Iterator[Finding]:
    claim = _shared_claim(fabric, other)
    if claim:
        remedy = (
            f"Set {place}.pci or {place}.netdev, or the same key of {other_place}, so that each HCA belongs to"
            " one fabric."
        )
        yield _report_bad(
            "claims",
            place,
            f"{claim}, which {other_place} also selects",
            f"no HCA that {other_place} also selects",
            why_apart(fabric, other),
            remedy,
        )


def _report_unread_words(intent: Intent) -> list[Finding]:
    """Return failed findings on settings for NVIDIA's network operator that have no effect because no fabric needs a
    NicClusterPolicy. The list is empty if a fabric needs one.
    """
    if any(map(needs_nic_policy, intent.fabrics)):
        return []
    wanted = intent.cluster.network_operator
    words = {
        "ofed_driver": wanted.ofed_driver,
        "nv_ipam": wanted.nv_ipam,
        "nic_feature_discovery": wanted.nic_feature_discovery,
    }
    why = (
        "This key has no effect: no fabric of the intent has a profile that requires a NicClusterPolicy, so none is"
        " created."
    )
    remedy = (
        "Remove the key and configure this in your own NicClusterPolicy, or give a fabric a profile that requires"
        " NVIDIA's network operator."
    )
    return [
        _report_bad("cluster", f"rdma_cluster.network_operator.{key}", format_value(value), "unset", why, remedy)
        for key, value in words.items()
        if value
    ]


def _report_words_of_sriov(intent: Intent) -> list[Finding]:
    """Return warnings on settings for the SR-IOV network operator that have no effect because no fabric has virtual
    functions. The list is empty if a fabric has virtual functions.
    """
    if not intent.fabrics or any(find_traits(fabric).functions for fabric in intent.fabrics):
        return []
    cluster, usual = intent.cluster, ClusterIntent()
    why = "This key has no effect: no fabric of the intent has a profile with virtual functions."
    remedy = "Remove the key, or give a fabric a profile with virtual functions (sriov_infiniband, sriov_ethernet)."
    return [
        Finding("validate.cluster", f"rdma_cluster.{key}", WARN, str(value), "unset", why, end_with_rerun(remedy))
        for key in ("operator_namespace", "resource_prefix")
        for value in (getattr(cluster, key),)
        if value != getattr(usual, key)
    ]


def _report_without_functions(intent: Intent) -> list[Finding]:
    """Return failed findings on BIOS settings that the intent switches off although a fabric needs them for VFs.

    The list is empty if no fabric has VFs.
    """
    makers = [fabric.name for fabric in intent.fabrics if find_traits(fabric).functions]
    off = [key for key in ("sriov", "above_4g", "ari") if getattr(intent.cluster.bios, key) is False] if makers else []
    why = (
        (f"Fabric {makers[0]} has virtual functions, and virtual functions require this BIOS setting.")
        if makers
        else ""
    )
    return [
        _report_bad(
            "cluster", f"rdma_cluster.bios.{key}", "false", "true, or unset", why, "Remove the key, or set it to true."
        )
        for key in off
    ]


def _shared_claim(one: Fabric, other: Fabric) -> str:
    """Return, as text, the HCAs that two fabrics both select although their profiles can't share an HCA: their names or
    addresses, or ``the same HCAs`` if one fabric selects all HCAs of the other. Return an empty text if there are none.
    """
    if is_infiniband(one) != is_infiniband(other) or not (find_traits(one).members and find_traits(other).members):
        return ""
    if may_share(one, other):
        return ""
    for mine, theirs in ((one.select.pci, other.select.pci), (one.select.netdev, other.select.netdev)):
        if mine and theirs:
            return ", ".join(sorted(set(mine) & set(theirs)))
    for wide, narrow in ((one.select, other.select), (other.select, one.select)):
        if (
            not wide.pci
            and not wide.netdev
            and all(_is_covering_value(getattr(wide, key), getattr(narrow, key)) for key in ("vendor", "device"))
        ) and (wide.subnet_manager in ((), ("any",)) or set(wide.subnet_manager) & set(narrow.subnet_manager)):
            return "the same HCAs"
    return ""


def _is_covering_value(wide: typing.Optional[str], narrow: typing.Optional[str]) -> bool:
    return wide in (None, narrow)


def _check_modes(intent: Intent) -> list[Finding]:
    """Check that all fabrics work with one RDMA mode, since all are on the same nodes.

    RDMA devices of a node are either shared by all network namespaces (shared), or each belongs to one network
    namespace (exclusive).
    """
    pool = intent.cluster.node_pool
    exclusive = [
        f"rdma_fabrics[{index}].network.meta_plugins"
        for index, fabric in enumerate(intent.fabrics)
        if owns_rdma(fabric) and isolates_rdma(fabric)
    ]
    exclusive += ["rdma_cluster.node_pool.rdma_mode"] if pool is not None and pool.rdma_mode == "exclusive" else []
    shared = [
        f"rdma_fabrics[{index}].profile"
        for index, fabric in enumerate(intent.fabrics)
        if fabric.profile == "rdma_shared"
    ]
    if not (exclusive and shared):
        return [
            build_pass(
                "validate.rdma_mode",
                "rdma_fabrics",
                "exclusive" if exclusive else "shared, or unchanged",
                "one RDMA mode for all fabrics",
            )
        ]
    why = (
        "Profile rdma_shared needs nodes in RDMA mode shared: its device plugin does not start in mode exclusive."
        " The settings under 'expected' need mode exclusive, and a node has only one RDMA mode."
    )
    remedy = (
        "Change the profile of this fabric, or remove the setting under 'expected'. To use both modes, put the"
        " nodes of each mode into an inventory and an intent of their own."
    )
    return [
        _report_bad(
            "rdma_mode",
            place,
            "RDMA mode shared",
            f"RDMA mode exclusive, which {', '.join(exclusive)} requires",
            why,
            remedy,
        )
        for place in shared
    ]
