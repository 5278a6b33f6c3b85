# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads facts of many nodes through their observers, with one command in each observer and a limited number at a time.
Results are yielded as they arrive.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
import typing

from ..._analysis.controllers.observers import describe_missing
from ..._model.base.errors import ParseError, RdmaError, wrap_unforeseen
from ..._model.kubernetes.objects import Answer, Container
from ..._model.kubernetes.observers import HOST, Observer
from ..._model.run.fact_kinds import LLDP, list_kinds_from
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.exec.pod_exec import PARALLEL, Limits, on_many, run
from ..._observe.node.node_reader import __name__ as NODE_READER
from ..._observe.process.archive import START, build_archive
from ..._parse.limits import MIB
from ..._parse.node.date import COMMAND
from ..._parse.pods.observer_reply import MOST_BYTES, ObserverReply, parse_replies
from .closer_time import Moment, ask_closer

#: what a node is asked with when it is asked for nothing else
PYTHON = "/usr/bin/python3"
#: that the answer to the question for the time may take; a longer one says nothing
_DATE_SECONDS = 30.0
_DATE_BYTES = 4096
#: characters of what a look that failed has said
_WORDS = 300
#: nodes that are asked at the same time; those that listen for switches only wait
_MOST_ASKED, _MOST_LISTENERS = 64, 512


@dataclasses.dataclass(frozen=True)
class ObserveRequest:
    """A request for facts of nodes, with the settings of the command that reads them in an observer.

    :ivar kinds: names of the kinds of facts, such as ``hcas``
    :ivar sysfs: roots of sysfs, as the observer sees them
    :ivar netdevs: names of further interfaces to read, which belong to no HCA
    :ivar python: path of the interpreter in the image
    :ivar seconds: time limit of the command, in seconds
    :ivar host: folder in which the observer has the files of its node
    :ivar kernel_arguments: kernel arguments that the intent requires
    :ivar beside_infiniband: whether to read LLDP frames of switches also on the Ethernet NICs of nodes with InfiniBand
    """

    kinds: tuple[str, ...]
    sysfs: tuple[str, ...] = ("/sys",)
    netdevs: tuple[str, ...] = ()
    python: str = PYTHON
    seconds: float = 120.0
    host: str = HOST
    kernel_arguments: tuple[str, ...] = ()
    beside_infiniband: bool = False


class _Timed(typing.NamedTuple):
    """The answer of an observer with its times, in seconds since 1970-01-01 UTC.

    :ivar answer: answer of the observer, not parsed yet
    :ivar asked: time of the controller before the request
    :ivar answered: time of the controller after the answer
    :ivar closer: reading of the node's clock that took less time than the answer; None if there was none
    """

    answer: Answer
    asked: float
    answered: float
    closer: typing.Optional[Moment]


def count_parallel(kinds: typing.Iterable[str]) -> int:
    """Return the number of nodes from which these kinds of facts are read at the same time. It is larger if a kind
    makes nodes listen for LLDP frames, because these nodes only wait.

    :param kinds: names of kinds of facts, such as ``hcas``
    """
    return _MOST_LISTENERS if not set(list_kinds_from(LLDP)).isdisjoint(kinds) else _MOST_ASKED


