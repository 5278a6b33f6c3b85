# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the limit of locked memory: its size in the intent, the proof by a pod, and the limit of containerd. Check ids:
``host.memlock``, ``host.memlock_limit`` and ``host.containerd``.
"""

from __future__ import annotations

import re
import typing

from ..._analysis.controllers.image_pull import explain, is_image_pull_message, of_pods
from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED_BY_LIMIT
from ..._model.base.phrases import format_clause
from ..._model.intent.host_intent import Memlock
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import carries_rdma
from ..._model.kubernetes.host import MemlockProof, ObservedText
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .unread_nodes import choose_remedy


def select_provable_fabrics(intent: Intent) -> tuple[Fabric, ...]:
    """Return the fabrics on which the limit of locked memory can be proven: those that give pods RDMA devices, since
    only such a device can register memory.
    """
    return tuple(fabric for fabric in intent.fabrics if carries_rdma(fabric))


def check_limit(memlock: Memlock) -> Finding:
    """Return the finding on the limit of the intent: a pass, or a warning if the intent sets no limit."""
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


def check_runtime(
    memlock: Memlock, name: str, seen: ObservedText, by_pods: typing.Container[str], check_mode: bool
) -> Finding:
    """Return the finding on LimitMEMLOCK of containerd's unit on a node.

    :param name: name of the node
    :param seen: LimitMEMLOCK as systemctl prints it, or the error
    :param by_pods: names of the nodes that are reached by observers
    :param check_mode: whether the run is in check mode, in which no drop-in is written
    """
    wanted = "infinity" if memlock.limit_bytes is None else str(memlock.limit_bytes)
    expected = f"LimitMEMLOCK of containerd: {wanted}" + (
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
        remedy = choose_remedy(seen.error, name, by_pods, "systemctl and containerd")
        return Finding("host.containerd", name, UNKNOWN, "LimitMEMLOCK of containerd not read", expected, why, remedy)
    if seen.value.strip() == wanted:
        return build_pass("host.containerd", name, f"LimitMEMLOCK of containerd: {wanted}", expected)
    measured = f"LimitMEMLOCK of containerd: {_spell_limit(seen.value)}"
    if name in by_pods:
        why = (
            "Ansible does not reach the node by ssh. The pod that inspects the node changes nothing on it, so no"
            " drop-in for containerd was written."
        )
        remedy = (
            f"Set LimitMEMLOCK={wanted} in the systemd unit containerd.service of {name}, in the image or the"
            f" user data from which the node is made. Or let Ansible reach {name} by ssh. Then run stage host"
            " again."
        )
        return Finding("host.containerd", name, FAIL, measured, expected, why, remedy)
    if check_mode:
        why = "Check mode: a run without check mode would write the drop-in and restart containerd."
        return Finding(
            "host.containerd", name, UNKNOWN, measured, expected, why, "Run stage host again, without --check."
        )
    why = (
        "On the node, systemd reads another drop-in of containerd.service after the one of linerate.rdma, and"
        " that drop-in overrides the limit."
    )
    return Finding(
        "host.containerd",
        name,
        FAIL,
        measured,
        expected,
        why,
        (
            f"Run systemctl cat containerd on {name}: it prints each drop-in with its path. Remove LimitMEMLOCK from"
            " the drop-in that follows the one of linerate.rdma. Run systemctl daemon-reload and systemctl restart"
            " containerd."
        ),
    )


def _explain_missing_proof(
    error: str, was_tried: bool, node: str, check_mode: bool, has_nodes: bool
) -> tuple[str, str]:
    """Return the cause and the remedy for a node on which the limit of locked memory was not tested.

    :param error: error of the test pod, as text; used only if a test pod was created
    :param was_tried: whether a test pod was created
    :param node: name of the node
    :param check_mode: whether the run is in check mode, in which no pod is started
    :param has_nodes: whether the inventory names a node
    """
    if check_mode:
        return "In check mode, no test pod is started.", "Run stage host again, without --check."
    if not has_nodes:
        return (
            "The group rdma_nodes of the inventory names no node, so no test pod was started.",
            "Add the nodes to the group rdma_nodes of the inventory, then run stage host again.",
        )
    if not was_tried:
        return (
            "No test pod was started on the node: --limit excluded the node, or stage host ended before it.",
            "Look for a failed task of stage host in the output of ansible-playbook, and correct its cause. Then"
            f" run stage host again, with {node} in --limit or without --limit.",
        )
    return f"The test pod gave no result: {format_clause(error)}.", (
        f"Run kubectl describe node {node}. If Allocated resources shows that pods use all virtual functions of"
        " the fabric, end one of these pods. Otherwise set pods.image of the fabric to an image that contains"
        " ibv_rc_pingpong. Then run stage host again."
    )


def describe_expected(memlock: Memlock) -> str:
    """Return the expected result of the proof, as text: the limit, and the size that a pod registers."""
    limit = "unlimited" if memlock.limit_bytes is None else f"at least {memlock.limit_gib} GiB"
    return f"ulimit -l {limit} as a user other than root, {memlock.proof_mib} MiB registered"


def check_proof(
    memlock: Memlock,
    fabric: str,
    node: str,
    proof: typing.Optional[MemlockProof],
    check_mode: bool,
    has_nodes: bool,
) -> Finding:
    """Return the finding on the registration of memory by a non-root pod on one node and fabric.

    :param fabric: name of the fabric
    :param node: name of the node
    :param proof: result of the test pod; None if no pod was started
    :param check_mode: whether the run is in check mode, in which no pod is started
    :param has_nodes: whether the inventory names a node
    """
    subject, expected = f"{fabric} {node}", describe_expected(memlock)
    if proof is None or proof.error or proof.soft is None:
        error = proof.error if proof and proof.error else "the result is empty"
        why, remedy = _explain_missing_proof(error, proof is not None, node, check_mode, has_nodes)
        if proof and is_image_pull_message(error):
            namespace, _slash, name = proof.pod.partition("/")
            cause, remedy = explain(error, of_pods(namespace, name))
            why, remedy = f"{why} {cause}", f"{remedy}. Then run stage host again."
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
                "The log of the test pod does not show as which user the test ran. The user root may lock all"
                " memory, so the test does not prove the limit of other users."
            ),
            f"Run podman run --rm IMAGE id, with the image in pods.image of fabric {fabric}. If the image does"
            " not contain the program id, set pods.image to an image that contains it. Then run stage host"
            " again.",
        )
        return Finding("host.memlock", subject, UNKNOWN, measured, expected, why, remedy)
    if proof.user == 0:
        why = (
            "The test pod ran as root, and root may lock all memory. So the test does not prove the limit of other"
            " users."
        )
        return Finding(
            "host.memlock",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Run kubectl get mutatingwebhookconfigurations to find the admission webhook that sets the user of"
            " pods to root. Exclude the namespace of the test pods from it (namespaceSelector). Then run stage"
            " host again.",
        )
    low = proof.soft >= 0 and (memlock.limit_bytes is None or proof.soft < memlock.limit_bytes)
    if not proof.registered:
        why = f"Registering memory failed ({proof.evidence}): " + (
            "the limit of locked memory is lower than the tested size."
            if 0 <= proof.soft < proof.asked
            else "the limit of locked memory is not the cause, because it is high enough."
        )
        remedy = (
            _describe_memlock_remedy(memlock, node)
            if low
            else (
                f"Run ip link show and free -m on {node}. If ip link shows the node GUID 00:00:00:00:00:00:00:00"
                " for a VF, follow the remedy of the finding virtual_functions.guids. If free -m shows too"
                " little free memory, end pods on the node. Then run stage host again."
            )
        )
        return Finding("host.memlock", subject, FAIL, measured, expected, why, remedy)
    if low:
        why = (
            "The container runtime gives containers a lower limit than the intent requires. A job that registers more"
            " memory fails, or NCCL falls back to TCP without an error."
        )
        return Finding("host.memlock", subject, FAIL, measured, expected, why, _describe_memlock_remedy(memlock, node))
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


def _describe_memlock_remedy(memlock: Memlock, node: str) -> str:
    if memlock.by == "machine_config":
        return (
            "Follow the remedy of the finding network.roll, if there is one: the node must have the"
            f" MachineConfig. Otherwise run grep -r default_ulimits /etc/crio/crio.conf.d on {node}, and remove"
            " default_ulimits from a later file that overrides it. Then run stage host again."
        )
    return (
        f"Run systemctl restart containerd on {node}, so that it uses the drop-in: systemctl show containerd -p"
        " LimitMEMLOCK must then print the limit. Pods that already run keep their old limit. Then run stage"
        " host again."
    )


def _spell_limit(value: str) -> str:
    """Return a limit as systemd prints it, with its size in a larger unit.

    :param value: number of bytes, ``infinity``, or an empty text
    """
    text = value.strip()
    return f"{text} bytes ({_format_size(int(text))})" if re.fullmatch("[0-9]{1,20}", text) else text or "unknown"


def _format_size(value: typing.Optional[int]) -> str:
    if value is None:
        return "unknown"
    if value < 0:
        return "unlimited"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value >= 1 << shift:
            return f"{value / (1 << shift):.4g} {unit}"
    return f"{value} bytes"
