# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide which objects with the label of the collection belong to one intent. A cluster may have several intents, such
as one for each kind of nodes, and a run changes and removes only the objects of its own.

The label with the name of the intent proves this, unless the name is the default, which two intents may share. An
object with the default name or without a name belongs to the intent only if its name, its fabric and the nodes that it
selects are those of the intent.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.marks import (
    DEFAULT_INTENT,
    FABRIC_LABEL,
    INTENT_LABEL,
    RUN_LABEL,
    build_selection_label,
    build_user_label,
    find_users,
)
from .host import HOST_KINDS
from .mappings import find_mapping
from .measuring import NAMESPACE as MEASURING
from .nic_policy import explain_driver, find_dropped, list_components
from .own_kinds import JOBS, NETWORKS
from .scope_fields import (
    FABRIC_KINDS,
    NAMED_KINDS,
    POOL_SUBNETS,
    Item,
    find_made_for,
    find_network,
    find_pool_nodes,
    find_selector,
    format_labels,
    list_entries,
    read_nodes,
)

#: kinds of jobs and their pods, whose names are free
JOB_KINDS = (*JOBS, "Pod")
_NO_POLICY = "no policy of its fabric in the cluster proves that it is of the nodes of this intent"
_OF_NETWORK = ("the resource", "the addresses")


