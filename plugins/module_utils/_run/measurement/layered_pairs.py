# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the pairs of pods that are measured layer by layer, and measure them one after the other."""

from __future__ import annotations

import typing

from ..._analysis.schedule.layers import MOST_PAIRS, STEPS
from ..._analysis.schedule.measurements import (
    SERVER_LIMIT,
    SLACK,
)
from ..._check.bandwidth.facts import Facts
from ..._check.bandwidth.results import (
    choose_layer_tests,
)
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import list_rails as fabric_rails
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import (
    PairLayers,
    RdmaPod,
)
from ..._model.measurement.pairs import PairResult
from .layers import LayerTests
from .measuring_plan import Measurement
from .pods.measuring_pods import MeasuringPods


class LayeredPairs:
    """The measurements of pairs layer by layer (between physical functions, between virtual functions, and between
    pods), for those pairs of each fabric that the settings choose.
    """

    def __init__(
        self,
        measurement: Measurement,
        pods: MeasuringPods,
        seen: Facts,
        observers: typing.Optional[ObserversFacts],
    ) -> None:
        """Prepare the measurements.

        :param measurement: plan, client of the API server and clock of the measurement
        :param pods: measuring pods of the run
        :param seen: facts about the links of the HCAs, from which suspects are found
        :param observers: observers of the run, through which hosts are measured; None if the run has no observers
        """
        self._measurement = measurement
        self._pods = pods
        self._seen = seen
        self._observers = observers

    def _choose_layers(self, fabric: Fabric) -> str:
        """Return the setting that selects the pairs to measure layer by layer: ``none``, ``suspects`` or ``all``.
        Without a setting in the intent, it is ``suspects`` if the run has observers, otherwise ``none``.
        """
        return fabric.bandwidth.layers or ("suspects" if self._observers is not None else "none")

    def compute_seconds(self, fabric: Fabric) -> float:
        """Return the longest duration of the layer measurements of a fabric in seconds. Its pods must live that
        long.
        """
        wanted, nodes = self._choose_layers(fabric), len(self._measurement.plan.nodes)
        number = {"none": 0, "suspects": MOST_PAIRS}.get(wanted, nodes * (nodes - 1) * len(fabric_rails(fabric)))
        return float(number * STEPS * (fabric.pods.limit_seconds + SERVER_LIMIT + 2 * SLACK))

    def measure(
        self, fabric: Fabric, pods: typing.Sequence[RdmaPod], measured: typing.Sequence[PairResult]
    ) -> list[PairLayers]:
        """Measure pairs of pods layer by layer, and return the figures of each pair. The pairs are measured one after
        the other, because two pairs would share the links that each of them must fill.

        :param fabric: fabric of the pods
        :param pods: pods of the fabric; those with an error are not used
        :param measured: results of the pairs so far
        """
        wanted = self._choose_layers(fabric)
        if wanted == "none":
            # the suspects are not needed, and to find them takes time
            return []
        chosen = choose_layer_tests(fabric, pods, measured, self._seen, wanted)
        if not chosen:
            return []
        usable = {(item.rail, item.node): item for item in pods if not item.error}
        layers = LayerTests(self._measurement, fabric, self._observers, usable, self._pods)
        try:
            return [layers.measure(pair, wanted == "suspects", number) for number, pair in enumerate(chosen)]
        finally:
            # also when the run is interrupted: what runs in an observer ends with its connection
            layers.close()
