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
        "The RDMA device is in the pod, and the image's rdma-core does not fit the node's driver: its provider does not"
        " support the ABI of the kernel module.",
        "Use an image whose rdma-core is of the release of the node's driver: the driver vendor's own rdma-core where"
        f" the driver is of the vendor, that of the distribution where the driver is of the kernel. {_COMPARE}",
    ),
    "provider_missing": Cause(
        "The RDMA device is in the pod, and the image has no provider library for it.",
        "Install the provider in the image: ibverbs-providers on Debian and Ubuntu, libibverbs on RHEL, or the vendor's"
        " own package where the driver is of the vendor. The providers of an image are listed by ls /etc/libibverbs.d.",
    ),
    "uverbs_abi": Cause(
        "libibverbs of the image does not fit the verbs of the node's kernel, or the kernel has none: ib_uverbs is not"
        " loaded.",
        f"Load ib_uverbs on the node (modprobe ib_uverbs). {_COMPARE}",
    ),
}
