# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes the Lease of the run that changes the cluster, renews it while a module works, and releases it.
_model/run/lease.py decides what is allowed.

No lock is needed: each write contains the resourceVersion that was read, so that the API server accepts only one of two
competing runs.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import threading
import time
import typing

from ..._model.run.lease import (
    BETWEEN,
    FREE,
    LOOK,
    NAME,
    NAMESPACE,
    RENEWAL,
    SKEW,
    WORKING,
    Holder,
    Lease,
    LeaseHeld,
    LeaseLost,
    count_own_seconds,
    decide_taking,
    describe_holder,
    seems_expired,
    take_lease,
)
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.patience import may_retry
from ..._observe.kubernetes.shell import Clock
from ..._observe.process import process
from ..._parse.kubernetes import lease as parse
from ..._render.cluster import lease as render

Alive = typing.Callable[[str], typing.Optional[bool]]
Say = typing.Callable[[str], None]
#: writes that somebody else may come before, one after the other
_TRIES = 10
#: seconds between two lines of progress about a Lease that is watched
_NEWS = 60.0
#: seconds between two looks at a server that is away
_AGAIN = 1.0


def read_clock() -> float:
    """Return a monotonic time in seconds that also advances while the machine is suspended, because a Lease expires
    meanwhile too. Where the system does not provide such a clock, the time does not advance during a suspension.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _end_this_process() -> None:
    # as if it were told to end from outside: what it made it removes on the way out
    os.kill(os.getpid(), signal.SIGTERM)


class Keeper:
    """A client that takes, verifies, renews and releases the Lease of one cluster on behalf of one module."""

    def __init__(
        self,
        cluster: Cluster,
        me: Holder,
        doing: str,
        now: Clock = read_clock,
        alive: Alive = process.is_alive,
        end: typing.Callable[[], None] = _end_this_process,
        pause: typing.Callable[[float], object] = time.sleep,
    ) -> None:
        """Create a client for the Lease; nothing is read or written yet.

        :param cluster: client of the API server
        :param me: identity of this run
        :param doing: name of the module that works under the Lease, which the Lease shows to other runs
        :param now: function that returns the time of a monotonic clock, in seconds
        :param alive: function that gets the identity of a process and returns whether it still runs; None if unknown
        :param end: function that ends this process. It is called when the ansible-playbook of this process has ended
        :param pause: function that sleeps for a number of seconds while the API server is unreachable
        """
        self._cluster = cluster
        self._me = me
        self._doing = doing
        self._clock = now
        self._alive = alive
        self._end = end
        self._pause = pause
        self._lock = threading.Lock()
        self._renewed = 0.0
        self._lost: typing.Optional[LeaseLost] = None

    def take(self, continues: bool, pause: typing.Callable[[float], None], say: Say, wait: float) -> None:
        """Take the Lease. While another run holds it, wait until that run releases it. A Lease that has expired by the
        clocks of the API servers is watched for its whole duration, because these clocks may differ: it is taken over
        only if it does not change meanwhile.

        :param continues: whether this run took the Lease before and has not released it. If so, it is an error if the
            Lease is no longer its own: another run may have changed the cluster, so that the facts of this run are
            outdated
        :param pause: function that sleeps for a number of seconds
        :param say: function that gets a message as text; called when the wait begins, and once a minute while a Lease
            is watched
        :param wait: longest wait in seconds for a run whose Lease has not expired
        :raises LeaseHeld: another run still holds the Lease after the wait
        :raises LeaseLost: this run held the Lease before, and no longer does
        :raises ApiError: the API server refuses, or cannot be reached
        """
        begin = self._clock()
        seen, since, changed, failures = "", begin, False, 0
        told: typing.Optional[float] = None
        expired = False
        while True:
            moment = self._clock()
            lease, now = self._read_lease()
            if lease is not None and seen != f"{lease.uid} {lease.version}":
                changed = changed or bool(seen)
                seen, since = f"{lease.uid} {lease.version}", moment
            verdict = decide_taking(
                lease, self._me, moment - since, self._alive(lease.holder.process) if lease is not None else None
            )
            if verdict == "held" and lease is not None:
                expired = expired or seems_expired(lease, now)
                if expired and continues:
                    raise LeaseLost(self._me, lease, now)
                # a holder that renews the Lease is alive, whatever the clocks say; no run writes a longer Lease
                watches = expired and not changed and lease.seconds <= BETWEEN
                if not watches and moment - begin >= wait:
                    raise LeaseHeld(lease, now)
                if told is None or (watches and moment - told >= _NEWS):
                    left = lease.seconds + SKEW - (moment - since)
                    say(_describe_watch(lease, now, left) if watches else _describe_wait(lease, now, wait))
                    told = moment
                pause(LOOK)
                continue
            if continues and verdict != "mine":
                raise LeaseLost(self._me, lease, now)
            try:
                self._write(lease, now, WORKING, moment)
            except ApiError as error:
                failures += 1
                if not _came_second(error) or failures >= _TRIES:
                    raise
                continue
            self._renewed = moment
            return

    def ask(self) -> float:
        """Verify that this run still holds the Lease. Call it before each write to the cluster or to a node.

        The API server is always read, because the Lease may have been deleted and taken by another run. If the API
        server is temporarily unreachable, retry every second for as long as no other run can take the Lease.

        :returns: seconds from now during which no other run can take the Lease
        :raises LeaseLost: this run no longer holds the Lease
        :raises ApiError: it is unknown whether this run holds the Lease
        """
        while True:
            try:
                self._read_or_renew()
                return self._left()
            except ApiError as error:
                if not may_retry(error, "get", "") or self._left() <= 2 * _AGAIN:
                    raise
            self._pause(_AGAIN)

    def _left(self) -> float:
        """Return the seconds from now in which no other run can take the Lease: ``WORKING`` seconds after the last
        renewal, it may. The result is negative after that time.
        """
        return WORKING - (self._clock() - self._renewed)

    def _read_or_renew(self) -> None:
        if self._lost is not None:
            raise self._lost
        if self._clock() - self._renewed > RENEWAL:
            self.renew(WORKING)
            return
        with self._lock:
            lease, now = self._read_lease()
            if lease is None or not lease.holder.is_mine(self._me):
                self._lost = LeaseLost(self._me, lease, now)
                raise self._lost

    def assure(self, continues: bool, seconds: float) -> None:
        """Verify, before a write on a node, that this run holds the Lease for the duration of that write. Renew the
        Lease only if it would expire earlier, because many nodes may check at the same time.

        :param continues: whether this run has taken the Lease before. It decides the error if another run holds the
            Lease
        :param seconds: seconds for which the Lease must not expire
        :raises LeaseHeld: another run holds the Lease, and this run has not taken it before
        :raises LeaseLost: this run took the Lease before and has lost it, or no run holds it
        :raises ApiError: the API server refuses, or cannot be reached
        """
        for left in reversed(range(_TRIES)):
            moment = self._clock()
            lease, now = self._read_lease()
            if lease is None or not lease.holder.is_mine(self._me):
                raise (
                    LeaseHeld(lease, now)
                    if lease is not None and lease.holder.run and not continues
                    else LeaseLost(self._me, lease, now)
                )
            if count_own_seconds(lease, moment) >= seconds:
                return
            try:
                self._write(lease, now, BETWEEN, moment)
                return
            except ApiError as error:
                if not _came_second(error) or not left:
                    raise

    def renew(self, seconds: int) -> None:
        """Renew the Lease, so that no other run takes it. Retry if another client changes the Lease at the same time.

        :param seconds: new duration of the Lease in seconds
        :raises LeaseLost: another run holds the Lease, or no run does
        :raises ApiError: the API server refuses, or cannot be reached
        """
        with self._lock:
            for left in reversed(range(_TRIES)):
                moment = self._clock()
                lease, now = self._read_lease()
                if lease is None or not lease.holder.is_mine(self._me):
                    self._lost = LeaseLost(self._me, lease, now)
                    raise self._lost
                try:
                    self._write(lease, now, seconds, moment)
                except ApiError as error:
                    if not _came_second(error) or not left:
                        raise
                    continue
                self._renewed = moment
                return

    def release(self) -> bool:
        """Delete the Lease. Return False if this run does not hold it, or if the API server refused each attempt
        because the Lease was changed at the same time.

        :raises ApiError: the API server refuses, or cannot be reached
        """
        with self._lock:
            for _number in range(_TRIES):
                lease, _now = self._read_lease()
                if lease is None or not lease.holder.is_mine(self._me):
                    return False
                if self._cluster.delete(
                    "Lease", NAMESPACE, NAME, only={"uid": lease.uid, "resourceVersion": lease.version}
                ):
                    return True
            return False

    @contextlib.contextmanager
    def working(self, stays: bool) -> typing.Iterator[None]:
        """Return a context manager in which a thread renews the Lease. At its end, the Lease is kept for the following
        tasks of the run, or released. If the body is interrupted from the keyboard, the Lease is released at once,
        because the run ends: the next run then need not wait.

        :param stays: whether the run continues after the body, so that it keeps the Lease
        :raises LeaseLost: the Lease was lost meanwhile. This error replaces the error of the body, which is only a
            consequence
        """
        over = threading.Event()
        threading.Thread(target=self.keep, args=(over.wait,), daemon=True).start()
        try:
            yield
        except BaseException as error:
            over.set()
            # a module that fails ends with SystemExit, and its run goes on
            interrupted = isinstance(error, KeyboardInterrupt)
            with contextlib.suppress(ApiError, LeaseLost):
                self._keep_or_release_lease(stays and not interrupted)
            if self._lost is not None and error is not self._lost and not interrupted:
                raise self._lost from error
            raise
        over.set()
        with contextlib.suppress(ApiError):
            self._keep_or_release_lease(stays)

    def _keep_or_release_lease(self, stays: bool) -> None:
        if stays:
            self.renew(BETWEEN)
        else:
            self.release()

    def keep(self, wait: typing.Callable[[float], bool]) -> None:
        """Renew the Lease every ``RENEWAL`` seconds until ``wait`` returns true or the Lease is lost. If the
        ansible-playbook of this process is gone, end this process. This method runs in a thread of its own.

        :param wait: function that waits for a number of seconds, and returns whether to end
        """
        while not wait(RENEWAL):
            if self._me.process and self._alive(self._me.process) is False:
                # nobody reads what this module finds, and its pods are in the next run's way
                self._end()
                return
            try:
                self.renew(WORKING)
            except LeaseLost:
                return
            except ApiError:
                # ask() looks again before anything is written
                continue

    def _read_lease(self) -> tuple[typing.Optional[Lease], typing.Optional[datetime.datetime]]:
        found, date = self._cluster.dated("Lease", NAMESPACE, NAME)
        return (parse.parse_lease(found) if found is not None else None), parse.http_date(date)

    def _write(
        self, lease: typing.Optional[Lease], now: typing.Optional[datetime.datetime], seconds: int, stamp: float
    ) -> None:
        moment = now or datetime.datetime.now(datetime.timezone.utc)
        wanted = render.render_lease(take_lease(lease, self._me, moment, seconds, self._doing, stamp))
        (self._cluster.create if lease is None else self._cluster.replace)(wanted)


def _describe_wait(lease: Lease, now: typing.Optional[datetime.datetime], wait: float) -> str:
    """Return the line of progress of a run that waits for another one.

    :param wait: longest wait in seconds
    """
    return f"waiting at most {wait:.0f} s: {describe_holder(lease, now)} holds the lease of this cluster"


def _describe_watch(lease: Lease, now: typing.Optional[datetime.datetime], left: float) -> str:
    """Return the line of progress of a run that watches an expired Lease.

    :param left: seconds until it takes the Lease over
    """
    return (
        f"the lease of {describe_holder(lease, now)} has expired; it is taken over in {left:.0f} s if it does not"
        f" change until then. If that run is dead, this ends the wait: {FREE}"
    )


def _came_second(error: ApiError) -> bool:
    """Return whether the API server refused a write because another client had created, changed or deleted the Lease
    since it was read.
    """
    return error.reason in ("AlreadyExists", "Conflict", "NotFound")
