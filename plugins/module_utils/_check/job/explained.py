# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings on jobs, NIC maps and stacks. Check ids: ``job.*``, ``nic_map.*``, ``stack.*``."""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "job.added": Explanation(
        means="The training operator adds a container whose requests are not its limits, so the pod is not Guaranteed.",
        measured="What the operator of the job's kind is known to add.",
        causes=("PyTorchJob's Workers wait for the Master in an init container.",),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy=(
            "Give the operator another template (`--pytorch-init-container-template-file`), or use a TrainJob; once it"
            " is given, waive this."
        ),
    ),
    "job.claims": Explanation(
        means="A volume claim of the job can't be mounted by its pods. They would stay Pending.",
        measured="PersistentVolumeClaims that the pods name, with their access modes and state.",
        causes=(
            "There is none of this name in the job's namespace.",
            "ReadWriteOnce, and the pods are on several nodes.",
            "Its volume is lost, or not bound yet.",
        ),
        look=(
            "kubectl get persistentvolumeclaims -n NAMESPACE",
            "kubectl describe persistentvolumeclaims NAME -n NAMESPACE",
        ),
        remedy="Create it, correct its name, or use one with ReadWriteMany.",
    ),
    "job.device_claims": Explanation(
        means=(
            "Claims of devices (Dynamic Resource Allocation) that the pods have can't be met, or bring nothing into a"
            " container."
        ),
        measured=(
            "resourceClaims of the pods and resources.claims of their containers, against ResourceClaims,"
            " ResourceClaimTemplates, DeviceClasses and ResourceSlices."
        ),
        causes=(
            "The template or its DeviceClass is absent or has another name: the pods stay Pending.",
            "A container takes a claim that its pod does not have, or none takes one that it has (warn).",
            "A container takes a request that the claim does not have.",
            "No node offers as many devices of the driver as a request asks for, or as its selectors leave.",
            (
                "A selector names an attribute that devices do not have, and the allocation ends with an error (warn"
                " where enough others fit)."
            ),
            (
                "No node has devices with one value of the attribute that a constraint names (`matchAttribute`), or the"
                " driver does not publish it."
            ),
            "A node has enough devices for each claim of a pod, and none for all of them.",
            "A ComputeDomain waits for more nodes than have a channel of NVLink.",
            (
                "A selector has more than comparisons of attributes with texts, numbers, true and false, such as a"
                " regular expression, a version or a capacity (unknown)."
            ),
            (
                "One node alone offers as many (warn), or a node says that it has more than any machine (warn, and it"
                " does not count)."
            ),
            "Pods share one ResourceClaim with a device of a network, and so one node (warn).",
            "The template is in another file, or the cluster does not serve `resource.k8s.io/v1` (unknown).",
        ),
        look=(
            "kubectl get resourceclaimtemplates -n NAMESPACE -o yaml",
            "kubectl get deviceclasses -o yaml",
            "kubectl get resourceslices",
        ),
        remedy=(
            "Create what is absent, or correct its name; give each pod a claim of its own by a ResourceClaimTemplate,"
            " and name it in resources.claims."
        ),
    ),
    "job.devices": Explanation(
        means="The attachments of a pod and the devices that it asks for do not fit.",
        measured="Resources of the containers against the networks in the annotation.",
        causes=(
            "No device plugin's resource: no /dev/infiniband in the pod, and NCCL sends over TCP.",
            "Fewer resources than attachments of that network, or more.",
        ),
        look=(
            "kubectl get network-attachment-definitions -n NAMESPACE -o yaml",
            "kubectl describe node NODE",
        ),
        remedy="Ask for one of the network's resource for each attachment, in requests and limits.",
    ),
    "job.evidence": Explanation(
        means="NCCL will not say which transport it uses, and a job on TCP looks like one on RDMA.",
        measured="NCCL_DEBUG in the containers that compute.",
        causes=("It is not set, or not INFO.",),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy="Set NCCL_DEBUG=INFO; it costs a few lines at the start, and stage `training` judges them.",
    ),
    "job.framework": Explanation(
        means="Pods of the job would not know of each other, or the operator would not start them.",
        measured="What the job's kind needs: replicas, ports, a headless service, environment.",
        causes=("A field is missing or contradicts another one.",),
        look=("kubectl explain pytorchjob.spec",),
        remedy="Add what is missing; docs/job.md has an example.",
    ),
    "job.guaranteed": Explanation(
        means=(
            "A pod is not of the QoS class Guaranteed: it gets no CPUs of its own, and is the first to go when memory"
            " is short."
        ),
        measured="Requests and limits of CPU and memory of each container.",
        causes=(
            "Limits are missing, or above the requests.",
            "A sidecar without any.",
        ),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy="Write the same into requests and limits of each container.",
    ),
    "job.hcas": Explanation(
        means="NCCL_IB_HCA leaves out HCAs of the pod, or names some that it does not get.",
        measured="NCCL_IB_HCA against the pod's functions, or the HCAs of the nodes.",
        causes=(
            "A prefix: mlx5_1 takes mlx5_10 as well.",
            "A fixed name of a virtual function, which each pod has another of.",
            "All are excluded, and NCCL falls back to TCP.",
        ),
        look=(
            "ibv_devinfo",
            "rdma link",
        ),
        remedy=(
            "Write exact names behind '=' (`NCCL_IB_HCA==mlx5_1,mlx5_2`), find the name when the pod starts, or remove"
            " the variable."
        ),
    ),
    "job.interfaces": Explanation(
        means="NCCL_SOCKET_IFNAME names an interface that the pods do not have.",
        measured="The variable against the interfaces that the annotation brings.",
        causes=(
            "A name of the host, or of another cluster.",
            "It excludes all of them.",
        ),
        look=("ip -br link",),
        remedy="Name interfaces of the annotation: net1, net2, or the name behind @.",
    ),
    "job.admission": Explanation(
        means="The namespace of the job refuses its pods: they need more than its level of Pod Security admits.",
        measured=(
            "Capabilities, hostPath, hostNetwork and privileged of the pods against the label"
            " `pod-security.kubernetes.io/enforce` of the namespace."
        ),
        causes=(
            "The namespace enforces `baseline` or `restricted`, and a container adds IPC_LOCK.",
            "A volume is a hostPath, such as /dev/infiniband.",
        ),
        look=(
            "kubectl get namespace NAMESPACE --show-labels",
            "kubectl get events -n NAMESPACE",
        ),
        remedy=(
            "Have an admin raise the level (`pod_security` of the fabric's network, with a reason); who may make pods"
            " there is then root on the nodes. Or raise the limit of locked memory on the nodes"
            " (`rdma_cluster.host.memlock`) and leave out IPC_LOCK. OpenShift: an SCC for the service account."
        ),
    ),
    "job.memlock": Explanation(
        means="The containers may not lock memory, so `ibv_reg_mr` fails with `Cannot allocate memory`.",
        measured="IPC_LOCK in the security context, and the user of each container that uses RDMA.",
        causes=(
            "IPC_LOCK is missing.",
            "A user that is not root: the capability is of no use to it, the runtime's limit counts.",
        ),
        look=("ulimit -l",),
        remedy=(
            "Add IPC_LOCK to `securityContext.capabilities.add`, or raise the limit on the nodes:"
            " `rdma_cluster.host.memlock`."
        ),
    ),
    "job.nccl_variables": Explanation(
        means="A variable is none that NCCL reads. NCCL says nothing, and the job runs as if it were not set.",
        measured="Names of NCCL_* in the containers against those that releases of NCCL read.",
        causes=(
            "A typing mistake.",
            "A variable that later releases dropped.",
            "Variables from a ConfigMap, which is not looked into.",
        ),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy="Correct the name that is named, or remove it.",
    ),
    "job.networks": Explanation(
        means=(
            "A pod has no secondary network, or names one that is not there: it would wait for ever in"
            " ContainerCreating."
        ),
        measured="The annotation k8s.v1.cni.cncf.io/networks against the attachments in the cluster.",
        causes=(
            "The annotation is at the job, and not at the pod template.",
            "Another namespace, or a typing mistake.",
            "hostNetwork, which needs none and shares all.",
        ),
        look=("kubectl get network-attachment-definitions -A",),
        remedy="Put the annotation into the pod template's metadata, with namespace/name.",
    ),
    "job.read": Explanation(
        means="Nothing of what was given makes pods, or the API server did not let us read what is needed.",
        measured="The manifests, and the answers of the API server.",
        causes=(
            "The file is no YAML of Kubernetes.",
            "A kind that is not known here.",
            "A right is missing.",
        ),
        look=("kubectl apply --dry-run=server -f FILE",),
        remedy="Correct the file; give the user the rights of docs/job.md.",
    ),
    "job.resources": Explanation(
        means=(
            "The cluster has no room for all pods of the job at once. Those that find none wait, and the others wait"
            " for them."
        ),
        measured="What all pods ask for against what nodes that are ready have.",
        causes=(
            "A resource name that no node offers.",
            "More GPUs or functions a pod than any node has.",
            "Nodes are not ready, or cordoned.",
            (
                "One node says that it has much more than any other (warn), or more than any machine has (warn, and it"
                " does not count)."
            ),
        ),
        look=("kubectl describe nodes",),
        remedy="Ask for less, correct the resource's name, or bring nodes back.",
    ),
    "job.routes": Explanation(
        means=(
            "An attachment gives pods a default route. What is meant for the API server and DNS would leave over a"
            " network that can't carry it."
        ),
        measured="ipam.routes of the attachment, and default-route in the annotation.",
        causes=("A route to 0.0.0.0/0 in the attachment.",),
        look=("kubectl get network-attachment-definitions NAME -n NAMESPACE -o yaml",),
        remedy="Remove that route from the attachment, or name networks of the fabric.",
    ),
    "job.shared_memory": Explanation(
        means="A container has 64 MiB at /dev/shm: too little for NCCL between GPUs and for workers of a data loader.",
        measured="Volumes that are mounted at /dev/shm, and their size against the memory limit.",
        causes=(
            "No volume in memory is mounted there.",
            "sizeLimit is above the limit of memory.",
        ),
        look=("df -h /dev/shm",),
        remedy="Add an emptyDir with `medium: Memory` and a sizeLimit, mounted at /dev/shm.",
    ),
    "job.transport": Explanation(
        means="A variable keeps NCCL or UCX from RDMA, whatever devices the pod has.",
        measured=(
            "NCCL_IB_DISABLE, NCCL_NET, NCCL_IB_GID_INDEX, NCCL_MNNVL_ENABLE, UCX_TLS and UCX_NET_DEVICES in the"
            " containers."
        ),
        causes=(
            "NCCL_IB_DISABLE=1 or NCCL_NET=Socket, copied from a job without RDMA.",
            "A GID index on InfiniBand.",
            "UCX_TLS without a transport over RDMA, or UCX_NET_DEVICES with network interfaces alone.",
            "NCCL_MNNVL_ENABLE=0, which keeps NCCL from NVLink between nodes (a warning: only some machines have it).",
            "The value is in another object (unknown).",
        ),
        look=("env",),
        remedy="Remove the variable that is named, or set NCCL_IB_DISABLE to 0.",
    ),
    "job.volumes": Explanation(
        means="A container mounts a volume that the pod does not have. The API server refuses each of the pods.",
        measured="volumeMounts against volumes of each pod template.",
        causes=("A typing mistake, or the volume was forgotten.",),
        look=("kubectl get events -n NAMESPACE",),
        remedy="Add the volume, or correct its name.",
    ),
    "nic_map.complete": Explanation(
        means=(
            "The fabric has an interface that the map does not. Pods on that node keep an address that no peer knows."
        ),
        measured="Interfaces of the fabric on each node against the lines of the map.",
        causes=("A node or NIC was added after the map was written.",),
        look=("ip -br link",),
        remedy="Add the line, or render the map anew: `linerate.rdma.render_nic_map`.",
    ),
    "nic_map.netdevs": Explanation(
        means="A line of the map names a node or interface that is not there.",
        measured="Each line against the interfaces of the nodes.",
        causes=(
            "Interfaces were renamed.",
            "A node's name differs from the inventory's.",
            "The node could not be read (unknown).",
        ),
        look=(
            "ip -br link",
            "kubectl get nodes",
        ),
        remedy="Correct the name, or remove the line.",
    ),
    "nic_map.peers": Explanation(
        means=(
            "A node lacks a pod interface that the others have. A rank there finds no peer, and NCCL ends with a"
            " time-out."
        ),
        measured="Pod interfaces of each node in the map.",
        causes=("Lines of a rail are missing for one node.",),
        look=("ip -br addr",),
        remedy="Add the lines, or take these interfaces off the others.",
    ),
    "nic_map.range": Explanation(
        means=(
            "An address of the map is outside of the fabric's network, or the IPAM plugin may give it to another pod."
        ),
        measured="Addresses of the map against range and exclusions of the fabric.",
        causes=(
            "The range was changed, and the map was not.",
            "The map's addresses are not excluded.",
        ),
        look=("kubectl get network-attachment-definitions -A -o yaml",),
        remedy="Take addresses of the range, and add them to `ipam.exclude`.",
    ),
    "nic_map.read": Explanation(
        means="A line of the map can't be read, or the map is empty.",
        measured="Each line: node, host interface, pod interface, address.",
        causes=(
            "Another separator or order.",
            "The wrong file.",
        ),
        look=("kubectl get configmaps -n NAMESPACE -o yaml",),
        remedy=(
            "Write lines as `node:host interface:pod interface:address`, or render the map:"
            " `linerate.rdma.render_nic_map`."
        ),
    ),
    "nic_map.unique": Explanation(
        means="Two lines have the same address, pod interface or host interface. Packets for one reach the other.",
        measured="Lines of the map, compared.",
        causes=("A line was copied.",),
        look=("ip -br addr",),
        remedy="Give each line its own address and interface.",
    ),
    "stack.operator": Explanation(
        means="The operator that the job's kind needs is not there or does not serve.",
        measured="Deployments of training operators, queues and their versions.",
        causes=(
            "It is not installed.",
            "Its pods are not ready.",
        ),
        look=(
            "kubectl get deployments -A",
            "kubectl api-resources",
        ),
        remedy="Install the operator that is named; `kubectl describe deployment` of it says why it is not ready.",
    ),
    "stack.policy": Explanation(
        means="What configures an operator is missing or not ready, and the operator does nothing without.",
        measured="NicClusterPolicy, ClusterPolicy and the like, with their states.",
        causes=(
            "Nobody made one.",
            "A pod of the operator is not ready on some node.",
        ),
        look=("kubectl get nicclusterpolicies.mellanox.com,clusterpolicies.nvidia.com",),
        remedy="Make one, or correct what `kubectl describe` of it names.",
    ),
    "stack.queue": Explanation(
        means="The queue of the job is not there, not active, or has no room: the job would stay suspended.",
        measured="Kueue's LocalQueue and ClusterQueue, their namespaces, resources and quotas.",
        causes=(
            "A typing mistake in the label.",
            "The queue does not cover a resource that the job asks for.",
            "The job asks for more than the quota.",
            "Kueue does not manage this kind.",
        ),
        look=(
            "kubectl get localqueues.kueue.x-k8s.io -A",
            "kubectl describe clusterqueues.kueue.x-k8s.io",
        ),
        remedy="Correct the queue's name, add the resource to coveredResources, or raise nominalQuota.",
    ),
    "stack.read": Explanation(
        means="The API server did not let us read what the stack has.",
        measured="Answers of the API server to each list.",
        causes=("A right is missing.",),
        look=("kubectl auth can-i --list",),
        remedy="Give the user the rights of docs/job.md.",
    ),
    "stack.storage": Explanation(
        means="No storage class is known to make volumes that many nodes can write. Checkpoints and data need one.",
        measured="StorageClasses, their provisioners, and volumes with ReadWriteMany.",
        causes=(
            "There is none.",
            "Its provisioner is not known here: make a claim and see.",
        ),
        look=(
            "kubectl get storageclasses",
            "kubectl get persistentvolumes",
        ),
        remedy="Install a CSI driver of a shared file system, such as CephFS or NFS.",
    ),
}
