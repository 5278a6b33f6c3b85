# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the host tuning of the intent (settings of CPU, memory and kernel) as a Tuned object of OpenShift's Node
Tuning Operator.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.host import ROLE_LABEL
from ..._model.node.node_tuning import NAMESPACE, TUNED, Settings
from ..cluster.names import MANAGED_BY

Object = dict[str, typing.Any]

#: lower wins; OpenShift's own profiles have 30 and 40 [cluster-node-tuning-operator
#: assets/tuned/manifests/default-cr-tuned.yaml]
PRIORITY = 20


def render_profile(settings: Settings, parent: str) -> str:
    """Return the text of a TuneD profile with these settings.

    :param settings: desired values
    :param parent: name of the profile that the new profile includes
    """
    parts = [f"[main]\nsummary=What linerate.rdma sets of the host under the network\ninclude={parent}\n"]
    parts += [
        f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())
        for name, keys in settings.sections.items()
    ]
    return "\n".join(parts)


def render_tuned(settings: Settings, selector: typing.Mapping[str, str], role: str, parent: str) -> Object:
    """Render the single Tuned object for all nodes of the intent. Its profile contains no kernel argument, so applying
    it reboots no node. [cluster-node-tuning-operator pkg/apis/tuned/v1/tuned_types.go]

    :param settings: desired values in the sections of TuneD
    :param selector: labels of the participating nodes, all of which must match. If empty, the profile applies to the
        nodes of the MachineConfigPool ``role``
    :param role: name of the MachineConfigPool
    :param parent: name of the profile that the new profile includes
    """
    labels = list(selector.items())
    recommend: Object = {"profile": TUNED, "priority": PRIORITY}
    if labels:
        match: list[Object] = []
        # what is inside of a match must match as well
        for label, value in reversed(labels):
            match = [{"label": label, "value": value, **({"match": match} if match else {})}]
        recommend["match"] = match
    else:
        recommend["machineConfigLabels"] = {ROLE_LABEL: role}
    return {
        "apiVersion": "tuned.openshift.io/v1",
        "kind": "Tuned",
        "metadata": {"name": TUNED, "namespace": NAMESPACE, "labels": dict(MANAGED_BY)},
        "spec": {"profile": [{"name": TUNED, "data": render_profile(settings, parent)}], "recommend": [recommend]},
    }
