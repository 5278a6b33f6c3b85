# SPDX-License-Identifier: GPL-3.0-or-later

"""The causes of failed measurements: for each kind of failure its cause and its remedy."""

from __future__ import annotations

import re

from ..._analysis.fleet.cause import Cause, link_of
from ..._analysis.fleet.providers import PROVIDERS
from ..._analysis.measurement.completions import COMPLETIONS
from ..._model.base.phrases import describe_rerun
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.kubernetes.measuring import NAMESPACE, REFUSALS
from ..._model.measurement.bandwidth import LEFT_OUT

#: kind of failure (_parse/pods/failure.py): cause and remedy
CAUSES: dict[str, Cause] = {
    **PROVIDERS,
    "not_listening": Cause(
        "No server accepted the connection.",
        "Read the output of the server under 'measured'. If ss -ltnp in the pod shows another process on the"
        " server's port, end it. Otherwise correct the firewall or the NetworkPolicy between the pods.",
    ),
    "no_address": Cause(
        "The client cannot reach the server's address by RDMA: there is no route, or the interface has no RDMA device.",
        "Compare the output of ip addr and rdma link in both pods, and correct the network of the pod that lacks an"
        " address or a device.",
        "Set network.link_state: enable of the fabric in the intent.",
    ),
    "address_family": Cause(
        "The RDMA connection manager refused the address: one end uses IPv4 and the other end IPv6, or the address is"
        " an IPv6 link-local address without its interface.",
        "Give both pods an address of the same family that is not link-local (compare ip address in both pods, and"
        " check ipam of the fabric). IPv6 requires an image with perftest 23.07 or newer.",
    ),
    "port_in_use": Cause(
        "Other processes in the pod's network namespace occupied every port that the server tried.",
        "Find the process (run ss -ltnp in the pod, and rdma resource show cm_id on its node) and end it. With host"
        " networking, look for the process on the node.",
    ),
    "name": Cause("The server's name could not be resolved.", "Use the address of the network-status annotation."),
    "no_device": Cause(
        "The device plugin passed no RDMA device of this network into the pod. With virtual functions, their policy"
        " lacks isRdma: true, or the device plugin still runs with an older policy.",
        "Run kubectl get sriovnetworknodepolicies -A -o yaml. If the policy of the fabric lacks isRdma: true, run stage"
        " network. If it has isRdma: true, restart the device plugin on the node: kubectl delete pod -n NAMESPACE -l"
        " app=sriov-device-plugin --field-selector spec.nodeName=NODE. On a fabric without virtual functions, follow"
        " the remedy of the finding network.ready of the node.",
    ),
    "device_access": Cause(
        "The pod is not allowed to open the RDMA device.",
        "Mount the character devices of RDMA into the pod: set isRdma: true in the policy, or set pods.runtime_class"
        " and pods.mount_infiniband of the fabric.",
    ),
    "port_down": Cause(
        "The port of the RDMA device is not active.",
        "",
        "Set network.link_state: enable of the fabric in the intent, and use a subnet manager that supports virtual"
        " functions (OpenSM: virt_enabled 2).",
        "Run ip link show <PF> on the node. If the physical function has no carrier, check its cable and its switch"
        " port.",
    ),
    "no_lid": Cause(
        "The port of the RDMA device has no LID because the port is not configured.",
        "Read the LID in the pod: cat /sys/class/infiniband/*/ports/*/lid.",
        "Check that the subnet manager supports virtual functions (OpenSM: virt_enabled 2), and follow the remedies of"
        " the findings of stages fabric and virtual_functions.",
    ),
    "no_queue": Cause(
        "The RDMA device could not create a queue pair or a completion queue: it has none left, or it does not support"
        " the requested size.",
        "Correct the error of mlx5 that dmesg of the node shows. Run rdma resource show on the node, and end the"
        " processes that hold queues without need. Lower pods.queue_pairs of the fabric if the value is high.",
    ),
    "other_release": Cause(
        "The two ends run different releases or builds of perftest, so their images are not the same.",
        "Name the image in pods.image by its digest. One tag may refer to two images if one node pulled the tag"
        " earlier than the other node.",
    ),
    "memlock": Cause(
        "The tool could not pin memory: the memlock limit is too low, or the node GUID of the VF is 0.",
        "Give the pod the capability IPC_LOCK, or raise the memlock limit of the container runtime. Check the GUID of"
        " the VF on its node (ip link show <PF>).",
    ),
    "gid": Cause(
        "The queue pairs could not be connected: the GIDs of the two ends do not match.",
        "",
        "Compare the subnet prefix and the partition of both ports (ibv_devinfo -v), and correct the subnet manager"
        " that configures them differently.",
        "Use the same GID type and address family at both ends. On iWARP set pods.connection: rdma_cm.",
    ),
    "completion": Cause(
        "The transfer ended with a completion error whose status linerate.rdma does not know.",
        "Correct the error that dmesg of both nodes shows for the status under 'measured'. Use the same perftest"
        " release, message size and options at both ends.",
    ),
    "no_gid": Cause(
        "The RDMA device has no GID in the pod: its network interface belongs to another device, or is in another"
        " network namespace.",
        "Compare rdma link, ip addr and cat /sys/class/infiniband/*/ports/*/gid_attrs/ndevs/* in the pod: the"
        " interface of the network must belong to the RDMA device.",
        "Give the pod the virtual function of that network through a single resource (resource_name), and set the"
        " GUIDs of the virtual function.",
        "Use the same HCA for the network and the resource: the master of a macvlan network must be the interface of"
        " the RDMA device itself (for a bond, the bond with its RoCE device). Select the same interface for the device"
        " plugin.",
    ),
    "peer_gone": Cause(
        "The process at the other end ended during the measurement.",
        "Look for a killed process in dmesg of the other node. While the stage runs again, kubectl describe pod shows"
        " why the pod ended. Correct the cause.",
    ),
    "not_closed": Cause(
        "The measurement ran, but the final handshake of the two ends failed in each attempt, so neither end confirms"
        " the figure.",
        "Set pods.image to an image with a newer perftest.",
        ethernet="On iWARP this is a race condition in perftest: run stage bandwidth again.",
    ),
    "disconnected": Cause(
        "In each attempt the server of rping closed the connection before the last round trip, although the client of"
        " rping reported success.",
        "Correct the error that the last output of the server under 'measured', or dmesg of its node, shows.",
    ),
    "no_tool": Cause(
        "The image lacks a tool. It requires timeout, stdbuf, rping and ib_write_bw, or iperf3 if the pods have no"
        " RDMA device.",
        "Set pods.image to an image with perftest and the utilities of rdma-core, and with iperf3 if TCP is measured.",
    ),
    "hang": Cause(
        "The tool did not end within its time limit: its packets are dropped on the path without an error.",
        "Raise pods.limit_seconds if the measurement needs longer.",
        "First check the path: read ibqueryerrors, and the partitions of both ports"
        " (/sys/class/infiniband/*/ports/*/pkeys).",
        "Allow UDP port 4791 in the firewalls on the path.",
    ),
    "crash": Cause(
        "The tool crashed.",
        "Check that the VF has a node GUID (ip link show <PF>): rdma_cm crashes if the node GUID is zero. Otherwise"
        " set pods.image to an image with perftest and rdma-core of the same release.",
    ),
    "pod_gone": Cause(
        "The pod ended during the measurement: it was evicted or deleted, or its node was lost.",
        "Correct the cause that the events of the pod and of its node show (kubectl get events -A), then run stage"
        " bandwidth again.",
    ),
    "refused": Cause(
        "The API server refused the pod.",
        f"If an admin prepared the namespace {NAMESPACE}, set the label pod-security.kubernetes.io/enforce: privileged"
        " on it: the capability IPC_LOCK requires this label. On OpenShift, IPC_LOCK requires an account whose SCC"
        " allows it: oc apply -f docs/rbac/measuring-openshift.yml.",
    ),
    **{name: Cause(*refusal) for name, refusal in REFUSALS.items()},
    "stuck": Cause(
        "A pod of an earlier run still exists, although it was deleted.",
        "Read the events of the pod (kubectl describe pod), and check that the kubelet of its node works. If the node"
        " is permanently lost, delete the pod with kubectl delete pod --force.",
    ),
    "taken": Cause(
        "A kubelet reports a pod of its own under this name. Only a kubelet that does not follow its cluster does"
        " this.",
        f"Find the pod and its node: kubectl get pods -n {NAMESPACE} -o wide. Remove the file of the pod from"
        " staticPodPath of that node's kubelet, and from the program that wrote it.",
    ),
    "address": Cause(
        "The pod announces an address that is not its own, or that another pod announces as well. A measurement to"
        " this address would reach another end.",
        "If two pods have the same address, check the allocations of the IPAM plugin (kubectl get ippools -A), and"
        " stop everything else that uses the range. Otherwise find out who changed the annotation"
        " k8s.v1.cni.cncf.io/network-status of the pod: only multus and the kubelet of its node should write this"
        " annotation.",
    ),
    "silent": Cause(
        "The shell in the pod did not respond in time: its node is overloaded, or the kubelet does not forward the"
        " stream of kubectl exec.",
        f"While the stage runs, check whether kubectl exec -n {NAMESPACE} POD -- true ends, and check the load of the"
        " node. Raise bandwidth_pod_seconds for slow nodes.",
    ),
    "unschedulable": Cause(
        "The scheduler could not place the measuring pod on the node.",
        "If the details name Insufficient cpu or Insufficient memory, lower pods.cpu or pods.memory of the fabric to"
        " what kubectl describe node shows as Allocatable less Allocated resources, divided by the number of rails. If"
        " they name a taint, add it to pods.tolerations of the fabric. If they name the resource of the fabric, end the"
        " pods that hold its virtual functions. Then run stage bandwidth again, with --tags bandwidth if the intent"
        " was changed.",
    ),
    "container": Cause(
        "The kubelet cannot create the container of the pod.",
        "Run kubectl describe pod while the stage runs, and correct the cause in its events. The node must support"
        " the runtime class in pods.runtime_class.",
    ),
    "rail": Cause(
        "No pod could be assigned to this rail.",
        "End other pods that hold the virtual functions of the HCA of this rail, and check select and hcas_per_node of"
        " the fabric. The findings of stage virtual_functions show the virtual functions of each HCA.",
    ),
    "deadline": Cause(
        "The pod reached the end of its lifetime before the measurements were done: they take longer than the stage"
        " expected.",
        "Set bandwidth.rounds of the fabric to fewer rounds, or raise bandwidth_parallel if the controller measures"
        " fewer pairs at the same time than there are.",
    ),
    "no_option": Cause(
        "The tool does not support an option that this measurement requires. On a network with IPv6 addresses this is"
        " --ipv6-addr, which perftest supports since 23.07.",
        "Set pods.image to an image with a newer perftest (or a newer iperf3 if TCP is measured).",
    ),
    "exec_lost": Cause(
        "The connection to the pod broke, so the exit code is unknown.",
        "Check whether the pod or its node is gone, or whether the API server restarted (kubectl get events -A); then"
        " run stage bandwidth again.",
    ),
    "no_measurement": Cause(
        "In each attempt the tool ended with exit code 0, but printed no usable figure.",
        "Check the clocksource of the node (/sys/devices/system/clocksource/clocksource0/current_clocksource): an"
        " unstable clock causes the values 0, inf and nan. If it is the clocksource of the other nodes, check whether"
        " the image has a script in place of ib_write_bw (kubectl exec POD -- file -L /usr/bin/ib_write_bw) that"
        " shortens the measurement.",
    ),
    "other_run": Cause(
        "perftest used another RDMA device, or another number of queue pairs, than requested, so its figure does not"
        " apply to this pair.",
        "Run podman run --rm --entrypoint head IMAGE -c 4 /usr/bin/ib_write_bw, with the image in pods.image. If it"
        " does not print ELF, ib_write_bw is a script that changes the options. Set pods.image to an image with the"
        " unchanged program of perftest.",
    ),
    "exit_code": Cause(
        "The tool ended with an error that linerate.rdma does not know.",
        "Correct the error under 'measured'. If it does not show the cause, read dmesg of both nodes for errors of"
        " mlx5 or rdma_cm at the time of the run, and correct them. Then run stage bandwidth again.",
    ),
    "pod": Cause(
        "One of the two pods could not be used.", "Follow the remedy of the finding bandwidth.pod of the node."
    ),
    "not_run": Cause(
        "The stage ended before this measurement.",
        describe_rerun("bandwidth"),
    ),
    **dict.fromkeys(
        LEFT_OUT,
        Cause(
            "The pair was not measured: one of its ends had failed with several other nodes, and was left out of the"
            " later rounds.",
            "Follow the remedy of the finding bandwidth.suspect of this end.",
        ),
    ),
    "ping": Cause(
        "rping failed, so the bandwidth was not measured.",
        "Follow the remedy of the finding bandwidth.rping of this pair.",
    ),
}


