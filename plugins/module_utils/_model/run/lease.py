# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease of the run (coordination.k8s.io/v1), which allows one run at a time to change a cluster. The decisions are
made here without I/O.

A run holds the Lease from its first change to its end, without a daemon. While a module works, one of its threads
renews the Lease, each time for a short duration. When the module ends, it extends the Lease for a longer duration, in
which nodes may be observed and Helm may work. The end of a killed module is thus detected soon, and a slow run does not
lose the Lease between two modules.
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
#: seconds that a run watches a Lease beyond its duration: a renewal may have been on its way when it began
SKEW = 10.0
#: seconds that a module waits for the Lease: long enough to see that a killed module does not renew it
WAIT, LOOK = 90.0, 5.0
#: what frees the cluster by hand
FREE = f"kubectl delete lease {NAME} -n {NAMESPACE}"


@dataclasses.dataclass(frozen=True)
class Holder:
    """The identity of an invocation of ansible-playbook, as the Lease names its holder.

    :ivar run: identity of the run; a module that runs outside of a run has a name of its own
    :ivar host: name of the machine on which ansible-playbook runs
    :ivar process: identity of its process on that machine (_observe/process/process.py); empty if unknown
    """

    run: str
    host: str = ""
    process: str = ""

    def is_mine(self, me: Holder) -> bool:
        """Return whether this holder is the invocation ``me``. Run and process are compared: a resumed run is a
        different invocation, because the process of the interrupted run may still be running.

        :param me: identity of the current invocation
        """
        return (self.run, self.process) == (me.run, me.process)


@dataclasses.dataclass(frozen=True)
class Lease:
    """The Lease that gives one run at a time the right to change the cluster, as the API server reports it.

    :ivar holder: invocation that has the Lease
    :ivar since: time at which the holder took it; UTC, by the API server's clock, like ``renewed``; None if missing
    :ivar seconds: validity after ``renewed``, in seconds
    :ivar transitions: number of changes of the holder
    :ivar doing: module of the holder that renewed it
    :ivar uid: uid of the object; empty before it is created
    :ivar version: resourceVersion of the object; the API server rejects a write based on an older one
    :ivar stamp: monotonic time of the holder's machine at the renewal, in seconds; None if missing. Only the holder
        compares it, because other machines have other times
    """

    holder: Holder
    since: typing.Optional[datetime.datetime] = None
    renewed: typing.Optional[datetime.datetime] = None
    seconds: int = BETWEEN
    transitions: int = 0
    doing: str = ""
    uid: Uid = ""
    version: Word = ""
    stamp: typing.Optional[float] = None


class LeaseHeld(RdmaError):
    """The error that another run holds the Lease. The message names the run, its host, its start and the remedy."""

    def __init__(self, lease: Lease, now: typing.Optional[datetime.datetime]) -> None:
        left = count_remaining_seconds(lease, now)
        over = f"within {left:.0f} s" if left is not None else f"{lease.seconds} s after its last renewal"
        remedy = (
            f"Wait until that run ends, or end that run on its host. If that run is dead, its Lease expires {over}, and"
            f" the next run takes it over once it has seen it unchanged for {lease.seconds + SKEW:.0f} s. To release"
            f" the Lease immediately, run: {FREE}"
        )
        super().__init__(
            f"{describe_holder(lease, now)} holds this cluster, so this run did not change the cluster", remedy
        )


class LeaseLost(RdmaError):
    """The error that the run has lost the Lease. It must not create or delete anything from then on."""

    def __init__(
        self, me: Holder, lease: typing.Optional[Lease], now: typing.Optional[datetime.datetime] = None
    ) -> None:
        taker = (
            f"{describe_holder(lease, now)} holds the Lease now"
            if lease is not None and lease.holder.run
            else f"no run holds the Lease now: a different run acquired and released it, or a user ran {FREE}"
        )
        seen = (
            f"run {me.run} lost its Lease on this cluster, so the run stops before it creates or deletes any object;"
            f" {taker}"
        )
        super().__init__(
            seen, "The results of this run since then are not valid. Rerun all stages when no other run is active"
        )


#: why a holder may write itself into the Lease, or that it may not
Verdict = typing.Literal["free", "mine", "resumed", "dead", "expired", "held"]


