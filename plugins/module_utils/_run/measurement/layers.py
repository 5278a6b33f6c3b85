# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure the bandwidth of a pair of nodes layer by layer, to find the layer in which bandwidth is lost: between the
physical functions of the HCAs, between free virtual functions, both in the observers of the nodes, and between the
pods. If a layer has no figure, the result contains the reason. Results are not evaluated here.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import typing

from ..._analysis.schedule.layers import MOST_PAIRS
from ..._analysis.schedule.measurements import count_queue_pairs
from ..._analysis.schedule.wider import widen_amount, widen_fabric
from ..._model.base.errors import RdmaError, wrap_unforeseen
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import LayerEnd, LayerName, LayerStep, PairLayers, RdmaPod
from ..._model.measurement.pairs import PairResult
from ..._observe.kubernetes.shell import Shell
from ..._parse.pods import perftest
from ..._parse.pods.host import parse_throttled
from ..._render.measurement import commands
from .client_server import line_of, run_pair
from .layer_hosts import HostEnd, HostEnds, NoStep, build_host_end, find_free_vf
from .measuring_plan import Measurement, Usable
from .pair_tests import find_contradiction
from .pods.measuring_pods import MeasuringPods

#: on the host: below the ports that NodePorts and clients of the host get, and above those that services have
FIRST_PORT, PORTS = 28600, 1000
#: seconds of a look into a pod
LOOK_LIMIT = 20


