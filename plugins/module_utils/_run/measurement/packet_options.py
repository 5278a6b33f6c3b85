# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the pods whose perftest can set the flow label and the traffic class of packets."""

from __future__ import annotations

import concurrent.futures
import typing

from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import RdmaPod
from ..._observe.kubernetes.errors import ApiError
from ..._render.measurement import commands
from .pods.measuring_pods import MeasuringPods

#: seconds in which a pod says whether its perftest can give packets a flow label
LABELS_LIMIT = 20


class PacketOptions:
    """The options of perftest for packets, which each pod is asked for before the pairs of a fabric are measured."""

    def __init__(self, pods: MeasuringPods) -> None:
        self._pods = pods
        #: names of the pods whose perftest can give packets a flow label
        self._labelled: frozenset[str] = frozenset()
        #: names of the pods whose perftest can give packets the traffic class of the fabric
        self._classed: frozenset[str] = frozenset()

    def find_labelled(
        self, pool: concurrent.futures.Executor, fabric: Fabric, pods: typing.Iterable[RdmaPod]
    ) -> frozenset[str]:
        """Find the pods whose perftest can set the flow label of packets, and return their names. Later measurements
        between two such pods set it. If connections are set up by rdma_cm, which chooses flow labels itself, no pod is
        returned.

        :param pool: threads in which the pods are asked
        :param pods: pods of the fabric; those without an RDMA device are left out
        :returns: names of the pods
        """

        def can_set_flow_label(pod: RdmaPod) -> bool:
            try:
                shell = self._pods.shell(pod)
                shell.start(commands.LABELS)
                return "label" in shell.wait(LABELS_LIMIT).output.split()
            except ApiError:
                return False

        asked = [pod for pod in pods if pod.device is not None and fabric.pods.connection == "tcp"]
        self._labelled = frozenset(pod.name for pod, found in zip(asked, pool.map(can_set_flow_label, asked)) if found)
        return self._labelled

    def find_classed(self, pool: concurrent.futures.Executor, fabric: Fabric, pods: typing.Iterable[RdmaPod]) -> None:
        """Find the pods whose perftest can set the traffic class of packets, if the intent has one for the fabric.
        Later measurements between two such pods set it. Otherwise they would use the queue of best effort, which jobs
        with the class of the fabric do not use.
        """

        def can_set_class(pod: RdmaPod) -> bool:
            try:
                shell = self._pods.shell(pod)
                shell.start(commands.CLASSES)
                return commands.CLASS_OPTIONS[fabric.pods.connection] in shell.wait(LABELS_LIMIT).output.split()
            except ApiError:
                return False

        asked = [pod for pod in pods if pod.device is not None and fabric.roce is not None]
        self._classed = frozenset(pod.name for pod, found in zip(asked, pool.map(can_set_class, asked)) if found)

    def are_labelled(self, client: RdmaPod, server: RdmaPod) -> bool:
        """Return whether perftest in both pods can set the flow label of packets."""
        return {client.name, server.name} <= self._labelled

    def choose_class(self, fabric: Fabric, client: RdmaPod, server: RdmaPod) -> typing.Optional[int]:
        """Return the traffic class of the fabric if perftest in both pods can set it, otherwise None."""
        both = {client.name, server.name} <= self._classed
        return fabric.roce.traffic_class if fabric.roce is not None and both else None
