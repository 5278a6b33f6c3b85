# SPDX-License-Identifier: GPL-3.0-or-later

"""Verifies, before systemd reads its files again on a node, that no running container loses its GPUs by that.

systemd then sets the permitted devices of each unit that it manages to those that the unit names. NVIDIA's container
runtime in the mode ``legacy`` permits GPUs behind the back of systemd, so a container that runs loses them: ``Failed to
initialize NVML: Unknown Error``. In the mode ``cdi``, or with ``PASS_DEVICE_SPECS`` of the device plugin, the unit of
the container names them. [NVIDIA container toolkit, Troubleshooting, "Containers losing access to GPUs"; runc
libcontainer/cgroups/devices/systemd.go generateDeviceProperties]
"""

from __future__ import annotations

import re
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import count_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import join_first
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.kubernetes import SUBDOMAIN
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import GPU_RESOURCES
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import (
    Resource,
    items_of,
    mapping_at,
    name_of,
    namespace_of,
)

#: runs a command on the node, and returns its exit status and its output
Ask = typing.Callable[[str], tuple[int, str]]
#: id of a container, as the kubelet reports it [containerd pkg/identifiers: 64 hexadecimal digits]
_CONTAINER = re.compile(r"containerd://([0-9a-f]{64})")
#: units that one command shows
_AT_ONCE = 32
#: the character devices of NVIDIA's GPUs, whose major number is registered, as runc and an admin name them
#: [Documentation/admin-guide/devices.txt, 195 char]
_GPU_DEVICE = re.compile(r"(/dev/char/195:|/dev/nvidia[0-9]|char-nvidia|char-195)")
#: policy with which systemd limits no device [systemd.resource-control(5) DevicePolicy]
_UNLIMITED = "auto"


def refuse_lost_gpus(node: str, ask: Ask, cluster: Cluster) -> None:
    """Verify that no running container of a node loses its GPUs when systemd reads its files again. A container whose
    unit systemd does not know has its devices from another cgroup driver, and loses nothing.

    :param node: name of the node
    :param ask: function that runs a command on the node
    :param cluster: client of the API server
    :raises RdmaError: a container would lose its GPUs, or it is not known
    """
    ids = _read_containers(node, cluster)
    lost: dict[str, None] = {}
    names = list(ids)
    for begin in range(0, len(names), _AT_ONCE):
        part = names[begin : begin + _AT_ONCE]
        units = " ".join(f"cri-containerd-{name}.scope" for name in part)
        code, text = ask(f"systemctl show --property=Id,LoadState,DevicePolicy,DeviceAllow {units}")
        states = _parse_units(text)
        for name in part:
            state = states.get(f"cri-containerd-{name}.scope")
            if code or state is None:
                raise RdmaError(
                    f"systemd does not report which devices it permits to the containers of pod {ids[name]}, which uses"
                    f" GPUs on {node}, so it is not known whether they lose the GPUs when systemd reads its files again"
                    " (systemctl daemon-reload). Nothing was changed there",
                    f"Run kubectl drain {node} --ignore-daemonsets, then run the stage again. When it has ended, run"
                    f" kubectl uncordon {node}",
                )
            if _loses_gpus(state):
                lost[ids[name]] = None
    if lost:
        raise RdmaError(
            f"{count_of(len(lost), 'pod')} on {node} would lose the use of GPUs when systemd reads its files again"
            f" (systemctl daemon-reload): {join_first(list(lost))}. NVIDIA's container runtime gave them the GPUs in"
            " its mode legacy, which systemd does not know. Nothing was changed there",
            f"Wait until these pods have ended, or run kubectl drain {node} --ignore-daemonsets. Then run the stage"
            f" again, and after it kubectl uncordon {node}. To avoid this for new pods, set cdi.enabled: true in the"
            " ClusterPolicy of the GPU operator",
        )


def _read_containers(node: str, cluster: Cluster) -> dict[str, str]:
    """Return the running containers of pods that use GPUs on a node: id -> namespace and name of the pod.

    :raises RdmaError: the pods cannot be read
    """
    if not SUBDOMAIN.fits(node):
        return {}
    try:
        pods = cluster.list("Pod", fields=f"spec.nodeName={node},status.phase=Running").items
    except ApiError as error:
        raise RdmaError(
            f"the pods of {node} were not read: {error}. So it is not known whether a container there loses its GPUs"
            " when systemd reads its files again (systemctl daemon-reload). Nothing was changed there",
            "Permit the run to list pods (docs/rbac/look.yml), then run the stage again",
        ) from error
    return {
        found.group(1): f"{namespace_of(pod)}/{name_of(pod)}"
        for pod in pods
        if _uses_gpus(pod)
        for part in ("containerStatuses", "initContainerStatuses")
        for status in items_of(mapping_at(pod, "status"), part, "Pod")
        if mapping_at(status, "state").get("running") is not None
        if (found := _CONTAINER.fullmatch(str(status.get("containerID") or "")))
    }


def _uses_gpus(pod: Resource) -> bool:
    return any(
        key.startswith(GPU_RESOURCES)
        for part in ("containers", "initContainers")
        for container in items_of(mapping_at(pod, "spec"), part, "Pod")
        for key in mapping_at(container, "resources", "limits")
    )


def _parse_units(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return the properties of each unit in the output of ``systemctl show``: a block of lines for each unit, in which
    a property may be on several lines.
    """
    blocks = [
        [(key, value) for key, _equals, value in (line.partition("=") for line in block.splitlines())]
        for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n"))
    ]
    return {value: block for block in blocks for key, value in block if key == "Id"}


def _loses_gpus(state: typing.Iterable[tuple[str, str]]) -> bool:
    known = list(state)
    if ("LoadState", "loaded") not in known or ("DevicePolicy", _UNLIMITED) in known:
        return False
    return not any(key == "DeviceAllow" and _GPU_DEVICE.match(value) for key, value in known)
