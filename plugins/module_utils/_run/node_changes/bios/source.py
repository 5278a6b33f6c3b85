# SPDX-License-Identifier: GPL-3.0-or-later

"""The BIOS settings of nodes as a source of differences for a roll, read and written through their BMCs. It verifies
that each BMC belongs to its node, compares settings, writes them, and resets the node.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.fleet.bios import Wanted
from ...._model.kubernetes.node_roll import NodeDifferences
from ...._model.node.identity import Identity, Verdict
from ...._observe.process import many
from ...._observe.redfish.bmc import Bmc, BmcError
from ...._observe.redfish.session import Session
from ...._observe.redfish.trust import Trust
from ...._observe.redfish.writer import Writer, refuse_stranger
from ...._parse.redfish.resources import reset_types
from ...._plan.node_sources import look_at_bios, note_others_pending
from .read_bios import PARALLEL, BiosQuery, find_system, read, read_others_pending
from .registries import Registries
from .set_bios import SECONDS, May, set_one

#: after a drain nothing is left to be asked: a graceful restart may leave waiting settings as they are, and may never
#: end
_RESTARTS = ("ForceRestart", "PowerCycle", "GracefulRestart")
_CYCLES = ("PowerCycle", "ForceRestart")


class BiosSource:
    """A client that compares, writes and applies the BIOS settings of all nodes that have a BMC.

    :param bmcs: BMCs of the nodes
    :param errors: reason why a BMC cannot be contacted at all, by node
    :param wanted: desired settings; empty if only resets are requested
    :param trust: TLS settings by which the certificates of BMCs are verified
    :param may: conditions under which a BMC may be written, with the identities of the nodes
    :param seconds: time limit of each session with one BMC, in seconds
    :param parallel: maximum number of BMCs that are contacted at the same time
    """

    live = True
    of_pools = True

    def __init__(
        self,
        bmcs: typing.Iterable[Bmc],
        errors: typing.Mapping[str, str],
        wanted: Wanted,
        trust: Trust,
        may: May,
        seconds: float = SECONDS,
        parallel: int = PARALLEL,
    ) -> None:
        self._bmcs = {bmc.node: bmc for bmc in bmcs}
        self._errors, self._wanted, self._trust, self._may, self._seconds, self._parallel = (
            errors,
            wanted,
            trust,
            may,
            seconds,
            parallel,
        )
        #: of the BMCs that were asked who they are
        self._judged: dict[str, Verdict] = {}
        #: by node: what else its reset applies, if no settings are desired
        self._pending: dict[str, tuple[str, ...]] = {}
        self._registries = Registries()

    def look(self, nodes: typing.Iterable[str]) -> dict[str, NodeDifferences]:
        """Return the BIOS settings that differ from the desired ones, for each node that has a BMC, or the error of its
        BMC. Return an empty dict if no settings are desired.

        :param nodes: names of the nodes
        """
        if not self._wanted:
            return {}
        named = tuple(nodes)
        found = {node: NodeDifferences(error=self._errors[node]) for node in named if node in self._errors}
        asked = [self._bmcs[node] for node in named if node in self._bmcs]
        about = BiosQuery(tuple(self._wanted), self._seconds, self._may.claims, to_write=True)
        outcomes = list(read(asked, self._trust, about, self._parallel)) if asked else []
        self._record_identities(
            {bmc.node: outcome.identity for bmc, outcome in outcomes if not isinstance(outcome, BmcError)}
        )
        for bmc, outcome in outcomes:
            found[bmc.node] = (
                NodeDifferences(error=str(outcome))
                if isinstance(outcome, BmcError)
                else self._judge_identity(bmc, outcome.identity) or look_at_bios(outcome, self._wanted)
            )
            found[bmc.node] += NodeDifferences(notes=self._note_unproven_bmc(bmc.node))
        return found

    def _record_identities(self, machines: typing.Mapping[str, Identity]) -> None:
        """Record the identities that BMCs report. Call this before any of them is evaluated: if two BMCs report the
        same identity, both addresses lead to one BMC, and neither can be proven to belong to its node.

        :param machines: identity that the BMC of each node reports
        """
        claims = self._may.claims
        self._may = dataclasses.replace(
            self._may, claims=dataclasses.replace(claims, machines={**claims.machines, **machines})
        )

    def _judge_identity(self, bmc: Bmc, machine: Identity) -> typing.Optional[NodeDifferences]:
        """Return an error if a BMC does not belong to the node for which the inventory names it. Return None if it
        does.

        :param bmc: BMC of the node
        :param machine: identity that the BMC reports
        """
        verdict = self._judged[bmc.node] = self._may.claims.judge(bmc.node, machine, bmc.asserted)
        return NodeDifferences(error=f"{verdict.why}. {verdict.remedy}") if verdict.refused else None

    def _note_unproven_bmc(self, node: str) -> tuple[str, ...]:
        verdict = self._judged.get(node)
        return (
            (f"the BMC of the node could not be verified: {verdict.why}",)
            if verdict is not None and verdict.state == "asserted"
            else ()
        )

    def prove(self, nodes: typing.Iterable[str]) -> typing.Mapping[str, NodeDifferences]:
        """Verify, for nodes that are to be reset, that each BMC belongs to its node. BMCs that were verified before are
        not contacted again.

        :param nodes: names of the nodes
        :returns: by node: the reason as a refusal if its BMC cannot reset it, and notes: that only the inventory
            asserts that the BMC belongs to the node, and which BIOS settings other clients have saved at the BMC
        """
        named = tuple(nodes)
        asked = [self._bmcs[node] for node in named if node in self._bmcs and node not in self._judged]
        errors: dict[str, str] = {}
        outcomes = list(many.iterate_outcomes(self._read_identity, asked, self._parallel, BmcError)) if asked else []
        self._record_identities({bmc.node: outcome for bmc, outcome in outcomes if not isinstance(outcome, BmcError)})
        for bmc, outcome in outcomes:
            if isinstance(outcome, BmcError):
                errors[bmc.node] = f"{outcome.seen}. {outcome.remedy}"
            else:
                self._judge_identity(bmc, outcome)
        found: dict[str, NodeDifferences] = {}
        for node in named:
            verdict = self._judged.get(node)
            why = errors.get(node) or (
                f"{verdict.why}. {verdict.remedy}"
                if verdict is not None and verdict.refused
                else self._explain_missing_bmc(node)
            )
            # what was told by the look is not told again
            notes = self._note_unproven_bmc(node) if node in {bmc.node for bmc in asked} else ()
            pending = () if why else self._pending.get(node, ())
            found[node] = NodeDifferences(refusals=(why,) if why else (), notes=notes + pending)
        return found

    def _read_identity(self, bmc: Bmc) -> Identity:
        """Return the identity that a BMC reports. If no settings are desired, also record which other settings a reset
        would apply, because no other request reads them.

        :param bmc: BMC to contact
        :raises BmcError: the BMC does not answer, or its system cannot be determined
        """
        with Session(bmc, self._trust, self._seconds) as session:
            system = find_system(session, self._may.claims, True)
            if not self._wanted:
                try:
                    notes = note_others_pending(read_others_pending(session, system))
                except BmcError as error:
                    # it can be reset all the same
                    notes = note_others_pending((), error.what)
                self._pending[bmc.node] = notes
            return system.identity

    def set(self, node: str) -> str:
        """Write the settings that differ and do not wait for a reset yet. Return the changes as text, such as ``BIOS
        SriovSupport Disabled -> Enabled``. Return an empty text if there are no changes or the node has no BMC.

        :param node: name of the node
        :raises BmcError: nothing was written
        :raises LeaseLost: another run changes the cluster
        """
        if node not in self._bmcs or not self._wanted:
            return ""
        done = set_one(self._bmcs[node], self._wanted, self._trust, self._registries, self._may, seconds=self._seconds)
        return ", ".join(f"BIOS {write.attribute} {write.before} -> {write.after}" for write in done.writes)

    def _explain_missing_bmc(self, node: str) -> str:
        """Return the reason why a node has no usable BMC, with the remedy. Return an empty text if its BMC is usable.

        :param node: name of the node
        """
        if node in self._bmcs:
            return ""
        return self._errors.get(node) or (
            "the inventory names no BMC that could reset the node. Set rdma_bmc_address of the node, or reset the"
            " node manually."
        )

    def reset(self, node: str, power_cycle: bool) -> str:
        """Order the BMC of a node to reset it once, and return the type of the reset, such as ``ForceRestart``.

        :param node: name of the node
        :param power_cycle: whether the settings need a power cycle to take effect
        :raises BmcError: with the cause ``closed`` or ``timeout``: it is unknown whether the BMC accepted the reset;
            with any other cause: the BMC did not accept it
        :raises LeaseLost: another run changes the cluster
        """
        if node not in self._bmcs:
            raise BmcError(
                "not_found",
                node,
                "the inventory names no BMC that could reset the node",
                "Set rdma_bmc_address, the user and the password of the BMC for this node, then rerun",
            )
        with Session(self._bmcs[node], self._trust, self._seconds) as session:
            system = find_system(session, self._may.claims, True)
            refuse_stranger(session, self._may.claims, system.identity)
            if not system.reset:
                raise session.error(
                    "not_found", "the system of the BMC has no action Reset", "Update the firmware of the BMC"
                )
            kinds = system.resets or (reset_types(session.get(system.reset_info)) if system.reset_info else ())
            order = _CYCLES if power_cycle else _RESTARTS
            # where it does not say what it takes, the first one is tried
            kind = next((one for one in order if one in kinds or not kinds), "")
            if not kind:
                raise session.error(
                    "not_found",
                    f"the action Reset supports {', '.join(kinds)}, but none of {', '.join(order)}",
                    "Reset the node manually",
                )
            Writer(session, system, self._may.claims, self._may.guard).post(system.reset, {"ResetType": kind})
            return kind
