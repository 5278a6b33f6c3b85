# SPDX-License-Identifier: GPL-3.0-or-later

"""Propose an intent from the facts of a run, and write it to a file if no intent exists."""

from __future__ import annotations

import contextlib
import os
import typing

from .._model.base.errors import RdmaError
from .._model.base.load import load
from .._model.base.text import cut_plain, cut_text, join_first
from .._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from .._model.intent.proposal import Blank, iterate_leaves
from .._model.kubernetes.addresses import AddressFacts
from .._model.kubernetes.controller import ControllerFacts
from .._model.kubernetes.observers import ObserversFacts, load_observers
from .._model.node.hca import ObservedHcas
from .._model.node.neighbours import ObservedNeighbours
from .._model.node.platform import ObservedPlatform
from .._model.operators.sriov_operator import OperatorFacts
from .._plan.propose.difference import list_differences
from .._plan.propose.inputs import NamedImage, ProposalInputs
from .._plan.propose.propose import propose
from .._render.cluster.proposal import render
from .._store.facts import FactFolder
from .._store.files import FileError, write_new

Data = dict[str, typing.Any]

_NOT_ASKED = "could not be queried"
#: why there is nothing to propose, and what helps where the inventory itself has not said why
_EMPTY = "the group rdma_nodes is empty"
_FROM_CLUSTER = (
    "Read the nodes from the cluster: run echo 'plugin: linerate.rdma.nodes' > linerate.rdma.yml, then run the same"
    " command with -i linerate.rdma.yml"
)
#: reasons in the message of a proposal that failed, and characters of each: the last line of a run has all of them
_MOST_REASONS, _MOST_OF_A_REASON = 3, 500


class ProposalError(RdmaError):
    """The error that no intent can be proposed, or that there is no valid path for the file of the proposal."""


def _in_short(reasons: typing.Sequence[str]) -> str:
    """Return the first three reasons on one line, each shortened to 500 characters, and the number of the other
    reasons. The output of a module on a node may be long.
    """
    lines = [cut_text(" ".join(reason.split()).rstrip(". "), _MOST_OF_A_REASON) for reason in reasons]
    return join_first(lines, _MOST_REASONS, "; ")


def default_path(inventory_dir: str) -> str:
    """Return the default path of the proposal: ``group_vars/all/rdma.yml`` beside the inventory. These variables apply
    to all hosts, including localhost.

    :param inventory_dir: folder of the inventory; empty for the current folder
    :raises ProposalError: ``group_vars/all.yml`` exists. Ansible reads either the folder ``group_vars/all`` or this
        file, never both
    """
    folder = os.path.join(inventory_dir or ".", "group_vars")
    if not os.path.isdir(os.path.join(folder, "all")):
        for name in ("all.yml", "all.yaml", "all.json"):
            if os.path.exists(os.path.join(folder, name)):
                seen = (
                    f"{os.path.join(folder, name)} exists, and Ansible would ignore it if the folder group_vars/all"
                    " existed"
                )
                raise ProposalError(
                    seen,
                    f"Create the folder {folder}/all and move {name} into it, or set a different file: -e"
                    " rdma_proposal=<file>",
                )
    return os.path.abspath(os.path.join(folder, "all", "rdma.yml"))


def collect_inputs(
    folder: FactFolder, namespace: str = "", image: typing.Optional[NamedImage] = None
) -> ProposalInputs:
    """Return the facts of a run on which a proposal is based. Facts about the cluster that do not exist or cannot be
    read are None in the result, and its field ``unread`` gives the reasons.

    :param namespace: namespace of the pods; empty if the user gave none
    :param image: image of the observers; None if the user named none
    :raises FileError: the folder contains no run, or the fact about the chosen InfiniBand ports cannot be read
    :raises LoadError: a fact does not have the form that this version expects
    """
    nodes = folder.start().nodes
    unread: list[str] = []

    def of_cluster(cls: typing.Any, kind: str, key: str, what: str) -> typing.Any:
        try:
            value = folder.value(kind)
        except FileError as error:
            unread.append(f"{what} could not be read: {error.seen}")
            return None
        if value is None:
            unread.append(f"{what} {_NOT_ASKED}")
            return None
        return load(cls, value[key], kind)

    hcas = load(dict[str, ObservedHcas], folder.of_nodes("hcas", nodes), "hcas")
    subnets = load(dict[str, ObservedSubnets], folder.of_nodes("subnets", nodes), "subnets")
    chosen = folder.value("vantage_points") or {}
    topologies = load(
        dict[str, ObservedTopologies],
        folder.of_nodes("topologies", [node for node in nodes if node in chosen]),
        "topologies",
    )
    neighbours = load(dict[str, ObservedNeighbours], folder.of_nodes("neighbours", nodes), "neighbours")
    platforms = load(dict[str, ObservedPlatform], folder.of_nodes("platform", nodes), "platform")
    addresses = of_cluster(AddressFacts, "addresses", "addresses", "addresses in use")
    operators = of_cluster(OperatorFacts, "operators", "operators", "operators of the cluster")
    ran: typing.Optional[ObserversFacts] = None
    with contextlib.suppress(FileError):
        # without them the proposal keeps the name that the user gave, and says so
        observers = folder.value("observers") if image else None
        ran = load_observers(observers) if observers else None
    room = None
    with contextlib.suppress(FileError):
        # without it the proposal keeps the defaults, and stage validate compares them with the nodes
        controller = folder.value("controller")
        room = load(ControllerFacts, controller["controller"], "controller").room if controller else None
    return ProposalInputs(
        hcas,
        subnets,
        topologies,
        addresses,
        operators,
        tuple(unread),
        namespace,
        neighbours,
        image,
        ran,
        room,
        platforms,
    )


