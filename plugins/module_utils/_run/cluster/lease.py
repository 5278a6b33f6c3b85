# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes the Lease of the run that changes the cluster, renews it while a module works, and gives it back. What it may
do is decided in _model/run/lease.py.

Nobody is asked twice and nothing is locked: each write names the resourceVersion that was read, so that of two who want
the Lease the API server takes one.
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
    decide,
    describe,
    remaining,
    take_lease,
)
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.patience import passes
from ..._observe.kubernetes.shell import Clock
from ..._observe.process import process
from ..._parse.kubernetes import lease as parse
from ..._render.cluster import lease as render

Alive = typing.Callable[[str], typing.Optional[bool]]
Say = typing.Callable[[str], None]
#: writes that somebody else may come before, one after the other
_TRIES = 10
#: seconds between two looks at a server that is away
_AGAIN = 1.0


def clock() -> float:
    """Return the seconds that also count while the machine sleeps: the Lease runs out meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _end_this_process() -> None:
    # as if it were told to end from outside: what it made it removes on the way out
    os.kill(os.getpid(), signal.SIGTERM)


class Keeper:
    """The hold of one module on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        me: Holder,
        doing: str,
        now: Clock = clock,
        alive: Alive = process.alive,
        end: typing.Callable[[], None] = _end_this_process,
        pause: typing.Callable[[float], object] = time.sleep,
    ) -> None:
        """:param doing: name of the module
        :param end: ends this process, whose ansible-playbook is gone
        :param pause: sleeps so many seconds, while the server is away
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
        """Take the Lease, or wait a while for the one who has it.

        :param continues: whether this run held it before and has not given it back. Then nobody may have had it in
            between: what the run saw would be old
        :param wait: seconds, at most
        :raises LeaseHeld: another run has it
        :raises LeaseLost: the run held it, and another one had it since
        :raises ApiError: the server refuses, or cannot be reached
        """
        begin = self._clock()
        seen, since, told, failures = "", begin, False, 0
        while True:
            moment = self._clock()
            lease, now = self._look()
            if lease is not None and seen != f"{lease.uid} {lease.version}":
                seen, since = f"{lease.uid} {lease.version}", moment
            verdict = decide(
                lease, self._me, now, moment - since, self._alive(lease.holder.process) if lease is not None else None
            )
            if verdict == "held" and lease is not None:
                if moment - begin >= wait:
                    raise LeaseHeld(lease, now)
                if not told:
                    say(f"waiting for at most {wait:.0f} s: {describe(lease, now)} holds this cluster")
                told = True
                pause(LOOK)
                continue
            if continues and verdict != "mine":
                raise LeaseLost(self._me, lease, now)
            try:
                self._write(lease, now, WORKING)
            except ApiError as error:
                failures += 1
                if not _came_second(error) or failures >= _TRIES:
                    raise
                continue
            self._renewed = moment
            return

    def ask(self) -> float:
        """Before anything is written: to the cluster, where it may reboot, drain or delete, and where no API server
        watches. Always looks at the server: the Lease may have been deleted, and another run have it. A server that is
        away for a moment is asked again, for as long as nobody else can take it.

        :returns: seconds for which nobody else can take it, from now on
        :raises LeaseLost: the run does not hold the Lease any more
        :raises ApiError: whether it does is not known
        """
        while True:
            try:
                self._look_or_renew()
                return self._left()
            except ApiError as error:
                if not passes(error, "get", "") or self._left() <= 2 * _AGAIN:
                    raise
            self._pause(_AGAIN)

    def _left(self) -> float:
        """Return the seconds for which nobody else can take the Lease."""
        return WORKING - (self._clock() - self._renewed)

    def _look_or_renew(self) -> None:
        if self._lost is not None:
            raise self._lost
        if self._clock() - self._renewed > RENEWAL:
            self.renew(WORKING)
            return
        with self._lock:
            lease, now = self._look()
            if lease is None or not lease.holder.is_mine(self._me):
                self._lost = LeaseLost(self._me, lease, now)
                raise self._lost

    def assure(self, continues: bool, seconds: float) -> None:
        """Before something is written on a node, for as long as that may take. Renews the Lease only where it would not
        last, so that many nodes ask at once.

        :param continues: whether this run has taken it
        :param seconds: that it has to last
        :raises LeaseHeld: another run has it
        :raises LeaseLost: this run had it
        :raises ApiError: the server refuses, or cannot be reached
        """
        for left in reversed(range(_TRIES)):
            lease, now = self._look()
            if lease is None or not lease.holder.is_mine(self._me):
                raise (
                    LeaseHeld(lease, now)
                    if lease is not None and lease.holder.run and not continues
                    else LeaseLost(self._me, lease, now)
                )
            if (remaining(lease, now) or 0.0) - SKEW >= seconds:
                return
            try:
                self._write(lease, now, BETWEEN)
                return
            except ApiError as error:
                if not _came_second(error) or not left:
                    raise

    def renew(self, seconds: int) -> None:
        """:raises LeaseLost: somebody else has the Lease, or nobody
        :raises ApiError: the server refuses, or cannot be reached
        """
        with self._lock:
            for left in reversed(range(_TRIES)):
                moment = self._clock()
                lease, now = self._look()
                if lease is None or not lease.holder.is_mine(self._me):
                    self._lost = LeaseLost(self._me, lease, now)
                    raise self._lost
                try:
                    self._write(lease, now, seconds)
                except ApiError as error:
                    if not _came_second(error) or not left:
                        raise
                    continue
                self._renewed = moment
                return

    def release(self) -> bool:
        """Give the Lease back; False where this run did not have it.

        :raises ApiError: the server refuses, or cannot be reached
        """
        with self._lock:
            for _number in range(_TRIES):
                lease, _now = self._look()
                if lease is None or not lease.holder.is_mine(self._me):
                    return False
                if self._cluster.delete(
                    "Lease", NAMESPACE, NAME, only={"uid": lease.uid, "resourceVersion": lease.version}
                ):
                    return True
            return False

    @contextlib.contextmanager
    def working(self, stays: bool) -> typing.Iterator[None]:
        """Renew the Lease while the body runs, and leave it to the run then, or give it back.

        A body that was interrupted is the end of its run: the Lease is given back at once, so that the next run need
        not wait.

        :param stays: whether the run goes on
        :raises LeaseLost: it was lost meanwhile. Whatever the body says of it is but the consequence
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
                self._leave(stays and not interrupted)
            if self._lost is not None and error is not self._lost and not interrupted:
                raise self._lost from error
            raise
        over.set()
        with contextlib.suppress(ApiError):
            self._leave(stays)

    def _leave(self, stays: bool) -> None:
        if stays:
            self.renew(BETWEEN)
        else:
            self.release()

    def keep(self, wait: typing.Callable[[float], bool]) -> None:
        """Renew the Lease in a thread, until ``wait`` ends it, or the Lease is lost."""
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

    def _look(self) -> tuple[typing.Optional[Lease], typing.Optional[datetime.datetime]]:
        found, date = self._cluster.dated("Lease", NAMESPACE, NAME)
        return (parse.lease(found) if found is not None else None), parse.http_date(date)

    def _write(self, lease: typing.Optional[Lease], now: typing.Optional[datetime.datetime], seconds: int) -> None:
        moment = now or datetime.datetime.now(datetime.timezone.utc)
        wanted = render.render_lease(take_lease(lease, self._me, moment, seconds, self._doing))
        (self._cluster.create if lease is None else self._cluster.replace)(wanted)


def _came_second(error: ApiError) -> bool:
    """Return whether another holder wrote or deleted the Lease since it was read."""
    return error.reason in ("AlreadyExists", "Conflict", "NotFound")
