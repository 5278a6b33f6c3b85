# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage validate, for the pages to which the report links. Check ids:
``validate.*``.
"""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "validate.addresses": Explanation(
        means=(
            "A range does not have enough addresses for the pods that can run at the same time. The last pods would"
            " wait forever."
        ),
        measured=(
            "The required number of addresses (nodes x HCAs x virtual functions, or x `pods_per_node`), compared with"
            " the range or with the share of each node in a pool."
        ),
        causes=(
            "The range was planned for fewer nodes.",
            "`virtual_functions` was raised.",
            "whereabouts: no addresses are left to replace the pods of a node that fails (warn).",
        ),
        look=("ansible-inventory --graph rdma_nodes",),
        remedy="Enlarge `ipam.range`, or lower `virtual_functions`.",
    ),
    "validate.api_server": Explanation(
        means="No API server is configured, or the API server does not respond. Later stages cannot work without it.",
        measured="The kubeconfig or the in-cluster account that the run uses, and one request with a limit of 30 s.",
        causes=(
            "KUBECONFIG is not set on the controller or in the execution environment.",
            (
                "K8S_AUTH_HOST with credentials is set and points to a different API server. It has precedence over"
                " every kubeconfig."
            ),
            "The address belongs to a different cluster, or requires a proxy or a VPN.",
            "A certificate or token has expired.",
        ),
        look=(
            "kubectl cluster-info",
            "kubectl config view --minify",
        ),
        remedy=(
            "Read the first line of the run: it lists the source of the credentials and the sources that are not used."
            " Specify a kubeconfig that works on the machine where Ansible runs, with `export KUBECONFIG=FILE` or"
            " `rdma_kubeconfig`. In AWX, add a credential of type OpenShift or Kubernetes API Bearer Token to the job"
            " template. Then run stage `validate` again."
        ),
    ),
    "validate.archive": Explanation(
        means=(
            "The archive of the report cannot be stored at the place in `rdma_report_archive`. If the job runs in a"
            " container, the report would be lost with the container."
        ),
        measured=(
            "For a folder, whether a file can be written there and removed. For an address, its form, its credentials,"
            " the expiry of its signature, and whether it responds to `HEAD` without the query and the credentials."
        ),
        causes=(
            "The folder is not mounted in the job, or belongs to a different user.",
            (
                "The host cannot be reached from the machine where Ansible runs, because of DNS, a firewall, or a proxy"
                " that is missing in the environment."
            ),
            (
                "The certificate was issued by your own certificate authority, and `rdma_report_archive_ca` is not set"
                " to this authority."
            ),
            "A signed address has expired.",
            "A token or a password would be sent over unencrypted http.",
        ),
        look=(
            "ls -ld /srv/reports; df -h /srv/reports",
            "curl --head https://dav.example.com/reports/",
        ),
        remedy=(
            "Follow the remedy of the finding. To run without an archive, set `-e rdma_report_archive=`. For the valid"
            " values, see [the report](../report.md#where-it-survives)."
        ),
    ),
    "validate.claims": Explanation(
        means="Two fabrics select the same HCAs, and their profiles cannot share HCAs.",
        measured=(
            "`select` of each pair of fabrics: whether lists overlap, or whether one selector includes all HCAs of the"
            " other."
        ),
        causes=(
            "An address or a name is in both lists.",
            "One fabric selects by vendor and device, and therefore also selects the HCAs of the other fabric.",
        ),
        look=("lspci -D -nn -d 15b3:",),
        remedy="Limit one of the two fabrics to its own HCAs with `select.pci` or `select.netdev`.",
    ),
    "validate.cluster": Explanation(
        means="A value of `rdma_cluster` is invalid, or would harm the cluster.",
        measured="The keys of `rdma_cluster`, compared with each other and with the fabrics.",
        causes=(
            "`node_selector` is empty, so it also selects the control plane.",
            "A name or a release does not have the required form.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy="Correct the key in the subject of the finding. docs/intent.md lists all keys.",
    ),
    "validate.collectives": Explanation(
        means=(
            "A key of `rdma_cluster.collectives` is invalid, or contradicts another key. The stage cannot run with it."
        ),
        measured="The keys of `rdma_cluster.collectives`, compared with each other and with the fabrics.",
        causes=(
            "Several fabrics have RDMA, and `rdma_cluster.collectives` does not specify which fabric to use.",
            "`gpus_per_node` is not a multiple of the rails (`hcas_per_node`).",
            "A floor in `expected_busbw` belongs to a test that is not in `tests`, has no reason, or occurs twice.",
            "`share` is above 1, or below 0.5. With a value below 0.5, a broken cluster would pass.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy=(
            "Correct the key in the subject of the finding. docs/intent.md lists the keys of"
            " `rdma_cluster.collectives`."
        ),
    ),
    "validate.disjoint_ranges": Explanation(
        means=(
            "Networks of two fabrics overlap. A pod on both fabrics would have two paths to one address, and could send"
            " over the wrong path."
        ),
        measured="The ranges of all fabrics, compared with each other.",
        causes=(
            "A range was copied from one fabric to another.",
            "A prefix is shorter than intended.",
        ),
        look=("ipcalc 10.0.0.0/16",),
        remedy="Give each fabric its own network in `ipam.range`.",
    ),
    "validate.gateway": Explanation(
        means="A gateway is outside its network, so no pod can reach it.",
        measured="`ipam.gateway`, compared with `ipam.range`.",
        causes=(
            "The gateway was copied from a different network.",
            "The range is smaller than the network of the gateway.",
        ),
        look=("ip route",),
        remedy="Correct the gateway, or remove it: RDMA traffic within one subnet needs no gateway.",
    ),
    "validate.helm": Explanation(
        means="`operators_install` is set, but Helm is missing on the controller or too old.",
        measured="The version of `helm` on the machine where Ansible runs.",
        causes=(
            "The execution environment does not contain Helm.",
            "Helm is too old for charts from OCI registries.",
        ),
        look=("helm version",),
        remedy=(
            "Install Helm 3.8 or newer on the machine where Ansible runs. Or install the operators yourself and do not"
            " set `operators_install`."
        ),
    ),
    "validate.host_keys": Explanation(
        means="Ansible reaches nodes by ssh without a check of their host keys.",
        measured=(
            "The host key checking of Ansible and of each node, by ssh, paramiko and libssh. For ssh, also the settings"
            " that `ssh -G` reports with the arguments of the node: `StrictHostKeyChecking`, and `UserKnownHostsFile`"
            " with `accept-new`. It is asked once for nodes with the same arguments."
        ),
        causes=(
            "AWX sets `ANSIBLE_HOST_KEY_CHECKING=False` in each job by default.",
            "Host key checking is off in `ansible.cfg`, in the environment or in a variable of a node.",
            "A file of ssh turns it off: `~/.ssh/config`, `/etc/ssh/ssh_config`, or that of the option `-F`.",
            "ssh accepts each new key and keeps none: `accept-new` with `UserKnownHostsFile=/dev/null`.",
            "A variable of the connection is a template that cannot be evaluated at the start of the run.",
        ),
        look=(
            "ansible-inventory --host NODE",
            "ssh -G NODE | grep -iE 'stricthostkeychecking|userknownhostsfile'",
        ),
        remedy=(
            "Set `ANSIBLE_HOST_KEY_CHECKING` to `True`, and put the keys of the nodes into `known_hosts`: see"
            " docs/awx.md. Then run stage `validate` again."
        ),
    ),
    "validate.host": Explanation(
        means="A value of `rdma_cluster.host` is invalid: jobs, the kernel or the kubelet could not work with it.",
        measured=(
            "The keys of `rdma_cluster.host`, compared with each other and with the values that OpenShift accepts."
        ),
        causes=(
            "`memlock` has neither a size nor `unlimited: true`.",
            "A kernel argument contains spaces.",
            "The kubelet cannot start with the reserved CPUs.",
        ),
        look=("lscpu -e",),
        remedy=(
            "Correct the key in the subject of the finding: a size in GiB, one kernel argument per list item, CPU"
            " numbers as `lscpu -e` prints them."
        ),
    ),
    "validate.images": Explanation(
        means=(
            "An image is specified by a tag, so the registry determines which image runs. `rdma_strict_images: true`"
            " requires digests."
        ),
        measured=(
            "`pods.image` of each fabric, `rdma_cluster.collectives.image`, and the images in variables such as"
            " `rdma_observers_image`."
        ),
        causes=(
            "`pods.image` has its default, which is a tag.",
            "The name was copied without its digest.",
        ),
        look=("skopeo inspect --format '{{.Name}}@{{.Digest}}' docker://IMAGE",),
        remedy=(
            "Set the key to the name with the digest that the command prints"
            " (`registry.example/rdma-tools@sha256:...`)."
        ),
    ),
    "validate.intent": Explanation(
        means="A key is unknown, is missing, or has the wrong type. The run changed nothing.",
        measured="The variables, compared with the schema (docs/intent.schema.json).",
        causes=(
            "A typing error: the finding suggests the most similar key.",
            "A text that looks like a number is not in quotes.",
            "The key belongs to a newer release of this collection.",
        ),
        look=("ansible-inventory --host localhost",),
        remedy=(
            "Correct the key in the subject of the finding. An editor can complete all keys with"
            " docs/intent.schema.json."
        ),
    ),
    "validate.ipam": Explanation(
        means="`ipam` of a fabric is invalid, or a part of it would be ignored without a message.",
        measured="`ipam`, checked against the rules of whereabouts and nv-ipam.",
        causes=(
            "A range has host bits set, or does not have the required form.",
            "range_start or range_end is outside the range.",
            "`ipam` contains keys of both IPAM types.",
        ),
        look=("ipcalc 10.0.0.0/24",),
        remedy="Correct the key in the subject of the finding. docs/intent.md shows both IPAM types.",
    ),
    "validate.library": Explanation(
        means=(
            "The Python that runs modules on localhost does not have the library `kubernetes`, or the library is too"
            " old."
        ),
        measured="The version of the library in the Python that runs modules on localhost.",
        causes=(
            "Ansible and the library were installed in different Python environments.",
            "The execution environment was built without the requirements of this collection.",
        ),
        look=(
            "python3 -m pip show kubernetes",
            "ansible localhost -m ansible.builtin.setup -a filter=ansible_python",
        ),
        remedy=(
            "Install the library into that Python with `python3 -m pip install -r requirements.txt` (file of this"
            " collection). Or set `ansible_python_interpreter` for localhost to a Python that has the library. Then run"
            " stage `validate` again."
        ),
    ),
    "validate.line_rate": Explanation(
        means="The floor of a fabric verifies nothing, or is absolute or low without a reason.",
        measured="`line_rate` of the fabric.",
        causes=(
            "A fraction is above 1 or below 0.05, or `expected_gbps` is below 1.",
            "`floor_gbps`, a fraction below 0.8, or `expected_gbps` below 10 is set without `reason`.",
            "`network.max_tx_rate`, which is in Mb/s, is below 10000, and `line_rate` has no `reason`.",
        ),
        look=("ansible-doc -t role linerate.rdma.bandwidth",),
        remedy="Use the fraction, or add `line_rate.reason`. The report prints the reason.",
    ),
    "validate.measures": Explanation(
        means="Figures in `rdma_cluster.measures` cannot be compared.",
        measured="The figures, networks and numbers of nodes of each measure.",
        causes=(
            "Two figures exist for the same network and number of nodes.",
            "A network that is not a fabric has no kind.",
            "A value is 0 or negative.",
        ),
        look=("ansible-doc -t role linerate.rdma.compare",),
        remedy="Correct the figure in the subject of the finding.",
    ),
    "validate.names": Explanation(
        means="The API server or the webhook of the operator would reject a name.",
        measured=(
            "The names of fabrics, resources, networks and namespaces, checked against the rules of Kubernetes and of"
            " the operator."
        ),
        causes=(
            "`resource_name` contains a hyphen.",
            "The name of an object contains upper-case letters or underscores.",
        ),
        look=("kubectl explain network-attachment-definitions.metadata",),
        remedy=(
            "Use underscores in `resource_name`, such as `mlx_compute`. In `network.name`, use lower-case letters,"
            " digits and hyphens."
        ),
    ),
    "validate.nodes": Explanation(
        means=(
            "The group rdma_nodes has no host, or a source of the inventory could not be read. A run that checks no"
            " node, or leaves some out without a word, must not pass."
        ),
        measured="The hosts in the group `rdma_nodes` of the inventory.",
        causes=(
            "The run used a different inventory, or no inventory.",
            "The group has a different name.",
            "The inventory plugin found no node with the label.",
            "One of several inventory files does not exist, or its API server did not answer.",
        ),
        look=("ansible-inventory --graph rdma_nodes",),
        remedy=(
            "Add the nodes to the group `rdma_nodes`, under their Kubernetes node names. Or use the inventory plugin"
            " `linerate.rdma.nodes`."
        ),
    ),
    "validate.numbers": Explanation(
        means="No HCA and driver support this number.",
        measured="The number of HCAs per node, the number of virtual functions, and the MTU of each fabric.",
        causes=(
            "A typing error.",
            "The value is the number of virtual functions of all HCAs together, instead of the number per HCA.",
        ),
        look=("cat /sys/class/infiniband/mlx5_0/device/sriov_totalvfs",),
        remedy="Correct the number in the subject of the finding.",
    ),
    "validate.operators": Explanation(
        means=(
            "The finding lists why an operator is required, and which chart and package contain it. It always passes."
            " Stage `operators` checks whether the operator is installed."
        ),
        measured="The profiles of the fabrics and `rdma_cluster`.",
        causes=("The intent requires the operator.",),
        look=("helm list -A",),
        remedy="No action is needed. To install the operator with this collection, set `operators_install: true`.",
    ),
    "validate.pods": Explanation(
        means="A measurement cannot finish within its time limit.",
        measured=(
            "`pods` of the fabric (seconds, limit_seconds, iterations, message_bytes, queue_pairs), and `bandwidth`."
        ),
        causes=("`limit_seconds` is not greater than `seconds`.",),
        look=("ansible-doc -t role linerate.rdma.bandwidth",),
        remedy="Set `limit_seconds` to at least twice `seconds`, to leave time for the connection setup.",
    ),
    "validate.powers": Explanation(
        means=(
            "The finding lists the files of docs/rbac that the intent requires, so that a cluster admin grants only"
            " these rights. It always passes."
        ),
        measured="The intent, compared with the table from which the files are generated.",
        causes=("Each profile, and each key of `rdma_cluster` that changes something, requires its own rights.",),
        look=("kubectl auth can-i --list",),
        remedy=(
            "Ask a cluster admin to apply the files in the findings, with the namespaces of your intent. The finding"
            " `validate.rights` lists the missing rights."
        ),
    ),
    "validate.profile": Explanation(
        means=(
            "The profile of the fabric does not support a key, or requires a key that is missing. An unsupported key"
            " would have no effect."
        ),
        measured="The keys of the fabric, compared with the keys of its profile.",
        causes=(
            "The profile was changed, and the keys were not.",
            "The CNI plugin rejects the VLAN or the rates.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy="Remove or add the key in the subject of the finding. docs/intent.md lists the keys of each profile.",
    ),
    "validate.rdma_mode": Explanation(
        means="One fabric shares RDMA devices, but another fabric requires exclusive RDMA devices on the same nodes.",
        measured="The profiles, `network.meta_plugins` and `rdma_cluster.node_pool.rdma_mode`.",
        causes=("`{type: rdma}` is in meta_plugins, and another fabric has profile `rdma_shared`.",),
        look=("rdma system",),
        remedy="Use one RDMA mode on all nodes: remove the plugin, or remove the fabric that shares RDMA devices.",
    ),
    "validate.rights": Explanation(
        means=(
            "The credentials do not have a right that a stage requires. The run reports this before it reads the first"
            " node."
        ),
        measured="A SelfSubjectAccessReview for each right of docs/rbac that the intent requires.",
        causes=(
            (
                "A required file of docs/rbac was not applied, belongs to an older release, or contains different"
                " namespaces."
            ),
        ),
        look=("kubectl auth can-i --list",),
        remedy=(
            "Ask a cluster admin to apply the files in the finding. A waiver for `operators.rights` turns the finding"
            " into a warning."
        ),
    ),
    "validate.room": Explanation(
        means=(
            "A node has less free CPU or memory than the measuring pods request together. The scheduler would leave"
            " these pods pending, so stage `bandwidth` would have no figure of the node."
        ),
        measured=(
            "Allocatable of the Node, less the requests of its pods and of an observer. Pods that this collection"
            " created do not count. The measuring pods of a fabric are one for each rail; stage `collectives` has one"
            " pod on each node."
        ),
        causes=(
            "`pods.cpu` or `pods.memory` of the fabric is larger than a small node permits, such as a virtual machine"
            " with 2 CPUs.",
            "Pods of jobs request the CPUs or the memory now (warn).",
            "The user may not list nodes or pods (warn).",
        ),
        look=("kubectl describe node NODE", "kubectl get pods -A --field-selector spec.nodeName=NODE"),
        remedy=(
            "Set `pods.cpu` or `pods.memory` of the fabric to the value in the finding, or end pods on the node. Then"
            " run stage `validate` again."
        ),
    ),
    "validate.routes": Explanation(
        means="A route of the pods cannot work, or sends all traffic of the pods over the secondary network.",
        measured="`ipam.routes`, compared with the range, its gateway and its IP version.",
        causes=(
            "A default route sends the traffic to the API server, DNS and other destinations over the fabric (warn).",
            "The network of the pod has no gateway.",
        ),
        look=("ip route",),
        remedy="Set the routes to networks of the fabric, such as 100.101.0.0/16, with a gateway in the range.",
    ),
    "validate.pod_security": Explanation(
        means=(
            "The intent sets the Pod Security level of a namespace of jobs. Every user who may create pods there gets"
            " the rights of this level."
        ),
        measured="`pod_security` of the networks of each namespace, compared with the level that their jobs require.",
        causes=(
            (
                "The level is `privileged`: a user who may create pods in the namespace can become root on the nodes"
                " (warn)."
            ),
            "The level is lower than jobs with IPC_LOCK require (warn).",
            "Two fabrics set different levels for one namespace, or a level has no reason.",
        ),
        look=("kubectl get namespace NAMESPACE --show-labels",),
        remedy=(
            "Remove `pod_security` if the namespace already has the required level. Otherwise set one level, and its"
            " reason."
        ),
    ),
    "validate.select": Explanation(
        means="The selector selects no HCA, or contains a value that sysfs never shows.",
        measured="`select` of the fabric, compared with the requirements of its profile.",
        causes=(
            "The fabric has no selector.",
            "A PCI address or a PCI ID does not have the form that sysfs uses.",
            "A list has fewer items than `hcas_per_node`.",
        ),
        look=(
            "lspci -D -nn",
            "sminfo",
        ),
        remedy="Correct `select`. On InfiniBand, `subnet_manager: any` with `hcas_per_node` is the simplest selector.",
    ),
    "validate.tuning": Explanation(
        means=(
            "A row or a value in `rdma_cluster.tuning` is invalid, or a fabric without RDMA over Ethernet has `roce`."
        ),
        measured="`rdma_cluster.tuning`, compared with the known rows, and `roce` of each fabric.",
        causes=(
            "The name of a row contains a typing error.",
            "on or off is not in quotes, so YAML reads it as a boolean.",
        ),
        look=("ansible-doc -t role linerate.rdma.tuning",),
        remedy="Copy the name of the row from the README of role tuning, and put its value in quotes.",
    ),
    "validate.unique_names": Explanation(
        means="Two fabrics have the same name, resource, network or pool. One fabric would overwrite the other.",
        measured="The names of all fabrics, compared with each other.",
        causes=("A fabric was copied.",),
        look=("ansible-inventory --host localhost",),
        remedy="Give each fabric its own `name`, `resource_name`, `network.name` and pool.",
    ),
    "validate.variables": Explanation(
        means="A variable is misspelled or has an invalid value. The setting would be ignored without a message.",
        measured=(
            "The names of the variables of localhost that start with `rdma_` or resemble an option of a role, and the"
            " values of booleans and numbers."
        ),
        causes=(
            "The name contains a typing error: the finding fails and suggests the most similar name.",
            "The value contains a typing error, such as `ture`.",
            "A variable that does not belong to this collection has a name that starts with `rdma_` (warn).",
        ),
        look=("ansible-inventory --host localhost", "ansible-doc -t role linerate.rdma.validate"),
        remedy="Correct the name or the value. Names that start with `rdma_` are reserved for this collection.",
    ),
    "validate.waivers": Explanation(
        means="A waiver covers no finding, has no reason, or covers a check that cannot be waived.",
        measured="Each waiver in `rdma_waivers`, compared with the known check IDs.",
        causes=(
            "The check ID contains a typing error.",
            "The waiver covers several stages (`*`).",
            "The waiver covers `validate.*`, `*.error` or `*.run`.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy="Copy the check ID from the report, and write a reason for the readers who rely on the run.",
    ),
}
