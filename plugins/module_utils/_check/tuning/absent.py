# SPDX-License-Identifier: GPL-3.0-or-later

"""Cause and remedy for a value that comparable nodes have and a node does not have at all. Part of the check
``tuning.alike``.
"""

from __future__ import annotations

from ..._model.node.tuning_rows.row import TuningRow

_AGAIN = "then run stage tuning again."
#: by the name of a tuning row
_OF_ROWS = {
    "memlock": (
        "No container runtime (containerd or crio) ran on the node when it was read.",
        f"Run systemctl status containerd crio on NODE, start the runtime of the node, {_AGAIN}",
    ),
    "rdma_shared": (
        "The module ib_core, which has this parameter, is not loaded on the node.",
        f"Run modprobe ib_core on NODE, {_AGAIN}",
    ),
    "p2pdma": (
        "The run found no GPU on the node when it read this value, and reads it only on nodes with a GPU.",
        "Run lspci -nn on NODE. If it lists GPUs, run nvidia-smi -L (AMD: rocm-smi) on NODE and correct its error, such"
        f" as a driver that is not loaded. If it lists none, check the power and the seat of the GPUs, {_AGAIN}",
    ),
    "tuned": (
        "The file /etc/tuned/active_profile, which TuneD writes, does not exist on the node.",
        f"Run systemctl status tuned on NODE. Install and start TuneD as on the comparable nodes, {_AGAIN}",
    ),
}
_OF_ROWS.update(
    {
        f"{manager}_manager": (
            f"The node has no file /var/lib/kubelet/{manager}_manager_state, which the kubelet writes when it starts."
            " The kubelet does not run, has another root directory, or does not support this policy.",
            "Run systemctl status kubelet on NODE. If the kubelet does not run, correct the error in its log, start"
            f" it, {_AGAIN} If it runs with another --root-dir, waive this finding. Otherwise install the kubelet"
            f" release of a comparable node, set {manager}ManagerPolicy as there in the configuration of the kubelet"
            f" (OpenShift: in the KubeletConfig of the pool), restart the kubelet, {_AGAIN}",
        )
        for manager in ("cpu", "memory")
    }
)
#: by the check of a tuning row
_OF_CHECKS = {
    "cpu": (
        "The kernel of the node has no file for this value below /sys/devices/system/cpu.",
        "Compare uname -r and cpupower frequency-info on NODE with those of a comparable node. Boot the same kernel,"
        f" or set power management in the BIOS as there, {_AGAIN}",
    ),
    "memory": (
        "The kernel of the node has no file for this value.",
        f"Compare uname -r on NODE with that of a comparable node. Boot the same kernel release, {_AGAIN}",
    ),
    "kernel": (
        "The kernel of the node has no file for this value.",
        "Compare uname -r and cat /proc/cmdline on NODE with those of a comparable node. Boot the same kernel release"
        f" with the same arguments, {_AGAIN}",
    ),
    "pci": (
        "The node has no GPU or HCA that has this value.",
        "Compare lspci -nnk on NODE with that of a comparable node. Load the driver of the missing device, or seat the"
        f" card, {_AGAIN}",
    ),
    "gpu": (
        "nvidia-smi reports this value for no GPU of the node.",
        "Compare nvidia-smi -q on NODE with that of a comparable node. Install the same version of the GPU driver,"
        f" {_AGAIN}",
    ),
    "kubelet": (
        "The node has no process of the kubelet, and no configuration file of the kubelet at"
        " /etc/kubernetes/kubelet.conf or /var/lib/kubelet/config.yaml, so its kubelet may place pods differently from"
        " those of the comparable nodes.",
        "Run systemctl status kubelet on NODE. If the kubelet does not run, start it. If another program contains the"
        " kubelet (MicroK8s), compare its arguments with those of a comparable node, and waive this finding. Otherwise"
        f" install the kubelet as on the comparable nodes, {_AGAIN}",
    ),
    "network": (
        "No HCA of the node has a network interface from which this value could be read.",
        f"Run rdma link and ip link on NODE. Load the driver of the missing interface, such as ib_ipoib, {_AGAIN}",
    ),
}


def explain_absent(row: TuningRow, node: str) -> tuple[str, str]:
    """Return the cause and the remedy for a value that comparable nodes have and a node does not have.

    :param row: tuning row (one observable property of a node)
    :param node: name of the node
    """
    if row.name in _OF_ROWS:
        why, remedy = _OF_ROWS[row.name]
    elif row.setting is not None and row.what.startswith(row.setting.key):
        key = row.setting.key
        why = f"The kernel of the node does not have the sysctl {key}."
        remedy = (
            f"Run sysctl {key} and uname -r on NODE and on a comparable node. Boot NODE with the kernel release of the"
            f" comparable node, {_AGAIN}"
        )
    else:
        why, remedy = _OF_CHECKS[row.check]
    return why, remedy.replace("NODE", node)
