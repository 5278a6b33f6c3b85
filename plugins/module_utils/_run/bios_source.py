# SPDX-License-Identifier: GPL-3.0-or-later

"""The BMCs of nodes, for who rolls nodes: what of the BIOS differs, setting it, and a reset."""

from __future__ import annotations

import typing

from .._check.fleet.bios import Wanted
from .._model.node_roll import Seen
from .._observe.redfish.bmc import Bmc, BmcError
from .._observe.redfish.session import Session
from .._observe.redfish.trust import Trust
from .._parse.redfish.resources import reset_types
from .._plan.node_sources import of_bios
from .read_bios import PARALLEL, Asked, Registries, read, system_of
from .set_bios import SECONDS, set_one

#: after a drain nothing is left to be asked: a graceful restart may leave waiting settings as they are, and may never end
_RESTARTS = ("ForceRestart", "PowerCycle", "GracefulRestart")
_CYCLES = ("PowerCycle", "ForceRestart")


class Bioses:
    """The BIOS of each node that has a BMC.

    :param errors: by node: why its BMC can't even be asked
    :param seconds: that one BMC has in all, each time
    """

    live = True
    of_pools = True

    def __init__(
        self,
        bmcs: typing.Iterable[Bmc],
        errors: typing.Mapping[str, str],
        wanted: Wanted,
        trust: Trust,
        seconds: float = SECONDS,
        parallel: int = PARALLEL,
    ) -> None:
        self._bmcs = {bmc.node: bmc for bmc in bmcs}
        self._errors, self._wanted, self._trust, self._seconds, self._parallel = errors, wanted, trust, seconds, parallel
        self._registries = Registries()

    def look(self, nodes: typing.Iterable[str]) -> typing.Dict[str, Seen]:
        """What differs on each of the nodes that have a BMC; nothing where nothing is wanted."""
        if not self._wanted:
            return {}
        named = tuple(nodes)
        found = {node: Seen(error=self._errors[node]) for node in named if node in self._errors}
        asked = [self._bmcs[node] for node in named if node in self._bmcs]
        for bmc, outcome in read(asked, self._trust, Asked(tuple(self._wanted), self._seconds), self._parallel) if asked else ():
            found[bmc.node] = Seen(error=str(outcome)) if isinstance(outcome, BmcError) else of_bios(outcome, self._wanted)
        return found

    def set(self, node: str) -> str:
        """Write what is wanted and neither there nor waiting; in words, empty where nothing was to be written.

        :raises BmcError: nothing was written
        """
        if node not in self._bmcs or not self._wanted:
            return ""
        done = set_one(self._bmcs[node], self._wanted, self._trust, self._registries, seconds=self._seconds)
        return ", ".join(f"BIOS {write.attribute} {write.before} -> {write.after}" for write in done.writes)

    def missing(self, node: str) -> str:
        """Why a node can't be reset, with what to do; empty where it can."""
        if node in self._bmcs:
            return ""
        return self._errors.get(node) or "the inventory names no BMC that could reset it. Give it rdma_bmc_address, or reset it by hand."

    def reset(self, node: str, power_cycle: bool) -> str:
        """Reset a node; the kind of reset. Ordered once.

        :raises BmcError: ``closed`` or ``timeout`` where nobody knows whether it was taken, else it was not
        """
        if node not in self._bmcs:
            raise BmcError("not_found", node, "the inventory names no BMC that could reset it", "Give the node rdma_bmc_address with user and password")
        with Session(self._bmcs[node], self._trust, self._seconds) as session:
            system = system_of(session)
            if not system.reset:
                raise session.error("not_found", "its system has no action Reset", "Update the firmware of the BMC")
            kinds = system.resets or (reset_types(session.get(system.reset_info)) if system.reset_info else ())
            order = _CYCLES if power_cycle else _RESTARTS
            # where it does not say what it takes, the first one is tried
            kind = next((one for one in order if one in kinds or not kinds), "")
            if not kind:
                raise session.error("not_found", f"its reset takes {', '.join(kinds)}, and none of {', '.join(order)}", "Reset the node by hand")
            session.post(system.reset, {"ResetType": kind})
            return kind
