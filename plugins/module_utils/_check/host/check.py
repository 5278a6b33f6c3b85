# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage host: check that the hosts meet the requirements of jobs other than the network: locked memory, GPUDirect RDMA,
kernel arguments. Check ids: ``host.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.image_pull import explain, is_image_pull_message, of_pods
from ..._analysis.fleet import unreachable_nodes
from ..._model.intent.host_intent import Memlock
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import carries_rdma
from ..._model.kubernetes.apply import TAKEN, AppliedObject
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import ClusterPolicies, MemlockProof, ObservedText, Roll
from ..._model.node.platform import ObservedPlatform
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, Status, ok
from . import gpudirect
from .kernel_arguments import Overridden, cut_to_kernel, find_overridden


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar proofs: of locked memory
    :ivar policies: answer of cluster_policy; None when it did not run
    :ivar platforms: answer of node_info of each node; nobody looks where the intent asks for no GPUDirect
    :ivar runtimes: LimitMEMLOCK of containerd's unit on each node, as systemctl prints it; nobody looks where a
        MachineConfig sets it
    :ivar check_mode: no pod was started
    :ivar by_pods: names of the nodes that are reached by observers
    :ivar applied: what became of each object of stage network
    :ivar plan: answer of sriov_plan; None where it did not run. It tells which pool rolls a node
    :ivar rolls: of the MachineConfigPools for which stage network waited
    """

    nodes: tuple[str, ...] = ()
    proofs: tuple[MemlockProof, ...] = ()
    policies: typing.Optional[ClusterPolicies] = None
    platforms: dict[str, ObservedPlatform] = dataclasses.field(default_factory=dict)
    runtimes: dict[str, ObservedText] = dataclasses.field(default_factory=dict)
    check_mode: bool = False
    by_pods: tuple[str, ...] = ()
    applied: tuple[AppliedObject, ...] = ()
    plan: typing.Optional[DisruptionPlan] = None
    rolls: tuple[Roll, ...] = ()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return findings on GPUDirect, kernel arguments, the limit of locked memory, and the proof of that limit on each
    node and RDMA fabric.
    """
    memlock = intent.cluster.host.memlock
    findings: list[Finding] = []
    for name in facts.nodes:
        findings += gpudirect.check(
            name, intent.cluster.host, facts.platforms.get(name, ObservedPlatform(error="was not asked")), facts.by_pods
        )
    if intent.cluster.host.gpudirect == "peermem":
        findings.insert(0, _check_policy(facts, bool(findings) and all(finding.status == PASS for finding in findings)))
    findings += _check_kernel_arguments(intent.cluster.host.kernel_arguments, facts)
    if memlock is None:
        return (
            *findings,
            ok(
                "host.memlock_limit",
                "rdma_cluster.host.memlock",
                "the intent asks for no limit of locked memory",
                "what the intent asks for",
            ),
        )
    findings.append(_check_memlock_limit(memlock))
    if memlock.by == "containerd":
        findings += [
            _check_runtime(memlock, name, facts.runtimes.get(name, ObservedText(error="was not asked")), facts)
            for name in facts.nodes
        ]
    proofs = {(proof.fabric, proof.node): proof for proof in facts.proofs}
    fabrics = proven(intent)
    for fabric in fabrics:
        findings += [
            _check_proof(memlock, f"{fabric.name} {name}", proofs.get((fabric.name, name)), facts)
            for name in facts.nodes or ("inventory",)
        ]
    if not fabrics:
        why = "No fabric of the intent gives pods an RDMA device, so there is nothing to register memory with."
        remedy = "Remove rdma_cluster.host.memlock, or give a fabric rdma: true."
        findings.append(
            Finding(
                "host.memlock", "fabrics", UNKNOWN, "no RDMA fabric", _describe_expected_memlock(memlock), why, remedy
            )
        )
    return tuple(findings)


