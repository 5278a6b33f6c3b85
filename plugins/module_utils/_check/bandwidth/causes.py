# SPDX-License-Identifier: GPL-3.0-or-later

"""The causes of failed measurements: for each kind of failure its cause and its remedy."""

from __future__ import annotations

from ..._analysis.fleet.cause import Cause, link_of
from ..._analysis.fleet.completions import COMPLETIONS
from ..._analysis.fleet.providers import PROVIDERS
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.measuring import NAMESPACE, REFUSALS
from ..._model.measurement.bandwidth import LEFT_OUT

#: kind of failure (_parse/pods/failure.py): cause and remedy
CAUSES: dict[str, Cause] = {
    **PROVIDERS,
    "not_listening": Cause(
        "No server accepted the connection.",
        "See the server's line. Then look for another process on its port (ss -ltnp in the pod) and for a firewall or"
        " NetworkPolicy between the pods.",
    ),
    "no_address": Cause(
        "The address is not reachable by RDMA from here: no route, or the interface has no RDMA device.",
        "Compare ip addr and rdma link in both pods.",
        "Set network.link_state: enable.",
    ),
    "address_family": Cause(
        "The RDMA connection manager refused the address: IPv4 and IPv6 are mixed, or it is an IPv6 link-local address"
        " without its interface.",
        "Give both pods an address of one family that is not link-local (ip address in both pods, ipam of the fabric)."
        " For IPv6 the image needs perftest 23.07 or newer.",
    ),
    "port_in_use": Cause(
        "Another process in the pod's network has the port of the server, on each port that was tried.",
        "Find it (ss -ltnp in the pod, rdma resource show cm_id on its node) and end it; with host networking, look on"
        " the node.",
    ),
    "name": Cause("The server's name could not be resolved.", "Use the address of the network-status annotation."),
    "no_device": Cause(
        "The RDMA device is not in the pod.",
        "Check that the policy has isRdma: true, then restart the device plugin's pod if it is older than the policy"
        " (kubectl delete pod).",
    ),
    "device_access": Cause(
        "The pod may not open the RDMA device.",
        "Mount the character devices: isRdma in the policy, or pods.runtime_class and pods.mount_infiniband.",
    ),
    "port_down": Cause(
        "The port of the RDMA device is not active.",
        "",
        "Set network.link_state: enable, and use a subnet manager that serves virtual functions (virt_enabled 2).",
        "Look at the carrier of the physical function: ip link show <PF>.",
    ),
    "no_lid": Cause(
        "The port of the RDMA device has no LID: nobody has configured it.",
        "Read it in the pod: cat /sys/class/infiniband/*/ports/1/lid.",
        "See stages fabric and virtual_functions for the subnet manager, and that it serves virtual functions"
        " (virt_enabled 2 in OpenSM).",
    ),
    "no_queue": Cause(
        "The RDMA device made no queue pair or completion queue: it has none left, or none of that size.",
        "See dmesg of the node, and rdma resource show there for who holds them. Lower pods.queue_pairs of the fabric"
        " where it is many.",
    ),
    "other_release": Cause(
        "The perftest of the two ends is of different releases, or was built with other settings: their images are not"
        " the same.",
        "Name the image in pods.image by its digest: one tag may be two images, where a node has pulled it before the"
        " other.",
    ),
    "memlock": Cause(
        "Memory could not be pinned: memlock is too low, or the VF has node GUID 0.",
        "Give the pod IPC_LOCK or raise the runtime's memlock; look at the VF's GUID on its node.",
    ),
    "gid": Cause(
        "The queue pairs could not be connected: the GIDs of the two ends do not fit.",
        "",
        "Compare the subnet prefix and the partition of both ports (ibv_devinfo -v), and the log of the subnet"
        " manager.",
        "Use one GID type and address family at both ends; on iWARP set pods.connection: rdma_cm.",
    ),
    "completion": Cause(
        "The transfer ended with an error whose status is not known here.",
        "Read the status beside 'measured', and dmesg of both nodes. Use one perftest, message size and options at both"
        " ends.",
    ),
    "no_gid": Cause(
        "The RDMA device has no GID in the pod: its network interface is of another device, or in another network"
        " namespace.",
        "In the pod compare rdma link, ip addr and cat /sys/class/infiniband/*/ports/1/gid_attrs/ndevs/*: the interface"
        " of the network must be that of the RDMA device.",
        "Give the pod the virtual function of that network by one resource (resource_name), and set its GUIDs.",
        "Let the network and the resource be of one HCA: the master of a macvlan network must be the device's own"
        " interface (a bond with its RoCE device). Select the same one for the device plugin.",
    ),
    "peer_gone": Cause(
        "The other end ended in the middle of the run.",
        "See why the other pod ended: kubectl describe pod, and dmesg of its node for a process that was killed.",
    ),
    "not_closed": Cause(
        "It measured, and the two ends then missed each other in their last handshake, each time that it was tried, so"
        " neither vouches for the figure.",
        "Use a newer perftest in pods.image.",
        ethernet="On iWARP this is a race of perftest: run the stage again.",
    ),
    "disconnected": Cause(
        "rping's server ended the connection before the last round trip, each time that it was tried; rping's client"
        " calls that a success.",
        "Read the server's last words beside 'measured', and dmesg of its node.",
    ),
    "no_tool": Cause(
        "The image lacks a tool: it needs timeout, stdbuf, rping and ib_write_bw, or iperf3 where pods have no RDMA"
        " device.",
        "Use an image with perftest and rdma-core's utilities in pods.image, and with iperf3 where TCP is measured.",
    ),
    "hang": Cause(
        "The tool did not end within its limit: its packets are dropped on the way without an error.",
        "Raise pods.limit_seconds if the measurement needs longer.",
        "Look first at the path: ibqueryerrors, and the partition of both ports"
        " (/sys/class/infiniband/*/ports/1/pkeys).",
        "Let UDP port 4791 through the firewalls on the path.",
    ),
    "crash": Cause(
        "The tool crashed.",
        "Check that the VF has a node GUID (ip link show <PF>): rdma_cm crashes on zeros. Otherwise give the image"
        " perftest and rdma-core of one release.",
    ),
    "pod_gone": Cause(
        "The pod ended in the middle of the run: it was evicted or deleted, or its node was lost.",
        "See the events of the pod and of its node (kubectl get events), and run the stage again.",
    ),
    "refused": Cause(
        "The API server refused the pod.",
        f"IPC_LOCK needs a namespace with the label pod-security.kubernetes.io/enforce: privileged, which {NAMESPACE}"
        " has unless an admin prepared it without; on OpenShift an account whose SCC allows it: oc apply -f"
        " docs/rbac/measuring-openshift.yml.",
    ),
    **{name: Cause(*refusal) for name, refusal in REFUSALS.items()},
    "stuck": Cause(
        "A pod of an earlier run is still there, although it was deleted.",
        "See its events, and whether the kubelet of its node works; if the node is lost for good, delete the pod with"
        " --force.",
    ),
    "taken": Cause(
        "A kubelet shows a pod of its own under this name, as only a kubelet that does not obey its cluster does.",
        f"Look at the pod and its node: kubectl get pods -n {NAMESPACE} -o wide. Remove the file from staticPodPath of"
        " that node's kubelet, and find out who has put it there.",
    ),
    "address": Cause(
        "The address that the pod announces is not its own, or not its own alone, so what goes to it would be measured"
        " at another end.",
        "Two pods with one address: see the allocations of the IPAM plugin, as kubectl get ippools -A shows them, and"
        " end what else uses the range. Else find out who changed the annotation k8s.v1.cni.cncf.io/network-status of"
        " the pod: only multus and the kubelet of its node should write it.",
    ),
    "silent": Cause(
        "The shell in the pod did not answer in time: its node is overloaded, or the kubelet does not carry the stream"
        " of kubectl exec.",
        f"See whether kubectl exec -n {NAMESPACE} POD -- true ends while the stage runs, and the load of the node."
        " Raise bandwidth_pod_seconds for slow nodes.",
    ),
    "unschedulable": Cause(
        "No pod of ours fits on the node.",
        "A taint: pods.tolerations. Too few CPUs or too little memory: pods.cpu, pods.memory. No free virtual function:"
        " end the pods that hold them.",
    ),
    "container": Cause(
        "The container cannot be created.",
        "Run kubectl describe pod while the stage runs. The node must know pods.runtime_class.",
    ),
    "rail": Cause(
        "No pod stands for this rail.",
        "See the stage virtual_functions for each HCA of the fabric, end other pods that hold its virtual functions,"
        " and check select and hcas_per_node.",
    ),
    "deadline": Cause(
        "The pod came to the end of its life, which the plan of the measurements sets, before they were done: they take"
        " longer than planned.",
        "Set bandwidth.rounds of the fabric to fewer rounds, or raise bandwidth_parallel where the controller measures"
        " fewer pairs at once than there are.",
    ),
    "no_option": Cause(
        "The tool does not know an option that it needs here; on a network of IPv6 addresses that is --ipv6-addr, which"
        " perftest has from 23.07 on.",
        "Use an image with a newer perftest (or iperf3, where TCP is measured) in pods.image.",
    ),
    "exec_lost": Cause(
        "The connection to the pod broke, so the exit code is not known.",
        "Look for a pod or node that is gone, or an API server that restarted (kubectl get events -A). Then run the"
        " stage again.",
    ),
    "no_measurement": Cause(
        "The tool ended with 0 and printed no usable figure, each time that it was tried.",
        "Zero, inf or nan come from an unstable clock on the node: see its clocksource.",
    ),
    "other_run": Cause(
        "perftest ran on another RDMA device, or with another number of queue pairs, than it was asked for, so its"
        " figure is not of this pair.",
        "Look for a script in place of ib_write_bw in the image (kubectl exec POD -- file -L /usr/bin/ib_write_bw), and"
        " run its command by hand in the pod. Set pods.image to an image with perftest itself.",
    ),
    "exit_code": Cause("The tool ended with an error that is not known here.", "Read its text beside 'measured'."),
    "pod": Cause("One of the two pods could not be used.", "See the finding on the pod."),
    "not_run": Cause("The measurement did not run.", "Run the stage again."),
    **dict.fromkeys(
        LEFT_OUT,
        Cause(
            "The pair was not measured: one of its ends had lost its pairs with several others before, and was left"
            " out.",
            "See bandwidth.suspect for this end.",
        ),
    ),
    "ping": Cause("rping already failed, so a bandwidth was not measured.", "See the finding bandwidth.rping."),
}


def explain_cause(kind: str, fabric: Fabric) -> tuple[str, str]:
    """Return the cause and the remedy of a kind of failure, for the link layer of the fabric. For an unknown kind, the
    cause is that the tool ended with an unknown error.

    :param kind: kind of failure that a measurement reports
    """
    known = COMPLETIONS.get(kind) or CAUSES.get(kind, CAUSES["exit_code"])
    return known.on(link_of(fabric))
