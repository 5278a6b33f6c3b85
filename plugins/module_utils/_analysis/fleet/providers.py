# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies for container images in which libibverbs shows no RDMA device to a program, although the pod has
one.
"""

from __future__ import annotations

import typing

from .cause import Cause

_COMPARE = (
    "Compare rdma-core in the image (dpkg -l rdma-core, rpm -q rdma-core) with the driver on the node (modinfo of its"
    " RDMA module)."
)

#: by kind of a warning (_parse/pods/libibverbs.py)
PROVIDERS: typing.Mapping[str, Cause] = {
    "provider_abi": Cause(
        (
            "The pod has the RDMA device, but rdma-core in the image does not match the driver of the node: its"
            " provider does not support the ABI of the kernel module."
        ),
        (
            "Use an image whose rdma-core release matches the driver of the node: the rdma-core of the vendor for a"
            f" vendor driver, or the rdma-core of the distribution for a kernel driver. {_COMPARE}"
        ),
    ),
    "provider_missing": Cause(
        "The pod has the RDMA device, but the image has no provider library for it.",
        (
            "Install the provider in the image: ibverbs-providers on Debian and Ubuntu, libibverbs on RHEL, or the"
            " package of the vendor for a vendor driver. ls /etc/libibverbs.d lists the providers of an image."
        ),
    ),
    "uverbs_abi": Cause(
        (
            "libibverbs of the image does not match the verbs of the kernel of the node, or the kernel has no verbs"
            " because ib_uverbs is not loaded."
        ),
        f"Load ib_uverbs on the node (modprobe ib_uverbs). {_COMPARE}",
    ),
}