def decide_taking(
    lease: typing.Optional[Lease],
    me: Holder,
    unchanged: float,
    alive: typing.Optional[bool],
) -> Verdict:
    """Decide whether ``me`` may take the Lease. Return ``held`` if it may not, and otherwise the reason why it may.

    The clocks of two machines are never compared, neither those of two hosts that run ansible-playbook nor those of two
    API servers. The Lease of another run has expired if this process has seen it unchanged for its whole duration, by
    its own monotonic clock, as in client-go [tools/leaderelection].

    :param me: identity of the invocation
    :param unchanged: seconds for which the Lease was seen unchanged
    :param alive: whether the holder's process runs on this machine; None if that cannot be determined
    """
    if lease is None or not lease.holder.run:
        return "free"
    if lease.holder.is_mine(me):
        return "mine"
    if alive is False:
        return "dead"
    if lease.holder.run == me.run and alive is None:
        return "resumed"
    return "expired" if unchanged > lease.seconds + SKEW else "held"


def seems_expired(lease: Lease, now: typing.Optional[datetime.datetime]) -> bool:
    """Return whether the Lease has expired by the clocks of the API servers. These may differ, so no run takes a Lease
    for that: it only is a reason to watch the Lease for its whole duration. Return False if a time is missing.

    :param now: time of the API server's answer that contained the Lease; None if unknown
    """
    return _compute_holder_silence(lease, now) > lease.seconds + SKEW


def _compute_holder_silence(lease: Lease, now: typing.Optional[datetime.datetime]) -> float:
    """Return for how many seconds the holder has not renewed the Lease, by the clocks of the API servers; 0 if a time
    is missing.

    :param now: time of the API server's answer that contained the Lease; None if unknown
    """
    return (now - lease.renewed).total_seconds() if now is not None and lease.renewed is not None else 0.0


def count_own_seconds(lease: Lease, clock: float) -> float:
    """Return the seconds for which no other run can take a Lease that this run holds, counted from its last renewal.
    Return 0 if the time of the renewal is unknown.

    :param clock: present monotonic time of this machine, in seconds
    """
    passed = clock - lease.stamp if lease.stamp is not None else -1.0
    return max(0.0, lease.seconds - passed) if passed >= 0 else 0.0


def count_remaining_seconds(lease: Lease, now: typing.Optional[datetime.datetime]) -> typing.Optional[float]:
    """Return the seconds until the Lease expires by the clocks of the API servers, if it is not renewed. Return None if
    a time is missing or lies in the future.

    :param now: time of the API server's answer that contained the Lease; None if unknown
    """
    if now is None or lease.renewed is None or (now - lease.renewed).total_seconds() < -SKEW:
        return None
    return max(0.0, lease.seconds + SKEW - _compute_holder_silence(lease, now))


def take_lease(
    lease: typing.Optional[Lease],
    me: Holder,
    now: datetime.datetime,
    seconds: int,
    doing: str,
    stamp: typing.Optional[float] = None,
) -> Lease:
    """Return a copy of the Lease that ``me`` holds and has renewed at ``now``. Nothing is written to the cluster.

    :param lease: Lease as it was read; None if it does not exist
    :param me: identity of the current invocation
    :param seconds: validity of the Lease in seconds
    :param doing: name of the module that takes the Lease
    :param stamp: monotonic time of this machine before the Lease was read, in seconds; None if unknown
    """
    if lease is None:
        return Lease(me, now, now, seconds, 0, doing, stamp=stamp)
    taken = dataclasses.replace(lease, holder=me, renewed=now, seconds=seconds, doing=doing, stamp=stamp)
    if lease.holder.is_mine(me):
        return taken
    return dataclasses.replace(taken, since=now, transitions=lease.transitions + 1)


def describe_holder(lease: Lease, now: typing.Optional[datetime.datetime]) -> str:
    """Return a description of the holder, as subject of a sentence: ``run X on host Y (process 42), since 2026-01-02
    03:04:05 UTC, last seen 12 s ago in rdma_bandwidth,``.

    :param now: time of the API server's answer that contained the Lease; None if unknown
    """
    holder, process = lease.holder, process_number(lease.holder.process)
    where = f" on host {holder.host}" if holder.host else ""
    where += f" (process {process})" if process else ""
    since = f", since {lease.since:%Y-%m-%d %H:%M:%S} UTC" if lease.since is not None else ""
    seen = (
        f", last seen {max(0.0, _compute_holder_silence(lease, now)):.0f} s ago"
        if now is not None and lease.renewed is not None
        else ""
    )
    doing = f" in {lease.doing}" if seen and lease.doing else ""
    return f"run {holder.run}{where}{since}{seen}{doing}{',' if since or seen else ''}"


def process_number(identity: str) -> str:
    """Return the process id in the identity of a process, or an empty text if it has none.

    :param identity: identity of a process, as ``Holder.process`` contains it
    """
    parts = identity.split("/")
    return parts[2] if len(parts) == 4 else ""