def _check_kernel_arguments(wanted: typing.Sequence[str], facts: Facts) -> typing.Iterator[Finding]:
    """Judge each node by what it was seen to run with, or by the MachineConfig that brings it, where this run has
    rolled the node since. One that is only there may be of another pool, or of one that is paused."""
    check_id, expected = "host.kernel_arguments", " ".join(wanted)
    made = [
        item
        for item in facts.applied
        if item.kind == "MachineConfig" and item.name.endswith("-kernel-arguments") and item.action in TAKEN
    ]
    planned = facts.check_mode and any(item.action != "unchanged" for item in made)
    for name in facts.nodes if wanted else ():
        seen = facts.platforms.get(name, ObservedPlatform(error="was not asked"))
        runs = seen.value.kernel_arguments if seen.value is not None and seen.error is None else None
        runs = cut_to_kernel(runs) if runs is not None else None
        missing = [argument for argument in wanted if argument not in (runs or ())]
        overridden = find_overridden(wanted, runs) if runs is not None and not missing else Overridden()
        if overridden.undone or overridden.doubtful:
            yield _report_overridden(name, expected, overridden)
        elif runs is not None and not missing:
            yield ok(check_id, name, "runs with all of them", expected)
        elif made and (planned or _was_rolled(name, facts)):
            yield ok(check_id, name, f"MachineConfig {made[0].name}; see network.roll", expected)
        elif runs is None:
            why = f"How the node was booted is not known: {seen.error or 'its kernel arguments could not be read'}."
            remedy = unreachable_nodes.remedy(name, facts.by_pods, "/proc/cmdline")
            yield Finding(check_id, name, UNKNOWN, "not read", expected, why, remedy)
        elif made:
            why = (
                f"The kernel of the node was booted without them. MachineConfig {made[0].name} is there, and this run"
                " has not seen it reach the node: its pool is paused or not updated, or the node is of another pool."
            )
            remedy = (
                "Compare kubectl get machineconfigpools with the labels of the node; unpause the pool and wait until it"
                " is updated, then run from the stage platform on."
            )
            yield Finding(check_id, name, FAIL, f"without {' '.join(missing)}", expected, why, remedy)
        else:
            why = (
                "The kernel of the node was booted without them, and this run applied no MachineConfig that brings"
                " them."
            )
            remedy = (
                "Run with platform_settle: true, which sets them before the reset, or set them in the boot loader. On"
                " OpenShift run stage network."
            )
            yield Finding(check_id, name, FAIL, f"without {' '.join(missing)}", expected, why, remedy)


def _was_rolled(node: str, facts: Facts) -> bool:
    """Return whether a MachineConfigPool has given the node its new configuration in this run."""
    pools = {item.rolled_by for item in facts.plan.nodes if item.node == node} if facts.plan is not None else set()
    return any(
        roll.pool in pools and not roll.error and roll.rolls and (roll.updated >= roll.machines or roll.others)
        for roll in facts.rolls
    )


def _report_overridden(name: str, expected: str, overridden: Overridden) -> Finding:
    """Report a node that runs with the arguments of the intent, and with others behind them."""
    later = " ".join(overridden.undone or overridden.doubtful)
    why = (
        f"The command line of the kernel has {later} behind them, and of several arguments with one name the kernel"
        " takes the last."
    )
    remedy = (
        f"Remove it where it is set (grubby --update-kernel=ALL --remove-args='{later}', another MachineConfig, or"
        " TuneD), restart the node, and run the stages platform and host again."
    )
    status: Status = FAIL if overridden.undone else UNKNOWN
    return Finding("host.kernel_arguments", name, status, f"also {later}", expected, why, remedy)


def proven(intent: Intent) -> tuple[Fabric, ...]:
    """Return the fabrics on which the limit of locked memory can be proven: those that give pods RDMA devices, since
    only such a device can register memory.
    """
    return tuple(fabric for fabric in intent.fabrics if carries_rdma(fabric))


