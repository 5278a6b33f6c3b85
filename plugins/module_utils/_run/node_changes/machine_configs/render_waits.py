# SPDX-License-Identifier: GPL-3.0-or-later

"""Waits until the machine config operator has accepted KubeletConfigs, and until MachineConfigPools have rendered their
new configuration.
"""

from __future__ import annotations

import typing

from ...._analysis.controllers.machine_configs.rules import find_rendered_configs
from ...._model.kubernetes.disruption import MachinePool
from ...._model.kubernetes.host import HostConfig
from ...._observe.kubernetes import machines
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.shell import Clock

#: seconds between two looks; that the machine config controller has for each of its steps
LOOK, RENDER = 5.0, 300.0
#: seconds without another configuration until it is the last one: the controller waits 5 s after a change
#: [pkg/controller/render renderDelay]
SETTLED = 10.0


class RenderWaits:
    """A client that waits for the machine config operator to render the configurations of MachineConfigPools.

    :param cluster: client of the API server
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    """

    def __init__(self, cluster: Cluster, clock: Clock, pause: typing.Callable[[float], None]) -> None:
        self._cluster, self._clock, self._sleep = cluster, clock, pause

    def await_accepted(self, configs: typing.Sequence[Resource]) -> tuple[tuple[HostConfig, ...], str]:
        """Wait until the machine config operator has accepted all KubeletConfigs or refused one, at most ``RENDER``
        seconds. Return two values: the accepted objects with all MachineConfigs, and the reason if some are missing
        (empty otherwise).

        :param configs: MachineConfigs and KubeletConfigs, as they are rendered
        """
        end = self._clock() + RENDER
        while True:
            seen = tuple(machines.read_host_config(self._cluster, config) for config in configs)
            accepted = tuple(config for config in seen if config.kind == "MachineConfig" or config.refusal == "")
            refused = [
                f"KubeletConfig {config.name} was not accepted: {config.refusal}" for config in seen if config.refusal
            ]
            if refused or len(accepted) == len(seen):
                return accepted, "; ".join(refused)
            if self._clock() >= end:
                return (
                    accepted,
                    (
                        f"the machine config operator did not report within {RENDER:.0f} s whether it accepts the"
                        " KubeletConfig"
                    ),
                )
            self._sleep(LOOK)

    def await_rendered(
        self, before: typing.Mapping[str, MachinePool], configs: typing.Sequence[HostConfig], present: bool
    ) -> str:
        """Wait until each pool has rendered all of the objects (or none of them), and its configuration has not changed
        for ``SETTLED`` seconds. Return the reason if this takes more than ``RENDER`` seconds. Return an empty text
        otherwise.

        :param before: states of the pools before they were paused, by name
        :param configs: MachineConfigs and KubeletConfigs that are awaited
        :param present: True if the objects must be in the configuration, False if they must not be
        """
        end = self._clock() + RENDER
        since: dict[tuple[str, str], float] = {}
        while True:
            pools, now = machines.read_machine_pools(self._cluster), self._clock()
            since = {(pool.name, pool.wanted_config): since.get((pool.name, pool.wanted_config), now) for pool in pools}
            settled = [
                pool for pool in pools if pool.name in before and now - since[pool.name, pool.wanted_config] >= SETTLED
            ]
            ready = [
                pool.name
                for pool in settled
                if _is_pool_rendered(pool, before[pool.name], _list_names(pool, configs, pools), present)
            ]
            late = sorted(set(before) - set(ready))
            if not late:
                return ""
            if now >= end:
                names = ", ".join(late)
                remedy = "check the machine config controller: kubectl get pods -n openshift-machine-config-operator"
                return (
                    f"MachineConfigPool {names}: the new configuration was not rendered within {RENDER:.0f} s; {remedy}"
                )
            self._sleep(LOOK)


def _list_names(
    pool: MachinePool, configs: typing.Sequence[HostConfig], pools: typing.Sequence[MachinePool]
) -> set[str]:
    """Return the names of those MachineConfigs that apply to a pool and that are among the objects or generated from
    them.

    :param pool: pool whose MachineConfigs are returned
    :param configs: MachineConfigs and KubeletConfigs
    :param pools: MachineConfigPools of the cluster
    """
    return {name for config in configs for name in find_rendered_configs(pool, config, pools)}


def _is_pool_rendered(pool: MachinePool, before: MachinePool, names: set[str], present: bool) -> bool:
    # of a KubeletConfig that was never accepted a pool has nothing to take or to lose
    changes = bool(names) if present else not names.isdisjoint(before.sources)
    settled = names <= set(pool.sources) if present else names.isdisjoint(pool.sources)
    return settled and (pool.wanted_config != before.wanted_config or not changes)