class LayerTests:
    """The layer measurements of pairs of one fabric, in its running pods and in the observers of their nodes."""

    def __init__(
        self,
        measurement: Measurement,
        fabric: Fabric,
        observers: typing.Optional[ObserversFacts],
        pods: Usable,
        shells: MeasuringPods,
    ) -> None:
        """Prepare the layer measurements; no connection is opened yet.

        :param measurement: plan, client of the API server and clock of the measurement
        :param fabric: fabric of the pairs
        :param observers: observers of the run, through which hosts are measured; None if the run has no observers
        :param pods: usable pods by rail and node
        :param shells: measuring pods of the run, through which connections to the pods are opened
        """
        self._measurement, self._fabric = measurement, fabric
        self._pods, self._in_pods = pods, shells
        self._on_nodes = HostEnds(measurement, fabric, observers)
        self._ports = itertools.count()

    def close(self) -> None:
        """Close the connections to the observers. Commands that still run there end with their connection or by their
        own time limit.
        """
        self._on_nodes.close()

    def measure(self, pair: PairResult, suspect: bool, number: int) -> PairLayers:
        """Measure a pair layer by layer: between the physical functions on the hosts, between virtual functions on the
        hosts, between the pods, then between the pods with GPU memory. Return the figure of each layer. A layer that
        cannot be measured has the reason in the result.

        :param pair: result of the earlier measurement of the pair
        :param suspect: whether the pair was chosen because it is slow
        :param number: number of pairs that were measured layer by layer before. After ``MOST_PAIRS``, a suspect is not
            measured
        """
        result = PairLayers(pair.fabric, pair.client, pair.server, pair.rail, suspect, server_rail=pair.server_rail)
        ends = [self._pods.get(end) for end in (pair.client_end, pair.server_end)]
        if suspect and number >= MOST_PAIRS:
            return dataclasses.replace(
                result, why=f"more than {MOST_PAIRS} pairs are suspects, and only the slowest pairs were tested"
            )
        if ends[0] is None or ends[1] is None:
            return dataclasses.replace(result, why="one end of the pair has no pod")
        client, server = ends[0], ends[1]
        work: tuple[tuple[LayerName, typing.Callable[[Fabric, RdmaPod, RdmaPod], LayerStep]], ...] = (
            ("pf_host", self._test_pf_on_hosts),
            ("vf_host", self._test_vf_on_hosts),
            ("vf_pod", functools.partial(self._test_in_pods, "vf_pod")),
            ("gpu_pod", self._test_gpu_in_pods),
        )
        fabric = self.choose_measured_as(pair)
        more, steps = fabric is not self._fabric, []
        for layer, step in work:
            try:
                steps.append(step(fabric, client, server))
            except NoStep as error:
                steps.append(
                    LayerStep(layer, LayerEnd(client.node), LayerEnd(server.node), why=error.why, absent=error.absent)
                )
            except RdmaError as error:
                steps.append(LayerStep(layer, LayerEnd(client.node), LayerEnd(server.node), why=str(error)[:300]))
            except Exception as error:
                # nobody foresaw what its ends printed: the other layers and pairs are still to be measured
                why = str(wrap_unforeseen(error, f"layer {layer}"))[:300]
                steps.append(LayerStep(layer, LayerEnd(client.node), LayerEnd(server.node), why=why))
            said = steps[-1]
            figure = f"{said.average_gbps:.4f} Gb/s" if said.average_gbps is not None else said.why
            self._measurement.say(f"{pair.fabric} {client.node} -> {server.node}, layer {layer}: {figure}")
        return dataclasses.replace(result, steps=tuple(steps), more_than=(pair.queue_pairs or 1) if more else None)

    def choose_measured_as(self, pair: PairResult) -> Fabric:
        """Return the fabric with the number of queue pairs and the message size of the pair's second measurement, so
        that no layer is slow only because of too few queue pairs. Return the fabric unchanged if there was no second
        measurement, or if it ran without a figure.

        :param pair: result of the earlier measurement of the pair
        """
        found, amount = pair.wider, widen_amount(self._fabric, pair.queue_pairs)
        # with commands and no figure, that many do not work here
        if found is None or amount is None or (found.average_gbps is None and found.commands):
            return self._fabric
        return widen_fabric(self._fabric, amount)

    # on the host

    def _test_pf_on_hosts(self, fabric: Fabric, client: RdmaPod, server: RdmaPod) -> LayerStep:
        ends = (self._on_nodes.connect(client), self._on_nodes.connect(server))
        return self._on_hosts("pf_host", fabric, ends, (ends[0].pf, ends[1].pf))

    def _test_vf_on_hosts(self, fabric: Fabric, client: RdmaPod, server: RdmaPod) -> LayerStep:
        if client.physical_function is None or server.physical_function is None:
            raise NoStep("the pods of this fabric have no virtual functions", absent=True)
        ends = (self._on_nodes.connect(client), self._on_nodes.connect(server))
        free = [find_free_vf(end, self._pods.values()) for end in ends]
        return self._on_hosts("vf_host", fabric, ends, (free[0], free[1]))

    def _on_hosts(
        self, layer: LayerName, fabric: Fabric, ends: tuple[HostEnd, HostEnd], functions: tuple[str, str]
    ) -> LayerStep:
        devices = [end.seen.device(function) for end, function in zip(ends, functions)]
        described = [build_host_end(end, function, device) for end, function, device in zip(ends, functions, devices)]
        step = LayerStep(layer, described[0], described[1])
        # in pods the site may want rdma_cm, for which functions on the host have no addresses; only iWARP can't do
        # without
        connection: typing.Literal["tcp", "rdma_cm"] = (
            "rdma_cm" if any(device in end.seen.rnics for end, device in zip(ends, devices)) else "tcp"
        )
        address = self._on_nodes.find_server_address(ends, functions, connection)
        fabric = dataclasses.replace(fabric, pods=dataclasses.replace(fabric.pods, connection=connection))
        port = FIRST_PORT + next(self._ports) % PORTS
        cpus = [end.seen.probe.binding(function)[0] for end, function in zip(ends, functions)]
        opened = [functools.partial(self._on_nodes.shell, end) for end in ends]
        pairs = self._queue_pairs(fabric, ends[0].node, ends[1].node)
        here, there = (
            commands.write_bandwidth(fabric, devices[at], cpus[at], port, address, at == 1, pairs=pairs)
            for at in (0, 1)
        )
        return self._run(step, fabric, (opened[1], there), (opened[0], here), (devices[0], pairs))

    def _queue_pairs(self, fabric: Fabric, *nodes: str) -> int:
        """Return the number of queue pairs for a pair, which is equal in all layers. It is computed from the port rates
        of the pods on these nodes.

        :param nodes: names of the two nodes
        """
        return count_queue_pairs(fabric, self._list_rates(*nodes))

    def _list_rates(self, *nodes: str) -> list[typing.Optional[float]]:
        """Return the port rates of the pods on these nodes in Gb/s; None for a pod whose rate is unknown.

        :param nodes: names of nodes
        """
        return [pod.rate_gbps for pod in self._pods.values() if pod.node in nodes and not pod.error]

    # in pods

    def _test_in_pods(self, layer: LayerName, fabric: Fabric, client: RdmaPod, server: RdmaPod) -> LayerStep:
        before = [self._read_throttled_count(pod) for pod in (client, server)]
        port = FIRST_PORT + next(self._ports) % PORTS
        address, gpu = server.address or "", layer == "gpu_pod"
        pairs = self._queue_pairs(fabric, client.node, server.node)
        here, there = (
            commands.write_bandwidth(
                fabric, pod.device or "", pod.cpus, port, address, pod is server, gpu=gpu, pairs=pairs
            )
            for pod in (client, server)
        )
        opened = [functools.partial(self._in_pods.shell, pod) for pod in (client, server)]
        step = self._run(
            LayerStep(layer, LayerEnd(client.node), LayerEnd(server.node)),
            fabric,
            (opened[1], there),
            (opened[0], here),
            (client.device or "", pairs),
        )
        ends = [self._pod_end(pod, earlier) for pod, earlier in zip((client, server), before)]
        return dataclasses.replace(step, client=ends[0], server=ends[1])

    def _pod_end(self, pod: RdmaPod, before: typing.Optional[int]) -> LayerEnd:
        """Return the data of one end of a pair in its pod, with the settings of its virtual function on the host if
        these can be read.

        :param before: number of CPU throttling periods before the measurement; None if not known
        """
        now = self._read_throttled_count(pod)
        held_back = None if now is None or before is None else max(0, now - before)
        # bound to CPUs of the HCA's NUMA node, or it says that it has none of them
        near = True if pod.cpus else False if pod.far_cpus else None
        end = LayerEnd(pod.node, pod.device or "", pod.pci or "", pod.binding, near, throttled=held_back)
        try:
            own = self._on_nodes.connect(pod).seen.administration(pod.pci or "")
        except RdmaError:
            return end
        return dataclasses.replace(end, max_tx_rate=own.max_tx_rate, vlan_qos=own.vlan_qos)

    def _read_throttled_count(self, pod: RdmaPod) -> typing.Optional[int]:
        return parse_throttled(self._read_command_output(pod, commands.CPU_STAT))

    def _read_command_output(self, pod: RdmaPod, command: commands.Command) -> str:
        """Return the output of a command in a pod. Return an empty text if the pod or the API server cannot be reached.

        :param command: words of the command
        """
        try:
            shell = self._in_pods.shell(pod)
            shell.start(command)
            return shell.wait(LOOK_LIMIT).output
        except RdmaError:
            return ""

    def _test_gpu_in_pods(self, fabric: Fabric, client: RdmaPod, server: RdmaPod) -> LayerStep:
        for pod in (client, server):
            said = self._read_command_output(pod, commands.GPU).split()
            if "gpu" not in said:
                raise NoStep(f"the pod on {pod.node} has no GPU", absent=True)
            if "tool" not in said:
                raise NoStep(f"ib_write_bw in the image {self._fabric.pods.image} does not support --use_cuda")
        return self._test_in_pods("gpu_pod", fabric, client, server)

    def _run(
        self,
        step: LayerStep,
        fabric: Fabric,
        there: tuple[typing.Callable[[], Shell], commands.Command],
        here: tuple[typing.Callable[[], Shell], commands.Command],
        asked: tuple[str, int],
    ) -> LayerStep:
        """Run ib_write_bw for one layer. Return the layer with its figure, or with the reason why there is none.

        :param step: layer to measure, without a figure
        :param fabric: fabric with the number of queue pairs and the message size to measure
        :param there: function that returns a shell in the server's container, and the server's command
        :param here: function that returns a shell in the client's container, and the client's command
        :param asked: RDMA device of the client, and number of queue pairs, which the output must confirm
        """
        ran, failure = run_pair(there, here, commands.BANDWIDTH_SERVER_UP, self._fabric.pods.limit_seconds, True)
        if ran is not None:
            step = dataclasses.replace(step, commands=(line_of(ran),))
        if ran is None or failure is not None:
            return dataclasses.replace(
                step, why=f"{failure.kind}: {failure.evidence}"[:300] if failure is not None else "the test did not run"
            )
        try:
            report = perftest.parse(ran.output)
        except perftest.PerftestError as error:
            return dataclasses.replace(step, why=str(error)[:300])
        rates = self._list_rates(step.client.node, step.server.node)
        # no check of the stage compares the messages of layers
        wrong = find_contradiction(report, fabric, rates) or report.contradict_messages(fabric.pods.iterations or 1)
        other = report.contradict(*asked) or wrong
        if other:
            kind = "no_measurement" if other == wrong else "other_run"
            return dataclasses.replace(step, why=f"{kind}: {other}"[:300])
        row = report.largest
        return dataclasses.replace(
            step,
            average_gbps=row.average_gbps,
            peak_gbps=row.peak_gbps,
            message_bytes=row.message_bytes,
            iterations=row.iterations,
        )