def _check_policy(facts: Facts, loaded: bool) -> Finding:
    """Check that the GPU operator's ClusterPolicy loads nvidia-peermem. The operator uses one ClusterPolicy and ignores
    any other.

    :param loaded: whether all nodes of the inventory passed ``host.gpudirect``
    """
    seen, expected = (
        facts.policies or ClusterPolicies(error="nobody looked"),
        "one ClusterPolicy, with driver.rdma.enabled, ready",
    )
    subject = f"ClusterPolicy {seen.names[0]}" if len(seen.names) == 1 else "ClusterPolicy"
    if seen.error:
        why = f"It could not be read or changed: {seen.error}."
        remedy = (
            "Where Helm or another tool owns the field, set driver.rdma.enabled: true there; else give the user the"
            " rights of docs/rbac/peermem.yml."
        )
        return Finding(
            "host.cluster_policy",
            subject,
            FAIL if seen.names else UNKNOWN,
            "not changed" if seen.names else "not read",
            expected,
            why,
            remedy,
        )
    if len(seen.names) != 1:
        why = (
            "Without one the GPU operator does nothing."
            if not seen.names
            else f"The GPU operator follows one of them and ignores the others: {', '.join(seen.names)}."
        )
        remedy = (
            "Install the GPU operator and make its ClusterPolicy."
            if not seen.names
            else "Delete all but the one that is ready."
        )
        return Finding("host.cluster_policy", subject, FAIL, f"{len(seen.names)} of them", expected, why, remedy)
    measured = f"driver.rdma.enabled {str(seen.rdma).lower()}, {seen.state or 'no state yet'}"
    if seen.changed and facts.check_mode:
        why = "Check mode: it would be switched on, and the operator would then load nvidia-peermem."
        return Finding("host.cluster_policy", subject, UNKNOWN, measured, expected, why, "Run without check mode.")
    if loaded and not seen.changed and seen.rdma and seen.state == "notReady":
        why = (
            "The operator has not made all of it on all nodes of the cluster. Those of the inventory show what was"
            " asked for."
        )
        return Finding(
            "host.cluster_policy",
            subject,
            WARN,
            measured,
            expected,
            why,
            "See which of the GPU operator's pods is not ready, and on which node.",
        )
    if seen.changed or seen.state != "ready":
        why = (
            "It was switched on just now, so the operator renews the driver's pods."
            if seen.changed
            else "The operator has not made all of it."
        )
        remedy = "Wait until kubectl get clusterpolicy says ready, then run the stages platform and host again."
        return Finding("host.cluster_policy", subject, UNKNOWN, measured, expected, why, remedy)
    if not seen.rdma:
        why = "It is switched off, and was not switched on: the operator does not load nvidia-peermem."
        return Finding(
            "host.cluster_policy",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Set driver.rdma.enabled: true in it, or run the stage again.",
        )
    return ok("host.cluster_policy", subject, measured, expected)


def _check_memlock_limit(memlock: Memlock) -> Finding:
    subject, expected = "rdma_cluster.host.memlock", "a limit that fits the application"
    if memlock.limit_bytes is not None:
        return ok("host.memlock_limit", subject, f"{memlock.limit_gib} GiB", expected)
    why = (
        "Locked memory cannot be reclaimed or swapped out: without a limit, any container on these nodes can take all"
        " of it and bring the kubelet down."
    )
    remedy = (
        "Give limit_gib: what the application registers, buffers of NCCL and the framework's pinned memory together."
    )
    return Finding("host.memlock_limit", subject, WARN, "unlimited", expected, why, remedy)


def _check_runtime(memlock: Memlock, name: str, seen: ObservedText, facts: Facts) -> Finding:
    wanted = "infinity" if memlock.limit_bytes is None else str(memlock.limit_bytes)
    expected = f"LimitMEMLOCK of containerd {wanted}"
    if seen.value is None or seen.error is not None:
        why = f"The drop-in could not be written, or systemd not be asked: {seen.error or 'empty answer'}."
        remedy = unreachable_nodes.remedy(name, facts.by_pods, "systemctl and containerd")
        return Finding("host.containerd", name, UNKNOWN, "no answer", expected, why, remedy)
    if seen.value.strip() == wanted:
        return ok("host.containerd", name, f"LimitMEMLOCK {wanted}", expected)
    measured = f"LimitMEMLOCK {seen.value.strip() or 'not told'}"
    if name in facts.by_pods:
        why = "The node is reached by its observer, which changes nothing on it, so no drop-in was written."
        remedy = (
            f"Set LimitMEMLOCK={wanted} for containerd where the node gets its configuration from (its image, user"
            " data), or reach the node by ssh."
        )
        return Finding("host.containerd", name, FAIL, measured, expected, why, remedy)
    if facts.check_mode:
        why = "Check mode: the drop-in would be written, and containerd restarted."
        return Finding("host.containerd", name, UNKNOWN, measured, expected, why, "Run without check mode.")
    why = "systemd reads another drop-in after ours, which sets it anew."
    return Finding(
        "host.containerd",
        name,
        FAIL,
        measured,
        expected,
        why,
        "See systemctl cat containerd on the node, and take the other one away.",
    )


