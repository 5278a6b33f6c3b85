# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings on jobs, NIC maps and stacks. Check ids: ``job.*``, ``nic_map.*``, ``stack.*``."""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "job.added": Explanation(
        means=(
            "The training operator adds a container whose requests differ from its limits, so the pod does not have"
            " the QoS class Guaranteed."
        ),
        measured="Containers that the training operator is known to add to jobs of this kind.",
        causes=("The Workers of a PyTorchJob wait for the Master in an init container.",),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy=(
            "Give the operator another template (`--pytorch-init-container-template-file`), or use a TrainJob. If the"
            " operator already has such a template, waive this finding."
        ),
    ),
    "job.claims": Explanation(
        means="The pods of the job cannot mount a volume claim. They would stay Pending.",
        measured="PersistentVolumeClaims that the pods name, with their access modes and phase.",
        causes=(
            "The namespace of the job has no PersistentVolumeClaim of this name.",
            "The claim has the access mode ReadWriteOnce, but the pods are on several nodes.",
            "The volume of the claim is lost, or no volume is bound yet.",
        ),
        look=(
            "kubectl get persistentvolumeclaims -n NAMESPACE",
            "kubectl describe persistentvolumeclaims NAME -n NAMESPACE",
        ),
        remedy="Create the PersistentVolumeClaim, correct its name, or use a claim with ReadWriteMany.",
    ),
    "job.compute_domain": Explanation(
        means=(
            "The GPUs of the job's nodes cannot share memory over NVLink (GB200, GB300), or nothing proves that they"
            " can."
        ),
        measured=(
            "resourceClaims of the pods; spec.numNodes and status of the ComputeDomain; the nodes of the running pods;"
            " the label `nvidia.com/gpu.clique` of the nodes."
        ),
        causes=(
            "The IMEX daemon of a node does not run or is not ready, so the ComputeDomain is NotReady.",
            "A pod runs on a node that is not in the ComputeDomain.",
            "`numNodes` is greater than the number of pods: the ComputeDomain never becomes Ready.",
            "`numNodes` is smaller than the number of pods: Ready does not include all nodes (warn).",
            "A node has no clique: its GPUs are not registered with the NVLink fabric.",
            "The pods run in several cliques, or the label of a node differs from its clique (warn).",
            "NVLink joins the nodes of the cluster, and the job claims no channel (warn).",
            "The ComputeDomains could not be read, or the host manages IMEX (unknown).",
        ),
        look=(
            "kubectl get computedomains -n NAMESPACE -o yaml",
            "kubectl get nodes -L nvidia.com/gpu.clique",
            "nvidia-imex-ctl -N",
        ),
        remedy=(
            "Set numNodes to the number of pods, or to 0. Check the logs of the compute-domain daemons, and the NVLink"
            " state of the GPUs with nvidia-smi --query-gpu=fabric.state,fabric.status --format=csv."
        ),
    ),
    "job.device_claims": Explanation(
        means=(
            "Kubernetes cannot allocate the devices that the pods claim (Dynamic Resource Allocation), or no container"
            " gets the devices."
        ),
        measured=(
            "resourceClaims of the pods and resources.claims of their containers, compared with ResourceClaims,"
            " ResourceClaimTemplates, DeviceClasses and ResourceSlices."
        ),
        causes=(
            "The template or its DeviceClass does not exist or has another name: the pods stay Pending.",
            "A container uses a claim that its pod does not have, or no container uses a claim of the pod (warn).",
            "A container uses a request that the claim does not have.",
            "No node offers as many devices of the driver as a request needs, or too few devices match the selectors.",
            (
                "A selector names an attribute that devices do not have, so the allocation ends with an error (warn if"
                " enough other devices match)."
            ),
            (
                "No node has enough devices with the same value of the attribute that a constraint names"
                " (`matchAttribute`), or the driver does not publish the attribute."
            ),
            "A node has enough devices for each claim of a pod, but no node has enough for all of them.",
            "A ComputeDomain waits for more nodes than have a channel of NVLink.",
            (
                "DRANET reports no RDMA for all network devices that the claims can provide, or for some of them"
                " (warn): a selector on `rdma` is missing."
            ),
            (
                "A selector contains more than comparisons of attributes with strings, numbers, true and false, such"
                " as a regular expression, a version or a capacity (unknown)."
            ),
            (
                "Only one node offers as many devices (warn), or a node reports more devices than any machine has"
                " (warn; the node does not count)."
            ),
            "Several pods share one ResourceClaim with a network device, and therefore one node (warn).",
            "The template is in another file, or the API server does not serve `resource.k8s.io/v1` (unknown).",
        ),
        look=(
            "kubectl get resourceclaimtemplates -n NAMESPACE -o yaml",
            "kubectl get deviceclasses -o yaml",
            "kubectl get resourceslices",
        ),
        remedy=(
            "Create the missing object, or correct its name. Give each pod its own claim from a ResourceClaimTemplate,"
            " and name the claim in resources.claims of the container."
        ),
    ),
    "job.devices": Explanation(
        means="The network attachments of a pod do not match the devices that it requests.",
        measured="Resources of the containers, compared with the networks in the annotation.",
        causes=(
            (
                "The containers request no resource of a device plugin: the pod has no /dev/infiniband, and NCCL sends"
                " over TCP. This is so with hostNetwork, too."
            ),
            (
                "The containers request no such resource and are privileged: they see the devices of the node, unless"
                " the RDMA subsystem is in exclusive mode (unknown)."
            ),
            "The containers request fewer or more devices than the pod has attachments of that network.",
        ),
        look=(
            "kubectl get network-attachment-definitions -n NAMESPACE -o yaml",
            "kubectl describe node NODE",
        ),
        remedy="Request one device of the network's resource for each attachment, in requests and limits.",
    ),
    "job.evidence": Explanation(
        means="NCCL does not log its transport, so a job over TCP looks like a job over RDMA.",
        measured="NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE in the containers that compute.",
        causes=(
            "NCCL_DEBUG is not set, or is not INFO.",
            "NCCL_DEBUG_SUBSYS leaves out INIT, or NCCL_DEBUG_FILE is /dev/null.",
        ),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy="Set NCCL_DEBUG=INFO. NCCL then writes a few lines at the start, and stage `training` judges them.",
    ),
    "job.framework": Explanation(
        means="The pods of the job would not find each other, or the operator would not start them.",
        measured=(
            "The requirements of the job's kind, such as its roles and names of containers, and the options of torchrun"
            " in the commands."
        ),
        causes=(
            "A field is missing or contradicts another field.",
            "torchrun has --standalone or --nnodes=1, as in examples for one node: each pod trains alone.",
            "No operator gives torchrun the number of nodes (Job, StatefulSet), and --nnodes is not set.",
            "torchrun starts fewer processes than the pod has GPUs (warn).",
        ),
        look=("kubectl explain pytorchjob.spec",),
        remedy="Correct the field or the option that 'measured' shows; docs/job.md has an example.",
    ),
    "job.guaranteed": Explanation(
        means=(
            "A pod does not have the QoS class Guaranteed. It gets no exclusive CPUs, and it is killed before"
            " Guaranteed pods when memory is short."
        ),
        measured="Requests and limits of CPU and memory of each container.",
        causes=(
            "Limits are missing, or are higher than the requests.",
            "A sidecar has no requests and limits.",
        ),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy="Set requests equal to limits for CPU and memory in each container.",
    ),
    "job.hcas": Explanation(
        means="NCCL_IB_HCA leaves out HCAs of the pod, or names HCAs that the pod does not get.",
        measured="NCCL_IB_HCA, compared with the virtual functions of the pod or the HCAs of the nodes.",
        causes=(
            "The value is a prefix: mlx5_1 also matches mlx5_10.",
            "The value is the fixed name of a virtual function, but each pod gets a different virtual function.",
            "The value excludes all HCAs, and NCCL falls back to TCP.",
        ),
        look=(
            "ibv_devinfo",
            "rdma link",
        ),
        remedy=(
            "Write exact names after '=' (`NCCL_IB_HCA==mlx5_1,mlx5_2`), determine the name when the pod starts, or"
            " remove the variable."
        ),
    ),
    "job.interfaces": Explanation(
        means="NCCL_SOCKET_IFNAME names an interface that the pods do not have, or that other pods cannot reach.",
        measured=(
            "NCCL_SOCKET_IFNAME, compared with the interfaces that the annotation creates. In a job of several pods,"
            " also NCCL_COMM_ID, NCCL_OOB_NET_IFNAME and GLOO_SOCKET_IFNAME, compared with the loopback interface."
        ),
        causes=(
            "The value is the name of an interface of the node, or of another cluster.",
            "The value excludes all interfaces of the pods.",
            "The value takes lo, or excludes other interfaces and not lo: ^docker0. It is of a job of one pod.",
        ),
        look=("ip -br link",),
        remedy=(
            "Name interfaces of the annotation: net1, net2, or the name after @. A value with ^ must exclude lo too:"
            " ^docker,lo."
        ),
    ),
    "job.admission": Explanation(
        means=(
            "The namespace of the job refuses its pods, because they need more than the Pod Security level of the"
            " namespace permits."
        ),
        measured=(
            "Capabilities, hostPath, hostPort, hostNetwork, hostIPC, hostPID and privileged of the pods, compared with"
            " the label"
            " `pod-security.kubernetes.io/enforce` of the namespace."
        ),
        causes=(
            "The namespace enforces `baseline` or `restricted`, and a container adds IPC_LOCK.",
            "A volume of the pod is a hostPath, such as /dev/infiniband.",
        ),
        look=(
            "kubectl get namespace NAMESPACE --show-labels",
            "kubectl get events -n NAMESPACE",
        ),
        remedy=(
            "Ask an admin to raise the level (`pod_security` of the fabric's network, with a reason). Every user who"
            " can create pods in the namespace can then become root on the nodes. Or raise the limit of locked memory"
            " on the nodes (`rdma_cluster.host.memlock`) and remove IPC_LOCK. On OpenShift, bind an SCC to the service"
            " account."
        ),
    ),
    "job.memlock": Explanation(
        means=(
            "The containers may not be allowed to lock memory. Then `ibv_reg_mr` fails with `Cannot allocate memory`."
        ),
        measured="IPC_LOCK in the security context, and the user of each container that uses RDMA.",
        causes=(
            (
                "The container does not have the capability IPC_LOCK (unknown). The limit of the container runtime then"
                " applies, which job_lint does not read."
            ),
            (
                "The container does not run as root. The capability then has no effect, and the limit of the container"
                " runtime applies."
            ),
        ),
        look=("ulimit -l",),
        remedy=(
            "Add IPC_LOCK to `securityContext.capabilities.add`, or raise the limit on the nodes:"
            " `rdma_cluster.host.memlock`."
        ),
    ),
    "job.nccl_variables": Explanation(
        means=(
            "NCCL does not read a variable of this name and reports no error. The job runs as if the variable were not"
            " set."
        ),
        measured="Names of NCCL_* variables in the containers, compared with the variables that releases of NCCL read.",
        causes=(
            "The name has a typing mistake.",
            "Later releases of NCCL no longer read the variable.",
            "The variables come from a ConfigMap, which this check does not read.",
        ),
        look=("kubectl get pod POD -n NAMESPACE -o yaml",),
        remedy="Correct the name of the variable under 'subject', or remove the variable.",
    ),
    "job.networks": Explanation(
        means=(
            "A pod has no secondary network, or names a network that does not exist. A pod that names a missing"
            " network would stay in ContainerCreating."
        ),
        measured="The annotation k8s.v1.cni.cncf.io/networks, compared with the attachments in the cluster.",
        causes=(
            "The annotation is on the job instead of on the pod template.",
            "The annotation names another namespace, or has a typing mistake.",
            "The pods use hostNetwork, which needs no attachment but shares all ports and interfaces of the node.",
        ),
        look=("kubectl get network-attachment-definitions -A",),
        remedy="Put the annotation with namespace/name into the metadata of the pod template.",
    ),
    "job.read": Explanation(
        means=(
            "The given objects create no pods, or the API server does not allow the user to read the required objects."
        ),
        measured="The manifests, and the responses of the API server.",
        causes=(
            "The file is not a Kubernetes object in YAML.",
            "This collection does not know the kind of the object.",
            "The user does not have a required right.",
        ),
        look=("kubectl apply --dry-run=server -f FILE",),
        remedy="Correct the file. Grant the user the rights that docs/job.md lists.",
    ),
    "job.resources": Explanation(
        means=(
            "The cluster does not have room for all pods of the job at once. Pods without room wait, and the other"
            " pods wait for them."
        ),
        measured="The requests of all pods, compared with the resources of the ready nodes.",
        causes=(
            "A pod requests a resource name that no node offers.",
            "A pod requests more GPUs or virtual functions than any node has.",
            "Nodes are not ready, or are cordoned.",
            (
                "The pods do not tolerate a taint of the nodes (fail; unknown if the taint has the name of a requested"
                " resource; warn with a queue whose ResourceFlavors were not read)."
            ),
            "nodeSelector or node affinity of the pods leaves too few nodes.",
            (
                "The labels of the queue's ResourceFlavor leave too few nodes, or no ResourceFlavor fits the pods"
                " (fail; warn if another flavor of the queue has room)."
            ),
            (
                "One node reports much more than any other node (warn), or more than any machine has (warn; the node"
                " does not count)."
            ),
        ),
        look=("kubectl describe nodes",),
        remedy=(
            "Request less, correct the name of the resource, nodeSelector, affinity and tolerations of the pods, or"
            " bring nodes back."
        ),
    ),
    "job.routes": Explanation(
        means=(
            "An attachment gives the pods a default route. Packets to the API server and DNS would leave over a"
            " network that cannot carry them."
        ),
        measured="ipam.routes of the attachment, and default-route in the annotation.",
        causes=("The attachment has a route to 0.0.0.0/0.",),
        look=("kubectl get network-attachment-definitions NAME -n NAMESPACE -o yaml",),
        remedy="Remove that route from the attachment, or name networks of the fabric in the annotation.",
    ),
    "job.shared_memory": Explanation(
        means=(
            "A container has 64 MiB at /dev/shm. This is too little for NCCL between GPUs and for the workers of a"
            " data loader."
        ),
        measured="Volumes that are mounted at /dev/shm, and their size compared with the memory limit.",
        causes=(
            "No memory volume is mounted at /dev/shm.",
            "sizeLimit of the volume exceeds the memory limit of the container.",
        ),
        look=("df -h /dev/shm",),
        remedy="Add an emptyDir volume with `medium: Memory` and a sizeLimit, and mount it at /dev/shm.",
    ),
    "job.transport": Explanation(
        means=(
            "A variable keeps NCCL or UCX from using RDMA, even if the pod has RDMA devices, or harms RDMA (warning)."
        ),
        measured=(
            "NCCL_IB_DISABLE, NCCL_NET, NCCL_IB_GID_INDEX, NCCL_MNNVL_ENABLE, UCX_TLS, UCX_NET_DEVICES and variables"
            " that harm RDMA in the containers."
        ),
        causes=(
            "NCCL_IB_DISABLE=1 or NCCL_NET=Socket was copied from a job without RDMA.",
            "A GID index is set on InfiniBand.",
            "UCX_TLS has no RDMA transport, or UCX_NET_DEVICES names only network interfaces.",
            (
                "NCCL_MNNVL_ENABLE=0 keeps NCCL from using NVLink between nodes (a warning, because only some machines"
                " have it)."
            ),
            (
                "A setting for another cluster was copied (warning): GPUDirect RDMA off (NCCL_NET_GDR_LEVEL,"
                " NCCL_DMABUF_ENABLE), a network plugin, an index of a partition, few channels, RoCE v1 or DSCP 0."
            ),
            "The value is in another object, or a shell computes it in the pod (unknown).",
        ),
        look=("env",),
        remedy="Remove the variable under 'subject', or set NCCL_IB_DISABLE to 0.",
    ),
    "job.volumes": Explanation(
        means="A container mounts a volume that the pod does not have. The API server refuses each pod.",
        measured="volumeMounts, compared with the volumes of each pod template.",
        causes=("The name of the volume has a typing mistake, or the pod template lacks the volume.",),
        look=("kubectl get events -n NAMESPACE",),
        remedy="Add the volume to the pod template, or correct its name.",
    ),
    "nic_map.complete": Explanation(
        means=(
            "The map has no line for an interface of the fabric. Pods on that node keep an address that no peer knows."
        ),
        measured="Interfaces of the fabric on each node, compared with the lines of the map.",
        causes=("A node or NIC was added after the map was written.",),
        look=("ip -br link",),
        remedy="Add the line, or render the map again with `linerate.rdma.render_nic_map`.",
    ),
    "nic_map.netdevs": Explanation(
        means="A line of the map names a node or interface that does not exist.",
        measured="Each line, compared with the interfaces of the nodes.",
        causes=(
            "Interfaces were renamed.",
            "The name of a node in the map differs from its name in the inventory.",
            "The node could not be read (unknown).",
        ),
        look=(
            "ip -br link",
            "kubectl get nodes",
        ),
        remedy="Correct the name of the node or interface, or remove the line.",
    ),
    "nic_map.peers": Explanation(
        means=(
            "A node does not have a pod interface that the other nodes have. A rank on another node finds no peer on"
            " this node, and NCCL ends with a timeout."
        ),
        measured="Pod interfaces of each node in the map.",
        causes=("Lines of a rail are missing for one node.",),
        look=("ip -br addr",),
        remedy="Add the missing lines for this node, or remove these interfaces from the other nodes.",
    ),
    "nic_map.range": Explanation(
        means=(
            "An address of the map is outside the network of the fabric, or the IPAM plugin can assign it to another"
            " pod."
        ),
        measured="Addresses of the map, compared with the range and the exclusions of the fabric.",
        causes=(
            "The range of the fabric was changed, but not the map.",
            "The addresses of the map are not excluded from the IPAM range.",
        ),
        look=("kubectl get network-attachment-definitions -A -o yaml",),
        remedy="Use addresses of the range, and add them to `ipam.exclude` of the fabric.",
    ),
    "nic_map.read": Explanation(
        means="A line of the map could not be read, or the map is empty.",
        measured="Each line: node, host interface, pod interface, address.",
        causes=(
            "The line has a different separator or order.",
            "The wrong file was given.",
        ),
        look=("kubectl get configmaps -n NAMESPACE -o yaml",),
        remedy=(
            "Write each line as `node:host interface:pod interface:address`, or render the map with"
            " `linerate.rdma.render_nic_map`."
        ),
    ),
    "nic_map.unique": Explanation(
        means=(
            "Two lines have the same address, pod interface or host interface. Packets for one interface reach the"
            " other interface."
        ),
        measured="All lines of the map, compared with each other.",
        causes=("A line was copied.",),
        look=("ip -br addr",),
        remedy="Give each line its own address and interface.",
    ),
    "stack.operator": Explanation(
        means="The operator that the job's kind needs is not installed or not ready.",
        measured=(
            "Deployments of the operators that the job needs, their versions and their ready pods. For a missing"
            " operator of GPUs or networks also the resources that the kubelets offer: a standalone device plugin"
            " offers them too, and the job then needs neither the operator nor its policies (pass). If only one of"
            " several nodes offers them, the finding is a warning."
        ),
        causes=(
            "The operator is not installed, and no node offers the resources of the job.",
            "The pods of the operator are not ready.",
            "The Deployments or the resources of the nodes could not be read (unknown).",
        ),
        look=(
            "kubectl get deployments -A",
            "kubectl describe nodes",
        ),
        remedy=(
            "Install the operator under 'subject'. If it is installed but not ready, run `kubectl describe deployment`"
            " for the cause."
        ),
    ),
    "stack.policy": Explanation(
        means="The object that configures an operator is missing or not ready. Without it, the operator does nothing.",
        measured="NicClusterPolicy, ClusterPolicy and NicNodePolicy objects, with their states.",
        causes=(
            "The object was not created.",
            "A pod of the operator is not ready on a node.",
        ),
        look=("kubectl get nicclusterpolicies.mellanox.com,clusterpolicies.nvidia.com",),
        remedy="Create the object, or correct the cause that `kubectl describe` of the object shows.",
    ),
    "stack.queue": Explanation(
        means="The queue of the job does not exist, is not active, or has no room. The job would stay suspended.",
        measured="LocalQueue and ClusterQueue of Kueue, with their namespaces, resources and quotas.",
        causes=(
            "The label of the queue has a typing mistake.",
            "The queue does not cover a resource that the job requests.",
            "The job requests more than the quota.",
            "Kueue does not manage jobs of this kind.",
        ),
        look=(
            "kubectl get localqueues.kueue.x-k8s.io -A",
            "kubectl describe clusterqueues.kueue.x-k8s.io",
        ),
        remedy="Correct the name of the queue, add the resource to coveredResources, or raise nominalQuota.",
    ),
    "stack.read": Explanation(
        means="The API server does not allow the user to read the objects of the stack.",
        measured="Responses of the API server to each list request.",
        causes=("The user does not have a required right.",),
        look=("kubectl auth can-i --list",),
        remedy="Grant the user the rights that docs/job.md lists.",
    ),
    "stack.storage": Explanation(
        means=(
            "No storage class is known to create volumes that many nodes can write. Checkpoints and training data need"
            " such volumes."
        ),
        measured="StorageClasses, their provisioners, and volumes with ReadWriteMany.",
        causes=(
            "The cluster has no storage class.",
            (
                "This collection does not know the provisioner: create a claim with ReadWriteMany, and check whether"
                " it becomes bound."
            ),
        ),
        look=(
            "kubectl get storageclasses",
            "kubectl get persistentvolumes",
        ),
        remedy="Install a CSI driver for a shared file system, such as CephFS or NFS.",
    ),
}
