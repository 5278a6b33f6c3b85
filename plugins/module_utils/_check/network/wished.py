# SPDX-License-Identifier: GPL-3.0-or-later

"""Find objects that the intent asks for and that were not applied. Part of stage network. Check id:
``network.object_accepted``.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import NIC_POLICY, find_traits, needs_nic_policy
from ..._model.kubernetes.apply import AppliedObject
from ..._model.run.findings import FAIL, Finding


class WantedObject(typing.NamedTuple):
    """An object that the intent asks for. Applied objects are compared with it.

    :ivar kind: kind of the object
    :ivar name: name of the object; empty if any object of its kind counts
    :ivar word: setting of the intent that asks for the object, as text for a finding
    :ivar namespace: namespace of the object; empty if it has none, or if the intent does not set it
    """

    kind: str
    name: str
    word: str
    namespace: str = ""

    def is_met(self, item: AppliedObject) -> bool:
        """Return whether an applied object is the object that the intent asks for: kind, name and namespace agree."""
        return item.kind == self.kind and self.name in ("", item.name) and self.namespace in ("", item.namespace)


#: remedy after a run that sent no object
ENDED_EARLY = "Run stage network again. If it ends early again, correct the error in the output of ansible-playbook."


def find_unapplied(
    intent: Intent, applied: typing.Sequence[AppliedObject], held: typing.Container[str]
) -> typing.Iterator[Finding]:
    """Compare the objects that the intent asks for with those that were sent to the API server, and yield a failed
    finding for each object that was not sent.

    :param applied: outcome of each object that was sent
    :param held: names of fabrics whose objects were held back. They have findings of their own
    """
    for wish in _list_wanted_objects(intent, [fabric for fabric in intent.fabrics if fabric.name not in held]):
        if not any(map(wish.is_met, applied)):
            why = (
                f"The intent ({wish.word}) requires this object. The run sent other objects, but not this object: the"
                " intent was changed after the run started."
                if applied
                else f"The intent ({wish.word}) requires this object. The run ended before it sent any object to the"
                " API server."
            )
            subject, expected = f"{wish.kind} {wish.name}".rstrip(), "accepted by the API server and its webhooks"
            yield Finding(
                "network.object_accepted",
                subject,
                FAIL,
                "not applied",
                expected,
                why,
                "Run stage network again with the current intent." if applied else ENDED_EARLY,
            )


def _list_wanted_objects(intent: Intent, fabrics: typing.Sequence[Fabric]) -> typing.Iterator[WantedObject]:
    host = intent.cluster.host
    if host.machine_memlock is not None:
        yield WantedObject("MachineConfig", "", "rdma_cluster.host.memlock")
    if host.kubelet is not None:
        yield WantedObject("KubeletConfig", "", "rdma_cluster.host.kubelet")
    if intent.cluster.node_pool is not None and any(find_traits(fabric).functions for fabric in fabrics):
        yield WantedObject("SriovNetworkPoolConfig", "", "rdma_cluster.node_pool")
    if any(map(needs_nic_policy, fabrics)):
        profiles = ", ".join(dict.fromkeys(fabric.profile for fabric in fabrics if needs_nic_policy(fabric)))
        yield WantedObject("NicClusterPolicy", NIC_POLICY, f"profile {profiles}")
    for fabric in fabrics:
        if fabric.pool is not None and fabric.pool.create:
            yield WantedObject(
                fabric.pool.kind, fabric.pool.name, f"ipam.pool of fabric {fabric.name}", fabric.pool.namespace
            )
        if fabric.network.pod_security is not None:
            yield WantedObject("Namespace", fabric.network.namespace, f"network.pod_security of fabric {fabric.name}")
