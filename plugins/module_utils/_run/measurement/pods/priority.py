# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports that the measuring pods may preempt other pods. A pod cannot set its preemptionPolicy itself: the API server
takes it from the PriorityClass of the pod, or from the default of the cluster.
"""

from __future__ import annotations

from ...._model.intent.intent import Fabric
from ...._observe.kubernetes.kinds import Resource
from ...._parse.kubernetes.resource import mapping_at
from ..measuring_plan import Say

#: the policy of a PriorityClass whose pods preempt no others
_NEVER = "Never"


class PodPriority:
    """A reporter of the preemption by the pods of each fabric. It reports each fact about a fabric once."""

    def __init__(self, say: Say) -> None:
        self._say = say
        #: names of the fabrics that were announced, and of those whose PriorityClass was reported
        self._announced: set[str] = set()
        self._reported: set[str] = set()

    def announce(self, fabric: Fabric) -> None:
        """If the intent sets no PriorityClass, report that the pods of a fabric may preempt other pods. Call this
        before the first pod of the fabric is created.
        """
        if fabric.pods.priority_class is None and fabric.name not in self._announced:
            self._announced.add(fabric.name)
            self._say(
                f"{fabric.name}: pods.priority_class is not set, so the measuring pods have the default priority of the"
                " cluster and may preempt pods of lower priority"
            )

    def report_policy(self, fabric: Fabric, made: Resource) -> None:
        """If the PriorityClass in the intent lets the pods of a fabric preempt other pods, report this.

        :param made: pod as the API server created it
        """
        policy = mapping_at(made, "spec").get("preemptionPolicy")
        name = fabric.pods.priority_class
        if name is not None and policy not in (None, _NEVER) and fabric.name not in self._reported:
            self._reported.add(fabric.name)
            self._say(
                f"{fabric.name}: the PriorityClass {name} does not have preemptionPolicy {_NEVER}, so the measuring"
                " pods may preempt pods of lower priority"
            )
