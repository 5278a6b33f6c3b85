# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage validate, for the pages to which the report links. Check ids:
``validate.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "validate.addresses": Explanation(
        means=(
            "A range does not have enough addresses for the pods that can run at the same time. The last ones would"
            " wait for ever."
        ),
        measured=(
            "Arithmetic: nodes x HCAs x virtual functions (or x `pods_per_node`) against the range, or against each"
            " node's share of a pool."
        ),
        causes=(
            "The range was made for fewer nodes.",
            "`virtual_functions` was raised.",
            "whereabouts: nothing is left for the pods of a node that dies (warn).",
        ),
        look=("ansible-inventory --graph rdma_nodes",),
        remedy="Widen `ipam.range`, or lower `virtual_functions`.",
    ),
    "validate.api_server": Explanation(
        means="Nothing names an API server, or it does not answer. No later stage could do its work.",
        measured="The kubeconfig or the in-cluster account that would be used, and one request within 30 s.",
        causes=(
            "KUBECONFIG is not set on the controller, or in the execution environment.",
            "K8S_AUTH_HOST with credentials is set, and leads elsewhere: it has precedence over each kubeconfig.",
            "The address is another cluster's, or needs a proxy or a VPN.",
            "A certificate or token is over.",
        ),
        look=(
            "kubectl cluster-info",
            "kubectl config view --minify",
        ),
        remedy=(
            "See the first line of the run: it names the source of the credentials, and each that is not used. Give a"
            " kubeconfig that works from where Ansible runs, with `export KUBECONFIG=FILE` or `rdma_kubeconfig`. In"
            " AWX, give the job template a credential of the type OpenShift or Kubernetes API Bearer Token."
        ),
    ),
    "validate.archive": Explanation(
        means=(
            "The archive of the report can't go where `rdma_report_archive` says. The report would be gone with the"
            " job's container."
        ),
        measured=(
            "A folder: a file is written there and removed. An address: its form, the credentials beside it, until when"
            " its signature holds, and any answer to `HEAD`, without the query and the credentials."
        ),
        causes=(
            "The folder is not mounted in this job, or belongs to another user.",
            (
                "The host is not reached from where Ansible runs: DNS, a firewall, a proxy that the environment does"
                " not name."
            ),
            "The certificate is of an authority of your own, and `rdma_report_archive_ca` does not name it.",
            "A signed address is over.",
            "A token or a password would go over plain http.",
        ),
        look=(
            "ls -ld /srv/reports; df -h /srv/reports",
            "curl --head https://dav.example.com/reports/",
        ),
        remedy=(
            "Do what the finding says. To run without it: `-e rdma_report_archive=`. What is allowed: [the"
            " report](../report.md#where-it-survives)."
        ),
    ),
    "validate.claims": Explanation(
        means="Two fabrics select the same HCAs, and their profiles can't share them.",
        measured="`select` of each pair of fabrics: lists that meet, or a selector that takes all of the other's.",
        causes=(
            "An address or a name is in both lists.",
            "One fabric selects by vendor and device, and so takes the other's as well.",
        ),
        look=("lspci -D -nn -d 15b3:",),
        remedy="Say in one of the two which HCAs it leaves to the other: `select.pci` or `select.netdev`.",
    ),
    "validate.cluster": Explanation(
        means="A value of `rdma_cluster` can't be meant, or would harm the cluster.",
        measured="The keys of `rdma_cluster` against each other.",
        causes=(
            "An empty `node_selector`, which takes the control plane as well.",
            "A driver of NVIDIA's operator together with `disruption: none`.",
            "A name or release of another form.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy="Correct the key that is named; docs/intent.md has all keys.",
    ),
    "validate.collectives": Explanation(
        means="A key of `rdma_cluster.collectives` can't be meant, or contradicts another one. Nothing runs with it.",
        measured="The keys of `rdma_cluster.collectives` against each other and against the fabrics.",
        causes=(
            "Several fabrics have RDMA, and none is named.",
            "`gpus_per_node` is not a multiple of the rails (`hcas_per_node`).",
            "A floor of `expected_busbw` is of a test that `tests` leaves out, has no reason, or is there twice.",
            "`share` is below 0.5, with which a broken cluster would pass, or above 1.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy="Correct the key that is named: docs/intent.md lists those of `rdma_cluster.collectives`.",
    ),
    "validate.disjoint_ranges": Explanation(
        means=(
            "Networks of two fabrics overlap. A pod on both would have two ways to one address, and send on the wrong"
            " one."
        ),
        measured="The ranges of all fabrics, compared.",
        causes=(
            "One range was copied.",
            "A prefix is shorter than was meant.",
        ),
        look=("ipcalc 10.0.0.0/16",),
        remedy="Give each fabric a network of its own in `ipam.range`.",
    ),
    "validate.gateway": Explanation(
        means="A gateway is outside of its network. No pod could reach it.",
        measured="`ipam.gateway` against `ipam.range`.",
        causes=(
            "It was copied from another network.",
            "The range is narrower than the network that the gateway is in.",
        ),
        look=("ip route",),
        remedy="Correct the gateway, or remove it: RDMA traffic of one subnet needs none.",
    ),
    "validate.helm": Explanation(
        means="`operators_install` is set, and Helm is not on the controller or too old.",
        measured="Version of the program `helm` where Ansible runs.",
        causes=(
            "The execution environment lacks it.",
            "It is older than charts from OCI registries need.",
        ),
        look=("helm version",),
        remedy=(
            "Install Helm 3.8 or newer where Ansible runs, or install the operators otherwise and leave"
            " `operators_install` out."
        ),
    ),
    "validate.host": Explanation(
        means="A value of `rdma_cluster.host` can't be meant: no job, kernel or kubelet could work with it.",
        measured="The keys of `rdma_cluster.host` against each other and against what OpenShift takes.",
        causes=(
            "`memlock` has no size.",
            "A kernel argument with spaces.",
            "CPUs that the kubelet would not start with.",
        ),
        look=("lscpu -e",),
        remedy="Correct the key that is named: a size in GiB, one argument an item, CPUs as `lscpu -e` numbers them.",
    ),
    "validate.images": Explanation(
        means=(
            "An image is named by a tag, so which image runs is the registry's to say, and `rdma_strict_images: true`"
            " asks for digests."
        ),
        measured="`pods.image` of each fabric, and `rdma_observers_image`.",
        causes=(
            "The default of `pods.image`, which is a tag.",
            "The name was copied without its digest.",
        ),
        look=("skopeo inspect --format '{{.Name}}@{{.Digest}}' docker://IMAGE",),
        remedy="Write the name with the digest that the command shows (`registry.example/rdma-tools@sha256:...`).",
    ),
    "validate.intent": Explanation(
        means="A key is not known, is missing or has the wrong type. Nothing was touched.",
        measured="The variables against the schema (docs/intent.schema.json).",
        causes=(
            "A typing mistake: the nearest known key is named.",
            "A text that looks like a number, without quotes.",
            "A key of a newer release of the collection.",
        ),
        look=("ansible-inventory --host localhost",),
        remedy="Correct the key at the path that is named. An editor knows all keys by docs/intent.schema.json.",
    ),
    "validate.ipam": Explanation(
        means="`ipam` of a fabric can't be read, or a part of it would be ignored in silence.",
        measured="`ipam` by the rules of whereabouts and nv-ipam.",
        causes=(
            "A range with host bits set, or of another form.",
            "range_start or range_end outside of the range.",
            "Keys of both types of IPAM are mixed.",
        ),
        look=("ipcalc 10.0.0.0/24",),
        remedy="Correct the key that is named; docs/intent.md shows both types.",
    ),
    "validate.library": Explanation(
        means="The Python of modules on localhost lacks the library `kubernetes`, or has one that is too old.",
        measured="The version of the library in the Python that modules on localhost run with.",
        causes=(
            "Ansible was installed in one environment, and the library in another.",
            "The execution environment was built without the collection's requirements.",
        ),
        look=(
            "python3 -m pip show kubernetes",
            "ansible localhost -m ansible.builtin.setup -a filter=ansible_python",
        ),
        remedy=(
            "Install it into that Python: `python3 -m pip install -r requirements.txt` of the collection, or set"
            " `ansible_python_interpreter` for localhost."
        ),
    ),
    "validate.line_rate": Explanation(
        means="The floor of a fabric proves nothing, or is absolute or low without a reason.",
        measured="`line_rate` of the fabric.",
        causes=(
            "A fraction above 1 or below 0.05, or `expected_gbps` below 1.",
            "`floor_gbps`, a fraction below 0.8, or `expected_gbps` below 10 without `reason`.",
        ),
        look=("ansible-doc -t role linerate.rdma.bandwidth",),
        remedy="Use the fraction, or add `line_rate.reason`, which the report prints.",
    ),
    "validate.measures": Explanation(
        means="Figures in `rdma_cluster.measures` can't be compared.",
        measured="Each measure: its figures, their networks, their numbers of nodes.",
        causes=(
            "A figure twice for one network and number of nodes.",
            "A network that is no fabric, without its kind.",
            "A value of 0 or below.",
        ),
        look=("ansible-doc -t role linerate.rdma.compare",),
        remedy="Correct the figure that is named.",
    ),
    "validate.names": Explanation(
        means="The API server or the operator's webhook would refuse a name.",
        measured="Names of fabrics, resources, networks and namespaces by the rules of Kubernetes and the operator.",
        causes=(
            "A hyphen in `resource_name`.",
            "Upper-case letters or underscores in the name of an object.",
        ),
        look=("kubectl explain network-attachment-definitions.metadata",),
        remedy="Write `mlx_compute` in `resource_name`, and lower-case letters, digits and hyphens in `network.name`.",
    ),
    "validate.nodes": Explanation(
        means="No host is in the group rdma_nodes. A run that looks at nothing must not pass.",
        measured="Hosts of the inventory's group `rdma_nodes`.",
        causes=(
            "Another inventory was given, or none.",
            "The group has another name.",
            "The inventory plugin found no node with the label.",
        ),
        look=("ansible-inventory --graph rdma_nodes",),
        remedy=(
            "Put the nodes into the group `rdma_nodes`, by their Kubernetes names; or use the inventory plugin"
            " `linerate.rdma.nodes`."
        ),
    ),
    "validate.numbers": Explanation(
        means="A number is out of what any HCA and its driver can do.",
        measured="HCAs a node, virtual functions and MTU of each fabric.",
        causes=(
            "A typing mistake.",
            "The number of virtual functions of all HCAs together instead of each.",
        ),
        look=("cat /sys/class/infiniband/mlx5_0/device/sriov_totalvfs",),
        remedy="Correct the number that is named.",
    ),
    "validate.operators": Explanation(
        means=(
            "Says by what an operator is needed, and which chart and package have it. It always passes; whether it is"
            " there, stage `operators` finds out."
        ),
        measured="The profiles of the fabrics and `rdma_cluster`.",
        causes=("The intent needs it.",),
        look=("helm list -A",),
        remedy="Nothing. To have it installed: `operators_install: true`.",
    ),
    "validate.pods": Explanation(
        means="A measurement can't come to its end within its own limit.",
        measured="`pods` of the fabric: seconds, limit_seconds, iterations, message_bytes, queue_pairs.",
        causes=("`limit_seconds` is not above `seconds`.",),
        look=("ansible-doc -t role linerate.rdma.bandwidth",),
        remedy="Leave room for connecting: `limit_seconds` should be twice `seconds` at least.",
    ),
    "validate.powers": Explanation(
        means=(
            "Which files of docs/rbac this intent needs, so that an admin of the cluster grants these and no others. It"
            " is always a pass."
        ),
        measured="The intent, by the table from which the files are made.",
        causes=("Each profile, and each key of `rdma_cluster` that changes something, needs rights of its own.",),
        look=("kubectl auth can-i --list",),
        remedy=(
            "Have an admin of the cluster apply the files that it names, with the namespaces of this intent put in."
            " `validate.rights` says what is missing."
        ),
    ),
    "validate.profile": Explanation(
        means=(
            "A key does not go with the fabric's profile, or the profile needs one that is missing. Nothing would"
            " set it."
        ),
        measured="The keys of the fabric against its profile.",
        causes=(
            "The profile was changed, and the keys were not.",
            "VLAN or rates that the CNI plugin refuses.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy="Remove or add the key that is named; docs/intent.md says which profile takes what.",
    ),
    "validate.rdma_mode": Explanation(
        means="One fabric shares RDMA devices, and another needs them for itself on the same nodes.",
        measured="Profiles, `network.meta_plugins` and `rdma_cluster.node_pool.rdma_mode`.",
        causes=("`{type: rdma}` in meta_plugins beside a fabric of profile `rdma_shared`.",),
        look=("rdma system",),
        remedy="Use one mode on a node: remove the plugin, or the fabric that shares.",
    ),
    "validate.rights": Explanation(
        means="The credentials lack a right that a stage needs. Told before the first node is looked at.",
        measured="SelfSubjectAccessReviews for each right of docs/rbac that the intent needs.",
        causes=(
            (
                "A file of docs/rbac that the intent needs is not applied, or is of an older release, or has other"
                " namespaces."
            ),
        ),
        look=("kubectl auth can-i --list",),
        remedy=(
            "Have an admin of the cluster apply the files that the finding names. A waiver on `operators.rights` makes"
            " it a warning."
        ),
    ),
    "validate.routes": Explanation(
        means="A route of the pods can't work, or takes all traffic of the pods over the secondary network.",
        measured="`ipam.routes` against the range, its gateway and its IP version.",
        causes=(
            "A default route: API server, DNS and the rest would go over the fabric (warn).",
            "No gateway in the pod's own network.",
        ),
        look=("ip route",),
        remedy="Name the networks of the fabric, such as 100.101.0.0/16, and a gateway in the range.",
    ),
    "validate.pod_security": Explanation(
        means=(
            "The intent sets the level of Pod Security of a namespace of jobs, and everybody who may make pods there"
            " gets what the level allows."
        ),
        measured="`pod_security` of the networks of each namespace, against what their jobs need.",
        causes=(
            "The level is `privileged`: who may make pods in the namespace is root on the nodes (warn).",
            "The level is lower than jobs with IPC_LOCK need (warn).",
            "Two fabrics of one namespace say different levels, or a level has no reason.",
        ),
        look=("kubectl get namespace NAMESPACE --show-labels",),
        remedy=(
            "Remove `pod_security` where the namespace has its level already. Otherwise write one level, and the reason"
            " for it."
        ),
    ),
    "validate.select": Explanation(
        means="The selection of HCAs selects nothing, or can't be what sysfs shows.",
        measured="`select` of the fabric by its profile.",
        causes=(
            "No selector at all.",
            "A PCI address or id in another form than sysfs has.",
            "Fewer items in a list than `hcas_per_node`.",
        ),
        look=(
            "lspci -D -nn",
            "sminfo",
        ),
        remedy="Correct `select`; on InfiniBand `subnet_manager: any` with `hcas_per_node` is the simplest.",
    ),
    "validate.tuning": Explanation(
        means="A row or value in `rdma_cluster.tuning` can't be meant, or `roce` stands at a fabric without Ethernet.",
        measured="`rdma_cluster.tuning` against the rows that there are.",
        causes=(
            "A typing mistake in the name of a row.",
            "A bare on or off, which YAML reads as a truth value.",
        ),
        look=("ansible-doc -t role linerate.rdma.tuning",),
        remedy="Copy the row's name out of the README of role tuning, and put its value in quotes.",
    ),
    "validate.unique_names": Explanation(
        means="Two fabrics have one name, resource, network or pool. One would overwrite the other.",
        measured="Names of all fabrics.",
        causes=("A fabric was copied.",),
        look=("ansible-inventory --host localhost",),
        remedy="Give each fabric its own `name`, `resource_name`, `network.name` and pool.",
    ),
    "validate.variables": Explanation(
        means="A variable is misspelt, or has a value that it can't have. A wish would be dropped in silence.",
        measured=(
            "Names of the variables of localhost: those that start with `rdma_`, and those that look like an option of"
            " a role. Truth values and numbers."
        ),
        causes=(
            "A typing mistake in the name: then it fails, with the nearest name.",
            "A typing mistake in the value: `ture`.",
            "A variable of somebody else whose name starts with `rdma_` (warn).",
        ),
        look=("ansible-inventory --host localhost", "ansible-doc -t role linerate.rdma.validate"),
        remedy="Correct the name or the value; names that start with `rdma_` belong to this collection.",
    ),
    "validate.waivers": Explanation(
        means="A waiver would cover nothing, or has no reason, or covers what can't be waived.",
        measured="Each waiver of `rdma_waivers` against the known check ids.",
        causes=(
            "A typing mistake in the id.",
            "It is of several stages at once (`*`).",
            "It is of `validate.*`, `*.error` or `*.run`.",
        ),
        look=("ansible-doc -t role linerate.rdma.validate",),
        remedy="Copy the id from the report, and write a reason for those who have to trust the run.",
    ),
}
