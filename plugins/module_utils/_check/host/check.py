# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage host: check that the hosts meet the requirements of jobs other than the network: locked memory, GPUDirect RDMA,
kernel arguments, settings of the kubelet. Check ids: ``host.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.image_pull import explain, is_image_pull_message, of_pods
from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED_BY_LIMIT
from ..._model.base.phrases import format_clause
from ..._model.intent.host_intent import Memlock
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import carries_rdma
from ..._model.kubernetes.apply import TAKEN, AppliedObject
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import ClusterPolicies, MemlockProof, ObservedText, Roll
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import ObservedPlatform
from ..._model.node.tuning import ObservedTuning
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, Status, build_pass
from . import cluster_policy, gpudirect, kubelet
from .kernel_arguments import Overridden, cut_to_kernel, find_overridden
from .unread_nodes import choose_remedy


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar proofs: results of the memory registrations by non-root pods
    :ivar policies: answer of cluster_policy; None if it did not run
    :ivar platforms: answer of node_info of each node about its kernel and GPU driver
    :ivar tunings: tuning rows of each node, of which ``p2pdma`` shows how its kernel was built, and others with which
        settings its kubelet runs
    :ivar hcas: HCAs of each node, of which those of the RDMA fabrics must access the memory of GPUs
    :ivar runtimes: LimitMEMLOCK of containerd's unit on each node, as systemctl prints it; empty if a MachineConfig
        sets the limit
    :ivar check_mode: whether the run is in check mode, in which no pod is started
    :ivar by_pods: names of the nodes that are reached by observers
    :ivar applied: result of applying each object in stage network
    :ivar plan: answer of sriov_plan, which contains the MachineConfigPool that rolls each node; None if it did not run
    :ivar rolls: rolls of the MachineConfigPools for which stage network waited
    """

    nodes: tuple[str, ...] = ()
    proofs: tuple[MemlockProof, ...] = ()
    policies: typing.Optional[ClusterPolicies] = None
    platforms: dict[str, ObservedPlatform] = dataclasses.field(default_factory=dict)
    tunings: dict[str, ObservedTuning] = dataclasses.field(default_factory=dict)
    hcas: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
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
            name,
            intent.cluster.host,
            facts.platforms.get(name, ObservedPlatform(error=NOT_QUERIED_BY_LIMIT)),
            facts.by_pods,
            facts.tunings.get(name, ObservedTuning()).value,
            gpudirect.list_members(intent, facts.hcas.get(name, ObservedHcas())),
        )
    if intent.cluster.host.gpudirect == "peermem":
        loaded = bool(findings) and all(finding.status == PASS for finding in findings)
        findings[:0] = cluster_policy.check(facts.policies, facts.nodes, loaded, facts.check_mode)
    findings += _check_kernel_arguments(intent.cluster.host.kernel_arguments, facts)
    if intent.cluster.host.kubelet is not None:
        rolled = [name for name in facts.nodes if _was_rolled(name, facts)]
        findings += kubelet.check(intent.cluster.host.kubelet, facts.nodes, facts.tunings, rolled, facts.by_pods)
    if memlock is None:
        return (
            *findings,
            build_pass(
                "host.memlock_limit",
                "rdma_cluster.host.memlock",
                "the intent does not set memlock",
                "memlock as set in the intent",
            ),
        )
    findings.append(_check_memlock_limit(memlock))
    if memlock.by == "containerd":
        findings += [
            _check_runtime(memlock, name, facts.runtimes.get(name, ObservedText(error=NOT_QUERIED_BY_LIMIT)), facts)
            for name in facts.nodes
        ]
    proofs = {(proof.fabric, proof.node): proof for proof in facts.proofs}
    fabrics = select_provable_fabrics(intent)
    for fabric in fabrics:
        findings += [
            _check_proof(memlock, f"{fabric.name} {name}", proofs.get((fabric.name, name)), facts)
            for name in facts.nodes or ("inventory",)
        ]
    if not fabrics:
        why = "No fabric of the intent gives pods an RDMA device, so no test can register memory."
        remedy = (
            "Remove rdma_cluster.host.memlock from the intent, or set rdma: true for a fabric. Then run stage host"
            " again."
        )
        findings.append(
            Finding(
                "host.memlock",
                "fabrics",
                UNKNOWN,
                "0 fabrics with RDMA devices",
                _describe_expected_memlock(memlock),
                why,
                remedy,
            )
        )
    return tuple(findings)


def _check_kernel_arguments(wanted: typing.Sequence[str], facts: Facts) -> typing.Iterator[Finding]:
    """Yield a finding for each node on the kernel arguments of the intent, or nothing if the intent sets none.

    The command line of the running kernel decides.

    If an argument is missing on the command line, the node passes only if this run rolled the node with the
    MachineConfig that sets the argument. A MachineConfig that merely exists may belong to another pool or to a paused
    pool.

    :param wanted: kernel arguments of the intent
    """
    check_id, expected = "host.kernel_arguments", " ".join(wanted)
    made = [
        item
        for item in facts.applied
        if item.kind == "MachineConfig" and item.name.endswith("-kernel-arguments") and item.action in TAKEN
    ]
    planned = facts.check_mode and any(item.action != "unchanged" for item in made)
    for name in facts.nodes if wanted else ():
        seen = facts.platforms.get(name, ObservedPlatform(error=NOT_QUERIED_BY_LIMIT))
        runs = seen.value.kernel_arguments if seen.value is not None and seen.error is None else None
        runs = cut_to_kernel(runs) if runs is not None else None
        missing = [argument for argument in wanted if argument not in (runs or ())]
        overridden = find_overridden(wanted, runs) if runs is not None and not missing else Overridden()
        if overridden.undone or overridden.doubtful:
            yield _report_overridden(name, expected, overridden)
        elif runs is not None and not missing:
            yield build_pass(check_id, name, "booted with all of them", expected)
        elif made and (planned or _was_rolled(name, facts)):
            yield build_pass(
                check_id, name, f"set by MachineConfig {made[0].name} (see the finding network.roll)", expected
            )
        elif runs is None:
            why = f"The kernel arguments of the node were not read: {format_clause(seen.error, 'its data lacks them')}."
            remedy = choose_remedy(seen.error, name, facts.by_pods, "/proc/cmdline")
            yield Finding(check_id, name, UNKNOWN, "not read", expected, why, remedy)
        elif made:
            why = (
                f"The kernel of the node was booted without these arguments. MachineConfig {made[0].name} exists, but"
                " the node has not received it. kubectl get machineconfigpools shows whether its pool is paused, not"
                " updated yet, or does not select the node."
            )
            remedy = (
                "Compare the output of kubectl get machineconfigpools with the labels of the node. Unpause the pool and"
                " wait until it is updated, then run stages platform and host again."
            )
            yield Finding(check_id, name, FAIL, f"without {' '.join(missing)}", expected, why, remedy)
        else:
            why = (
                "The kernel of the node was booted without these arguments, and this run applied no MachineConfig that"
                " sets them."
            )
            remedy = (
                "Run site.yml with platform_settle: true, which sets the arguments before the reset of the node, or"
                " set them in the boot loader of the node. On OpenShift, run stage network. Then run stages platform"
                " and host again."
            )
            yield Finding(check_id, name, FAIL, f"without {' '.join(missing)}", expected, why, remedy)


def _was_rolled(node: str, facts: Facts) -> bool:
    """Return whether a MachineConfigPool has given the node its new configuration in this run.

    The result is False if the plan of the run does not name the pool of the node.

    :param node: name of the node
    """
    pools = {item.rolled_by for item in facts.plan.nodes if item.node == node} if facts.plan is not None else set()
    return any(
        roll.pool in pools and not roll.error and roll.rolls and (roll.updated >= roll.machines or roll.others)
        for roll in facts.rolls
    )


def _report_overridden(name: str, expected: str, overridden: Overridden) -> Finding:
    """Return the finding on a node whose kernel command line has the arguments of the intent, followed by other
    arguments of the same names, of which the kernel uses the last. The status is ``fail`` if the other value cancels
    that of the intent, else ``unknown``.

    :param name: name of the node
    :param expected: arguments of the intent, as text
    :param overridden: arguments that follow those of the intent
    """
    later = " ".join(overridden.undone or overridden.doubtful)
    why = (
        f"The kernel command line contains {later} after the required arguments. If several arguments have the same"
        " name, the kernel uses the last one."
    )
    remedy = (
        f"Remove {later} where it is set (on the node: grubby --update-kernel=ALL --remove-args='{later}'; or another"
        " MachineConfig, or TuneD), and restart the node. Then run stages platform and host again."
    )
    status: Status = FAIL if overridden.undone else UNKNOWN
    return Finding("host.kernel_arguments", name, status, f"also {later}", expected, why, remedy)


def select_provable_fabrics(intent: Intent) -> tuple[Fabric, ...]:
    """Return the fabrics on which the limit of locked memory can be proven: those that give pods RDMA devices, since
    only such a device can register memory.
    """
    return tuple(fabric for fabric in intent.fabrics if carries_rdma(fabric))


def _check_memlock_limit(memlock: Memlock) -> Finding:
    subject, expected = "rdma_cluster.host.memlock", "a limit in GiB (limit_gib)"
    if memlock.limit_bytes is not None:
        return build_pass("host.memlock_limit", subject, f"{memlock.limit_gib} GiB", expected)
    why = (
        "Locked memory cannot be reclaimed or swapped out. Without a limit, any container on these nodes can lock all"
        " memory and stop the kubelet."
    )
    remedy = (
        "Set rdma_cluster.host.memlock.limit_gib to the memory that the application registers: the buffers of NCCL"
        " plus the pinned memory of the framework. Then run stage host again."
    )
    return Finding("host.memlock_limit", subject, WARN, "unlimited", expected, why, remedy)


def _check_runtime(memlock: Memlock, name: str, seen: ObservedText, facts: Facts) -> Finding:
    wanted = "infinity" if memlock.limit_bytes is None else str(memlock.limit_bytes)
    expected = f"LimitMEMLOCK of containerd {wanted}" + (
        "" if memlock.limit_bytes is None else f" bytes ({memlock.limit_gib} GiB)"
    )
    if seen.value is None or seen.error is not None:
        error = (seen.error or "").replace("was not asked: ", "the task failed: ")
        why = (
            "The node was not queried, for example because --limit excluded it."
            if seen.error == NOT_QUERIED_BY_LIMIT
            else f"Reading LimitMEMLOCK of containerd from systemd failed:"
            f" {format_clause(error, 'systemctl printed nothing')}."
        )
        remedy = choose_remedy(seen.error, name, facts.by_pods, "systemctl and containerd")
        return Finding("host.containerd", name, UNKNOWN, "not read", expected, why, remedy)
    if seen.value.strip() == wanted:
        return build_pass("host.containerd", name, f"LimitMEMLOCK {wanted}", expected)
    measured = f"LimitMEMLOCK {seen.value.strip() or 'unknown'}"
    if name in facts.by_pods:
        why = (
            "Ansible does not reach the node by ssh. The pod that inspects the node changes nothing on it, so no"
            " drop-in for containerd was written."
        )
        remedy = (
            f"Set LimitMEMLOCK={wanted} for containerd in the source of the node's configuration (its image or user"
            " data), or let Ansible reach the node by ssh. Then run stage host again."
        )
        return Finding("host.containerd", name, FAIL, measured, expected, why, remedy)
    if facts.check_mode:
        why = "Check mode: a run without check mode would write the drop-in and restart containerd."
        return Finding("host.containerd", name, UNKNOWN, measured, expected, why, "Run stage host without check mode.")
    why = (
        "On the node, systemd reads another drop-in after the one of linerate.rdma, and that drop-in overrides the"
        " limit."
    )
    return Finding(
        "host.containerd",
        name,
        FAIL,
        measured,
        expected,
        why,
        "Run systemctl cat containerd on the node and remove the other drop-in, then run stage host again.",
    )


def _explain_missing_proof(error: str, was_tried: bool, facts: Facts) -> tuple[str, str]:
    """Return the cause and the remedy for a node on which the limit of locked memory was not tested.

    :param error: error of the test pod, as text; used only if a test pod was created
    :param was_tried: whether a test pod was created
    """
    if facts.check_mode:
        return "In check mode, no test pod is started.", "Run stage host without check mode."
    if not facts.nodes:
        return (
            "The group rdma_nodes of the inventory names no node, so no test pod was started.",
            "Put the nodes into the group rdma_nodes of the inventory, then run stage host again.",
        )
    if not was_tried:
        return (
            "No test pod was started on the node: --limit excluded the node, or stage host ended before it.",
            "Look for a failed task of stage host in the output of the playbook, and correct its cause. Then run stage"
            " host again, with this node in --limit or without --limit.",
        )
    return f"The test pod gave no result: {format_clause(error)}.", (
        "Run kubectl describe node. If the node has no free virtual function for the pod, end a pod that uses one."
        " Otherwise set an image that contains ibv_rc_pingpong. Then run stage host again."
    )


def _describe_expected_memlock(memlock: Memlock) -> str:
    limit = "no limit" if memlock.limit_bytes is None else f"at least {memlock.limit_gib} GiB"
    return f"{limit}, and {memlock.proof_mib} MiB registered by a non-root user"


def _check_proof(memlock: Memlock, subject: str, proof: typing.Optional[MemlockProof], facts: Facts) -> Finding:
    expected = _describe_expected_memlock(memlock)
    if proof is None or proof.error or proof.soft is None:
        error = proof.error if proof and proof.error else "the result is empty"
        why, remedy = _explain_missing_proof(error, proof is not None, facts)
        if proof and is_image_pull_message(error):
            namespace, _slash, name = proof.pod.partition("/")
            cause, remedy = explain(error, of_pods(namespace, name))
            why = f"{why} {cause}"
        return Finding(
            "host.memlock",
            subject,
            UNKNOWN,
            "not tested",
            expected,
            why,
            remedy,
        )
    measured = (
        f"ulimit -l {_format_size(proof.soft)} (hard {_format_size(proof.hard)}) as"
        f" {'unknown user' if proof.user is None else f'user {proof.user}'},"
        f" {_format_size(proof.registered or 0)}"
        f" registered on {proof.device}"
    )
    if proof.user is None:
        why, remedy = (
            (
                "The log of the test pod does not contain its user. root may lock all memory, so the test does not"
                " verify the limit of other users."
            ),
            "Run podman run --rm IMAGE id, with the image in pods.image of the fabric. If the image does not contain"
            " the program id, set an image that does. Then run stage host again.",
        )
        return Finding("host.memlock", subject, UNKNOWN, measured, expected, why, remedy)
    if proof.user == 0:
        why = "The pod ran as root, so the test does not verify the limit of other users."
        return Finding(
            "host.memlock",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Find the admission webhook that changes the user of the pods (kubectl get mutatingwebhookconfigurations),"
            " and exclude the test pods from it. Then run stage host again.",
        )
    low = proof.soft >= 0 and (memlock.limit_bytes is None or proof.soft < memlock.limit_bytes)
    if not proof.registered:
        why = f"Registering memory failed ({proof.evidence}): " + (
            "the limit of locked memory is lower than the tested size."
            if 0 <= proof.soft < proof.asked
            else "the limit of locked memory is not the cause, because it is high enough."
        )
        remedy = (
            _describe_memlock_remedy(memlock)
            if low
            else (
                "Run ip link show <PF> and free -m on the node. If the VF has the node GUID 0, follow the remedy of"
                " the finding virtual_functions.guids. If the node has too little free memory, end pods on it. Then"
                " run stage host again."
            )
        )
        return Finding("host.memlock", subject, FAIL, measured, expected, why, remedy)
    if low:
        why = (
            "The container runtime gives containers a lower limit than the intent requires. A job that registers more"
            " memory fails, or NCCL falls back to TCP without an error."
        )
        return Finding("host.memlock", subject, FAIL, measured, expected, why, _describe_memlock_remedy(memlock))
    if proof.registered < memlock.proof_bytes:
        why = (
            f"The test ran with an earlier intent: the pod registered {_format_size(proof.registered)}, and"
            f" rdma_cluster.host.memlock.proof_mib now requires {memlock.proof_mib} MiB."
        )
        return Finding(
            "host.memlock",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Run stage host again with the current intent.",
        )
    return build_pass("host.memlock", subject, measured, expected)


def _describe_memlock_remedy(memlock: Memlock) -> str:
    if memlock.by == "machine_config":
        return (
            "See the finding network.roll: the node must have the MachineConfig. A later file in /etc/crio/crio.conf.d"
            " may override default_ulimits. Then run stage host again."
        )
    return (
        "Restart containerd on the node, so that it uses the drop-in (systemctl show containerd -p LimitMEMLOCK shows"
        " its limit), then run stage host again. Pods that already run keep their old limit."
    )


def _format_size(value: typing.Optional[int]) -> str:
    if value is None:
        return "unknown"
    if value < 0:
        return "unlimited"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value >= 1 << shift:
            return f"{value / (1 << shift):.4g} {unit}"
    return f"{value} bytes"
