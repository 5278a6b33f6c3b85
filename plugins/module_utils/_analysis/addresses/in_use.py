# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage network: compare the addresses of the fabrics with the addresses that the cluster already uses. Check ids:
``network.address*``. The checks that need no cluster are in arithmetic.py.
"""

from __future__ import annotations

import ipaddress
import typing

from ..._model.base.phrases import count_of, describe_read_remedy, describe_rerun, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric, Intent
from ..._model.kubernetes.addresses import AddressFacts, SharedPool, UsedNetwork
from ..._model.kubernetes.measuring import NAMESPACE as MEASURING
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass, judge
from ..._parse.kubernetes.networks.addresses import Network, Pool, RangeError
from .host_networks import HOST_REMEDY, HOST_WHY, NEAR_REMEDY, NEAR_WHY, Hosts, check_read, list_host_networks
from .invalid_networks import INVALID, exclude_invalid_networks, is_network
from .overlaps import Overlaps, check_claims, check_unread_pools, find_overlaps, is_own_pool
from .pool_in_use import SHOWN, check_pool
from .pools import build_invalid_range, count_needed_on_a_node, describe_need, find_pool

#: [k8snetworkplumbingwg/whereabouts doc/crds/ip-reconciler-job.yaml, doc/crds/reconciler-deployment.yaml,
#: deployment/whereabouts-chart/templates/operator.yaml, cmd/controlloop/controlloop.go]
_FREE_LEAKS = (
    "The reconciler of whereabouts frees these addresses. Find it: kubectl get cronjobs,daemonsets,deployments -A |"
    " grep -E 'ip-reconciler|whereabouts'. Start a CronJob with kubectl -n NAMESPACE create job ip-reconciler-now"
    " --from=cronjob/ip-reconciler. A DaemonSet, or the Deployment whereabouts-reconciler, runs it at the time in the"
    " ConfigMap whereabouts-config (in UTC): wait for this time. The Deployment whereabouts-operator runs"
    " it each 30 seconds: read its log. If the addresses remain allocated, run kubectl -n kube-system edit"
    " ippools.whereabouts.cni.cncf.io, and remove the entries of these addresses only. Then run stage network again."
)


def check(
    intent: Intent,
    nodes: typing.Sequence[str],
    seen: typing.Optional[AddressFacts],
    hosts: typing.Optional[Hosts] = None,
) -> tuple[Finding, ...]:
    """Return the findings on each fabric with an ipam mapping, and on networks of the cluster that could not be
    compared. A fabric with a valid range gets two findings: on free addresses or the nv-ipam pool, and on overlaps. A
    fabric with an invalid range gets one.

    :param nodes: names of the nodes of the run
    :param seen: addresses in use; None if they were not read, which results in one unknown finding per fabric
    :param hosts: networks of the interfaces of the nodes; None if they are not compared
    """
    fabrics = [(fabric, fabric.ipam) for fabric in intent.fabrics if fabric.ipam is not None]
    if seen is None:
        why = "The run ended before it read the addresses that the cluster uses, so the number of free ones is unknown."
        remedy = describe_rerun("network")
        return tuple(
            Finding(
                "network.addresses",
                fabric.name,
                UNKNOWN,
                "free addresses not read",
                f"free: at least {describe_need(fabric, len(nodes))}",
                why,
                remedy,
            )
            for fabric, _ipam in fabrics
        )
    seen = exclude_invalid_networks(seen)
    ours = {f"{fabric.network.namespace}/{fabric.network.name}" for fabric in intent.fabrics}
    taken = [item for item in seen.taken if not _is_ours(item.owner, ours)]
    taken += _list_other_pools(intent, seen.pools)
    known = [(ipaddress.ip_network(item.network), item) for item in taken]
    findings: list[Finding] = []
    overlapping: list[tuple[str, Overlaps]] = []
    for fabric, ipam in fabrics:
        try:
            pool = find_pool(ipam)
        except RangeError as error:
            findings.append(build_invalid_range(fabric, error))
            continue
        if isinstance(pool, Pool):
            findings.append(_check_free(fabric, pool, nodes, seen))
        else:
            findings.append(check_pool(fabric, pool, nodes, seen, taken))
        overlaps = find_overlaps(ipam, pool.network, [*known, *list_host_networks(fabric, pool, hosts)])
        overlapping.append((fabric.name, overlaps))
        findings.append(_check_overlap(fabric, pool.network, len(known), overlaps))
    findings += check_claims(overlapping)
    findings += check_read([fabric for fabric, _ipam in fabrics], hosts)
    return (*findings, *check_unread_pools(intent, seen), *_check_compared(seen))


def _is_ours(owner: str, networks: typing.Container[str]) -> bool:
    """Return whether an address range belongs to a network of the intent, or to a copy of such a network that an
    interrupted measurement left behind.

    :param owner: owner of the range, as namespace/name
    :param networks: networks of the intent, as namespace/name
    """
    return owner in networks or owner.startswith(f"{MEASURING}/")


def _list_other_pools(intent: Intent, pools: typing.Iterable[SharedPool]) -> typing.Iterator[UsedNetwork]:
    """Return the networks of those nv-ipam pools that no fabric of the intent names. Attachments that are not managed
    by linerate.rdma take their addresses from them.

    :param pools: nv-ipam pools of the cluster
    """
    for pool in pools:
        if not is_own_pool(intent, pool) and is_network(pool.network):
            yield UsedNetwork("attachment", pool.network, f"{pool.kind} {pool.namespace}/{pool.name}", "nv-ipam")


def list_refused_fabrics(intent: Intent, findings: typing.Sequence[Finding]) -> dict[str, str]:
    """Return the reason for each fabric that must not be applied, by name of the fabric. A finding with the subject
    ``cluster`` that closes the gate refuses all fabrics.

    :param findings: findings of the checks in this module
    """
    reasons: dict[str, str] = {}
    for finding in judge(findings, intent.waivers).closing():
        for fabric in intent.fabrics:
            if finding.subject in (fabric.name, "cluster"):
                reasons.setdefault(fabric.name, f"{finding.check}: {finding.measured}. {finding.why}")
    return reasons


def _check_free(fabric: Fabric, pool: Pool, nodes: typing.Sequence[str], seen: AddressFacts) -> Finding:
    """Check for whereabouts that enough addresses are available for the pods of all nodes. Leaked addresses, which are
    still allocated to pods that no longer hold them, are not available. Without leaked addresses the check passes. With
    leaked addresses it fails if the remaining addresses are too few, and warns otherwise.

    :param pool: addresses of the fabric's range
    :param nodes: names of the nodes of the run
    :param seen: addresses that are in use in the cluster
    """
    leaks = [lease for lease in seen.leaks if pool.hands_out(lease.address)]
    left = pool.capacity - len(leaks)
    expected = (
        f"free: at least {describe_need(fabric, len(nodes))}; no address allocated to a pod that no longer holds it"
    )
    if not leaks:
        leaked = "leaked ones not determined" if seen.errors else "none leaked"
        return build_pass("network.addresses", fabric.name, f"{left} addresses available, {leaked}", expected)
    pods = join_first(sorted(f"{lease.pod or 'pod not recorded'} {lease.address}" for lease in leaks), SHOWN)
    measured = f"{left} addresses available, {len(leaks)} still allocated to pods that no longer hold them: {pods}"
    why = (
        "whereabouts frees an address when the sandbox of the pod is removed. That did not happen for these pods, which"
        " no longer exist, have ended, or were created anew with the same name and other addresses: a node failed, or"
        " the CNI plugin failed."
    )
    status: typing.Literal["fail", "warn"] = FAIL if left < len(nodes) * count_needed_on_a_node(fabric) else WARN
    return Finding("network.addresses", fabric.name, status, measured, expected, why, _FREE_LEAKS)


def _check_overlap(fabric: Fabric, network: Network, compared: int, found: Overlaps) -> Finding:
    """Return the finding on the overlaps of a fabric with networks in use.

    :param network: range of the fabric
    :param compared: number of networks in use that were compared
    """
    expected = "no overlap with the networks of pods, services, other attachments and hosts, or with addresses of nodes"
    if not found.real:
        measured = f"{network} overlaps with none of {count_of(compared, 'network')}"
        if found.claimed:
            nodes = sorted({overlap.item.node for overlap in found.claimed})
            measured = (
                f"{network} overlaps with no network in use; addresses that a single node reports have their own"
                f" finding: {join_first(nodes, SHOWN)}"
            )
        return build_pass("network.address_overlap", fabric.name, measured, expected)
    measured = join_first([str(overlap) for overlap in found.real], SHOWN, "; ")
    kinds = {overlap.item.kind for overlap in found.real}
    if kinds <= {"attachment", "near_host"}:
        # tenants write attachments as they like, and must not keep a fabric from being made
        why = (
            "A pod on both networks has two routes to the same addresses. If one IPAM plugin serves both networks, they"
            " use up the same addresses. Otherwise two pods may get the same address."
        )
        return Finding(
            "network.address_overlap",
            fabric.name,
            WARN,
            measured,
            expected,
            NEAR_WHY if "near_host" in kinds else why,
            "Set ipam of the fabric or of the other attachment to a network of its own, then run stage network again."
            if kinds == {"attachment"}
            else NEAR_REMEDY,
        )
    why = (
        "A pod with an interface on this fabric sends traffic for these addresses into the fabric. The pod then cannot"
        " reach the nodes, services or pods that have them, or its own address exists twice."
    )
    return Finding(
        "network.address_overlap",
        fabric.name,
        FAIL,
        measured,
        expected,
        HOST_WHY if "host" in kinds else why,
        HOST_REMEDY
        if "host" in kinds
        else "Set ipam of the fabric to a network that the cluster does not use, then run stage network again.",
    )


def _check_compared(seen: AddressFacts) -> list[Finding]:
    """Return findings of status ``unknown`` on the kinds of objects and the nodes whose networks could not be read, and
    warnings about networks that could not be compared with the ranges of the fabrics.

    :param seen: addresses that are in use in the cluster
    """
    expected = "all networks of the cluster compared"
    findings = []
    for item in seen.unread:
        # a fabric, too, may have the name of a node
        why = f"The addresses of the node were not compared with the ranges of the fabrics: {format_clause(item.why)}."
        remedy = (
            f"Correct status.addresses of the node (kubectl get node {item.node} -o yaml), which its kubelet or its"
            " cloud controller writes. Then run stage network again."
        )
        findings.append(
            Finding("network.address_overlap", f"node {item.node}", UNKNOWN, "not read", "valid addresses", why, remedy)
        )
    if seen.errors:
        why = (
            f"Some networks of the cluster are unknown: {format_clause('; '.join(seen.errors[:SHOWN]))}. They may"
            " overlap with the ranges of the fabrics."
        )
        remedy = (
            "Run stage network again: it reads the networks again, and reports the object that still has an invalid"
            " network."
        )
        if not all(error.endswith(INVALID) for error in seen.errors):
            remedy = describe_read_remedy("Then run stage network again.")
        findings.append(
            Finding(
                "network.address_overlap",
                "cluster",
                UNKNOWN,
                f"{count_of(len(seen.errors), 'network')} not read",
                expected,
                why,
                remedy,
            )
        )
    if not seen.pods and not any(taken.kind == "pods" for taken in seen.taken):
        why = "No node has a podCIDR, and no pod has its own address yet, so nothing shows the pod network."
        findings.append(
            Finding(
                "network.address_overlap",
                "pod network",
                WARN,
                "pod network not read",
                expected,
                why,
                "Compare the pod network of the cluster with the ranges in ipam of the fabrics. Run stage network again"
                " when pods have addresses.",
            )
        )
    if seen.unclear:
        why = f"The addresses of these attachments are unknown: {format_clause('; '.join(seen.unclear[:SHOWN]))}."
        measured = f"{count_of(len(seen.unclear), 'attachment')} not compared"
        findings.append(
            Finding(
                "network.address_overlap",
                "attachments",
                WARN,
                measured,
                "the addresses of all attachments compared with ipam of the fabrics",
                why,
                "Compare the addresses of these attachments with ipam of the fabrics: kubectl get"
                " network-attachment-definitions -A -o yaml, and files of /etc/cni/net.d on the nodes. If they overlap,"
                " change ipam of the fabric or the addresses of the attachment, then run stage network again. If they"
                " do not overlap, waive this finding.",
            )
        )
    return findings