def propose_intent(
    folder: FactFolder,
    path: str,
    namespace: str,
    fabrics: typing.Any,
    cluster: typing.Any,
    check_mode: bool,
    cause: str = "",
    unread_source: str = "",
    image: typing.Optional[NamedImage] = None,
) -> Data:
    """Propose an intent, and write it to a new file if no intent exists yet. An existing intent is compared with the
    proposal instead. No file is ever overwritten.

    :param path: path of the file
    :param namespace: namespace of the pods; empty if the user gave none
    :param fabrics: value of ``rdma_fabrics``; None if not set
    :param cluster: value of ``rdma_cluster``; None if not set
    :param check_mode: whether no file is written
    :param cause: known reason why nodes could not be found or read, which replaces all other reasons in the error;
        empty if none is known
    :param unread_source: reason why a source of the inventory could not be read although others have nodes; empty if
        all were read. A proposal without the nodes of a source would be wrong, so it is refused
    :param image: image of the observers; None if the user named none
    :returns: ``changed``, ``written``, ``path``, ``text`` of the file, ``lines`` to show, ``blanks`` (paths of values
        that the user must fill in) and ``diff``
    :raises ProposalError: nothing can be proposed
    :raises FileError: a fact cannot be read, or the file exists or cannot be written
    """
    seen = collect_inputs(folder, namespace, image)
    proposal = propose(seen)
    left_out = [f"left out: {item.what}: {item.why}" for item in proposal.left_out]
    if not proposal.fabrics.items:
        if not folder.start().nodes:
            # without nodes the cluster is not asked for anything
            left_out = [
                _EMPTY,
                *(line for line in seen.unread if not line.endswith(_NOT_ASKED)),
            ]
        # what came first is the cause of the rest, which is in the output above
        why = " ".join(cause.split()).rstrip(". ") or _in_short(left_out)
        remedy = _FROM_CLUSTER if why == _EMPTY else "Correct the listed problems, then run linerate.rdma.propose again"
        raise ProposalError(cut_plain(f"no intent can be proposed: {why}"), remedy)
    if unread_source:
        why = " ".join(unread_source.split()).rstrip(". ")
        raise ProposalError(
            cut_plain(
                f"no intent is proposed, because it would leave out the nodes of a source of the inventory: {why}"
            ),
            "Correct this error, then run linerate.rdma.propose again",
        )
    text = render(proposal)
    blanks = {place: entry for place, entry in iterate_leaves(proposal.variables) if isinstance(entry, Blank)}
    lines = [
        *left_out,
        *(f"note: {note}" for note in proposal.notes),
        *(f"to fill in: {place}: {entry.hint}" for place, entry in blanks.items()),
    ]
    result: Data = {"path": path, "text": text, "blanks": list(blanks), "changed": False, "written": False}
    if fabrics is not None or cluster is not None:
        found = [f"differs: {line}" for line in list_differences(proposal, fabrics, cluster)]
        first = "an intent exists already, so no file was written" + (
            "; the intent matches the proposal" if not found else ""
        )
        return {**result, "lines": [*map(cut_plain, (first, *found, *left_out))]}
    if os.path.lexists(path):
        raise FileError(
            f"{path} exists already, and this collection does not overwrite files",
            "Set a different file with -e rdma_proposal=<file>, or move this file away",
        )
    result["diff"] = {"before": "", "after": text, "before_header": path, "after_header": path}
    if not check_mode:
        write_new(path, text)
    return {**result, "changed": True, "written": not check_mode, "lines": [cut_plain(line) for line in lines]}
