# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of the findings on tuning rows without a value: the expected value, and the remedy for the reason why a row
could not be read.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.vendors import NVIDIA, Vendor
from ..._model.base.phrases import format_clause
from ..._model.node.tuning_rows.row import TuningRow

#: reason for a row that the data of a node lacks
MISSING = "the stored data of the node lacks this value, as data of an older version of linerate.rdma does"
#: end of the reason for a bridge that was not read
ONLY_NEAREST = "only the bridges to the nearest NIC were read, and no fabric uses that NIC"
#: part of the reason for files that only NVIDIA's driver packages provide
_OF_NVIDIA = "only the driver packages of NVIDIA"
#: beginning of the reason for devices or CPUs without a value
NO_VALUE = "no value for"
_AGAIN = "then run stage tuning again."
#: remedies for NODE, by a part of the reason
_REMEDIES = (
    (
        MISSING,
        "Run stage tuning again, which reads NODE with the installed version. If the finding remains, report it to the"
        " developers of linerate.rdma, with the version that ansible-galaxy collection list linerate.rdma shows.",
    ),
    (
        ONLY_NEAREST,
        "Run lspci -vvv as root on NODE, with -s and the address of the bridge. If its line ACSCtl shows ReqRedir- and"
        " CmpltRedir-, waive this finding with that line as the reason. Otherwise set the kernel argument"
        " pci=disable_acs_redir for this bridge.",
    ),
    (
        "dcb is not installed",
        "Install dcb on NODE (package iproute2 of Debian, iproute of RHEL; 5.11 or newer), or in the image of the pod"
        f" that inspects the node, {_AGAIN}",
    ),
    (
        "nvidia-smi exists neither",
        "Install the NVIDIA driver on NODE, or wait until the driver pod of the GPU operator on NODE is ready,"
        f" {_AGAIN}",
    ),
    (
        "nvidia-smi does not report",
        "Run nvidia-smi -q on NODE. If it does not list a GPU of this finding, search dmesg for Xid 79, and drain"
        " and power-cycle the node. If it lists the GPU, end the jobs on the node, and reset the GPU: nvidia-smi -r"
        " -i ADDRESS. If this command is refused, reset all GPUs of the node: nvidia-smi -r. Then run stage tuning"
        " again.",
    ),
    (
        "nvidia-smi reports no state",
        "Run nvidia-smi -q on NODE, and compare section Fabric of this GPU with that of the other GPUs. Drain the"
        f" node and reset this GPU (nvidia-smi -r -i GPU), {_AGAIN}",
    ),
    (
        "does not support the field",
        f"Update the GPU driver on NODE to a version whose nvidia-smi has this field, {_AGAIN}",
    ),
    (
        _OF_NVIDIA,
        f"Install DOCA-OFED on NODE, {_AGAIN} If the node keeps the driver of the kernel, waive this finding.",
    ),
    (
        " CPUs",
        "Run cpupower frequency-info and lscpu -e on NODE and on a comparable node. Load the CPU driver that NODE lacks"
        f", or bring its CPUs online, {_AGAIN}",
    ),
    (
        NO_VALUE,
        "Compare the output of lspci -k on NODE with that of a node whose devices have all values. Load the missing"
        f" driver, {_AGAIN}",
    ),
    (
        "neither /proc/config.gz",
        "Install the package with the configuration of the running kernel (/boot/config-RELEASE) on NODE, or boot a"
        f" kernel with /proc/config.gz, {_AGAIN}",
    ),
    (
        "the settings kubelet-arg of",
        "Read topology-manager-policy, topology-manager-scope and reserved-cpus below kubelet-arg in"
        " /etc/rancher/k3s/config.yaml (RKE2: /etc/rancher/rke2/config.yaml) and its folder config.yaml.d on NODE, and"
        " the options of systemctl cat k3s k3s-agent. Compare them with those of the other nodes, and waive this"
        f" finding with them as the reason. On RKE2, start the kubelet if it does not run, {_AGAIN}",
    ),
    (
        "the command line of the kubelet was not found",
        "Run systemctl status kubelet on NODE, and start the kubelet if it does not run. If it runs, let Ansible read"
        " NODE as root: set ansible_become: true and a user with that right in the inventory. If another program"
        f" contains the kubelet (MicroK8s), waive this finding. Otherwise {_AGAIN}",
    ),
    (
        "Permission denied",
        "Let Ansible read NODE as root: set ansible_become: true and a user with that right in the inventory,"
        f" {_AGAIN}",
    ),
)


def describe_expected(row: TuningRow, rule: str = "") -> str:
    """Return the expected value of a tuning row that could not be read, as text for a finding.

    :param row: tuning row (one observable property) that could not be read
    :param rule: expected value with its source; empty if the row has no expected value
    """
    if rule:
        return f"{row.what}: {rule}"
    return f"{row.what}: {'the same on comparable nodes' if row.alike else 'a value that can be read on each node'}"


def explain(reason: str, part: int, count: int, noun: str) -> str:
    """Return the sentence with the reason why a tuning row could not be read, and the number of nodes or HCAs
    concerned.

    :param reason: reason why the row could not be read
    :param part: number of nodes or HCAs to which the reason applies
    :param count: number of all nodes or HCAs
    :param noun: singular noun for ``count``, such as ``node``
    """
    return f"The value was not read on {part} of {count} {noun}{'' if count == 1 else 's'}: {format_clause(reason)}."


def choose_remedy(reason: str, node: str, row: TuningRow, vendor: typing.Optional[Vendor] = NVIDIA) -> str:
    """Return the remedy for a tuning row that could not be read, which depends on the reason.

    :param reason: reason why the row could not be read
    :param node: name of a node with this reason
    :param vendor: vendor of the NICs whose setting the row is; None for NICs of an unknown vendor
    """
    own = vendor.priorities if vendor else "the tool of the vendor of the NIC"
    by_dcb = own.startswith("dcb ")
    if vendor is not NVIDIA and (_OF_NVIDIA in reason or ("dcb" in reason and not by_dcb)):
        return (
            f"The driver of this NIC does not report the setting. Read it on {node} with"
            f" {'the tool of the vendor of the NIC' if by_dcb else own}, and compare it with the setting of the switch"
            " port. If they agree, waive this finding with the output as the reason."
        )
    for part, remedy in _REMEDIES:
        if part in reason:
            return remedy.replace("NODE", node)
    return (
        f"Run ansible {node} --become -m linerate.rdma.node_info -a gather_subset=tuning, and read the"
        f" entry '{row.name}' under the key 'unread' of the output. Correct the error that the entry names on {node},"
        f" {_AGAIN}"
    )