@dataclasses.dataclass(frozen=True)
class Scope:
    """The objects of one intent.

    :ivar intent: name of the intent
    :ivar names: kind, name and fabric of each object with a fixed name; the fabric is empty for a shared object
    :ivar fabrics: names of the fabrics as in labels, each with the beginning of the names of its policies
    :ivar namespaces: namespaces of the jobs
    :ivar resources: names of the resources of the fabrics, without prefix
    :ivar selector: labels of the nodes that the intent selects
    :ivar nodes: names of further nodes that belong to the intent, although they may not have its labels yet
    :ivar records: labels by which the networks of a fabric without virtual functions name the intent, by the name of
        the fabric as in labels
    :ivar doubt: why another intent has the name of this one; empty if no object in the cluster shows this. With a
        doubt, the name proves as little as the default
    :ivar strange: fabrics with a policy in the cluster that is not of this intent, each with the policy
    :ivar known: fabrics with a policy in the cluster that is of this intent
    :ivar other_nodes: annotations on objects with the name of this intent, each of labels that select nodes which this
        intent does not select
    :ivar components: components that the intent asks for in the NicClusterPolicy, without device plugins
    :ivar operator: namespace of the SR-IOV network operator in the intent; empty if the intent does not name it
    """

    intent: str = DEFAULT_INTENT
    names: frozenset[tuple[str, str, str]] = frozenset()
    fabrics: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    namespaces: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    selector: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    components: frozenset[str] = frozenset()
    records: typing.Mapping[str, typing.Mapping[str, str]] = dataclasses.field(default_factory=dict)
    doubt: str = ""
    strange: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    known: frozenset[str] = frozenset()
    operator: str = ""
    other_nodes: frozenset[str] = frozenset()

    @property
    def confirmation(self) -> dict[str, str]:
        """The label, as a mapping, by which a user confirms that an object belongs to this intent, and not to another
        intent with the same name.
        """
        return build_selection_label(self.intent, self.selector)

    def is_proven(self, item: Item) -> bool:
        """Return whether the labels of an object prove that it belongs to this intent: by a name that no other intent
        has, or by the confirmation of a user.
        """
        labels = find_mapping(item, "metadata", "labels")
        if labels.get(INTENT_LABEL) != self.intent:
            return False
        confirmed = self.intent != DEFAULT_INTENT and bool(self.confirmation.keys() & labels.keys())
        return confirmed or not (self.doubt or self.intent == DEFAULT_INTENT or self.explain_other_nodes(item))

    def explain_other_nodes(self, item: Item) -> str:
        """Return why an object with the name of this intent may be of another inventory with that name: it was made for
        nodes that this intent does not select, or for fewer nodes and a fabric that this intent does not have. Return
        an empty text if nothing shows this.
        """
        labels, made_for = find_mapping(item, "metadata", "labels"), find_made_for(item)
        narrower = (
            self.intent != DEFAULT_INTENT
            and labels.get(FABRIC_LABEL) not in (None, *self.fabrics)
            and read_nodes(made_for).items() > self.selector.items()
        )
        if not (narrower or made_for in self.other_nodes) or labels.get(INTENT_LABEL) != self.intent:
            return ""
        if self.confirmation.keys() & labels.keys():
            return ""
        return f"it was made for the nodes with {format_labels(read_nodes(made_for))}"

    def explain_foreign(self, kind: str, item: Item) -> str:
        """Return why an object with the label of the collection does not belong to this intent. Return an empty text if
        it belongs to this intent.

        :param kind: kind of the object
        :param item: the object in the cluster
        """
        metadata = find_mapping(item, "metadata")
        labels = find_mapping(metadata, "labels")
        intent = labels.get(INTENT_LABEL)
        if intent is not None and intent != self.intent:
            return f"it belongs to the intent '{intent}', and this intent is '{self.intent}'"
        users = sorted(set(self.find_other_users(kind, item).values()))
        if users:
            return f"the intent{'s' if users[1:] else ''} '{', '.join(users)}' needs it too"
        other = self.explain_other_nodes(item)
        if other:
            return f"it has the label {INTENT_LABEL}={intent}, a name that another intent may have, and {other}"
        if self.is_proven(item):
            return ""
        # pods and accounts of a measurement belong to no intent: the Lease permits one run at a time
        if metadata.get("namespace") == MEASURING or RUN_LABEL in labels:
            return ""
        why = self._find_difference(kind, item, str(labels.get(FABRIC_LABEL) or ""), intent is not None)
        if not why:
            return ""
        unproven = f"has the label {INTENT_LABEL}={intent}, {self.doubt or 'the default of all intents'}"
        return f"it {unproven if intent else f'has no label {INTENT_LABEL}'}, and {why}"

    @property
    def user_label(self) -> dict[str, str]:
        """The label, as a mapping, by which this intent records that it needs an object that several intents share."""
        return build_user_label(self.intent, self.selector)

    def find_other_users(self, kind: str, item: Item) -> dict[str, str]:
        """Return the labels by which other intents record that they need an object, with the names of these intents as
        values. The result is empty for all kinds except MachineConfig and KubeletConfig, which intents with the same
        pool share.

        :param kind: kind of the object
        """
        labels = find_users(find_mapping(item, "metadata", "labels")) if kind in HOST_KINDS else {}
        mine = (self.user_label, self.confirmation)
        return {key: name for key, name in labels.items() if not any(key in label for label in mine)}

    def _find_other_network(self, fabric: str, users: typing.Mapping[str, str]) -> str:
        """Return why a network or a pool of addresses, which selects no nodes, may be of another intent; empty if it is
        of this one.

        :param fabric: name of the fabric in its label
        :param users: labels of the object by which intents record that it is theirs
        """
        if fabric in self.strange:
            return f"{self.strange[fabric]} of the same fabric is not of this intent"
        record = self.records.get(fabric, {})
        if users and record and not users.keys() & record.keys():
            return f"its record {', '.join(sorted(users))} is that of an intent that selects other nodes or HCAs"
        if self.doubt and fabric not in self.known:
            return _NO_POLICY
        return ""

    def is_left_to_owner(self, item: Item) -> bool:
        """Return whether an object of another intent has an owner in its metadata. Such an object needs no finding of
        its own, because its owner has one.
        """
        return bool(find_mapping(item, "metadata").get("ownerReferences"))

    def _find_difference(self, kind: str, item: Item, fabric: str, marked: bool) -> str:
        """Return the first difference between an object and the objects of this intent: its name, its fabric, or the
        nodes that it selects. This is for an object whose labels do not prove that it belongs to this intent. Return an
        empty text if there is no difference.

        :param kind: kind of the object
        :param fabric: name of the fabric in the label of the object; empty without the label
        :param marked: whether the object has the label of an intent
        """
        metadata = find_mapping(item, "metadata")
        name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
        if kind == "Namespace" or kind not in (
            *JOB_KINDS,
            *NAMED_KINDS,
            *FABRIC_KINDS,
            "ConfigMap",
            "NicClusterPolicy",
        ):
            return ""
        if kind in JOB_KINDS:
            return "" if marked and namespace in self.namespaces else "it may be a job of another intent"
        if kind == "NicClusterPolicy":
            strange = [entry for entry in list_entries(item) if entry not in self.resources]
            more = [part for part in list_components(item) if part not in self.components]
            said = [f"the resources {', '.join(strange)}, which no fabric of this intent has"] if strange else []
            said += [f"the components {', '.join(more)}, which this intent does not ask for"] if more else []
            return f"it has {' and '.join(said)}" if said else ""
        if fabric and fabric not in self.fabrics:
            return f"it is of the fabric '{fabric}', which this intent does not have"
        if kind == "ConfigMap":
            return "" if fabric and namespace in self.namespaces else "it is not of a fabric of this intent"
        known = (
            (kind, name, fabric) in self.names
            if kind in NAMED_KINDS
            else bool(fabric) and (name == self.fabrics[fabric] or name.startswith(f"{self.fabrics[fabric]}-"))
        )
        if not known:
            return "this intent has no object of this name"
        # of a list that is too large only the metadata is known
        selected = find_selector(kind, item) if "spec" in item else None
        if kind in (*NETWORKS, *POOL_SUBNETS):
            users = find_users(find_mapping(metadata, "labels"))
            why = self._find_other_network(fabric, users)
            chosen = find_pool_nodes(kind, item)
            recorded = bool(users.keys() & self.records.get(fabric, {}).keys())
            if why or chosen is None or chosen == dict(self.selector) or recorded or fabric in self.known:
                return why
            return f"it has addresses for the nodes with {format_labels(chosen)}"
        return (
            f"it selects the nodes with {format_labels(selected)}, and this intent those with"
            f" {format_labels(self.selector)}"
            if selected is not None and selected != dict(self.selector)
            else ""
        )