def read_nodes(
    cluster: Cluster,
    namespace: str,
    observers: typing.Iterable[Observer],
    asked: ObserveRequest,
    parallel: int = PARALLEL,
) -> typing.Iterator[tuple[str, dict[str, ObserverReply]]]:
    """Read facts of nodes through their observers, and yield each node with its replies by kind of fact, in the order
    of completion. If a node could not be read, each of its replies is the error.

    :param namespace: namespace of the observers
    :param observers: observers of the nodes. For an observer that is not ready, the replies are the error with the
        reason
    :param asked: facts to read
    :param parallel: maximum number of connections at the same time
    :raises RdmaError: the archive of the code cannot be created
    """
    nodes: dict[Container, str] = {}
    for observer in observers:
        if observer.phase == "ready":
            nodes[Container(namespace, observer.pod, observer.container)] = observer.node
        else:
            yield observer.node, _build_failed_replies(asked, f"unreachable: {describe_missing(observer)}")
    packed = build_archive(NODE_READER) if nodes else b""
    wanted = {
        "kinds": asked.kinds,
        "sysfs": asked.sysfs,
        "netdevs": asked.netdevs,
        "host": asked.host,
        "kernel_arguments": asked.kernel_arguments,
    }
    request = json.dumps({**wanted, "beside_infiniband": True} if asked.beside_infiniband else wanted)
    command = (asked.python, "-I", "-c", START, NODE_READER, request)

    def ask(container: Container, over: threading.Event) -> _Timed:
        before = time.time()
        answer = run(cluster, container, command, packed, Limits(run=asked.seconds, output=MOST_BYTES + MIB), over)
        after = time.time()
        closer = (
            ask_closer(before, after, lambda: _read_date(cluster, container, over))
            if "clock" in asked.kinds and answer.rc == 0
            else None
        )
        return _Timed(answer, before, after, closer)

    for container, outcome in on_many(ask, nodes, parallel):
        yield (
            nodes[container],
            (
                _build_failed_replies(asked, f"unreachable: {outcome}")
                if isinstance(outcome, RdmaError)
                else _shown_or_not(asked, outcome)
            ),
        )


def _shown_or_not(asked: ObserveRequest, timed: _Timed) -> dict[str, ObserverReply]:
    """Return the replies of a node by kind of fact, as ``_shown`` does. An unexpected exception becomes the error of
    this node, so that the other nodes are still read.

    :param asked: the request, with the kinds of facts
    :param timed: answer of the observer, with the times of request and answer
    """
    try:
        return _shown(asked, timed)
    except Exception as error:
        return _build_failed_replies(asked, f"failed: {wrap_unforeseen(error, 'the data collection on the node')}")


def _shown(asked: ObserveRequest, timed: _Timed) -> dict[str, ObserverReply]:
    """Return the replies of a node by kind of fact, parsed from the answer of its observer. If the program in the
    observer failed, or its output is invalid, each reply is the error. The fact ``clock`` also gets the controller's
    times before and after the reading.

    :param asked: the request, with the kinds of facts
    :param timed: answer of the observer, with the times of request and answer
    """
    answer = timed.answer
    if answer.rc != 0:
        # of the end alone: as a list of words, all of it would take many times its memory
        said = answer.stderr[-4 * _WORDS :].decode(errors="replace")
        words = " ".join(said.split())[-_WORDS:] or "no output"
        return _build_failed_replies(
            asked, f"failed: {asked.python} in the observer ended with exit code {answer.rc}: {words}"
        )
    try:
        found = parse_replies(answer.stdout, asked.kinds)
    except ParseError as error:
        return _build_failed_replies(asked, f"failed: {error}")
    clock = found.get("clock")
    if clock is not None and isinstance(clock.value, dict):
        moment = timed.closer._asdict() if timed.closer else {"asked": timed.asked, "answered": timed.answered}
        found["clock"] = ObserverReply({**clock.value, **moment}, None)
    return {
        kind: one if one.error is None else ObserverReply(None, f"failed: {one.error}") for kind, one in found.items()
    }


def _read_date(cluster: Cluster, container: Container, over: threading.Event) -> str:
    """Return the output of ``date`` in an observer. Return an empty text if the command fails.

    :param container: container of the observer
    :param over: event that ends the command when it is set
    """
    try:
        answer = run(cluster, container, COMMAND, limits=Limits(run=_DATE_SECONDS, output=_DATE_BYTES), over=over)
    except RdmaError:
        # the first answer stays, which was long on its way
        return ""
    return answer.stdout.decode(errors="replace") if answer.rc == 0 else ""


def _build_failed_replies(asked: ObserveRequest, error: str) -> dict[str, ObserverReply]:
    return {kind: ObserverReply(None, error) for kind in asked.kinds}
