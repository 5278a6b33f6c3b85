# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a measurement fail: for each kind of failure its cause and the next step."""

from __future__ import annotations

import typing

from ..._model import completions
from ..._model.intent import Fabric
from ..._model.measuring import NAMESPACE, REFUSALS
from ..._model.profiles import is_infiniband
from ..fleet.completions import COMPLETIONS, Link

#: kind of failure (_parse/pods/failure.py): cause and remedy
CAUSES: typing.Dict[str, typing.Tuple[str, str]] = {
    "not_listening": (
        "No server accepted the connection.",
        "See the server's line. Then look for another process on its port (ss -ltnp in the pod) and for a firewall or NetworkPolicy between the pods.",
    ),
    "no_address": (
        "The address is not reachable by RDMA from here: no route, or the interface has no RDMA device.",
        "Compare ip addr and rdma link in both pods. On InfiniBand, set network.link_state: enable.",
    ),
    "name": ("The server's name could not be resolved.", "Use the address of the network-status annotation."),
    "no_device": (
        "The RDMA device is not in the pod.",
        "Check that the policy has isRdma: true, then restart the device plugin's pod if it is older than the policy (kubectl delete pod).",
    ),
    "device_access": (
        "The pod may not open the RDMA device.",
        "Mount the character devices: isRdma in the policy, or pods.runtime_class and pods.mount_infiniband.",
    ),
    "port_down": (
        "The port of the RDMA device is not active.",
        "On InfiniBand: link_state enable, and a subnet manager that serves virtual functions. On Ethernet: carrier of the PF.",
    ),
    "memlock": (
        "Memory could not be pinned: memlock is too low, or the VF has node GUID 0.",
        "Give the pod IPC_LOCK or raise the runtime's memlock; look at the VF's GUID on its node.",
    ),
    "gid": (
        "The queue pairs could not be connected: the GIDs of the two ends do not fit.",
        "Same GID type and address family on both ends; on iWARP use pods.connection rdma_cm.",
    ),
    "completion": (
        "The transfer ended with an error whose status is not known here.",
        "Read the status beside 'measured', and dmesg of both nodes. Use one perftest, message size and options at both ends.",
    ),
    "peer_gone": (
        "The other end ended in the middle of the run.",
        "See why the other pod ended: kubectl describe pod, and dmesg of its node for a process that was killed.",
    ),
    "not_closed": (
        "It measured, and the two ends then missed each other in their last handshake, each time that it was tried, so neither vouches for the figure.",
        "Use a newer perftest in pods.image; on iWARP, where this is a race, run the stage again.",
    ),
    "disconnected": (
        "rping's server ended the connection before the last round trip, each time that it was tried; rping's client calls that a success.",
        "Read the server's last words beside 'measured', and dmesg of its node.",
    ),
    "no_tool": (
        "The image lacks a tool: it needs timeout, stdbuf, rping and ib_write_bw, or iperf3 where pods have no RDMA device.",
        "Use an image with perftest and rdma-core's utilities in pods.image, and with iperf3 where TCP is measured.",
    ),
    "hang": (
        "The tool did not end within its limit: its packets are dropped on the way without an error.",
        "On RoCE, let UDP port 4791 through. Otherwise raise pods.limit_seconds.",
    ),
    "crash": (
        "The tool crashed.",
        "Check that the VF has a node GUID (ip link show <PF>): rdma_cm crashes on zeros. Otherwise give the image perftest and rdma-core of one release.",
    ),
    "pod_gone": (
        "The pod ended in the middle of the run: it was evicted or deleted, or its node was lost.",
        "See the events of the pod and of its node (kubectl get events), and run the stage again.",
    ),
    "refused": (
        "The API server refused the pod.",
        f"IPC_LOCK needs a namespace with the label pod-security.kubernetes.io/enforce: privileged, which {NAMESPACE} has unless an admin prepared it without; "
        "on OpenShift an account whose SCC allows it: oc apply -f docs/rbac/measuring-openshift.yml.",
    ),
    **REFUSALS,
    "stuck": (
        "A pod of an earlier run is still there, although it was deleted.",
        "See its events, and whether the kubelet of its node works; if the node is lost for good, delete the pod with --force.",
    ),
    "taken": (
        "A kubelet shows a pod of its own under this name, as only a kubelet that does not obey its cluster does.",
        f"Look at the pod and its node: kubectl get pods -n {NAMESPACE} -o wide. Remove the file from staticPodPath of that node's kubelet, and find out who "
        "has put it there.",
    ),
    "unschedulable": (
        "No pod of ours fits on the node.",
        "A taint: pods.tolerations. Too few CPUs or too little memory: pods.cpu, pods.memory. No free virtual function: end the pods that hold them.",
    ),
    "container": ("The container cannot be created.", "Run kubectl describe pod while the stage runs. The node must know pods.runtime_class."),
    "rail": (
        "No pod stands for this rail.",
        "See the stage virtual_functions for each HCA of the fabric, end other pods that hold its virtual functions, and check select and hcas_per_node.",
    ),
    "deadline": (
        "The pod came to the end of its life, which the plan of the measurements sets, before they were done: they take longer than planned.",
        "Set bandwidth.rounds of the fabric to fewer rounds, or raise bandwidth_parallel where the controller measures fewer pairs at once than there are.",
    ),
    "no_option": (
        "The tool does not know an option that it needs here; on a network of IPv6 addresses that is --ipv6-addr, which perftest has from 23.07 on.",
        "Use an image with a newer perftest (or iperf3, where TCP is measured) in pods.image.",
    ),
    "exec_lost": (
        "The connection to the pod broke, so the exit code is not known.",
        "Look for a pod or node that is gone, or an API server that restarted (kubectl get events -A). Then run the stage again.",
    ),
    "no_measurement": (
        "The tool ended with 0 and printed no usable figure, each time that it was tried.",
        "Zero, inf or nan come from an unstable clock on the node: see its clocksource.",
    ),
    "exit_code": ("The tool ended with an error that is not known here.", "Read its text beside 'measured'."),
    "pod": ("One of the two pods could not be used.", "See the finding on the pod."),
    "not_run": ("The measurement did not run.", "Run the stage again."),
    "ping": ("rping already failed, so a bandwidth was not measured.", "See the finding bandwidth.rping."),
}


def link_of(fabric: Fabric) -> Link:
    """Return the link layer of the fabric."""
    return "InfiniBand" if is_infiniband(fabric) else "Ethernet"


def cause_of(kind: str, link: Link = "") -> typing.Tuple[str, str]:
    """Return cause and remedy of a kind of failure.

    :param link: link layer of the fabric, since each has remedies of its own
    """
    completion = COMPLETIONS.get(typing.cast(completions.Kind, kind))
    return (completion.why, completion.remedy_on(link)) if completion else CAUSES.get(kind, CAUSES["exit_code"])
