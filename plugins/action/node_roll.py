# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring nodes to their desired settings with one reset of each node. The options are documented in the module of the
same name.
"""

from __future__ import annotations

import dataclasses
import time
import typing

from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted_by
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.bmc_modules import read_trust
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifferences,
    NodeRoll,
    prove_outcomes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FIRMWARE_PLAN,
    FIRMWARE_SETTINGS,
    NodeFirmwarePlan,
    ObservedFirmwareSet,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Claims
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import ObservedKernelArguments
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import ObservedTuning
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import Fact
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.whose_scope import learn_scope
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import mapping_at, name_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import ANNOTATION
from ansible_collections.linerate.rdma.plugins.module_utils._plan.nic_templates import of_operator
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_notes import of_functions, of_restarts
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_sources import look_at_firmware, look_at_kernel
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._plan.scope import build_scope
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.read_bios import PARALLEL
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.set_bios import SECONDS, May
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.source import BiosSource
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.health_checks import HealthChecks
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.node_roll import NodeRoller
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.observed_source import ObservedSource
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.resume_checks import resume_own_checks
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.turns.roll_limits import RollLimits
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.plugin_utils._bmcs import list_bmcs_of_nodes, read_identities
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import (
    FOLDER_SPEC,
    Caller,
    ControllerAction,
    Result,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._firmware import Known, read_firmware_facts
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import refuse_limit
from ansible_collections.linerate.rdma.plugins.plugin_utils._stop_signals import handle_stop_signals

FACT, CHECKS = "node_roll", "checks_resumed"
#: kind of a fact: the HCAs of a node before its reset
BEFORE = "hcas_before_reset"


class ActionModule(ControllerAction):
    """An action plugin that resets nodes so that desired settings which need a reset take effect. It reads the
    addresses and credentials of the BMCs from the inventory. They are not task arguments, so no log, callback or result
    contains them.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = make_cluster_spec(
        **FOLDER_SPEC,
        **LEASE_SPEC,
        fabrics={"type": "raw"},
        cluster={"type": "raw"},
        bmc_validate_certs={"type": "bool", "default": True},
        bmc_ca_path={"type": "path"},
        bmc_seconds={"type": "float", "default": SECONDS},
        parallel={"type": "int", "default": PARALLEL},
        delete_unmanaged={"type": "bool", "default": False},
        check_limit={"type": "bool", "default": False},
        prove={"type": "bool", "default": False},
        resume_checks={"type": "bool", "default": False},
        drain_seconds={"type": "int", "default": 1800},
        reset_seconds={"type": "int", "default": 1800},
    )

    def work(self, options: Result, variables: Result) -> Result:
        if options["resume_checks"]:
            return self._resume_checks(options)
        folder = FactFolder(options["facts_dir"], options["run"])
        if options["check_limit"]:
            self._refuse_limit(variables, folder)
            return {"plan": [], "changes": [], "reset": [], "counts": {}}
        if options["prove"]:
            before: NodeRoll = load(NodeRoll, folder.value(FACT), FACT)
            done = self._roll_nodes(
                options, variables, folder, tuple(one.node for one in before.outcomes if one.state == "unproven")
            )
            folder.write(FACT, value=to_data(prove_outcomes(before, done)))
        else:
            self._refuse_limit(variables, folder)
            # a run that is killed has not found out what became of its nodes
            folder.write(FACT, value=to_data(NodeRoll(error="it did not complete")))
            try:
                done = self._roll_nodes(options, variables, folder, folder.start().nodes)
            except RdmaError as error:
                folder.write(FACT, value=to_data(NodeRoll(error=str(error))))
                raise
            folder.write(FACT, value=to_data(done))
        states = [outcome.state for outcome in done.outcomes]
        reset = [outcome.node for outcome in done.outcomes if outcome.was_reset]
        for node in () if options["prove"] else reset:
            _save_hcas_before_reset(folder, node)
        after = "".join(f"{change}\n" for change in done.changes)
        diff = {"diff": {"before": "", "after": after}} if done.changes else {}
        counts = {state: states.count(state) for state in dict.fromkeys(states)}
        return {
            "changed": bool(done.changes),
            "plan": list(describe_plan(done.plan)),
            "changes": list(done.changes),
            "reset": reset,
            "counts": counts,
            **diff,
        }

    def _refuse_limit(self, variables: Result, folder: FactFolder) -> None:
        """Raise an error if ``--limit`` excludes nodes of the run, and store the error as the fact about the roll.
        Check mode permits any limit.

        :raises RdmaError: ``--limit`` excludes a node
        """
        if self._task.check_mode:
            return
        try:
            refuse_limit(self._loader, variables.get("groups", {}), folder.start().nodes, "stage platform")
        except RdmaError as error:
            folder.write(FACT, value=to_data(NodeRoll(error=str(error))))
            raise

    def _resume_checks(self, options: Result) -> Result:
        """Resume the health checks of nodes that an earlier roll has paused, and return the result of the task without
        any reset. This is needed after a roll that was killed. In check mode the health checks are only listed.
        """
        scope = build_scope((), load(ClusterIntent, options["cluster"] or {}, "rdma_cluster"))
        caller = Caller("node_roll", options, bool(self._task.check_mode))
        with hold_lease(typing.cast(typing.Any, caller), connect(typing.cast(typing.Any, caller))) as held:
            checks = HealthChecks(held.cluster, lambda line: Display().display(f"  {line}"))
            done, stays = resume_own_checks(checks, learn_scope(held.cluster, scope), caller.check_mode)
        FactFolder(options["facts_dir"], options["run"]).write(CHECKS, value={"stays": to_data(stays)})
        return {
            "changed": bool(done),
            "plan": [],
            "changes": [f"{check} is resumed" for check in done],
            "reset": [],
            "counts": {},
        }

    def _has_interrupted_roll(self, options: Result, nodes: typing.Container[str]) -> bool:
        """Return whether a node has the annotation that a roll leaves if it is killed. The roll of such a node must be
        completed even if no further change is planned.

        :param nodes: names of the nodes to examine
        """
        cluster = connect(typing.cast(typing.Any, Caller("node_roll", options, bool(self._task.check_mode))))
        return any(
            name_of(node) in nodes and ANNOTATION in mapping_at(node, "metadata", "annotations")
            for node in cluster.list("Node").items
        )

    def _roll_nodes(self, options: Result, variables: Result, folder: FactFolder, nodes: tuple[str, ...]) -> NodeRoll:
        intent = load(ClusterIntent, options["cluster"] or {}, "rdma_cluster")
        intent = dataclasses.replace(
            intent, drain=dataclasses.replace(intent.drain, force=intent.drain.force or options["delete_unmanaged"])
        )
        known = (
            read_firmware_facts(folder, nodes, options["fabrics"], options["cluster"]) if options["fabrics"] else None
        )
        wanted, kernel, firmware = (
            find_wanted_by(intent.bios),
            _look_at_kernel(folder, nodes, intent),
            _look_at_firmware(folder, known, options["prove"]),
        )
        operator = {} if options["prove"] else _look_at_operator(folder, intent, bool(self._task.check_mode))
        notes = _collect_restarts_and_drains(folder, None if options["prove"] else known)
        waits = (
            kernel
            or operator
            or any(notes)
            or any(seen.differences or seen.error or seen.unset or seen.notes for seen in firmware.values())
        )
        bmcs, errors = (
            list_bmcs_of_nodes(nodes, variables)
            if wanted or waits or options["prove"]
            else (typing.cast(list[Bmc], []), {})
        )
        if not nodes or not (bmcs or errors or waits or self._has_interrupted_roll(options, nodes)):
            # nothing is asked for, or nobody could be asked
            return NodeRoll()
        show = Display().display
        trust = read_trust({"validate_certs": options["bmc_validate_certs"], "ca_path": options["bmc_ca_path"]})
        told = {node: str(error) for node, error in errors.items()}
        caller = Caller("node_roll", options, bool(self._task.check_mode))
        with (
            hold_lease(typing.cast(typing.Any, caller), connect(typing.cast(typing.Any, caller))) as held,
            handle_stop_signals() as stop,
        ):
            limits = RollLimits(drain=options["drain_seconds"], back=options["reset_seconds"])

            def say(line: str) -> None:
                show(f"  {escape.escape_line(line)}")

            # in check mode as well: a plan writes nothing
            cluster = held.cluster.guarded(held.guard.check)
            reported = {name_of(node): core.system_uuid(node) for node in cluster.list("Node").items}
            claims = Claims(reported, read_identities(folder, nodes), {bmc.node: bmc.place for bmc in bmcs})
            bioses = BiosSource(
                bmcs, told, wanted, trust, May(claims, held.guard), options["bmc_seconds"], options["parallel"]
            )
            roller = NodeRoller(
                cluster,
                [
                    bioses,
                    ObservedSource(kernel, of_pools=False),
                    ObservedSource(firmware),
                    ObservedSource(operator),
                    *notes,
                ],
                bioses,
                time.monotonic,
                time.sleep,
                say,
                stop,
                limits,
                render_host_configs(intent.host, intent.intent_name),
            )
            planned = roller.plan(nodes, intent)
            for line in describe_plan(planned):
                say(line)
            return roller.prove(planned) if options["prove"] else roller.roll(planned, caller.check_mode)


