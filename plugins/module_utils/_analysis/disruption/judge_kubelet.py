# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge whether the KubeletConfigs of the intent are in force. Check id: ``network.kubelet``."""

from __future__ import annotations

import typing

from ..._model.base.phrases import format_clause
from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.host import HostConfig, KubeletStatus
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from ..controllers.machine_configs.pools import describe_pool
from ..controllers.machine_configs.rules import find_conflicting_configs, find_rendered_configs, is_current
from .judge_rolls import LOG_OF_CONTROLLER

_IN_FORCE = "accepted by the machine config operator, and applied on all machines of its pools"


def _describe_behind(pool: MachinePool, config: HostConfig, stand: KubeletStatus) -> str:
    """Return why the machines of a pool do not have a KubeletConfig yet, as a clause for a finding.

    :param config: KubeletConfig that the machines of the pool should have
    :param stand: status of the KubeletConfigs of the cluster
    """
    missing = set(find_rendered_configs(pool, config, stand.pools)) - set(pool.sources)
    if is_current(pool) and missing:
        return (
            f"the configuration {pool.wanted_config} of MachineConfigPool {pool.name} does not contain"
            f" {join_first(sorted(missing))}"
        )
    return describe_pool(pool)


def check_kubelet(stand: typing.Optional[KubeletStatus], check_mode: bool) -> typing.Iterator[Finding]:
    """Yield for each KubeletConfig of the intent whether the machine config operator accepted it and all machines of
    its pools run it. This includes KubeletConfigs that this run did not change.

    :param stand: status of the KubeletConfigs; None if they were not read, which results in an unknown finding
    :param check_mode: whether the run is in check mode
    """
    stand = stand or KubeletStatus()
    if stand.error or not stand.wanted:
        why = (
            "The KubeletConfigs and MachineConfigPools were not read:"
            f" {format_clause(stand.error, 'the run ended before it read them')}."
        )
        remedy = "Run stage network again."
        if stand.error:
            remedy = (
                "If the error reports a missing right, run kubectl apply -f docs/rbac/look.yml as an admin of the"
                " cluster. Otherwise check the API server with kubectl cluster-info. Then run stage network again."
            )
        yield Finding("network.kubelet", "KubeletConfig", UNKNOWN, "not read", _IN_FORCE, why, remedy)
    for config in stand.wanted:
        yield _check_kubelet(config, stand, check_mode)


def _check_kubelet(config: HostConfig, stand: KubeletStatus, check_mode: bool) -> Finding:
    check, subject = "network.kubelet", f"KubeletConfig {config.name}"
    pools = [pool for pool in stand.pools if find_rendered_configs(pool, config, stand.pools)]
    clashes = [text for pool in pools for text in find_conflicting_configs(pool, config, stand.others, stand.pools)]
    behind = [
        pool
        for pool in pools
        if not (
            (is_current(pool) or pool.name in stand.reached)
            and set(find_rendered_configs(pool, config, stand.pools)) <= set(pool.sources)
        )
    ]
    if not config.there:
        why = (
            "The run had --check, so it applied no KubeletConfig."
            if check_mode
            else "The run did not apply the KubeletConfig, or another program changed or deleted it since."
        )
        remedy = (
            f"Run oc get kubeletconfig {config.name} -o yaml --show-managed-fields. If it exists and managedFields"
            " lists another program, change the settings in that program. If the run was refused, correct the findings"
            " network.disruption, network.drain and network.object_accepted. Then run stage network again without"
            " --check."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            "the cluster has no KubeletConfig of this name with the settings of the intent",
            _IN_FORCE,
            why,
            remedy,
        )
    if config.refusal is None:
        why = (
            "The machine config operator has not reported whether it accepts the current generation of the"
            " KubeletConfig."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            "no condition for its current generation",
            _IN_FORCE,
            why,
            f"Read the log: {LOG_OF_CONTROLLER}. Correct the cause, then run stage network again.",
        )
    if config.refusal:
        why = (
            "The machine config operator rejected the KubeletConfig, so the kubelets keep their previous settings. The"
            " message of the operator is under 'measured'."
        )
        return Finding(
            check,
            subject,
            FAIL,
            f"Failure: {config.refusal}",
            _IN_FORCE,
            why,
            "Correct the setting that the message names, then run stage network again.",
        )
    if clashes or not pools:
        measured = (
            ("accepted, but another KubeletConfig selects the same pool")
            if clashes
            else "accepted, but no pool selected"
        )
        why = f"{'; '.join(clashes) or 'No MachineConfigPool has the labels that the KubeletConfig selects'}."
        remedy = (
            "Put all settings into one KubeletConfig, then run stage network again."
            if clashes
            else "Give the pool the labels of rdma_cluster.host.kubelet.pool_labels (oc label machineconfigpool"
            " POOL KEY=VALUE),"
            " then run stage network again."
        )
        return Finding(check, subject, FAIL, measured, _IN_FORCE, why, remedy)
    if behind:
        why = (
            "Not all machines have the configuration yet:"
            f" {'; '.join(_describe_behind(pool, config, stand) for pool in behind)}."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            "accepted, rollout in progress",
            _IN_FORCE,
            why,
            "Wait for the update of the MachineConfigPool (oc get machineconfigpool), or unpause it and repair its"
            " degraded machines. Then run stage network again.",
        )
    which = "all machines" if all(map(is_current, pools)) else "all machines of the inventory, but not all machines,"
    return build_pass(
        check, subject, f"{config.what}: on {which} of {', '.join(pool.name for pool in pools)}", _IN_FORCE
    )
