# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may change a cluster: one run at a time, by one Lease (coordination.k8s.io/v1). What is decided about it, without
any I/O.

A run holds the Lease from its first change to its end. There is no daemon: while a module works, a thread of it renews
the Lease, for a short time; when it ends, it leaves the Lease to the run for a longer one, in which nodes may be
observed and Helm may work. So a module that is killed is soon known to be dead, and a run that is slow between two
modules is not.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing

from ..base.errors import RdmaError
from ..boundary.kubernetes import Uid
from ..boundary.words import Word

#: a namespace that each cluster has, and that nobody can delete
NAMESPACE, NAME = "default", "linerate-rdma"
#: seconds that a Lease lasts after its last renewal: while a module works, and between two modules of a run
WORKING, BETWEEN = 60, 900
#: seconds between two renewals of a module that works
RENEWAL = 15.0
#: seconds by which the clocks of several API servers of one cluster may differ, their answers' whole seconds included
SKEW = 10.0
#: seconds that a module waits for the Lease: long enough that one of a killed module has run out
WAIT, LOOK = 90.0, 5.0
#: what frees the cluster by hand
FREE = f"kubectl delete lease {NAME} -n {NAMESPACE}"


@dataclasses.dataclass(frozen=True)
class Holder:
    """One invocation of ansible-playbook in one run.

    :ivar run: identity of the run; of a module outside of a run a name of its own
    :ivar host: name of the machine
    :ivar process: identity of the process there (_observe/process/process.py); empty where it is not known
    """

    run: str
    host: str = ""
    process: str = ""

    def is_mine(self, me: Holder) -> bool:
        """Return whether this is the same invocation. A resumed run is another one: the first one may still live."""
        return (self.run, self.process) == (me.run, me.process)


@dataclasses.dataclass(frozen=True)
class Lease:
    """The Lease, as the API server shows it.

    :ivar since: when the holder took it; UTC, by the API server's clock, like ``renewed``; None where it does not say
    :ivar seconds: that it lasts after ``renewed``
    :ivar transitions: how often it went to another holder
    :ivar doing: module of the holder that renewed it
    :ivar uid: of the object; empty before it is made
    :ivar version: its resourceVersion: whoever writes on an older one is refused
    """

    holder: Holder
    since: typing.Optional[datetime.datetime] = None
    renewed: typing.Optional[datetime.datetime] = None
    seconds: int = BETWEEN
    transitions: int = 0
    doing: str = ""
    uid: Uid = ""
    version: Word = ""


class LeaseHeld(RdmaError):
    """Another run changes the cluster. Says which one, where, since when, and what to do."""

    def __init__(self, lease: Lease, now: typing.Optional[datetime.datetime]) -> None:
        left = remaining(lease, now)
        over = f"within {left:.0f} s" if left is not None else f"{lease.seconds} s after its last sign of life"
        remedy = f"Wait until it ends, or end it there. If it is dead, its hold runs out {over}; at once with: {FREE}"
        super().__init__(f"{describe(lease, now)} holds this cluster, and nothing was changed", remedy)


class LeaseLost(RdmaError):
    """The run is no longer the one that may change the cluster. From here on nothing may be made or deleted."""

    def __init__(
        self, me: Holder, lease: typing.Optional[Lease], now: typing.Optional[datetime.datetime] = None
    ) -> None:
        taker = (
            f"{describe(lease, now)} has it now"
            if lease is not None and lease.holder.run
            else f"nobody has it now: another run took and left it, or {FREE}"
        )
        seen = f"run {me.run} lost its hold on this cluster, so it stops before it makes or deletes anything; {taker}"
        super().__init__(
            seen, "What it saw since then counts for nothing: run all stages again, when no other run is at work"
        )


#: why a holder may write itself into the Lease, or that it may not
Verdict = typing.Literal["free", "mine", "resumed", "dead", "expired", "held"]


def decide(
    lease: typing.Optional[Lease],
    me: Holder,
    now: typing.Optional[datetime.datetime],
    unchanged: float,
    alive: typing.Optional[bool],
) -> Verdict:
    """Decide whether ``me`` may have the Lease.

    The clocks of two hosts that run ansible-playbook are never compared. ``renewed`` and ``now`` are both the API
    server's own (header Date of its answers), so that they tell how long the holder has been silent, whatever the hosts
    believe. Where they do not tell (no such header, or times that somebody else wrote), what counts is how long the
    Lease was seen unchanged from here, by one clock: client-go does that alone [tools/leaderelection]. It would not do
    by itself, since each module starts to look anew.

    :param now: when the API server showed the Lease, by its own clock
    :param unchanged: seconds that it was seen unchanged
    :param alive: whether the holder's process runs on this machine; None where that can't be known from here
    """
    if lease is None or not lease.holder.run:
        return "free"
    if lease.holder.is_mine(me):
        return "mine"
    if alive is False:
        return "dead"
    if lease.holder.run == me.run and alive is None:
        return "resumed"
    return "expired" if silence(lease, now, unchanged) > lease.seconds + SKEW else "held"


def silence(lease: Lease, now: typing.Optional[datetime.datetime], unchanged: float = 0.0) -> float:
    """Return the seconds since the holder's last sign of life, at least."""
    told = (now - lease.renewed).total_seconds() if now is not None and lease.renewed is not None else 0.0
    return max(told, unchanged)


def remaining(lease: Lease, now: typing.Optional[datetime.datetime]) -> typing.Optional[float]:
    """Return the seconds until others may take it, if it is not renewed; None where nobody knows, since a time is
    missing or lies in the future."""
    if now is None or lease.renewed is None or (now - lease.renewed).total_seconds() < -SKEW:
        return None
    return max(0.0, lease.seconds + SKEW - silence(lease, now))


def take_lease(lease: typing.Optional[Lease], me: Holder, now: datetime.datetime, seconds: int, doing: str) -> Lease:
    """Return the Lease with ``me`` in it, renewed at ``now``."""
    if lease is None:
        return Lease(me, now, now, seconds, 0, doing)
    if lease.holder.is_mine(me):
        return dataclasses.replace(lease, holder=me, renewed=now, seconds=seconds, doing=doing)
    return dataclasses.replace(
        lease, holder=me, since=now, renewed=now, seconds=seconds, transitions=lease.transitions + 1, doing=doing
    )


def describe(lease: Lease, now: typing.Optional[datetime.datetime]) -> str:
    """``run X on host Y (process 42), since 2026-01-02 03:04:05 UTC, last seen 12 s ago in rdma_bandwidth,``: subject
    of a sentence."""
    holder, process = lease.holder, process_number(lease.holder.process)
    where = f" on host {holder.host}" if holder.host else ""
    where += f" (process {process})" if process else ""
    since = f", since {lease.since:%Y-%m-%d %H:%M:%S} UTC" if lease.since is not None else ""
    seen = (
        f", last seen {max(0.0, silence(lease, now)):.0f} s ago"
        if now is not None and lease.renewed is not None
        else ""
    )
    doing = f" in {lease.doing}" if seen and lease.doing else ""
    return f"run {holder.run}{where}{since}{seen}{doing}{',' if since or seen else ''}"


def process_number(identity: str) -> str:
    """Return the process id in the identity of a process; empty where there is none."""
    parts = identity.split("/")
    return parts[2] if len(parts) == 4 else ""
