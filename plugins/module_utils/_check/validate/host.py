# SPDX-License-Identifier: GPL-3.0-or-later

"""Check ``rdma_cluster.host`` of the intent: locked memory, kernel arguments and the kubelet.

Check id: ``validate.host``.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ..._model.intent.intent import Intent
from ..._model.run.findings import Finding, build_pass
from .cluster import _LABEL
from .refusal import refuse_value

#: largest buffer of ibv_rc_pingpong, which takes a size below 2 GiB
_MOST_PROOF_MIB = 2047
_CPUS = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", re.ASCII)
#: [docker/go-units ParseUlimit]
_ULIMIT = re.compile(r"[a-z]{1,16}=(-1|[0-9]{1,18})(:(-1|[0-9]{1,18}))?")


def check_host(intent: Intent) -> list[Finding]:
    """Check that the settings in ``rdma_cluster.host`` are valid: limit of locked memory, kernel arguments, machine
    role and kubelet. Return at least one finding."""
    host, path, findings = intent.cluster.host, "rdma_cluster.host", []
    findings += run_rule(_check_memlock, host, path)
    findings += run_rules((_check_machine_role, _check_kernel_arguments), host, path)
    findings += run_rule(_check_kubelet, host, path)
    return findings or [build_pass("validate.host", path, "usable values", "usable values")]


def _check_memlock(host: HostNeeds, path: str) -> list[Finding]:
    return (
        []
        if host.memlock is None
        else run_rules(
            (_check_memlock_size, _check_limit_gib, _check_proof_mib, _check_ulimits), host.memlock, f"{path}.memlock"
        )
    )


def _check_memlock_size(memlock: Memlock, path: str) -> typing.Iterator[Finding]:
    if (memlock.limit_gib is None) != memlock.unlimited:
        measured = (
            f"limit_gib {'unset' if memlock.limit_gib is None else memlock.limit_gib}, unlimited:"
            f" {str(memlock.unlimited).lower()}"
        )
        why = "The two keys contradict each other, or both are missing. A missing limit does not mean unlimited."
        yield refuse_value(
            "host",
            path,
            measured,
            "either limit_gib, or unlimited: true",
            why,
            f"Set {path}.limit_gib to the memory that the jobs register for RDMA, in GiB. Or set"
            f" {path}.unlimited to true and remove limit_gib.",
        )


def _check_limit_gib(memlock: Memlock, path: str) -> typing.Iterator[Finding]:
    if memlock.limit_gib is not None and not 1 <= memlock.limit_gib <= 1 << 20:
        yield refuse_value(
            "host",
            f"{path}.limit_gib",
            f"{memlock.limit_gib} GiB",
            "1 to 1048576 GiB",
            "Jobs cannot register memory for RDMA under a limit below 1 GiB, and no node has more than 1048576 GiB.",
            f"Set {path}.limit_gib to the memory that the jobs register for RDMA, in GiB.",
        )


def _check_proof_mib(memlock: Memlock, path: str) -> typing.Iterator[Finding]:
    most = min(_MOST_PROOF_MIB, (memlock.limit_gib or 2) << 10)
    if not 1 <= memlock.proof_mib <= most:
        limits = (
            f"must not exceed the limit of locked memory, {path}.limit_gib: {memlock.limit_gib} ({most} MiB)"
            if 1 <= most < _MOST_PROOF_MIB
            else f"ibv_rc_pingpong supports less than 2 GiB (at most {_MOST_PROOF_MIB} MiB)"
        )
        why = f"The memlock test registers one buffer of this size. It must have at least 1 MiB, and {limits}."
        yield refuse_value(
            "host",
            f"{path}.proof_mib",
            f"{memlock.proof_mib} MiB",
            f"1 to {most if most >= 1 else _MOST_PROOF_MIB} MiB",
            why,
            f"Set {path}.proof_mib to a value in this range, or remove the key.",
        )


def _check_ulimits(memlock: Memlock, path: str) -> typing.Iterator[Finding]:
    wrong = [entry for entry in memlock.ulimits if not _ULIMIT.fullmatch(entry) or entry.startswith("memlock=")]
    if wrong:
        yield refuse_value(
            "host",
            f"{path}.ulimits",
            ", ".join(f"'{entry}'" for entry in wrong),
            "entries such as nofile=1048576:1048576, without memlock",
            "CRI-O does not start with an entry of default_ulimits that it cannot read.",
            f"Write each entry of {path}.ulimits as NAME=SOFT:HARD. Set the limit of locked memory by limit_gib.",
        )
    elif memlock.ulimits and memlock.by != "machine_config":
        yield refuse_value(
            "host",
            f"{path}.ulimits",
            f"by: {memlock.by}",
            "by: machine_config",
            "Only the file of CRI-O replaces other limits. The drop-in of containerd changes the limit of locked memory"
            " alone.",
            f"Remove {path}.ulimits.",
        )


def _check_machine_role(host: HostNeeds, path: str) -> typing.Iterator[Finding]:
    if not _LABEL.fullmatch(host.machine_role):
        why = (
            "The run writes this value into a label and into the name of a MachineConfig, and the API server"
            " rejects this form."
        )
        yield refuse_value(
            "host",
            f"{path}.machine_role",
            f"'{host.machine_role}'",
            "worker, or the name of a MachineConfigPool",
            why,
            f"Set {path}.machine_role to the name of a pool in kubectl get machineconfigpools.",
        )


def _check_kernel_arguments(host: HostNeeds, path: str) -> typing.Iterator[Finding]:
    for index, argument in enumerate(host.kernel_arguments):
        if not argument.strip() or argument.split() != [argument]:
            why = "The MachineConfig would be invalid, and its MachineConfigPool would become degraded."
            yield refuse_value(
                "host",
                f"{path}.kernel_arguments[{index}]",
                f"'{argument}'",
                "one argument without spaces",
                why,
                f"Write each kernel argument as an item of its own in {path}.kernel_arguments.",
            )


def _check_kubelet(host: HostNeeds, path: str) -> list[Finding]:
    return (
        []
        if host.kubelet is None
        else run_rules((_check_settings, _check_scope, _check_reserved_cpus), host.kubelet, f"{path}.kubelet")
    )


def _check_settings(kubelet: Kubelet, path: str) -> typing.Iterator[Finding]:
    if kubelet == Kubelet(pool_labels=kubelet.pool_labels):
        why = "The run would create a KubeletConfig without a setting. It reboots the nodes and changes nothing."
        yield refuse_value(
            "host",
            path,
            "no setting",
            "at least 1 setting",
            why,
            f"Set {path}.topology_manager_policy, for example to single-numa-node, or remove {path} from the intent.",
        )


def _check_scope(kubelet: Kubelet, path: str) -> typing.Iterator[Finding]:
    if kubelet.topology_manager_scope and kubelet.topology_manager_policy in (None, "none"):
        why = "The scope defines where the policy applies, so the scope has no effect without a policy."
        expected = "topology_manager_policy together with the scope"
        yield refuse_value(
            "host",
            f"{path}.topology_manager_scope",
            kubelet.topology_manager_scope,
            expected,
            why,
            f"Set {path}.topology_manager_policy, for example to single-numa-node, or remove the scope.",
        )


def _check_reserved_cpus(kubelet: Kubelet, path: str) -> typing.Iterator[Finding]:
    cpus = kubelet.reserved_system_cpus
    if cpus is not None and not _is_cpu_list(cpus):
        why = (
            "The kubelet would not start with this value. OpenShift does not validate the value, so the nodes would not"
            " return after the reboot."
        )
        expected = "numbers and ascending ranges without spaces, such as 0-1,32"
        yield refuse_value(
            "host",
            f"{path}.reserved_system_cpus",
            f"'{cpus}'",
            expected,
            why,
            f"Set {path}.reserved_system_cpus to a list of CPU numbers such as 0-3,64-67. The output of 'lscpu -e' on"
            " the node shows the numbers of each NUMA node.",
        )


def _is_cpu_list(text: str) -> bool:
    """Return whether a text is a valid list of CPUs for the kubelet. [kubernetes k8s.io/utils/cpuset Parse]

    :param text: value of ``reserved_system_cpus``
    """
    ranges = [[int(end) for end in part.split("-")] for part in text.split(",")] if _CPUS.fullmatch(text) else []
    return bool(ranges) and all(part[0] <= part[-1] for part in ranges)
