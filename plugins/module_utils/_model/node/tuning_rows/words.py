# SPDX-License-Identifier: GPL-3.0-or-later

"""Common texts of tuning rows: the harm of a node that differs, and instructions for settings."""

from __future__ import annotations

OF_ITS_LIKE = "Find out what was done to it, and set it as the others are."
OTHER = "Jobs run in step: a node that behaves otherwise is what all others wait for."


def sysctl(key: str, value: str) -> str:
    """Return the instruction how to set a sysctl."""
    return (
        f"OpenShift: '{key}={value}' in section [sysctl] of the pool's Tuned. Elsewhere: kernel_settings_sysctl of"
        f" linux-system-roles.kernel_settings, or sysctl -w {key}={value} and a file in /etc/sysctl.d."
    )


def argument(argument: str) -> str:
    """Return the instruction how to set a kernel argument."""
    return (
        f"OpenShift: '{argument}' in kernelArguments of the pool's MachineConfig, together with all others, so that it"
        f" reboots once. Elsewhere: grubby --update-kernel=ALL --args={argument}."
    )
