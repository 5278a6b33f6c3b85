# SPDX-License-Identifier: GPL-3.0-or-later

"""The causes of failed measurements: for each kind of failure its cause and its remedy."""

from __future__ import annotations

import re
import typing

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
        "The server of the measurement did not accept the connection of the client.",
        f"Read the output of the server under 'measured'. While the stage runs, run kubectl exec -n {NAMESPACE}"
        " POD -- ss -ltnp: if another process listens on the server's port, end it. Otherwise allow the traffic"
        " between the pods in the firewall or the NetworkPolicy that blocks it.",
    ),
    "no_address": Cause(
        "The client cannot reach the server's address by RDMA: there is no route, or the interface has no RDMA device.",
        f"While the stage runs, run kubectl exec -n {NAMESPACE} POD -- ip addr for each of the two pods, and the"
        " same with rdma link. Correct the network of the pod that lacks an address or a device.",
        "Set network.link_state: enable of the fabric in the intent.",
    ),
    "address_family": Cause(
        "The RDMA connection manager refused the address: one end uses IPv4 and the other end IPv6, or the address is"
        " an IPv6 link-local address without its interface.",
        "Give both pods an address of the same family that is not link-local: correct ipam of the fabric in the"
        " intent. To compare the addresses, run ip address in both pods. IPv6 requires an image with perftest"
        " 23.07 or newer.",
    ),
    "port_in_use": Cause(
        "Other processes in the pod's network namespace occupied every port that the server tried.",
        f"While the stage runs, run kubectl exec -n {NAMESPACE} POD -- ss -ltnp, and rdma resource show cm_id on"
        " NODE, to find the process, and end it.",
    ),
    "name": Cause(
        "The server's name could not be resolved.",
        (
            f"Correct the DNS entry of this name. To see the address that the pod announces, run kubectl -n {NAMESPACE}"
            " get pod POD -o yaml while the stage runs, and read the annotation k8s.v1.cni.cncf.io/network-status."
        ),
    ),
    "no_device": Cause(
        "The device plugin passed no RDMA device of this network into the pod. With virtual functions, their policy"
        " lacks isRdma: true, or the device plugin still runs with an older policy.",
        "Run kubectl get sriovnetworknodepolicies -A -o yaml. If the policy of the fabric lacks isRdma: true,"
        " run stage network. If it has isRdma: true, restart the device plugin, which does not affect running"
        " pods: kubectl get pods -A -o wide -l app=sriov-device-plugin lists its pod on NODE, and kubectl delete"
        " pod with its name and namespace restarts it. On a fabric without virtual functions, follow the remedy"
        " of the finding network.ready of NODE.",
    ),
    "device_access": Cause(
        "The pod is not allowed to open the RDMA device.",
        "With virtual functions, set isRdma: true in the SriovNetworkNodePolicy of the fabric: run stage"
        " network. Without virtual functions, set pods.mount_infiniband: true of the fabric, and"
        " pods.runtime_class if the nodes need one.",
    ),
    "port_down": Cause(
        "The port of the RDMA device is not active.",
        "",
        "Set network.link_state: enable of the fabric in the intent, and use a subnet manager that supports virtual"
        " functions (OpenSM: virt_enabled 2).",
        "Run ip link show on NODE. If it shows NO-CARRIER for the interface of the HCA, check its cable and its"
        " switch port.",
    ),
    "no_lid": Cause(
        "The port of the RDMA device has no LID because the port is not configured.",
        "To see the LID, run cat /sys/class/infiniband/*/ports/*/lid in the pod while the stage runs: 0x0 means none.",
        "Check that the subnet manager supports virtual functions (OpenSM: virt_enabled 2), and follow the remedies of"
        " the findings of stages fabric and virtual_functions.",
    ),
    "no_queue": Cause(
        "The RDMA device could not create a queue pair or a completion queue: it has none left, or it does not support"
        " the requested size.",
        "Run dmesg on NODE, and correct the error of mlx5 that it shows. Run rdma resource show on NODE, and end"
        " processes that hold many queue pairs and are no longer needed. If pods.queue_pairs of the fabric is"
        " high, lower it.",
    ),
    "other_release": Cause(
        "The two ends run different releases or builds of perftest, so their images are not the same.",
        "Name the image in pods.image by its digest. One tag may refer to two images if one node pulled the tag"
        " earlier than the other node.",
    ),
    "memlock": Cause(
        "The tool could not pin memory: the memlock limit is too low, or the node GUID of the VF is 0.",
        "Run ip link show on NODE. If it shows the node GUID 00:00:00:00:00:00:00:00 for the VF of the pod,"
        " follow the remedy of the finding virtual_functions.guids. Otherwise raise the memlock limit of the"
        " container runtime: set rdma_cluster.host.memlock in the intent, and run stages network and host.",
    ),
    "gid": Cause(
        "The queue pairs could not be connected: the GIDs of the two ends do not match.",
        "",
        "Run ibv_devinfo -v on both nodes, and compare the subnet prefix of the GIDs and the partitions of the"
        " two ports. Correct them in the configuration of the subnet manager.",
        (
            "Give both pods addresses of the same family (ipam of the fabric), so that both ends have the same GID"
            " type. On iWARP set pods.connection: rdma_cm."
        ),
    ),
    "completion": Cause(
        "The transfer ended with a completion error whose status linerate.rdma does not know.",
        "Run dmesg on both nodes, and correct the error of the HCA that it shows at that time. If it shows none,"
        " name the image in pods.image of the fabric by its digest, so that both ends run the same perftest.",
    ),
    "no_gid": Cause(
        "The RDMA device has no GID in the pod: its network interface belongs to another device, or is in another"
        " network namespace.",
        "While the stage runs, run rdma link, ip addr and cat /sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*"
        " in the pod: the interface of the network must belong to the RDMA device.",
        "Give the pod the virtual function of that network through a single resource (resource_name), and set the"
        " GUIDs of the virtual function.",
        "Use the same HCA for the network and the resource: the master of a macvlan network must be the interface of"
        " the RDMA device itself (for a bond, the bond with its RoCE device). Select the same interface for the device"
        " plugin.",
    ),
    "peer_gone": Cause(
        "The process at the other end ended during the measurement.",
        "Run dmesg on both nodes, and look for a killed process. Run stage bandwidth again, and while it runs,"
        f" kubectl -n {NAMESPACE} describe pods: the events show why a pod ended. Correct the cause.",
    ),
    "not_closed": Cause(
        "The measurement ran, but the final handshake of the two ends failed in each attempt, so the figure is"
        " not confirmed.",
        "Set pods.image to an image with a newer perftest.",
        ethernet="On iWARP this is a race condition in perftest: run stage bandwidth again.",
    ),
    "disconnected": Cause(
        "In each attempt the server of rping closed the connection before the last round trip, although the client of"
        " rping reported success.",
        (
            "Read the last output of the server under 'measured', and dmesg on both nodes, and correct the error"
            " that they show."
        ),
    ),
    "no_tool": Cause(
        "The image lacks a tool. It requires timeout, stdbuf, rping and ib_write_bw, or iperf3 if the pods have no"
        " RDMA device.",
        "Set pods.image to an image with perftest and the utilities of rdma-core, and with iperf3 if TCP is measured.",
    ),
    "hang": Cause(
        "The tool did not end within its time limit: its packets are dropped on the path without an error.",
        "If the measurement needs more time, raise pods.limit_seconds of the fabric.",
        "Otherwise run ibqueryerrors on a node, and repair a link whose error counters increase. Run cat"
        " /sys/class/infiniband/*/ports/*/pkeys/* on both nodes: the two ports must share a partition of which"
        " at least one is a full member.",
        "Otherwise allow UDP port 4791 (RoCE v2) in the firewalls on the path between the nodes.",
    ),
    "crash": Cause(
        "The tool crashed.",
        "Run ip link show on NODE. If it shows the node GUID 00:00:00:00:00:00:00:00 for the VF of the pod,"
        " follow the remedy of the finding virtual_functions.guids: rdma_cm crashes with this GUID. Otherwise"
        " set pods.image of the fabric to an image with perftest and rdma-core of the same release.",
    ),
    "pod_gone": Cause(
        "The pod ended during the measurement: it was evicted or deleted, or its node was lost.",
        "Run kubectl get events -A --sort-by=.lastTimestamp, and correct the cause that the events of the pod"
        " and of its node show. Then run stage bandwidth again.",
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
        f"Run kubectl -n {NAMESPACE} describe pod POD, and read its events. Run systemctl status kubelet on NODE,"
        " and start the kubelet if it does not run. If the node is permanently lost, delete the pod: kubectl -n"
        f" {NAMESPACE} delete pod POD --force.",
    ),
    "taken": Cause(
        "A kubelet reports a pod of its own under this name. Only a kubelet that does not follow its cluster does"
        " this.",
        f"Find the pod and its node: kubectl get pods -n {NAMESPACE} -o wide. Remove the file of the pod from"
        " staticPodPath of that node's kubelet, and from the program that wrote it.",
    ),
    "address": Cause(
        "The pod announces an address that is not its own, or that another pod announces as well. A measurement"
        " to this address would reach another pod.",
        "If two pods have the same address, run kubectl get ippools -A to see the allocations of the IPAM"
        " plugin, and give other users of the range another range. If the address is of no other pod, find the"
        " program that changes the annotation k8s.v1.cni.cncf.io/network-status of the pod, and stop it: only"
        " multus writes this annotation.",
    ),
    "silent": Cause(
        "The shell in the pod did not respond in time: its node is overloaded, or the kubelet does not forward the"
        " stream of kubectl exec.",
        f"While the stage runs, run kubectl exec -n {NAMESPACE} POD -- true. If it does not end, run systemctl"
        " restart kubelet on NODE. If it ends after some time, the node is overloaded (uptime): end other"
        " programs on it, or raise bandwidth_pod_seconds.",
    ),
    "unschedulable": Cause(
        "The scheduler could not place the measuring pod on the node.",
        "If the details name Insufficient cpu or Insufficient memory, lower pods.cpu or pods.memory of the fabric to"
        " what kubectl describe node NODE shows as Allocatable less Allocated resources, divided by the number of"
        " rails. If they name a taint, add it to pods.tolerations of the fabric. If they name the resource of the"
        " fabric, end the pods that hold its virtual functions. Then run stage bandwidth again, with --tags bandwidth"
        " if the intent was changed.",
    ),
    "container": Cause(
        "The kubelet cannot create the container of the pod.",
        f"While the stage runs, run kubectl -n {NAMESPACE} describe pod POD, and correct the cause that its"
        " events show. If the fabric has pods.runtime_class, NODE must support this runtime class.",
    ),
    "rail": Cause(
        "No pod could be assigned to this rail.",
        "Follow the remedies of the findings of stage virtual_functions of NODE, if there are any. Otherwise end"
        " other pods that hold the virtual functions of the HCA of this rail (kubectl get pods -A -o wide"
        " --field-selector spec.nodeName=NODE).",
    ),
    "deadline": Cause(
        "The pod reached the end of its lifetime before the measurements were done: they take longer than the stage"
        " expected.",
        "Set bandwidth.rounds of the fabric to a lower number. Or raise bandwidth_parallel, the number of pairs"
        " that are measured at the same time.",
    ),
    "no_option": Cause(
        "The tool does not support an option that this measurement requires. On a network with IPv6 addresses this is"
        " --ipv6-addr, which perftest supports since 23.07.",
        "Set pods.image to an image with a newer perftest (or a newer iperf3 if TCP is measured).",
    ),
    "exec_lost": Cause(
        "The connection to the pod broke, so the exit code is unknown.",
        "Run kubectl get events -A --sort-by=.lastTimestamp: it shows whether the pod or its node went away, or"
        " the API server restarted. Correct the cause, then run stage bandwidth again.",
    ),
    "no_measurement": Cause(
        "In each attempt the tool ended with exit code 0, but printed no usable figure.",
        "Run cat /sys/devices/system/clocksource/clocksource0/current_clocksource on NODE and on another node:"
        " an unstable clock causes the values 0, inf and nan. If they differ, search dmesg for clocksource,"
        " correct the reason, drain the node and reboot it. If they are equal, run podman run --rm --entrypoint"
        " head IMAGE -c 4 /usr/bin/ib_write_bw, with the image in pods.image: if it does not print ELF,"
        " ib_write_bw is a script, so use another image.",
    ),
    "other_run": Cause(
        "perftest used another RDMA device, or another number of queue pairs, than requested, so its figure does not"
        " apply to this pair.",
        "Run podman run --rm --entrypoint head IMAGE -c 4 /usr/bin/ib_write_bw, with the image in pods.image. If it"
        " does not print ELF, ib_write_bw is a script that changes the options. Set pods.image to an image with the"
        " unchanged program of perftest.",
    ),
    "exit_code": Cause(
        "The measuring tool ended with an error whose cause linerate.rdma does not know.",
        "Correct the error under 'measured'. If it does not show the cause, run dmesg on both nodes, and correct"
        " errors of mlx5 or rdma_cm at the time of the run. Then run stage bandwidth again.",
    ),
    "pod": Cause(
        "One of the two pods of the pair could not be used, so the pair was not measured.",
        "Follow the remedy of the finding bandwidth.pod of NODE.",
    ),
    "not_run": Cause(
        "The stage ended before this measurement.",
        describe_rerun("bandwidth"),
    ),
    **dict.fromkeys(
        LEFT_OUT,
        Cause(
            "The pair was not measured: one of its ends failed with several other nodes before, so the stage"
            " left this end out of the later rounds.",
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


def spell_kinds(kinds: typing.Mapping[str, int]) -> str:
    """Return kinds of failures as text for a reader, with the number of each that occurred more than once.

    :param kinds: number of failures by kind, such as ``transport_retry``
    """
    words = {kind: kind.replace("_", " ") for kind in kinds}
    return ", ".join(f"{words[kind]} ({count} times)" if count > 1 else words[kind] for kind, count in kinds.items())


def name_ends(remedy: str, nodes: typing.Sequence[str], pods: typing.Sequence[str]) -> str:
    """Return a remedy with the names of the ends of a measurement in place of the words ``NODE``, ``POD`` and ``both
    nodes``. Commands that describe a node or a pod take several names.

    :param nodes: names of the nodes, one or two
    :param pods: names of the pods of these nodes; those without a name are left out
    """
    named, together = [pod for pod in pods if pod], " and ".join(nodes)
    remedy = remedy.replace("describe node NODE", f"describe node {' '.join(nodes)}")
    remedy = remedy.replace("both nodes", together) if len(nodes) > 1 else remedy
    remedy = re.sub(r"\bNODE\b", lambda _found: together, remedy)
    if not named:
        return remedy
    remedy = remedy.replace("describe pod POD", f"describe pod {' '.join(named)}")
    if len(named) == 1:
        return re.sub(r"\bPOD\b", lambda _found: named[0], remedy)
    return f"{remedy} POD is {' or '.join(named)}." if re.search(r"\bPOD\b", remedy) else remedy


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
