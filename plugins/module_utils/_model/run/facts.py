# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts: observations with their node, time and run. They are stored in files, see _store/facts.py.

The start of a run is stored beside them, so that a folder can be judged without the inventory, the cluster, or the
original machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing

from ..boundary.numbers import Count

#: goes up when a field of Fact or RunStart changes its meaning, or a kind changes its form
FACT_SCHEMA = 1
#: stands for the node in a fact about the whole cluster; each kind is either of nodes or of the cluster
CLUSTER = "cluster"


@dataclasses.dataclass(frozen=True)
class Fact:
    """One observation of one kind about one node, or the reason why it is missing.

    :ivar run: identity of the run; a fact of another run is never used
    :ivar time: time of writing, UTC, ISO 8601
    :ivar node: name in the inventory, or CLUSTER
    :ivar kind: kind of the observation, such as ``hcas``
    :ivar value: the observation, as plain data; None with an error
    :ivar error: reason why there is no observation; None with a value
    :ivar schema: version of the format, equal to FACT_SCHEMA in files of this release
    """

    run: str
    time: str
    node: str
    kind: str
    value: typing.Any = None
    error: typing.Optional[str] = None
    schema: int = FACT_SCHEMA


@dataclasses.dataclass(frozen=True)
class Resume:
    """One resumption of a run by ``rdma_from``.

    :ivar stage: first stage that was run again; the earlier ones were kept
    :ivar time: UTC, ISO 8601
    """

    stage: str
    time: str


@dataclasses.dataclass(frozen=True)
class RunStart:
    """The data with which a run started: its inventory, variables and software (run.json).

    :ivar run: identity of the run
    :ivar started: UTC, ISO 8601
    :ivar check_mode: whether ansible-playbook ran with --check
    :ivar nodes: names of the inventory's group ``rdma_nodes``
    :ivar variables: names of all variables that start with ``rdma_``, and of probable misspellings of role variables
    :ivar fabrics: the variable rdma_fabrics as the user wrote it
    :ivar waivers: the variable rdma_waivers as the user wrote it
    :ivar cluster: the variable rdma_cluster as the user wrote it
    :ivar versions: versions of the software of the run, by name
    :ivar resumes: resumptions of the run, in order
    :ivar by_pods: names of the nodes that are read by observers (pods) instead of ssh
    :ivar images: images named by variables outside of the intent, by variable
    :ivar strict_images: the variable rdma_strict_images: whether images must be named by digest
    :ivar mistyped: values that public variables cannot have, by variable
    :ivar origins: file and line in which the user wrote a variable or a part of it, by its path, if Ansible reports
        them
    :ivar inventory_error: error of a source of the inventory; empty if all were read, or if the error is unknown
    :ivar inventory_kind: cause of an empty inventory: ``library``, ``api_server``, or empty for any other
    :ivar inventory_where: origin of the API server's address that the inventory used; empty if there is none
    :ivar by: user and machine, or user and job of AWX, that began the run; empty if not known
    :ivar access: access to the cluster: source of the credentials, context and API server, without secrets; empty if
        none is configured
    :ivar cluster_uid: uid of the namespace kube-system of the cluster at the begin of the run; empty if it was not read
    :ivar unchecked_hosts: number of nodes that are reached by ssh without a known check of their host keys
    :ivar process: identity of the process ansible-playbook that began or resumed the run last; empty if not known
    """

    run: str
    started: str
    check_mode: bool = False
    nodes: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    fabrics: typing.Any = None
    waivers: typing.Any = None
    cluster: typing.Any = None
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    resumes: tuple[Resume, ...] = ()
    by_pods: tuple[str, ...] = ()
    images: dict[str, str] = dataclasses.field(default_factory=dict)
    strict_images: bool = False
    mistyped: dict[str, str] = dataclasses.field(default_factory=dict)
    origins: dict[str, str] = dataclasses.field(default_factory=dict)
    inventory_error: str = ""
    inventory_kind: str = ""
    inventory_where: str = ""
    by: str = ""
    access: str = ""
    unchecked_hosts: Count = 0
    process: str = ""
    cluster_uid: str = ""
    schema: int = FACT_SCHEMA


@dataclasses.dataclass(frozen=True)
class FactCount:
    """The numbers of read and missing facts of one kind when a stage was judged.

    :ivar kind: kind of the facts
    :ivar seen: number of nodes with a value; 1 or 0 for a kind of the cluster
    :ivar missing: number of nodes with an error instead
    """

    kind: str
    seen: int
    missing: int


def intent_checksum(start: RunStart) -> str:
    """Return the SHA-256 checksum of the intent as 64 hexadecimal digits. It covers rdma_fabrics, rdma_cluster and
    rdma_waivers as JSON with sorted keys.

    :param start: data with which the run started
    """
    asked = {"fabrics": start.fabrics, "cluster": start.cluster, "waivers": start.waivers}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode("utf-8")).hexdigest()


def find_contradiction(fact: Fact) -> str:
    """Return, as text, why a fact contradicts itself: it has both a value and an error, or neither. Return an empty
    text if it is consistent. Files may have been edited or assembled by hand.
    """
    if fact.value is not None and fact.error is not None:
        return "the fact has both a value and an error"
    return "the fact has neither a value nor an error" if fact.value is None and not fact.error else ""
