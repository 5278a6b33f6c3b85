# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of failed work completions (``ibv_wc_status``). Tools such as perftest print this status
number.
"""

from __future__ import annotations

import typing

from ..._model.measurement.completions import STATUSES
from ..fleet.cause import Cause

_ONE_IMAGE = "Use one image, and the same message size and options, at both ends."
_DRIVER = "Read the kernel log of the node (dmesg) for that time, and update the firmware and the driver of the HCA."
#: of reliable datagrams, which no HCA in use has
_NO_SUCH_TRANSPORT = (
    "The HCA reported a status of the transport RD, which no program uses: its firmware, its driver or the provider in"
    " the image is faulty."
)
_PEER_LOG = (
    "Read the output of the other end, which reports its own error, and run dmesg on its node. Correct the error"
    " that they show."
)
_ON_INFINIBAND = (
    "Otherwise run ibqueryerrors on a node, and repair a link on the path whose error counters increase. If none"
    " increases, read the log of the subnet manager for that time."
)
_ON_ROCE = (
    "Otherwise make MTU (ip link), PFC (dcb pfc show) and ECN equal at both ends and at the switches. The GID"
    " types of both ends must be equal too (grep . /sys/class/infiniband/*/ports/*/gid_attrs/types/*)."
)

#: by kind of a status (_model/measurement/completions.py)
COMPLETIONS: typing.Mapping[str, Cause] = {
    "success_reported": Cause(
        "The tool reported a failed completion with status 0 (success): the completion queue itself could not be"
        " polled.",
        f"{_ONE_IMAGE} {_DRIVER}",
    ),
    "local_length": Cause(
        "A message was longer than the buffer that was posted for it, or longer than the HCA supports (status 1).",
        f"{_ONE_IMAGE} If they are already the same, update the firmware of the HCA.",
    ),
    "local_qp_operation": Cause(
        "The HCA could not process a work request: it does not support the operation, its size or its inline data"
        " (status 2).",
        (
            "Run the tool with its defaults (ib_write_bw without -I and -l). If it still fails, use rdma-core and"
            " firmware of the same release."
        ),
    ),
    "local_eec_operation": Cause(f"{_NO_SUCH_TRANSPORT} (Status 3.)", _DRIVER),
    "local_protection": Cause(
        "The HCA could not access the memory of its own program (status 4): the registration is invalid, the IOMMU"
        " blocks the access, or the GPU's BAR does.",
        (
            "Read the faults of the IOMMU on that node: dmesg | grep -iE 'DMAR|AMD-Vi|smmu'. Boot the node with"
            " iommu=pt, and disable ACS on the bridges above the HCA (lspci -vv | grep ACSCtl). With GPU memory:"
            " measure host memory first. If that works, load the peer memory module of the GPU or use DMA-BUF."
        ),
    ),
    "flushed": Cause(
        (
            "The queue pair had already failed, and its remaining requests were flushed (status 5). This error is a"
            " consequence of the earlier failure."
        ),
        "Find the first error of the same queue pair in the output of both ends, and correct its cause.",
    ),
    "memory_window": Cause(
        "The HCA could not bind a memory window or register memory by a work request (status 6).",
        f"Use rdma-core and a kernel driver of the same release. {_DRIVER}",
    ),
    "bad_response": Cause(
        (
            "The other HCA responded with a packet that does not match the request (status 7): the firmware of an HCA"
            " is faulty, or two HCAs have the same address."
        ),
        (
            "Install the same firmware release on both HCAs (ibv_devinfo), and check whether two functions have the"
            " same GUID, GID or address (ibv_devinfo -v, ip address)."
        ),
    ),
    "local_access": Cause(
        "The HCA could not write received data into the memory of its own program, which did not allow it (status 8).",
        f"{_ONE_IMAGE} Read the faults of the IOMMU on that node: dmesg | grep -iE 'DMAR|AMD-Vi|smmu'.",
    ),
    "remote_invalid_request": Cause(
        "The other end refused the request as invalid (status 9): its buffer is smaller, or it did not enable RDMA"
        " operations of this kind.",
        f"{_ONE_IMAGE} {_PEER_LOG}",
    ),
    "remote_access": Cause(
        (
            "The other end rejected the access to its memory (status 10): the key or the address is wrong, or the other"
            " end did not permit the access."
        ),
        f"{_ONE_IMAGE} Check whether the other end restarted during the run. {_PEER_LOG}",
    ),
    "remote_operation": Cause(
        (
            "The other end could not process the request (status 11): its HCA could not access its own memory, as with"
            " a local protection error."
        ),
        (
            f"{_PEER_LOG} Check that node for faults of the IOMMU: dmesg | grep -iE 'DMAR|AMD-Vi|smmu'. With GPU"
            " memory: measure host memory first."
        ),
    ),
    "transport_retry": Cause(
        (
            "The other end did not acknowledge packets before the retries were used up (status 12): the path loses"
            " packets, or the other end no longer runs."
        ),
        "If dmesg on the node of the other end shows that its program was killed or its port went down, correct this.",
        _ON_INFINIBAND,
        _ON_ROCE,
    ),
    "receiver_not_ready": Cause(
        (
            "The other end had no receive buffer ready before the retries were used up (status 13): its program has"
            " stopped or is too slow."
        ),
        f"{_PEER_LOG} Give its program enough CPUs, and raise the RNR retry count of the program.",
    ),
    "local_rdd_violation": Cause(f"{_NO_SUCH_TRANSPORT} (Status 14.)", _DRIVER),
    "remote_invalid_rd_request": Cause(f"{_NO_SUCH_TRANSPORT} (Status 15.)", _DRIVER),
    "remote_abort": Cause(
        "The other end aborted the operation (status 16): its queue pair was reset or destroyed during the operation.",
        _PEER_LOG,
    ),
    "eec_number": Cause(f"{_NO_SUCH_TRANSPORT} (Status 17.)", _DRIVER),
    "eec_state": Cause(f"{_NO_SUCH_TRANSPORT} (Status 18.)", _DRIVER),
    "device_fatal": Cause(
        "The HCA is in a fatal state (status 19): its driver stopped using it, or it was reset.",
        (
            "Read the kernel log of the node (dmesg) for health messages of the HCA, then reboot the node. If the error"
            " returns, update the firmware or replace the card."
        ),
    ),
    "response_timeout": Cause(
        "The other end did not respond in time (status 20): the path loses packets, or the other end no longer runs.",
        "If dmesg on the node of the other end shows that its program was killed or its port went down, correct this.",
        _ON_INFINIBAND,
        _ON_ROCE,
    ),
    "general_error": Cause(
        (
            "The HCA reported an error without a status of its own (status 21). The syndrome in the output is specific"
            " to the vendor."
        ),
        _DRIVER,
    ),
    "tag_matching": Cause(
        "Tag matching in the HCA failed (status 22).",
        "Disable tag matching in MPI or UCX (UCX_RC_TM_ENABLE=n), and update the firmware of the HCA.",
    ),
    "tag_matching_rendezvous": Cause(
        "Tag matching in the HCA passed a message to software (status 23), and the program did not expect that.",
        "Disable tag matching in MPI or UCX (UCX_RC_TM_ENABLE=n).",
    ),
}


def find_completion(status: int) -> typing.Optional[Cause]:
    """Return the cause and the remedies of a status number, or None if the number is unknown.

    :param status: number of a work completion status
    """
    known = STATUSES.get(status)
    return COMPLETIONS[known.kind] if known else None