def _look_at_kernel(
    folder: FactFolder, nodes: typing.Iterable[str], intent: ClusterIntent
) -> dict[str, NodeDifferences]:
    """Return the differences between the desired and the observed kernel arguments, by node. The result is empty if the
    intent has no kernel arguments, and lacks the nodes whose kernel arguments were not observed.
    """
    wanted = intent.host.kernel_arguments
    seen = folder.of_nodes("kernel_arguments", nodes) if wanted else {}
    return {
        node: look_at_kernel(load(ObservedKernelArguments, data, f"kernel_arguments of {node}"), wanted)
        for node, data in seen.items()
    }


def _look_at_firmware(folder: FactFolder, known: typing.Optional[Known], prove: bool) -> dict[str, NodeDifferences]:
    """Return the firmware settings that take effect at the next reset, by node. Nodes on which no tool reports the
    settings are left out.

    :param known: facts of the firmware plan; None for an empty result
    :param prove: whether this is the observation after the reset, in which case the settings that this run wrote before
        the reset are ignored
    """
    if known is None:
        return {}
    # what was set before a reset is seen by the look after it
    told = {} if prove else {node: _read_firmware_set(folder, node) for node in known.platforms}
    made = {node: observed for node, observed in told.items() if observed is not None}
    found = {
        node: look_at_firmware(node, known.memberships, platform, known.fleet, made.get(node))
        for node, platform in known.platforms.items()
    }
    return {node: seen for node, seen in found.items() if seen is not None}


