# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The checks before and after a restart of containerd on a node, in the process that runs the task.

systemd reports a restart as done although the node is lost: containerd starts without its CRI plugin if the plugin
cannot load its configuration, and a unit without ``KillMode=process`` ends the shims of all containers with containerd.
The kubelet reports a lost runtime after 30 s, so the Node alone proves nothing until then.
[src kubernetes pkg/kubelet/kubelet.go, updateRuntimeUp; src containerd containerd.service]
"""

from __future__ import annotations

import datetime
import re
import shlex
import time
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.kubernetes import SUBDOMAIN
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import parse_node
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import items_of, mapping_at
from ansible_collections.linerate.rdma.plugins.plugin_utils._gpu_containers import refuse_lost_gpus
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import mark_outside

#: the unit as it is after the restart, which reads the files of units as well
SHOW = "systemctl daemon-reload && systemctl show containerd --property=MainPID,KillMode,BoundBy,RequiredBy,ConsistsOf"
#: the configuration, decoded by the program of the unit and not used. The process has the options of the unit
DUMP = "xargs -0 sh -c 'exec \"$@\" config dump' containerd < /proc/{pid}/cmdline 2>&1 >/dev/null"
DUMP_OF_DEFAULT = "containerd config dump 2>&1 >/dev/null"
#: plugins of containerd, one a line: type, id, platforms, status. It belongs to each package of containerd
PLUGINS = "ctr plugins ls 2>&1"
KUBELET = "systemctl is-active kubelet"
NOW = "date +%s"
#: seconds until the Node must be Ready, and between two looks at it
READY, BETWEEN = 120.0, 5.0
#: the same if only the Node tells: the kubelet reports a status that does not change every 5 minutes
READY_ALONE = 420.0
#: seconds after which the kubelet reports a runtime that does not answer, with the time of its next look
REPORTED = 45.0
#: characters of what a node answers
_MOST = 500
#: name of a unit, and units that are examined
_UNIT, _MOST_UNITS = re.compile(r"[A-Za-z0-9:_.\\@-]{1,255}"), 50
_CRI = ("io.containerd.grpc.v1", "cri")
_AGAIN = "Then run the stage again"
#: runs a command, and has its ``rc`` and ``stdout``
Say = typing.Callable[[str], typing.Mapping[str, typing.Any]]


class ContainerdRestart:
    """A restart of containerd on one node, which the task itself performs between ``check`` and ``wait``.

    :param node: name of the node
    :param say: function that runs a command on the node and returns its ``rc`` and ``stdout``
    :param cluster: client of the API server
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that waits for a number of seconds
    """

    def __init__(
        self,
        node: str,
        say: Say,
        cluster: Cluster,
        clock: typing.Callable[[], float] = time.monotonic,
        pause: typing.Callable[[float], None] = time.sleep,
    ) -> None:
        self._node, self._say, self._cluster, self._clock, self._pause = node, say, cluster, clock, pause
        self._kubelet = False

    def check(self) -> None:
        """Verify before the restart that it ends no container and takes the GPUs of none, and that containerd can read
        its configuration. Remember whether the kubelet runs.

        :raises RdmaError: containerd must not be restarted
        """
        # the first command tells systemd to read the files of its units
        self.check_reload()
        code, text = self._ask(SHOW)
        unit = dict(line.partition("=")[::2] for line in text.splitlines())
        if code or "KillMode" not in unit:
            raise RdmaError(
                f"systemd does not report the unit of containerd: {_show(text)}. containerd was not restarted",
                f"Run systemctl status containerd on the node. {_AGAIN}",
            )
        if unit["KillMode"] != "process":
            raise RdmaError(
                f"the unit of containerd has KillMode={_show(unit['KillMode'])}, so its restart would end the running"
                " containers. containerd was not restarted",
                "Run systemctl edit containerd on the node, and set KillMode=process in the section [Service]."
                f" {_AGAIN}",
            )
        self._refuse_bound(unit)
        pid = unit.get("MainPID", "")
        has_process = pid.isascii() and pid.isdigit() and len(pid) < 10 and int(pid) > 0
        code, text = self._ask(DUMP.format(pid=pid) if has_process else DUMP_OF_DEFAULT)
        if code:
            raise RdmaError(
                f"containerd cannot read its configuration: {_show(text)}. containerd was not restarted",
                "Correct the file that the message names (usually /etc/containerd/config.toml), until containerd config"
                f" dump prints the configuration on the node. {_AGAIN}",
            )
        self._kubelet = self._ask(KUBELET)[0] == 0

    def check_reload(self) -> None:
        """Verify that no running container loses its GPUs when systemd reads the files of its units again.

        :raises RdmaError: a container would lose them, or it is not known
        """
        refuse_lost_gpus(self._node, self._ask, self._cluster)

    def _refuse_bound(self, unit: typing.Mapping[str, str]) -> None:
        """Verify that systemd stops or restarts no running unit with containerd, such as docker.service of older
        releases. The kubelet is awaited after the restart, and containers continue without it.

        :param unit: properties of the unit of containerd
        :raises RdmaError: systemd stops or restarts another unit
        """
        named = {name for key in ("BoundBy", "RequiredBy", "ConsistsOf") for name in unit.get(key, "").split()}
        others = sorted(name for name in named - {"kubelet.service"} if _UNIT.fullmatch(name))[:_MOST_UNITS]
        active = [name for name in others if self._ask(f"systemctl is-active -- {shlex.quote(name)}")[0] == 0]
        if active:
            raise RdmaError(
                f"systemd stops or restarts these units together with containerd: {', '.join(active)}."
                " containerd was not restarted",
                "Stop these units on the node if they are not needed, or restart containerd at a time when they may"
                f" stop. {_AGAIN}",
            )

    def wait(self) -> None:
        """Wait after the restart until the CRI plugin of containerd runs, the kubelet runs if it ran before, and the
        Node is Ready. If ``ctr`` cannot report whether the CRI plugin runs, the Node must report Ready at a time so
        long after the restart that this proves it.

        :raises RdmaError: the node is lost, or its state is not known, after a time limit
        """
        loaded, why = self._find_cri_plugin()
        since = 0.0 if loaded else self._read_clock() + REPORTED
        limit = READY if loaded else READY_ALONE
        end = self._clock() + limit
        while True:
            open_point = self._find_open_point(since)
            if open_point is None and not loaded:
                raise RdmaError(
                    f"containerd was restarted, and it is not known whether its CRI plugin runs: {why}, and the cluster"
                    f" has no Node {self._node}",
                    "Make ctr plugins ls work as root on the node, or give the host the name of its Node in the"
                    f" inventory. {_AGAIN}",
                )
            if not open_point:
                return
            if self._clock() >= end:
                raise RdmaError(
                    f"containerd was restarted, and the node is lost {limit:.0f} s later: {open_point}",
                    f"Run kubectl describe node {self._node}, and journalctl -u containerd -u kubelet on the node."
                    f" Correct the cause until the Node is Ready. {_AGAIN}",
                )
            self._pause(BETWEEN)

    def _find_cri_plugin(self) -> tuple[bool, str]:
        """Return True and an empty text if ``ctr`` reports that the CRI plugin runs. Return False and the reason if
        ``ctr`` reports no plugins at all.

        :raises RdmaError: containerd runs without this plugin
        """
        code, text = self._ask(PLUGINS)
        if code:
            return False, f"ctr plugins ls reports no plugins ({_show(text)})"
        rows = [line.split() for line in text.splitlines()]
        status = next((row[-1] for row in rows if tuple(row[:2]) == _CRI), "not loaded")
        if status != "ok":
            raise RdmaError(
                f"containerd was restarted, and runs without its CRI plugin (status: {_show(status)}), so the kubelet"
                " has no container runtime",
                "Run journalctl -u containerd on the node, correct /etc/containerd/config.toml, and run systemctl"
                f" restart containerd there. {_AGAIN}",
            )
        return True, ""

    def _find_open_point(self, since: float) -> typing.Optional[str]:
        """Return the first condition that is not yet met after the restart, as text: the kubelet runs, and the Node is
        Ready. Return an empty text if all are met, and None if the kubelet runs and the cluster has no Node of this
        name.

        :param since: time of the node, in seconds since 1970. An older status of the Node does not count
        """
        if self._kubelet and self._ask(KUBELET)[0]:
            return "the unit kubelet is not active any more"
        try:
            found = self._cluster.list("Node", fields=f"metadata.name={self._node}").items
            resource = next(iter(found), None) if SUBDOMAIN.fits(self._node) else None
            if resource is None:
                return None
            seen = parse_node(resource)
            if not seen.ready:
                return f"the Node is not Ready ({_show(seen.not_ready or 'the kubelet reports no reason')})"
            return "" if _read_heartbeat(resource) >= since else "the kubelet has reported no new status of the Node"
        except ApiError as error:
            return f"the Node could not be read: {error}"

    def _read_clock(self) -> float:
        """Return the time of the node in seconds since 1970.

        :raises RdmaError: the node does not report it
        """
        code, text = self._ask(NOW)
        shown = text.strip()
        if code or not (shown.isascii() and shown.isdigit() and len(shown) <= 12):
            raise RdmaError(
                f"containerd was restarted, and the node does not report its time: {_show(text)}",
                f"Run date +%s on the node. {_AGAIN}",
            )
        return float(shown)

    def _ask(self, command: str) -> tuple[int, str]:
        answer = self._say(command)
        code = answer.get("rc")
        return code if isinstance(code, int) else 1, str(answer.get("stdout") or "")


def _read_heartbeat(resource: typing.Any) -> float:
    """Return the time at which the kubelet last reported the condition Ready of a v1 Node, in seconds since 1970.
    Return 0 if the time is missing or invalid.
    """
    for item in items_of(mapping_at(resource, "status"), "conditions", "Node"):
        if item.get("type") == "Ready":
            try:
                moment = str(item.get("lastHeartbeatTime") or "").replace("Z", "+00:00")
                return datetime.datetime.fromisoformat(moment).timestamp()
            except (ValueError, OverflowError, OSError):
                return 0.0
    return 0.0


def _show(text: str) -> str:
    shown: str = mark_outside(escape.escape_line(cut_text(text.strip() or "no output", _MOST)))
    return shown
