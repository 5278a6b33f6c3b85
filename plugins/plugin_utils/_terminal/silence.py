# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Report a task that takes long, and the hosts for which it waits, for the callback plugin ``stages``."""

from __future__ import annotations

import contextlib
import threading
import time
import typing

from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal.lines import FIRST_SILENCE, MOST_SILENCE

_LOOK_SECONDS = 1.0


class SilenceWatch:
    """The task that Ansible runs, since when, and on which hosts.

    :ivar task: name of the task; empty between two plays
    :ivar since: time of a monotonic clock at which the task began, in seconds
    """

    def __init__(
        self,
        lock: typing.Callable[[], contextlib.AbstractContextManager[typing.Any]],
        report: typing.Callable[[str, list[str], float, float], bool],
    ) -> None:
        """Begin without a task; ``start`` starts the thread.

        :param lock: function that returns the lock of Ansible's display
        :param report: function that shows a line about a task. It gets the name of the task, its hosts, its duration in
            seconds and the time of the monotonic clock, and returns whether it showed a line
        """
        self._display_lock, self._report = lock, report
        self._lock = threading.Lock()
        self.task = ""
        self.since = 0.0
        self._silence = FIRST_SILENCE
        self._hosts: dict[str, None] = {}
        self._done = threading.Event()
        self._watcher: typing.Optional[threading.Thread] = None

    def start(self) -> None:
        """Start the thread that reports, unless it runs."""
        if self._watcher is None:
            # a daemon, and one that prints under the lock that a fork of Ansible waits for
            self._watcher = threading.Thread(target=self.watch, daemon=True)
            self._watcher.start()

    def end(self) -> None:
        """End the thread. No further line is shown."""
        self._done.set()

    def begin_task(self, name: str) -> None:
        """Note that a task begins on no host yet."""
        with self._lock:
            self.task = name
            self.since, self._silence = time.monotonic(), FIRST_SILENCE
            self._hosts.clear()

    def clear_task(self) -> None:
        """Note that no task runs."""
        with self._lock:
            self.task = ""

    def add_host(self, name: str) -> None:
        """Note that the task begins on a host."""
        with self._lock:
            self._hosts[name] = None

    def remove_host(self, name: str) -> None:
        """Note that a host has answered."""
        with self._lock:
            self._hosts.pop(name, None)

    def watch(self) -> None:
        """Report silences until ``end`` is called."""
        while not self._done.wait(_LOOK_SECONDS):
            self.report_silence(time.monotonic())

    def report_silence(self, now: float) -> None:
        """Show the current task and its hosts if the task has run for some time. The silence before the next such line
        doubles, but grows by at most ``MOST_SILENCE`` seconds each time.

        :param now: time of a monotonic clock, in seconds
        """
        # Ansible forks under the lock of the display: no child of it comes to be while this one prints
        with self._display_lock(), self._lock:
            seconds = now - self.since
            due = self.task and self._hosts and seconds >= self._silence
            if due and self._report(self.task, list(self._hosts), seconds, now):
                self._silence = min(self._silence * 2, self._silence + MOST_SILENCE)