def _read_firmware_set(folder: FactFolder, node: str) -> typing.Optional[ObservedFirmwareSet]:
    """Return the result of the module nic_firmware on a node, with the firmware settings that the run has written.
    Return None if the run has not written settings on this node. A fact that cannot be read becomes the error of the
    result.
    """
    try:
        fact = folder.read("nic_firmware", node)
    except FileError as error:
        return ObservedFirmwareSet(error=str(error))
    if fact is None:
        return None
    observed: ObservedFirmwareSet = load(
        ObservedFirmwareSet, {"value": fact.value, "error": fact.error}, f"nic_firmware of {node}"
    )
    return observed


def _look_at_operator(folder: FactFolder, intent: ClusterIntent, dry: bool) -> dict[str, NodeDifferences]:
    """Return the firmware changes that NVIDIA's operator makes according to the templates of this run, by node. The
    result is empty if this run has planned no template.

    :param intent: the intent, whose ``disruption`` permits or forbids reboots
    :param dry: whether the run is in check mode
    :raises RdmaError: the plan of the firmware settings failed
    """
    planned = folder.read(FIRMWARE_PLAN)
    if planned is not None and planned.error is not None:
        raise RdmaError(f"the firmware settings that must be set on the HCAs are unknown: {planned.error}")
    facts = {node: folder.read(FIRMWARE_SETTINGS, node) for node in folder.start().nodes} if planned is not None else {}
    nodes: dict[str, NodeFirmwarePlan] = {
        node: load(NodeFirmwarePlan, fact.value or {}, fact.kind) for node, fact in facts.items() if fact is not None
    }
    applied: tuple[AppliedObject, ...] = load(
        tuple[AppliedObject, ...], _read_fact_part(folder.read("nic_templates"), "applied") or (), "nic_templates"
    )
    left: dict[str, str] = load(dict[str, str], _read_fact_part(folder.read("nic_devices"), "left"), "nic_devices")
    actions = {one.name: (one.action, one.refusal) for one in applied}
    allowed = intent.disruption == "reboot"
    found = {
        node: of_operator(one.templates, one.cards, actions, left if allowed else {}, allowed, dry)
        for node, one in nodes.items()
    }
    return {
        node: seen + NodeDifferences(notes=nodes[node].notes)
        for node, seen in found.items()
        if seen != NodeDifferences() or nodes[node].notes
    }


def _collect_restarts_and_drains(
    folder: FactFolder, known: typing.Optional[Known]
) -> tuple[ObservedSource, ObservedSource]:
    """Return two sources of notes that the plan of the roll displays: first the restarts of services, then the drains
    that other stages of this run cause. The first applies only to nodes outside of any MachineConfigPool, the second to
    all nodes.

    :param known: facts of the firmware plan; None for sources without notes
    """
    if known is None:
        return ObservedSource({}), ObservedSource({})
    intent, tunings = (
        known.fleet.intent,
        load(dict[str, ObservedTuning], folder.of_nodes("tuning", known.platforms), "tuning"),
    )
    restarts = {node: of_restarts(tuning, intent) for node, tuning in tunings.items()}
    drains = {
        node: of_functions(node, known.memberships, platform, intent) for node, platform in known.platforms.items()
    }
    alone, all_of = (
        {node: NodeDifferences(notes=notes) for node, notes in found.items() if notes} for found in (restarts, drains)
    )
    return ObservedSource(alone, of_pools=False), ObservedSource(all_of)


def _read_fact_part(fact: typing.Optional[Fact], name: str) -> typing.Any:
    """Return the entry ``name`` of the value of a fact. Return an empty mapping if there is no fact, or if its value is
    not a mapping or has no such entry.
    """
    return (fact.value or {}).get(name) or {} if fact is not None and isinstance(fact.value, dict) else {}


def _save_hcas_before_reset(folder: FactFolder, node: str) -> None:
    """Copy the fact ``hcas`` of a node to the kind of fact ``hcas_before_reset``. After the reset the node must have
    all HCAs of this copy again. The fact ``hcas`` still describes the node before the reset, because the node has not
    been observed since. A fact that cannot be read is stored as an error; a missing fact or a fact with an error is not
    copied.
    """
    try:
        fact = folder.read("hcas", node)
    except FileError as error:
        folder.write(BEFORE, node, error=str(error))
        return
    if fact is not None and fact.error is None:
        folder.write(BEFORE, node, fact.value)
