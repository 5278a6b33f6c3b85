# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects for NVIDIA's NIC configuration operator: the desired firmware settings of a fabric's HCAs.

NicConfigurationTemplate of configuration.net.nvidia.com/v1alpha1 [nic-configuration-operator
api/v1alpha1/nicconfigurationtemplate_types.go]. If two templates match one card, the operator applies neither. The
collection therefore never renders two such templates.
"""

from __future__ import annotations

import itertools
import re
import typing

from ..._model.base.marks import DEFAULT_INTENT, INTENT_LABEL
from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import find_traits, is_infiniband
from ..cluster.names import Object, RenderError, build_labels, object_name

API = "configuration.net.nvidia.com/v1alpha1"
_TYPE = re.compile(r"\A[0-9a-f]{4}\Z")
#: values of the firmware that YAML calls True and False
_NUMBERS = {"True": "1", "False": "0"}


def render_templates(
    fabrics: typing.Sequence[Fabric],
    cluster: ClusterIntent,
    nic_types: typing.Mapping[str, typing.Sequence[str]],
    namespace: str,
) -> tuple[Object, ...]:
    """Render one NicConfigurationTemplate for each HCA model of each fabric with virtual functions.

    :param nic_types: PCI device ids of the HCAs, by the name of the fabric. For a fabric without an entry, the device
        id of its selector is used
    :param namespace: namespace of the operator, the only one in which it reads templates
    :raises RenderError: the device id of an HCA is not known, or two templates would match one card
    """
    made = []
    for fabric in (fabric for fabric in fabrics if find_traits(fabric).functions):
        types = [
            str(item).lower()
            for item in nic_types.get(fabric.name) or ([fabric.select.device] if fabric.select.device else [])
        ]
        if not types or not all(map(_TYPE.match, types)):
            raise RenderError(
                f"rdma_fabrics '{fabric.name}': its PCI device IDs are {types or 'unknown'}; set the IDs of its HCAs"
                " in nic_types, such as 1021"
            )
        made += [(fabric, kind, _render_template(fabric, cluster, kind, namespace)) for kind in dict.fromkeys(types)]
    for (one, kind, _object), (other, same_kind, _other) in itertools.combinations(made, 2):
        theirs = {address.lower() for address in other.select.pci}
        if kind == same_kind and (
            not one.select.pci or not theirs or theirs & {address.lower() for address in one.select.pci}
        ):
            raise RenderError(
                f"fabrics '{one.name}' and '{other.name}' both have HCAs of type {kind}, and the operator applies"
                " neither of two templates that match one card; separate them with select.pci"
            )
    return tuple(item for _fabric, _kind, item in made)


def _render_template(fabric: Fabric, cluster: ClusterIntent, kind: str, namespace: str) -> Object:
    wishes = {name: _NUMBERS.get(value, value) for name, value in cluster.firmware.settings().items()}
    addresses = {"pciAddresses": [address.lower() for address in fabric.select.pci]} if fabric.select.pci else {}
    raw = {"rawNvConfig": [{"name": name, "value": value} for name, value in wishes.items()]} if wishes else {}
    return {
        "apiVersion": API,
        "kind": "NicConfigurationTemplate",
        "metadata": {
            "name": object_name("linerate", fabric.name, kind),
            "namespace": namespace,
            "labels": {**build_labels(fabric.name), INTENT_LABEL: cluster.intent_name or DEFAULT_INTENT},
        },
        "spec": {
            "nodeSelector": dict(cluster.node_selector),
            "nicSelector": {"nicType": kind, **addresses},
            "template": {
                "numVfs": max(fabric.virtual_functions, cluster.firmware.num_of_vfs or 0),
                "linkType": "Infiniband" if is_infiniband(fabric) else "Ethernet",
                **raw,
            },
        },
    }