def _describe_expected_memlock(memlock: Memlock) -> str:
    limit = "no limit" if memlock.limit_bytes is None else f"{memlock.limit_gib} GiB at least"
    return f"{limit}, and {memlock.proof_mib} MiB registered by a user that is not root"


def _check_proof(memlock: Memlock, subject: str, proof: typing.Optional[MemlockProof], facts: Facts) -> Finding:
    expected = _describe_expected_memlock(memlock)
    if proof is None or proof.error or proof.soft is None:
        error = proof.error if proof and proof.error else "no pod was started"
        why = "In check mode no pod is started." if facts.check_mode else f"Nothing was proven: {error}."
        remedy = (
            "Run without check mode."
            if facts.check_mode
            else "Read the text. The node needs a free virtual function, and the image ibv_rc_pingpong."
        )
        if proof and is_image_pull_message(error):
            namespace, _slash, name = proof.pod.partition("/")
            cause, remedy = explain(error, of_pods(namespace, name))
            why = f"{why} {cause}"
        return Finding(
            "host.memlock",
            subject,
            UNKNOWN,
            proof.evidence if proof and proof.evidence else "not tried",
            expected,
            why,
            remedy,
        )
    measured = (
        f"ulimit -l {_format_size(proof.soft)} (hard {_format_size(proof.hard)}) as user {proof.user},"
        f" {_format_size(proof.registered or 0)}"
        f" registered on {proof.device}"
    )
    if proof.user is None:
        why, remedy = (
            "As which user the pod ran is not known, and root may lock all memory.",
            "Run the stage again; see the log of the pod.",
        )
        return Finding("host.memlock", subject, UNKNOWN, measured, expected, why, remedy)
    if proof.user == 0:
        why = "The pod ran as root, so it proves nothing of users that are not."
        return Finding(
            "host.memlock",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Find the admission webhook that changes the pods' user: kubectl get mutatingwebhookconfigurations.",
        )
    low = proof.soft >= 0 and (memlock.limit_bytes is None or proof.soft < memlock.limit_bytes)
    if not proof.registered:
        why = f"Registering memory failed ({proof.evidence}): " + (
            "the limit of locked memory is below what was asked for."
            if 0 <= proof.soft < proof.asked
            else "not by the limit, which would allow it."
        )
        remedy = (
            _describe_memlock_remedy(memlock)
            if low
            else (
                "Check that the VF has a non-zero node GUID (ip link show <PF>) and that the node has that much free"
                " memory (free -m)."
            )
        )
        return Finding("host.memlock", subject, FAIL, measured, expected, why, remedy)
    if low:
        why = (
            "The runtime gives containers less than the intent asks for, so a job that registers more would fail, or"
            " NCCL fall back to TCP in silence."
        )
        return Finding("host.memlock", subject, FAIL, measured, expected, why, _describe_memlock_remedy(memlock))
    if proof.registered < memlock.proof_bytes:
        why = f"The pod registered {_format_size(proof.registered)}, less than the intent asks it to prove."
        return Finding(
            "host.memlock",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Run the stage again, so that a pod of this intent proves it.",
        )
    return ok("host.memlock", subject, measured, expected)


def _describe_memlock_remedy(memlock: Memlock) -> str:
    if memlock.by == "machine_config":
        return (
            "See network.roll: the node must have taken the MachineConfig. A later file in /etc/crio/crio.conf.d may"
            " replace default_ulimits."
        )
    return (
        "Restart containerd with the drop-in (systemctl show containerd -p LimitMEMLOCK shows its limit). Pods that ran"
        " before keep their limit."
    )


def _format_size(value: typing.Optional[int]) -> str:
    if value is None:
        return "not known"
    if value < 0:
        return "unlimited"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value >= 1 << shift:
            return f"{value / (1 << shift):.4g} {unit}"
    return f"{value} bytes"
