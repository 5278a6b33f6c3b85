# SPDX-License-Identifier: GPL-3.0-or-later

"""Common texts of tuning rows: the harm of a node that differs, and instructions for settings."""

from __future__ import annotations

OF_ITS_LIKE = (
    "Compare the model with that of the comparable nodes (lscpu, lspci -nn or nvidia-smi -L on the node). If"
    " the part is the wrong one, drain the node and replace the part."
)
OTHER = "All nodes of a job wait for the slowest node, so one node that differs can slow down the whole job."


def describe_sysctl(key: str, value: str) -> str:
    """Return the remedy text with the steps to set a sysctl, on OpenShift and elsewhere.

    :param key: name of the sysctl
    :param value: value to set
    """
    return (
        f"On OpenShift, add '{key}={value}' to section [sysctl] of the pool's Tuned. On other clusters, set"
        f" kernel_settings_sysctl of linux-system-roles.kernel_settings, or run sysctl -w {key}={value} on the node"
        " and add a file to /etc/sysctl.d."
    )


def describe_argument(argument: str) -> str:
    """Return the remedy text with the steps to set a kernel argument, on OpenShift and elsewhere.

    :param argument: kernel argument, such as ``iommu=pt``
    """
    return (
        f"On OpenShift, add '{argument}' to kernelArguments of the pool's MachineConfig, together with all other"
        f" arguments, so that each node reboots only once. On RHEL and its derivatives, run grubby --update-kernel=ALL"
        f" --args={argument}. On Debian and Ubuntu, add {argument} to GRUB_CMDLINE_LINUX in /etc/default/grub, and run"
        " update-grub. Then drain and reboot the node."
    )
