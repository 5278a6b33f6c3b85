# SPDX-License-Identifier: GPL-3.0-or-later

"""The sets of rights (powers) that a run may need in the cluster, one for each file of docs/rbac. The single rights of
each set are in rights_needed.py.
"""

from __future__ import annotations

import dataclasses
import typing

#: folder of the files, as remedies name it
FOLDER = "docs/rbac"
ROOT, ADMIN = "root on the nodes", "cluster-admin"


@dataclasses.dataclass(frozen=True)
class Power:
    """A set of rights in the cluster that one file of docs/rbac grants.

    :ivar name: name of the file, without ``.yml``
    :ivar what: use of the rights by a run
    :ivar when: part of the intent, or variable, that needs them
    :ivar equals: what an attacker with these rights could become, such as root on the nodes; empty for less
    :ivar why: why an attacker could do so, or the worst possible effect
    """

    name: str
    what: str
    when: str
    equals: str
    why: str

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.yml"


LOOK, CHANGE, NAMESPACES, JOBS = "look", "change", "namespaces", "jobs"
SRIOV, NVIDIA, ATTACHMENTS, POOLS = "network-sriov", "network-nvidia", "network-attachments", "network-pools"
MEASURING, ADMISSION, OBSERVERS = "measuring", "measuring-openshift", "observers"
MACHINES, PEERMEM, TUNING, ROLL, FIRMWARE = "machine-configs", "peermem", "tuning", "roll", "nic-firmware"
OLM, OLM_REMOVAL, HELM = "operators-olm", "operators-olm-removal", "operators-helm"

