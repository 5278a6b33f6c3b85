# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other documentation may extend this.

"""Documentation of options that several modules have in common. INTENT_SPEC, make_pods_spec and FRAME_SPEC are the
matching argument specs.
"""

from __future__ import annotations


class ModuleDocFragment:
    """The options of several modules, by topic.

    ``intent``: the variables with the desired state. ``pods``: for modules that run pods on the nodes. ``frame``: for
    the modules that begin and judge a stage.

    ``progress``: for modules that report progress while they run. ``objects``: for modules that apply Kubernetes
    objects. ``reading``: for modules that read nodes. ``bmcs``: for modules that query BMCs. ``awx``: for modules that
    create objects of AWX.
    """

    INTENT = r"""
options:
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
    required: true
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
"""

    SCOPE = r"""
options:
  fabrics:
    description:
      - The variable C(rdma_fabrics).
      - With O(fabrics) or O(cluster), the module changes and removes only objects of this intent. Objects of another
        intent, by the label C(linerate.rdma/intent), stay.
      - An object without this label, or with the default name, is of this intent only if its name, its fabric and the
        nodes that it selects are those of the intent.
    type: raw
  cluster:
    description: The variable C(rdma_cluster), with the name of the intent in C(intent_name).
    type: raw
"""

    PODS = r"""
options:
  nodes:
    description: Kubernetes names of the nodes that take part. The default is all nodes of the run, if O(facts_dir) and
      O(run) are set.
    type: list
    elements: str
  excluded:
    description:
      - Names of those nodes on which the module starts no pod. The result says so for each of them.
      - The action plugin of this name sets it to the nodes that C(--limit) of C(ansible-playbook) excludes.
    type: list
    elements: str
  pod_seconds:
    description: Maximum time in seconds to wait until the pods run. Their removal takes as long at most, and no more
      than 120 seconds.
    type: int
    default: 300
"""

    PROGRESS = r"""
options:
  progress_file:
    description:
      - File to which the module appends progress lines.
      - By default, Ansible shows the lines while the module runs on the controller.
    type: path
"""

    OBJECTS = r"""
options:
  objects:
    description:
      - Kubernetes objects, in the order in which they are applied. See O(objects_from) for an alternative.
      - The filters P(linerate.rdma.render_host#filter), P(linerate.rdma.render_job#filter) and
        P(linerate.rdma.render_pods#filter) return such lists.
    type: list
    elements: dict
    default: []
    suboptions:
      fabric:
        description: Name of the fabric to which the object belongs. Empty if all fabrics share the object.
        type: str
        default: ""
      object:
        description: The object, with C(kind), C(apiVersion) and C(metadata.name).
        type: dict
        required: true
  objects_from:
    description: Read the objects from the fact of this kind instead of O(objects). M(linerate.rdma.network_objects)
      writes the fact C(network_objects).
    type: str
"""

    FRAME = r"""
options:
  stage:
    description: Name of the stage.
    type: str
    required: true
    choices:
      [validate, discover, fabric, reachability, platform, tuning, operators, network, virtual_functions, host,
      bandwidth, collectives, compare, training]
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
  waivers:
    description: The variable C(rdma_waivers).
    type: raw
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  report_dir:
    description: Report folder on the controller. Records are in its folder C(stages), facts in its folder C(facts).
    type: path
    required: true
"""

    FACTS = r"""
options:
  facts_dir:
    description:
      - Report folder on the controller. Set O(run) as well.
      - The result then becomes a fact in this folder. Ansible gets only counts and single values.
      - Set it for large fleets. Results of a thousand nodes slow Ansible down for hours.
    type: path
  run:
    description: ID of the run to which the facts belong, as returned by M(linerate.rdma.stage_begin) or
      M(linerate.rdma.run_begin).
    type: str
"""

    READING = r"""
options:
  sysfs:
    description: Mount points of sysfs on the node. If you give several, the result lists the devices of all of them.
    type: list
    elements: path
    default: [/sys]
  netdevs:
    description: Additional network interfaces to show, such as a plain network card that is moved into a pod.
    type: list
    elements: str
    default: []
  kernel_arguments:
    description:
      - Kernel arguments to look for. Those of them that the kernel runs with are reported beside those about IOMMU and
        PCI. All others stay on the node, because a command line can have secrets.
    type: list
    elements: str
    default: []
  beside_infiniband:
    description: With V(neighbours), listen on the Ethernet NICs of nodes with InfiniBand as well.
    type: bool
    default: false
"""

    CLUSTER_FACTS = r"""
options:
  facts_dir:
    description:
      - Report folder on the controller. Set O(run) as well.
      - The result then becomes a fact in this folder. Ansible gets only counts and single values.
      - The module also reads earlier facts from this folder, such as the names of the nodes.
    type: path
  run:
    description: ID of the run to which the facts belong, as returned by M(linerate.rdma.stage_begin) or
      M(linerate.rdma.run_begin).
    type: str
  fact:
    description: Kind of the fact. Set it if a run calls the module more than once. Each module has its own default.
    type: str
"""

    FOLDER = r"""
options:
  facts_dir:
    description: Report folder on the controller.
    type: path
    required: true
  run:
    description: ID of the run to which the facts belong, as returned by M(linerate.rdma.stage_begin) or
      M(linerate.rdma.run_begin).
    type: str
    required: true
"""

    LEASE = r"""
options:
  holder:
    description:
      - ID of the C(ansible-playbook) process, as returned by M(linerate.rdma.stage_begin) or
        M(linerate.rdma.run_begin).
      - A module that changes the cluster holds the C(Lease) of the run; see M(linerate.rdma.cluster_lease). The ID
        shows other runs whether the holder is still alive.
    type: str
"""

    BMCS = r"""
options:
  bmcs:
    description: The BMCs.
    type: list
    elements: dict
    required: true
    suboptions:
      node:
        description: Name of the node, as in the inventory.
        type: str
        required: true
      address:
        description: Name or IP address of its BMC.
        type: str
        required: true
      port:
        description: Port of HTTPS.
        type: int
        default: 443
      user:
        description: User of the BMC. The default is O(user).
        type: str
      password:
        description: Password of the user. The default is O(password).
        type: str
      token:
        description: Token of a session that already exists on the BMC, in place of a user. The default is O(token).
        type: str
      fingerprint:
        description: SHA-256 fingerprint of the certificate of the BMC. It then needs no authority, no matching name and
          no valid date.
        type: str
      system:
        description: ID of the system that is the node. Needed only where a BMC has several systems with a BIOS, and
          none is known to be the node.
        type: str
      uuid:
        description:
          - UUID of the node, as C(/sys/class/dmi/id/product_uuid) of the node and the fact C(ansible_product_uuid) show
            it. Either order of bytes is right.
          - The BMC is compared with it, so that the BMC of another machine is not taken for that of the node.
        type: str
      serial:
        description: Serial number of the node, as the fact C(ansible_product_serial) shows it. It counts where there is
          no UUID to be compared.
        type: str
      identity:
        description: V(asserted) if you have checked by hand that the BMC is that of the node. It counts only where
          nothing can be compared.
        type: str
        choices: [asserted]
      wanted:
        description: Wanted values of this node. They replace those of O(wanted) key by key.
        type: dict
        default: {}
  user:
    description: User of all BMCs that name none. The default is the environment variable E(RDMA_BMC_USER).
    type: str
  password:
    description: Password of O(user). The default is the environment variable E(RDMA_BMC_PASSWORD).
    type: str
  token:
    description: Token for all BMCs that name neither a token nor a user. The default is the environment variable
      E(RDMA_BMC_TOKEN).
    type: str
  validate_certs:
    description: Check the certificate of each BMC. A fingerprint is always checked.
    type: bool
    default: true
  ca_path:
    description: File with the authorities of the certificates, or folder with such files. The default is the
      authorities of the controller.
    type: path
  parallel:
    description: How many BMCs to ask at the same time. 512 take about 120 MiB of memory, and as many open files.
    type: int
    default: 512
"""

    AWX = r"""
options:
  controller_host:
    description: Address of AWX. The default is the environment variable E(CONTROLLER_HOST), which a credential of AWX
      for itself sets.
    type: str
  controller_username:
    description: User. The default is E(CONTROLLER_USERNAME).
    type: str
  controller_password:
    description: Password. The default is E(CONTROLLER_PASSWORD).
    type: str
  controller_oauthtoken:
    description: Token, instead of user and password. The default is E(CONTROLLER_OAUTH_TOKEN).
    type: str
  validate_certs:
    description: Whether to check the certificate of AWX. The default is E(CONTROLLER_VERIFY_SSL).
    type: bool
  collection:
    description: Collection whose modules make the objects. V(ansible.controller) is that of Red Hat Ansible Automation
      Platform. It is not a dependency.
    type: str
    choices: [awx.awx, ansible.controller]
    default: awx.awx
  name:
    description: What the names of all objects begin with.
    type: str
    default: linerate.rdma
  organization:
    description: Organization of the objects, which exists.
    type: str
    required: true
  approval_seconds:
    description: Time in seconds after which AWX denies an approval that nobody answers. V(0) waits forever.
    type: int
    default: 0
requirements:
  - The collection awx.awx, or ansible.controller
"""