def explain_cause(kind: str, fabric: Fabric) -> tuple[str, str]:
    """Return the cause and the remedy of a kind of failure, for the link layer of the fabric.

    For an unknown kind, the cause is that the tool ended with an unknown error.

    :param kind: kind of failure that a measurement reports, such as ``transport_retry``
    """
    known = COMPLETIONS.get(kind) or CAUSES.get(kind, CAUSES["exit_code"])
    why, remedy = known.on(link_of(fabric))
    return why, add_stage(remedy)


def name_check_of_fabric(fabric: Fabric) -> str:
    """Return the id of the check that reports why the HCAs of a fabric are unknown."""
    return "fabric.membership" if is_infiniband(fabric) else "discover.hcas"


def name_check_of_hcas(fabric: Fabric) -> str:
    """Return the id of the check that counts the HCAs of a node on a fabric."""
    return "fabric.hcas" if is_infiniband(fabric) else "discover.hcas"


def add_stage(remedy: str) -> str:
    """Return the remedy, followed by the instruction to run stage bandwidth again unless the remedy has it already.

    If the remedy has a command to run in a measuring pod, a sentence is added that these pods exist only while the
    stage runs.
    """
    if _IN_POD.search(remedy) and "while the stage runs" not in remedy.lower():
        remedy = f"{remedy} The measuring pods exist only while the stage runs."
    return remedy if "run stage bandwidth again" in remedy.lower() else f"{remedy} Then run stage bandwidth again."


#: of a remedy: a command in a measuring pod, or on it
_IN_POD = re.compile(r"\([^()]*in (?:the|both) pods?\b|in the pod:|in both pods\.")
