# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage host: check that the hosts meet the requirements of jobs other than the network: locked memory, GPUDirect RDMA,
kernel arguments, settings of the kubelet. Check ids: ``host.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.argument_order import find_missing_arguments
from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED_BY_LIMIT
from ..._model.base.phrases import format_clause
from ..._model.intent.intent import Intent
from ..._model.kubernetes.apply import TAKEN, AppliedObject
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import ClusterPolicies, MemlockProof, ObservedText, Roll
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import ObservedPlatform
from ..._model.node.tuning import ObservedTuning
from ..._model.run.findings import FAIL, PASS, UNKNOWN, Finding, Status, build_pass
from . import cluster_policy, gpudirect, kubelet
from . import memlock as memlock_checks
from .kernel_arguments import Overridden, cut_to_kernel, find_overridden
from .rolled_nodes import list_rolled_nodes
from .unread_nodes import choose_remedy

_NOT_AGAIN = "the run did not read the node again after the update of the MachineConfigPool"


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
    :ivar tunings_after_roll: tuning rows of each node that this run rolled, read after the roll
    :ivar platforms_after_roll: answer of node_info of each node that this run rolled, read after the roll
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
    tunings_after_roll: dict[str, ObservedTuning] = dataclasses.field(default_factory=dict)
    platforms_after_roll: dict[str, ObservedPlatform] = dataclasses.field(default_factory=dict)


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return findings on GPUDirect, kernel arguments, the limit of locked memory, and the proof of that limit on each
    node and RDMA fabric.
    """
    memlock = intent.cluster.host.memlock
    rolled = list_rolled_nodes(facts.nodes, facts.plan, facts.rolls)
    findings: list[Finding] = []
    for name in facts.nodes:
        findings += gpudirect.check(
            name,
            intent.cluster.host,
            _find_platform(name, facts, rolled),
            facts.by_pods,
            (facts.tunings_after_roll if name in rolled else facts.tunings).get(name, ObservedTuning()).value,
            gpudirect.list_members(intent, facts.hcas.get(name, ObservedHcas())),
        )
    if intent.cluster.host.gpudirect == "peermem":
        loaded = bool(findings) and all(finding.status == PASS for finding in findings)
        findings[:0] = cluster_policy.check(facts.policies, facts.nodes, loaded, facts.check_mode)
    findings += _check_kernel_arguments(intent.cluster.host.kernel_arguments, facts, rolled)
    if intent.cluster.host.kubelet is not None:
        findings += kubelet.check(
            intent.cluster.host.kubelet, facts.nodes, facts.tunings, facts.tunings_after_roll, rolled, facts.by_pods
        )
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
    findings.append(memlock_checks.check_limit(memlock))
    if memlock.by == "containerd":
        findings += [
            memlock_checks.check_runtime(
                memlock,
                name,
                facts.runtimes.get(name, ObservedText(error=NOT_QUERIED_BY_LIMIT)),
                facts.by_pods,
                facts.check_mode,
            )
            for name in facts.nodes
        ]
    proofs = {(proof.fabric, proof.node): proof for proof in facts.proofs}
    fabrics = memlock_checks.select_provable_fabrics(intent)
    for fabric in fabrics:
        findings += [
            memlock_checks.check_proof(
                memlock,
                fabric.name,
                name,
                proofs.get((fabric.name, name)),
                facts.check_mode,
                bool(facts.nodes),
            )
            for name in facts.nodes or ("inventory",)
        ]
    if not fabrics:
        why = "No fabric of the intent gives pods an RDMA device, so no test can register memory."
        remedy = (
            "Set rdma: true for the fabric that jobs use for RDMA. If no fabric has RDMA, remove"
            " rdma_cluster.host.memlock from the intent. Then run stage host again."
        )
        findings.append(
            Finding(
                "host.memlock",
                "fabrics",
                UNKNOWN,
                "0 fabrics with RDMA devices",
                memlock_checks.describe_expected(memlock),
                why,
                remedy,
            )
        )
    return tuple(findings)


def _find_platform(name: str, facts: Facts, rolled: typing.Container[str]) -> ObservedPlatform:
    """Return the kernel and the GPU driver of a node. Of a node that this run rolled, only what was read after the roll
    counts, because it runs another boot, and possibly another kernel.

    :param rolled: names of the nodes that a MachineConfigPool has given a new configuration in this run
    """
    if name in rolled:
        return facts.platforms_after_roll.get(name, ObservedPlatform(error=_NOT_AGAIN))
    return facts.platforms.get(name, ObservedPlatform(error=NOT_QUERIED_BY_LIMIT))


def _check_kernel_arguments(
    wanted: typing.Sequence[str], facts: Facts, rolled: typing.Container[str]
) -> typing.Iterator[Finding]:
    """Yield a finding for each node on the kernel arguments of the intent, or nothing if the intent sets none.

    The command line of the running kernel decides. On a node that this run rolled, it is that of the kernel after the
    roll. A MachineConfig is no proof: it may belong to another pool or to a paused pool.

    :param wanted: kernel arguments of the intent
    :param rolled: names of the nodes that a MachineConfigPool has given a new configuration in this run
    """
    check_id, expected = "host.kernel_arguments", f"kernel command line with {' '.join(wanted)}"
    made = [
        item
        for item in facts.applied
        if item.kind == "MachineConfig" and item.name.endswith("-kernel-arguments") and item.action in TAKEN
    ]
    planned = facts.check_mode and any(item.action != "unchanged" for item in made)
    for name in facts.nodes if wanted else ():
        seen = _find_platform(name, facts, rolled)
        runs = seen.value.kernel_arguments if seen.value is not None and seen.error is None else None
        runs = cut_to_kernel(runs) if runs is not None else None
        missing = find_missing_arguments(tuple(wanted), runs or ())
        how, measured = f"without {' '.join(missing)}", f"kernel command line without {' '.join(missing)}"
        if missing and all(argument in (runs or ()) for argument in missing):
            how = "with the arguments of the intent, but in an order in which they mean something else"
            measured = f"kernel command line with {' '.join(_select_of_same_keys(runs or (), missing))}"
        overridden = find_overridden(wanted, runs) if runs is not None and not missing else Overridden()
        if overridden.undone or overridden.doubtful:
            yield _report_overridden(name, expected, overridden)
        elif runs is not None and not missing:
            yield build_pass(check_id, name, "booted with all of them", expected)
        elif made and planned:
            yield build_pass(
                check_id, name, f"set by MachineConfig {made[0].name} (see the finding network.roll)", expected
            )
        elif runs is None:
            cause = format_clause(seen.error, "the module node_info returned none")
            why = f"The kernel arguments of the node were not read: {cause}."
            remedy = choose_remedy(seen.error, name, facts.by_pods, "/proc/cmdline")
            yield Finding(check_id, name, UNKNOWN, "kernel command line not read", expected, why, remedy)
        elif made and name in rolled:
            why = (
                f"The kernel of the node was booted {how}, although its MachineConfigPool has given it a new"
                f" configuration in this run. MachineConfig {made[0].name} sets all arguments of the intent: another"
                " MachineConfig of the pool, or the boot loader, has removed them."
            )
            remedy = (
                f"Run oc debug node/{name} -- chroot /host rpm-ostree kargs: it lists the arguments of the next boot."
                " If it lists all arguments of the intent, drain the node and reboot it. Otherwise run oc -n"
                f" openshift-machine-config-operator logs -c machine-config-daemon on the pod of {name} (oc -n"
                " openshift-machine-config-operator get pods -o wide), and correct the error that it names. Then run"
                " stages platform and host again."
            )
            yield Finding(check_id, name, FAIL, measured, expected, why, remedy)
        elif made:
            why = (
                f"The kernel of the node was booted {how}. MachineConfig {made[0].name} sets all arguments of the"
                " intent, but the node has not received it: the MachineConfigPool that applies it is paused, is not"
                " updated yet, or does not select the node."
            )
            remedy = (
                "Run kubectl get machineconfigpools -o custom-columns='NAME:.metadata.name,PAUSED:.spec.paused,"
                "SELECTOR:.spec.nodeSelector,CONFIGS:.spec.configuration.source[*].name' and kubectl get node"
                f" {name} --show-labels. Find the pool with {made[0].name} in CONFIGS. If its SELECTOR does not match"
                f" the labels of the node, add the missing label: kubectl label node {name} KEY=VALUE. If it is paused,"
                ' unpause it: kubectl patch machineconfigpool POOL --type merge -p \'{"spec":{"paused":false}}\'. Wait'
                " until kubectl get machineconfigpools shows UPDATED True for it, then run stages platform and"
                " host again."
            )
            yield Finding(check_id, name, FAIL, measured, expected, why, remedy)
        else:
            why = (
                f"The kernel of the node was booted {how}, and this run applied no MachineConfig with kernel arguments."
            )
            remedy = (
                "On OpenShift, run stage network, which applies a MachineConfig. On other clusters, run"
                " ansible-playbook linerate.rdma.site -e platform_settle=true, which sets the arguments and reboots the"
                f" node in its turn. Or set them, in this order, in the boot loader of {name}, drain the node and"
                " reboot it. Then run stages platform and host again."
            )
            yield Finding(check_id, name, FAIL, measured, expected, why, remedy)


def _select_of_same_keys(there: typing.Iterable[str], missing: typing.Iterable[str]) -> list[str]:
    """Return the arguments of a kernel command line that decide what the missing arguments mean, in their order: those
    of the same keys, and the default size of huge pages.

    :param there: arguments of the kernel command line
    :param missing: arguments of the intent that mean something else because of their place
    """
    keys = {argument.partition("=")[0] for argument in missing}
    if "hugepages" in keys:
        keys.add("default_hugepagesz")
    return [argument for argument in there if argument.partition("=")[0] in keys]


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
        f"The kernel command line contains {later} after the arguments of the intent. If several arguments have"
        " the same name, the kernel uses the last one."
    )
    remedy = (
        f"Remove {later} from the place that sets it: another MachineConfig, TuneD, or the boot loader of {name}"
        f" (on RHEL: grubby --update-kernel=ALL --remove-args='{later}'). Drain the node and reboot it. Then run"
        " stages platform and host again."
    )
    status: Status = FAIL if overridden.undone else UNKNOWN
    return Finding(
        "host.kernel_arguments", name, status, f"kernel command line with {later} after them", expected, why, remedy
    )
