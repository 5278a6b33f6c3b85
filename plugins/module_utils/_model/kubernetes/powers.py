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
#: group to which the files bind the rights
GROUP = "linerate-rdma-operators"


@dataclasses.dataclass(frozen=True)
class Power:
    """A set of rights in the cluster that one file of docs/rbac grants.

    :ivar name: name of the file, without ``.yml``
    :ivar what: purpose for which a run uses the rights
    :ivar when: key of the intent, or variable, that needs the rights
    :ivar equals: privilege that an attacker with these rights could gain, such as root on the nodes; empty for less
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
        "reads the objects that the stages check",
        "every run",
        "",
        "It permits reading the pods of all namespaces, including the values of environment variables in clear text,"
        " and the log of the SR-IOV network operator. It does not permit reading Secrets.",
    ),
    Power(
        CHANGE,
        "holds the Lease, so that only one run at a time changes the cluster",
        "every run without `--check`",
        "",
        "The holder of the Lease blocks every other run.",
    ),
    Power(
        OBSERVERS,
        "starts an observer on each node, in a namespace that the file creates",
        "nodes without ssh (connection `linerate.rdma.pod`)",
        ROOT,
        "The pods are privileged and have access to `/` and the processes of the host. On a control-plane node, this"
        " access includes the keys of the cluster, which equals cluster-admin.",
    ),
    Power(
        SRIOV,
        "creates policies, networks and pools of the SR-IOV network operator",
        "profiles `sriov_*`, `rdma_cluster.node_pool`",
        ROOT,
        "`metaPlugins` and `ipam` of a network are configuration of CNI plugins. CNI plugins run as root on the host"
        " and write files to the paths in their configuration. A policy drains and reboots nodes.",
    ),
    Power(
        NVIDIA,
        "creates the NicClusterPolicy and networks of NVIDIA's network operator",
        "profiles `rdma_shared`, `ipoib`, `host_device`",
        ROOT,
        "The NicClusterPolicy specifies images that the operator runs as privileged containers on each node. Its"
        " networks are CNI configuration in any namespace.",
    ),
    Power(
        ATTACHMENTS,
        "creates NetworkAttachmentDefinitions in the namespace of the jobs",
        "profile `macvlan`",
        ROOT,
        "A NetworkAttachmentDefinition is configuration of CNI plugins. CNI plugins run as root on the host and write"
        " files to the paths in their configuration.",
    ),
    Power(
        POOLS,
        "creates address pools of nv-ipam",
        "`ipam.pool` with `create`",
        "",
        "A wrong pool assigns addresses that are already in use.",
    ),
    Power(
        NAMESPACES,
        "creates and deletes the namespaces of the jobs",
        "a namespace of a fabric that does not exist, or that this collection created",
        "",
        "It permits listing all objects in these namespaces, including Secrets, deleting the namespaces, and changing"
        " their labels. A user who can create pods in such a namespace and sets the label `enforce: privileged` is"
        " root on the nodes.",
    ),
    Power(
        MEASURING,
        "creates networks, pods and a NetworkPolicy in the namespace `linerate-measure`, which the file creates, and"
        " runs commands in the pods",
        "stages `virtual_functions`, `host`, `bandwidth`, `collectives`, `compare`",
        ROOT,
        "The namespace admits any pod, because no level of Pod Security below `privileged` allows `IPC_LOCK`. Its"
        " networks are CNI configuration. On OpenShift, SecurityContextConstraints restrict the pods, but not the"
        " networks.",
    ),
    Power(
        ADMISSION,
        "admits the measuring pods; an admin applies the file, so that the user needs no right to create its objects",
        "`measuring` on OpenShift",
        "",
        "The pods may lock memory and run as any user that their image specifies. With `pods.mount_infiniband`, the"
        " pods mount folders of the host, which equals root on the nodes.",
    ),
    Power(
        JOBS,
        "submits and deletes training jobs and NIC maps",
        "the output of `render_job` and `render_nic_map` is submitted",
        "",
        "It permits running any image with any service account of the namespace of the jobs, and writing any"
        " ConfigMap in this namespace. The Pod Security level of the namespace is the limit.",
    ),
    Power(
        MACHINES,
        "creates MachineConfigs and KubeletConfigs, and pauses their pools",
        "`rdma_cluster.host`: `kernel_arguments`, `kubelet`, `memlock` by `machine_config`",
        ROOT,
        "A MachineConfig writes any file and any systemd unit on the nodes of its pool. The pools include the control"
        " plane, which equals cluster-admin. With `rdma_cluster.pause_health_checks`, it also permits pausing any"
        " health check of nodes.",
    ),
    Power(
        PEERMEM,
        "configures the GPU operator to load nvidia-peermem",
        "`rdma_cluster.host.gpudirect: peermem`",
        ROOT,
        "The ClusterPolicy specifies images that the operator runs as privileged containers on each node with a GPU.",
    ),
    Power(
        TUNING,
        "creates the Tuned of OpenShift's Node Tuning Operator",
        "`rdma_cluster.tuning.set`",
        ROOT,
        "A profile sets any sysctl. For example, `kernel.core_pattern` specifies a program that the kernel runs as"
        " root.",
    ),
    Power(
        ROLL,
        "cordons, marks and drains nodes",
        "`platform_settle` with `rdma_cluster.bios` or `firmware`, and `disruption: reboot`",
        "",
        "It permits evicting any pod of any namespace within the limits of PodDisruptionBudgets, and changing taints"
        " and labels of every node. The passwords of the BMCs, which are not part of Kubernetes, give control of the"
        " machines.",
    ),
    Power(
        FIRMWARE,
        "creates NicConfigurationTemplates of NVIDIA's NIC configuration operator",
        "as `roll`, if that operator configures the firmware of the HCAs",
        "",
        "It permits setting any firmware parameter of the HCAs, which can disconnect nodes from their network.",
    ),
    Power(
        OLM,
        "installs operators through OLM",
        "`operators_install` on OpenShift",
        ADMIN,
        "OLM grants an operator all rights that its package requests. This file permits choosing the package and"
        " approving its installation.",
    ),
    Power(
        OLM_REMOVAL,
        "removes operators that OLM has installed, with their definitions",
        "a teardown with `teardown_operator`",
        ADMIN,
        "It equals cluster-admin: deleting a CustomResourceDefinition deletes all objects of its kind. The kinds of"
        " an operator are known only in the cluster.",
    ),
    Power(
        HELM,
        "installs operators through Helm",
        "`operators_install` without OLM",
        ADMIN,
        "It equals cluster-admin: charts create ClusterRoles, webhooks and definitions, and Kubernetes does not"
        " permit users to grant rights that they do not have.",
    ),
)
NAMES: tuple[str, ...] = tuple(power.name for power in POWERS)


def get_powers(names: typing.Collection[str]) -> tuple[Power, ...]:
    """Return the sets of rights with these names, in the order of the table.

    :raises KeyError: a name is not in the table
    """
    unknown = set(names) - set(NAMES)
    if unknown:
        raise KeyError(f"no such power: {', '.join(sorted(unknown))}")
    return tuple(power for power in POWERS if power.name in names)


def build_grant_command(names: typing.Collection[str]) -> str:
    """Return the command by which an administrator of the cluster grants these sets of rights: ``kubectl apply -f
    docs/rbac/look.yml``.

    :param names: names of the sets of rights (files of docs/rbac)
    """
    return f"kubectl apply {' '.join(f'-f {power.path}' for power in get_powers(names))}"


def describe_grant(names: typing.Collection[str]) -> str:
    """Return the instruction by which an administrator of the cluster grants these sets of rights to the user of a run,
    without a period at the end.

    :param names: names of the sets of rights (files of docs/rbac)
    """
    files = "file gives the rights" if len(names) == 1 else "files give the rights"
    return (
        f"As an admin of the cluster, run {build_grant_command(names)}. The {files} to the group {GROUP}: if the user"
        " of the run is not in it, put the user into the subjects of the YAML first"
    )
