# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether a run may resume at a stage with the facts that are stored in its folder. The functions are pure;
_app/frame.py reads and cleans the folder.
"""

from __future__ import annotations

import datetime
import json
import types
import typing

from .._model.base.errors import RdmaError
from .._model.base.load import to_data
from .._model.base.load_error import suggest_nearest
from .._model.base.redact import redact
from .._model.base.text import join_first
from .._model.boundary.kubernetes import UID
from .._model.run.facts import CLUSTER, Fact, RunStart
from .._model.run.findings import STAGES
from .._model.run.records import OPEN, Record
from .sources import CHANGES, SHARED, SOURCES, list_kinds

#: name of the collection among the versions of a run
COLLECTION = "linerate.rdma"
#: kinds of facts of the cluster that name the nodes which the run itself reboots
REBOOTS = ("disruption", "node_roll")
# a clock may be set a little between two invocations
_CLOCK_SECONDS = 60


class ResumeError(RdmaError):
    """The error for a run that cannot resume. Its message states the reason and the remedy."""


def check_stage(resume_from: str, stage: str, check_mode: bool) -> None:
    """Verify that a run can resume at a stage with this invocation.

    :param resume_from: stage at which the run resumes (``rdma_from``)
    :param stage: first stage of this invocation
    :param check_mode: whether ansible-playbook runs with --check
    :raises ResumeError: the stage is unknown or before the first stage of this invocation, or the invocation is in
        check mode
    """
    if resume_from not in STAGES:
        hint = suggest_nearest(resume_from, STAGES)
        raise ResumeError(
            f"rdma_from is '{resume_from}', which is not a stage; expected one of: {', '.join(STAGES)}{hint}"
        )
    if STAGES.index(stage) > STAGES.index(resume_from):
        seen = f"rdma_from is {resume_from}, but the first stage of this invocation is {stage}, which comes later"
        raise ResumeError(seen, f"Run linerate.rdma.site, or set rdma_from={stage}")
    if check_mode:
        raise ResumeError(
            "rdma_from and --check are both set; a run cannot resume in check mode",
            "Remove one of them",
        )


class Invocation(typing.NamedTuple):
    """The settings of an invocation of ansible-playbook that resumes a run, beside the intent and the nodes.

    :ivar version: version of the collection
    :ivar strict_images: the variable rdma_strict_images
    :ivar images: names of the images that variables set beside the images of the intent, by variable
    :ivar access: source of the credentials, context and API server, as in :class:`RunStart`
    :ivar cluster_uid: uid of the namespace kube-system of the cluster; empty if it is not known
    """

    version: str
    strict_images: bool = False
    images: typing.Mapping[str, str] = types.MappingProxyType({})
    access: str = ""
    cluster_uid: str = ""


def check_run(
    start: RunStart,
    records: typing.Mapping[str, Record],
    resume_from: str,
    wishes: typing.Mapping[str, typing.Any],
    nodes: typing.Sequence[str],
    invocation: Invocation,
    cluster_uid: str = "",
) -> None:
    """Check that a run can resume: the intent, the nodes and the settings are unchanged since its start, it was not in
    check mode, and the gate of each stage before ``resume_from`` is open.

    :param start: data with which the run started
    :param records: records in the folder, by stage; they may belong to another run
    :param resume_from: stage at which the run resumes (``rdma_from``)
    :param wishes: present values of ``rdma_fabrics``, ``rdma_waivers`` and ``rdma_cluster``, by name without ``rdma_``
    :param nodes: names of the nodes that the inventory contains now
    :param invocation: settings of the invocation that resumes the run
    :param cluster_uid: uid of the namespace kube-system that the run has read; empty if it is not known
    :raises ResumeError: the run cannot resume
    """
    again = "Run all stages, without rdma_from"
    changed = [
        f"rdma_{name}"
        for name in ("fabrics", "waivers", "cluster")
        if _normalize_option(wishes.get(name)) != _normalize_option(getattr(start, name))
    ]
    changed += ["the group rdma_nodes"] if sorted(nodes) != sorted(start.nodes) else []
    changed += ["rdma_strict_images"] if invocation.strict_images != start.strict_images else []
    changed += [
        name
        for name in sorted({*invocation.images, *start.images})
        if invocation.images.get(name) != start.images.get(name)
    ]
    then, now = find_server(start.access), find_server(invocation.access)
    if then != now:
        raise ResumeError(
            f"run {start.run} used {then or 'no API server'}, and this invocation uses {now or 'no API server'}",
            f"{again}, or set rdma_kubeconfig to the cluster of the run",
        )
    if cluster_uid and invocation.cluster_uid and cluster_uid != invocation.cluster_uid:
        raise ResumeError(
            f"run {start.run} used another cluster than this invocation: its namespace kube-system had the uid"
            f" {cluster_uid}, and now it has the uid {invocation.cluster_uid}",
            f"{again}, or set rdma_kubeconfig to the cluster of the run",
        )
    if changed:
        seen = (
            f"{' and '.join(changed)} differ{'s' if len(changed) == 1 else ''} from the start of run {start.run}"
            " (run.json)"
        )
        raise ResumeError(seen, f"{again}, or restore the values from the start of the run")
    begun = start.versions.get(COLLECTION, "of an unknown version")
    if begun != invocation.version:
        seen = (
            f"run {start.run} was started with {COLLECTION} {begun}, and the current version is {invocation.version},"
            " which judges stages by different rules"
        )
        raise ResumeError(seen, again)
    if start.check_mode:
        raise ResumeError(
            f"run {start.run} was in check mode, so its stages made no changes and the run cannot resume", again
        )
    for stage in list_stages_before(resume_from):
        record = records.get(stage)
        if record is None or record.run != start.run:
            there = (
                (f"the record in the folder belongs to run {record.run}")
                if record
                else "the folder has no readable record"
            )
            raise ResumeError(
                f"run {start.run} has no record of stage {stage}, which comes before {resume_from}: {there}", again
            )
        if record.gate != OPEN or record.check_mode:
            seen = (
                f"in run {start.run}, the gate of stage {stage}, which comes before {resume_from}, is"
                f" {record.gate}{' (check mode)' if record.check_mode else ''}"
            )
            raise ResumeError(
                seen,
                f"Follow the remedies of the findings of stage {stage}, then resume with rdma_from={stage}, or run all"
                " stages",
            )


def explain_unproven_cluster(access: str, then: str, now: str) -> str:
    """Return a warning if it is not proven that a resumed run uses the cluster with which it started. Return an empty
    text if it is proven, or if the run uses no cluster.

    :param access: access to the cluster of this invocation
    :param then: uid of the namespace kube-system that the run has read; empty if it is not known
    :param now: the same uid, as this invocation has read it
    """
    if not access or (then and now):
        return ""
    return (
        "Whether the run continues on the same cluster is known by the URL of its API server only, because the uid of"
        f" the namespace kube-system {'could not be read' if then else 'is not in the facts of the run'}. If another"
        " cluster may have this URL, run all stages, without rdma_from"
    )


def find_server(access: str) -> str:
    """Return the part of a description of the access to the cluster that names the API server, such as ``API server
    https://api.example:6443``. Return an empty text if the description names none.
    """
    _before, marker, server = access.rpartition("API server ")
    return f"{marker}{server.partition(' ')[0]}" if marker else ""


def check_age(records: typing.Mapping[str, Record], resume_from: str, most: int, now: str) -> None:
    """Check that the stages before ``resume_from`` were started recently enough for their facts to be valid. Stage
    validate is ignored, since it observes nothing.

    :param records: records of the run, by stage
    :param resume_from: stage at which the run resumes (``rdma_from``)
    :param most: maximum age in seconds
    :param now: current time in UTC, ISO 8601
    :raises ResumeError: a stage is too old, or its time is in the future or invalid
    """
    for record in (records[stage] for stage in list_stages_before(resume_from) if stage != "validate"):
        _check_age(f"the data of stage {record.stage}", record.started, most, now)


def check_facts(facts: typing.Iterable[Fact], most: int, now: str) -> None:
    """Check that each fact is recent enough. A stage may have been started long after its facts were read.

    :param facts: facts that the resumed run keeps
    :param most: maximum age in seconds
    :param now: current time in UTC, ISO 8601
    :raises ResumeError: a fact is too old, or its time is in the future or invalid
    """
    for fact in facts:
        _check_age(f"the fact {fact.kind} of {fact.node}", fact.time, most, now)


def _check_age(what: str, moment: str, most: int, now: str) -> None:
    try:
        age = (datetime.datetime.fromisoformat(now) - datetime.datetime.fromisoformat(moment)).total_seconds()
    except (TypeError, ValueError) as error:
        raise ResumeError(
            f"{what} has the time '{moment}', which is not a valid time", "Run all stages, without rdma_from"
        ) from error
    if not -_CLOCK_SECONDS <= age <= most:
        seen = f"the age of {what} is {age:.0f} s (time: {moment}); expected 0 to {most} s (rdma_facts_max_age)"
        raise ResumeError(seen, "Run all stages, without rdma_from, or raise rdma_facts_max_age")


def check_boots(facts: typing.Iterable[Fact], boots: typing.Mapping[str, str]) -> None:
    """Check that each node is in the boot in which the run read it last. The age of the facts alone decides for a node
    whose present boot is not known, whose facts name no boot, or that the run itself was to reboot after it read the
    node.

    :param facts: facts that the resumed run keeps, and those of the kinds ``REBOOTS``
    :param boots: ID of the present boot of each node, as its kubelet reports it
    :raises ResumeError: a node has booted since
    """
    newest: dict[str, Fact] = {}
    planned: dict[str, str] = {}
    for fact in facts:
        if fact.node == CLUSTER and fact.kind in REBOOTS:
            planned.update((node, max(fact.time, planned.get(node, ""))) for node in _list_rebooted(fact.value))
        elif _find_boot(fact) and fact.time >= newest.get(fact.node, fact).time:
            newest[fact.node] = fact
    gone = {
        node: fact
        for node, fact in newest.items()
        if boots.get(node) and _find_boot(fact) != boots[node].lower() and planned.get(node, "") < fact.time
    }
    if gone:
        node, fact = next(iter(gone.items()))
        raise ResumeError(
            f"{join_first(list(gone))} booted since this run read the facts: facts/{fact.kind}/{node}.json is of boot"
            f" {_find_boot(fact)}, and the kubelet of {node} reports boot {boots[node].lower()}",
            "Run all stages, without rdma_from",
        )


def _find_boot(fact: Fact) -> str:
    """Return the ID of the boot in which a node was read. Return an empty text if the fact has none."""
    boot = fact.value.get("boot") if isinstance(fact.value, dict) else None
    return boot.lower() if isinstance(boot, str) and UID.fits(boot) else ""


def _list_rebooted(value: typing.Any) -> typing.Iterator[str]:
    """Yield the nodes that the run reboots: those of the plan of disruption, or those that the roll of stage platform
    has reset.

    :param value: value of a fact of one of the kinds ``REBOOTS``
    """
    parts = value if isinstance(value, dict) else {}
    plan = parts.get("plan")
    for item in (*_list_items(plan, "nodes"), *_list_items(parts, "outcomes")):
        did = item.get("did")
        reset = isinstance(did, list) and any(str(word).startswith("reset") for word in did)
        if item.get("action") == "reboot" or item.get("rolled_by") or item.get("state") == "unproven" or reset:
            yield str(item.get("node"))


def _list_items(parent: typing.Any, key: str) -> list[dict[str, typing.Any]]:
    found = parent.get(key) if isinstance(parent, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def list_stages_before(stage: str) -> tuple[str, ...]:
    """Return the stages that come before a stage, in their order."""
    return STAGES[: STAGES.index(stage)]


def list_kept_kinds(resume_from: str) -> set[str]:
    """Return the kinds of facts that a resumed run keeps: those by which the stages before ``resume_from`` were judged.
    All other facts are read again.

    Facts of the nodes that stage ``resume_from`` shares with earlier stages are read again too, because the user may
    have repaired the fault that the stage reported.

    :param resume_from: stage at which the run resumes (``rdma_from``)
    """
    kept = {
        *list_seen_kinds(resume_from),
        *list_kinds(SOURCES["validate"].values() if resume_from != "validate" else ()),
    }
    return kept - list_kinds(source for source in SHARED if source in SOURCES[resume_from].values())


def list_seen_kinds(resume_from: str) -> set[str]:
    """Return the kinds of facts that the stages before ``resume_from`` read from nodes and cluster. Stage validate is
    ignored.

    :param resume_from: stage at which the run resumes (``rdma_from``)
    """
    stages = [stage for stage in list_stages_before(resume_from) if stage != "validate"]
    return list_kinds(source for stage in stages for source in (*SOURCES[stage].values(), *CHANGES.get(stage, ())))


def _normalize_option(data: typing.Any) -> typing.Any:
    """Return a variable in the form in which run.json stores it, so that both can be compared. Secrets are redacted,
    and an empty value becomes None.

    :param data: value of the variable
    """
    return json.loads(json.dumps(redact(to_data(data)))) or None
