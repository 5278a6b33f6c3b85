# SPDX-License-Identifier: GPL-3.0-or-later

"""Stands in for OpenShift's machine config daemon, on all nodes of MachineConfigPools: ``machine_config_daemon
KUBECONFIG [stay | fail | lose]``.

The daemon itself runs on Red Hat's operating system alone. What it tells the real controller, and in which order, is
the same: a node that joins has what its pool has; one that is to have another configuration asks to be drained, gets
the kernel arguments of it, is reset by its BMC, so that its BIOS takes what waits, and asks to be let go when it is
Ready with another boot. Files and units are not written. With ``stay`` nothing is, and no node is reset; with ``fail``
a node that is drained says that it cannot; with ``lose`` it loses power. Each step is a line of the output. It ends
when it is killed.
"""

from __future__ import annotations

import sys
import time
import typing

import kubernetes.config
import kubernetes.dynamic

from lab import description
from lab.machine_config import ANNOTATIONS, VERSION
from lab.planes import Lab

SECONDS = 0.5


class Told(typing.NamedTuple):
    """What the annotations of a node say, None where they say nothing. [machine-config-operator pkg/daemon/constants]

    :ivar has: the configuration that it has
    :ivar wanted: that the controller wants it to have
    :ivar asked: what the daemon asks of the controller: drain or uncordon, and for which configuration
    :ivar done: what of it the controller has done last
    """

    has: typing.Optional[str]
    wanted: typing.Optional[str]
    state: typing.Optional[str]
    asked: typing.Optional[str]
    done: typing.Optional[str]


#: annotations in the order of these fields
HAS, WANTED, STATE, ASKED, DONE, REASON = (
    f"{ANNOTATIONS}{key}"
    for key in ("currentConfig", "desiredConfig", "state", "desiredDrain", "lastAppliedDrain", "reason")
)


def told_by(node: typing.Mapping[str, typing.Any]) -> Told:
    annotations = node["metadata"].get("annotations") or {}
    return Told(*(annotations.get(key) for key in (HAS, WANTED, STATE, ASKED, DONE)))


class Daemon:
    """The daemons of all nodes.

    :param take: makes a node, by its name, boot with another configuration than the one that it has; None: no node is
        touched. What it returns is why it cannot; empty where it can
    """

    def __init__(
        self, take: typing.Optional[typing.Callable[[str, str, str], str]], say: typing.Callable[[str], None]
    ) -> None:
        self._take, self._say = take, say
        #: ids of the boots before
        self._boots: dict[str, str] = {}

    def step(self, node: typing.Mapping[str, typing.Any], pool: str) -> dict[str, str]:
        """One look at a node, and what is to be told of it then.

        :param pool: the configuration that its pool wants; empty where there is none
        """
        name, told = node["metadata"]["name"], told_by(node)
        if told.has is None:
            return {HAS: pool, WANTED: pool, STATE: "Done", ASKED: f"uncordon-{pool}"} if pool else {}
        if told.wanted == told.has or told.state == "Degraded":
            return {}
        if told.state != "Working":
            self._say(f"{name} goes to {told.wanted}")
            return {STATE: "Working", ASKED: f"drain-{told.wanted}"}
        if told.asked != told.done:
            return {}
        if told.asked == f"uncordon-{told.wanted}":
            self._say(f"{name} has {told.wanted}")
            self._boots.pop(name, None)
            return {HAS: str(told.wanted), STATE: "Done"}
        boot = node["status"]["nodeInfo"]["bootID"]
        if name not in self._boots:
            self._boots[name] = boot
            if self._take is not None:
                why = self._take(name, told.has, str(told.wanted))
                self._say(f"{name} {'cannot' if why else 'is reset'}")
                if why:
                    return {STATE: "Degraded", REASON: why}
        ready = any(
            item["type"] == "Ready" and item["status"] == "True" for item in node["status"].get("conditions") or []
        )
        return {ASKED: f"uncordon-{told.wanted}"} if self._take is None or (ready and boot != self._boots[name]) else {}


def pool_of(node: typing.Mapping[str, typing.Any], pools: typing.Sequence[typing.Mapping[str, typing.Any]]) -> str:
    """The configuration that a node joins with: that of its own pool, else of the workers'."""
    labels = node["metadata"].get("labels") or {}
    found = {
        pool["metadata"]["name"]: (pool["spec"].get("configuration") or {}).get("name") or ""
        for pool in pools
        if pool["spec"]["nodeSelector"]["matchLabels"].items() <= labels.items()
    }
    return next((config for name, config in sorted(found.items(), key=lambda item: item[0] == "worker")), "")


def changed(before: typing.Sequence[str], after: typing.Sequence[str]) -> list[str]:
    """The command that brings a node's boot entries from these kernel arguments to those; empty where they are the
    same."""
    words = {
        "--remove-args": [item for item in before if item not in after],
        "--args": [item for item in after if item not in before],
    }
    options = [f"{option}={' '.join(arguments)}" for option, arguments in words.items() if arguments]
    return ["grubby", "--update-kernel=ALL", *options] if options else []


def main() -> None:
    client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(sys.argv[1]))
    lab, pools = Lab(description.read()), client.resources.get(api_version=VERSION, kind="MachineConfigPool")
    nodes = client.resources.get(api_version="v1", kind="Node")
    configurations = client.resources.get(api_version=VERSION, kind="MachineConfig")

    def take(name: str, has: str, wanted: str) -> str:
        before, after = (
            configurations.get(name=each).to_dict()["spec"].get("kernelArguments") or [] for each in (has, wanted)
        )
        command = changed(before, after)
        if command:
            done = lab.agent(name).run(command)
            assert done.code == 0, done.errors
        lab.bmc(name).reset()
        return ""

    def lose(name: str, _has: str, _wanted: str) -> str:
        lab.processes.stop(lab.worker(name).name)
        return ""

    ways = {"stay": None, "fail": lambda *_words: "disk validation failed", "lose": lose}
    daemon = Daemon(ways[sys.argv[2]] if sys.argv[2:] else take, lambda line: print(line, flush=True))
    print("ready", flush=True)
    while True:
        known = pools.get().to_dict()["items"]
        for node in nodes.get().to_dict()["items"]:
            told = daemon.step(node, pool_of(node, known))
            if told:
                nodes.patch(
                    name=node["metadata"]["name"],
                    body={"metadata": {"annotations": told}},
                    content_type="application/merge-patch+json",
                )
        time.sleep(SECONDS)


if __name__ == "__main__":
    main()
