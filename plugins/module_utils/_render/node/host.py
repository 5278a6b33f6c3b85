# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of the hosts, as objects and files: MachineConfigs, a KubeletConfig, the drop-ins of CRI-O and containerd,
and the patch of the ClusterPolicy.
"""

from __future__ import annotations

import base64
import json
import typing

from ..._model.base.marks import DEFAULT_INTENT, mark_intent
from ..._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ..._model.kubernetes.host import CRIO_FILE, OF_INTENT, ROLE_LABEL, UNNAMED
from ..._model.node.file_owner import find_owner, format_owner
from ..cluster.names import MANAGED_BY, keep_filled, object_name

Object = dict[str, typing.Any]

_DROP_IN_HEAD = "# of linerate.rdma, rdma_cluster.host.memlock: changed and removed by it\n"
_VERSION = "machineconfiguration.openshift.io/v1"
#: with the name behind it, on OpenShift's own pools worker and master [machine-config-operator
#: manifests/worker.machineconfigpool.yaml]
_POOL_LABEL = "pools.operator.machineconfiguration.openshift.io/"


def render_host_configs(needs: HostNeeds, intent: str = DEFAULT_INTENT) -> tuple[Object, ...]:
    """Render the MachineConfigs (Ignition 3.2.0, for OpenShift 4.7 and later) and the KubeletConfig. Applying any of
    them reboots the nodes of its pools.

    :param intent: name of the intent
    """
    made = []
    if needs.machine_memlock is not None:
        file = {
            "path": CRIO_FILE,
            "mode": 0o644,
            "overwrite": True,
            "contents": {
                "source": (
                    f"data:text/plain;charset=utf-8;base64,{base64.b64encode(crio_config(needs.machine_memlock).encode()).decode()}"
                )
            },
        }
        made.append(
            _render_machine_config(
                needs.machine_role,
                "memlock",
                {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}},
            )
        )
    if needs.kernel_arguments:
        spec = {"config": {"ignition": {"version": "3.2.0"}}, "kernelArguments": list(needs.kernel_arguments)}
        made.append(_render_machine_config(needs.machine_role, "kernel-arguments", spec))
    if needs.kubelet is not None:
        made.append(_render_kubelet_config(needs.machine_role, needs.kubelet))
    return tuple(mark_intent(item, intent) for item in made)


def _render_machine_config(role: str, what: str, spec: Object) -> Object:
    # the pools merge MachineConfigs in the order of their names
    metadata = {"name": object_name("99", role, "linerate", what), "labels": {**MANAGED_BY, ROLE_LABEL: role}}
    return {"apiVersion": _VERSION, "kind": "MachineConfig", "metadata": metadata, "spec": spec}


def _render_kubelet_config(role: str, kubelet: Kubelet) -> Object:
    """Render the KubeletConfig of a MachineConfigPool with those kubelet settings that the intent sets. [kubernetes
    pkg/kubelet KubeletConfiguration v1beta1]

    :param role: name of the MachineConfigPool
    """
    settings = keep_filled(
        topologyManagerPolicy=kubelet.topology_manager_policy,
        topologyManagerScope=kubelet.topology_manager_scope,
        cpuManagerPolicy=kubelet.cpu_manager_policy,
        reservedSystemCPUs=kubelet.reserved_system_cpus,
    )
    pools = {"matchLabels": dict(kubelet.pool_labels) or {_POOL_LABEL + role: ""}}
    metadata = {"name": object_name("linerate", role), "labels": dict(MANAGED_BY)}
    spec = {"machineConfigPoolSelector": pools, "kubeletConfig": settings}
    return {"apiVersion": _VERSION, "kind": "KubeletConfig", "metadata": metadata, "spec": spec}


def crio_config(memlock: Memlock) -> str:
    """Return the text of CRI-O's drop-in file with the limit of locked memory, as soft and hard limit in bytes; -1
    means unlimited. The further entries of the intent follow, since this file replaces those of earlier files. [cri-o
    internal/config/ulimits, docker/go-units ParseUlimit]
    """
    limit = -1 if memlock.limit_bytes is None else memlock.limit_bytes
    entries = (f"memlock={limit}:{limit}", *memlock.ulimits)
    # a string of JSON is one of TOML
    lines = "".join(f"  {json.dumps(entry)},\n" for entry in entries)
    return f"[crio.runtime]\ndefault_ulimits = [\n{lines}]\n"


def make_containerd_drop_in(memlock: Memlock, owner: str) -> str:
    """Return the text of systemd's drop-in file for containerd with the limit of locked memory, which containers
    inherit. It takes effect for pods that start after a restart of containerd.

    :param owner: name by which the intent marks its files
    """
    return f"{_DROP_IN_HEAD}{format_owner(owner)}[Service]\nLimitMEMLOCK={spell_limit(memlock)}\n"


def empty_containerd_drop_in(owner: str) -> str:
    """Return the text that containerd's drop-in file gets during a teardown: comments only, without a limit. The file
    is removed after containerd was restarted.

    :param owner: name by which the intent marks its files
    """
    return (
        "# taken back by linerate.rdma, whose teardown removes this file after containerd was restarted\n"
        f"{format_owner(owner)}"
    )


def describe_owner(text: str, owner: str, asked: bool) -> str:
    """Return a few words that name the owner of a drop-in file of containerd, if a teardown of this intent must not
    remove the file. Return an empty string if the teardown removes it, or if there is no file.

    :param text: text of the file; empty if there is no file
    :param owner: name by which the intent marks its files
    :param asked: whether the intent asks for such a file. If so, a file without an owner counts as a file of this
        intent
    """
    found = find_owner(text)
    if found and found != owner:
        return f"{OF_INTENT}{found}"
    return UNNAMED if text and not found and not asked and text != empty_containerd_drop_in("") else ""


def spell_limit(memlock: Memlock) -> str:
    """Return the limit of locked memory as systemd spells it: a number of bytes, or ``infinity``."""
    return "infinity" if memlock.limit_bytes is None else str(memlock.limit_bytes)


def render_cluster_policy(name: str) -> Object:
    """Render the fields that server-side apply adds to the existing ClusterPolicy, so that nvidia-peermem is loaded
    with the driver.

    The object has no label of the collection, because only its owner may remove it.

    :param name: name of the existing ClusterPolicy; the GPU operator refuses a second one
    """
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"driver": {"rdma": {"enabled": True}}},
    }