def explain_other_intent(wanted: Item, there: Item, proven: bool = False, scope: typing.Optional[Scope] = None) -> str:
    """Return why an existing object may belong to another intent than a rendered one of the same name. Return an empty
    text if it belongs to the same intent.

    :param wanted: the rendered object; without the label of an intent it belongs to none
    :param there: the object in the cluster
    :param proven: whether existing objects that select nodes prove that the fabric is of this intent. Without a proof,
        a network or pool belongs to another intent if it has another resource or other addresses, and no record of this
        intent
    :param scope: objects of the intent. If it is None, the label with the name of the intent is a sufficient proof,
        unless it is the default name
    """
    labels, found = find_mapping(wanted, "metadata", "labels"), find_mapping(there, "metadata", "labels")
    mine, theirs, kind = labels.get(INTENT_LABEL), found.get(INTENT_LABEL), str(wanted.get("kind"))
    if mine is None:
        return ""
    if theirs is not None and theirs != mine:
        return f"it belongs to the intent '{theirs}'"
    other = scope.explain_other_nodes(there) if scope is not None else ""
    if other:
        return other
    if kind in HOST_KINDS and wanted.get("spec") != there.get("spec"):
        users = sorted(set(scope.find_other_users(kind, there).values())) if scope is not None else []
        if users:
            return f"the intent{'s' if users[1:] else ''} '{', '.join(users)}' needs it too"
    if theirs == mine != DEFAULT_INTENT and (scope is None or scope.is_proven(there)):
        return ""
    if kind == "NicClusterPolicy":
        asked = list_entries({"spec": wanted.get("spec")})
        dropped = [entry for entry in list_entries(there) if entry not in asked]
        gone = find_dropped(wanted, there)
        said = [f"the resources {', '.join(dropped)}"] if dropped else []
        said += [f"the components {', '.join(gone)}"] if gone else []
        return f"it has {' and '.join(said)}, which would be dropped" if said else explain_driver(wanted, there)
    if found.get(FABRIC_LABEL, labels.get(FABRIC_LABEL)) != labels.get(FABRIC_LABEL):
        return f"it is of the fabric '{found.get(FABRIC_LABEL)}'"
    selected, selector = find_selector(kind, there), find_selector(kind, wanted)
    if selected != selector:
        return f"it selects the nodes with {format_labels(selected or {})} instead of {format_labels(selector or {})}"
    if proven or selector is not None or find_users(labels).keys() & find_users(found).keys():
        return ""
    if scope is not None and scope.doubt and theirs is not None:
        return _NO_POLICY
    chosen, mine_chosen = find_pool_nodes(kind, there), find_pool_nodes(kind, wanted)
    if chosen is not None and chosen != mine_chosen:
        return f"it has addresses for the nodes with {format_labels(chosen)}"
    for what, own, other in zip(_OF_NETWORK, find_network(kind, wanted), find_network(kind, there)):
        if own != other:
            return f"it has {what} {other or '(none)'} instead of {own or '(none)'}"
    return ""