POWERS: tuple[Power, ...] = (
    Power(
        LOOK,
        "reads what the stages judge",
        "every run",
        "",
        "It reads the pods of all namespaces, with what their environment variables say in clear text, and the log of"
        " the SR-IOV network operator. No Secret.",
    ),
    Power(
        CHANGE,
        "holds the Lease, so that one run at a time changes the cluster",
        "every run without `--check`",
        "",
        "Who holds the Lease keeps every other run away.",
    ),
    Power(
        OBSERVERS,
        "starts an observer on each node, in a namespace that the file makes",
        "nodes without ssh (connection `linerate.rdma.pod`)",
        ROOT,
        "The pods are privileged, with `/` and the processes of the host. On a control-plane node that includes the"
        " keys of the cluster: cluster-admin.",
    ),
    Power(
        SRIOV,
        "makes policies, networks and pools of the SR-IOV network operator",
        "profiles `sriov_*`, `rdma_cluster.node_pool`",
        ROOT,
        "`metaPlugins` and `ipam` of a network are configuration of CNI plugins, which run as root on the host and"
        " write files where it tells them to. A policy drains and reboots nodes.",
    ),
    Power(
        NVIDIA,
        "makes the NicClusterPolicy and networks of NVIDIA's network operator",
        "profiles `rdma_shared`, `ipoib`, `host_device`",
        ROOT,
        "The NicClusterPolicy names images that the operator runs privileged on each node. Its networks are CNI"
        " configuration in any namespace.",
    ),
    Power(
        ATTACHMENTS,
        "makes NetworkAttachmentDefinitions in the namespace of the jobs",
        "profile `macvlan`",
        ROOT,
        "A NetworkAttachmentDefinition is configuration of CNI plugins, which run as root on the host and write files"
        " where it tells them to.",
    ),
    Power(
        POOLS,
        "makes pools of addresses of nv-ipam",
        "`ipam.pool` with `create`",
        "",
        "A wrong pool gives out addresses that others have.",
    ),
    Power(
        NAMESPACES,
        "makes the namespaces of the jobs, and takes them back",
        "a namespace of a fabric that is not there, or is the collection's own",
        "",
        "It lists all that is in these namespaces, Secrets included, deletes it, and may change their labels: who may"
        " make pods there and sets `enforce: privileged` is root on the nodes.",
    ),
    Power(
        MEASURING,
        "makes networks, pods and a NetworkPolicy in the namespace `linerate-measure`, which the file makes, and runs"
        " commands in the pods",
        "stages `virtual_functions`, `host`, `bandwidth`, `collectives`, `compare`",
        ROOT,
        "The namespace admits any pod, since Pod Security knows no level with `IPC_LOCK` below `privileged`; and"
        " networks are CNI configuration. On OpenShift SecurityContextConstraints decide on pods, and networks remain.",
    ),
    Power(
        ADMISSION,
        "admits the measuring pods: for an admin to apply, in place of rights to make it",
        "`measuring` on OpenShift",
        "",
        "The pods may lock memory, as any user of their image. With `pods.mount_infiniband` they mount folders of the"
        " host: root on the nodes.",
    ),
    Power(
        JOBS,
        "submits training jobs and NIC maps, and takes them back",
        "what `render_job` and `render_nic_map` write is submitted",
        "",
        "It runs any image with any service account of the namespace of the jobs, and writes any ConfigMap there. The"
        " namespace's Pod Security is its limit.",
    ),
    Power(
        MACHINES,
        "makes MachineConfigs and KubeletConfigs, and pauses their pools",
        "`rdma_cluster.host`: `kernel_arguments`, `kubelet`, `memlock` by `machine_config`",
        ROOT,
        "A MachineConfig writes any file and any systemd unit on the nodes of its pool, those of the control plane"
        " included: cluster-admin. With `rdma_cluster.pause_health_checks` it also pauses any health check of nodes.",
    ),
    Power(
        PEERMEM,
        "has the GPU operator load nvidia-peermem",
        "`rdma_cluster.host.gpudirect: peermem`",
        ROOT,
        "The ClusterPolicy names images that the operator runs privileged on each node with a GPU.",
    ),
    Power(
        TUNING,
        "makes the Tuned of OpenShift's Node Tuning Operator",
        "`rdma_cluster.tuning.set`",
        ROOT,
        "A profile sets any sysctl: `kernel.core_pattern` names a program that the kernel runs as root.",
    ),
    Power(
        ROLL,
        "cordons, marks and drains nodes",
        "`platform_settle` with `rdma_cluster.bios` or `firmware`, and `disruption: reboot`",
        "",
        "It ends any pod of any namespace as far as PodDisruptionBudgets allow, and may change taints and labels of"
        " every node. The passwords of BMCs, which Kubernetes knows nothing of, are power over the machines.",
    ),
    Power(
        FIRMWARE,
        "makes NicConfigurationTemplates of NVIDIA's NIC configuration operator",
        "as `roll`, where that operator sets the firmware of HCAs",
        "",
        "It sets any parameter of the firmware of HCAs, and so may take nodes off their network.",
    ),
    Power(
        OLM,
        "has OLM install operators",
        "`operators_install` on OpenShift",
        ADMIN,
        "OLM gives an operator whatever rights its package asks for, and this file chooses the package and"
        " approves it.",
    ),
    Power(
        OLM_REMOVAL,
        "takes back operators that OLM has installed, with their definitions",
        "a teardown with `teardown_operator`",
        ADMIN,
        "It is cluster-admin: who deletes a CustomResourceDefinition deletes all objects of its kind, and which kinds"
        " an operator has, only the cluster knows.",
    ),
    Power(
        HELM,
        "has Helm install operators",
        "`operators_install` without OLM",
        ADMIN,
        "It is cluster-admin: charts make ClusterRoles, webhooks and definitions, and Kubernetes lets nobody grant"
        " rights that they lack.",
    ),
)
NAMES: tuple[str, ...] = tuple(power.name for power in POWERS)


def named(names: typing.Collection[str]) -> tuple[Power, ...]:
    """Return the sets of rights with these names, in the order of the table.

    :raises KeyError: a name is not in the table
    """
    unknown = set(names) - set(NAMES)
    if unknown:
        raise KeyError(f"no such power: {', '.join(sorted(unknown))}")
    return tuple(power for power in POWERS if power.name in names)


def command(names: typing.Collection[str]) -> str:
    """Return the command by which an administrator of the cluster grants these sets of rights: ``kubectl apply -f
    docs/rbac/look.yml``.
    """
    return f"kubectl apply {' '.join(f'-f {power.path}' for power in named(names))}"
