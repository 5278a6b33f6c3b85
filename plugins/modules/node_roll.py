#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_roll
short_description: Bring nodes to what is wanted of their BIOS, kernel and firmware, with a drain and one reset of each
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Compares all nodes of a run with the intent, and plans what each node needs. It shows the plan first. All that
    differs on a node takes one reset.
  - Fails if C(--limit) of C(ansible-playbook) excludes nodes of the run, because the plan is for all of them. In check
    mode and with O(prove) it does not.
  - The BIOS is compared with C(rdma_cluster.bios), through the BMC of the node.
  - The kernel arguments are compared with C(rdma_cluster.host.kernel_arguments), by the fact C(kernel_arguments), which
    the result of M(linerate.rdma.kernel_arguments) is kept as. Nodes of a C(MachineConfigPool) are left out, because a
    C(MachineConfig) sets theirs.
  - If the BIOS of a node of a C(MachineConfigPool) differs, and the C(MachineConfigs) of C(rdma_cluster.host) would
    reboot the nodes of this pool, it takes that reboot. The module sets the BIOS of all nodes of the pools first. It
    then applies the C(MachineConfigs) while the pools are paused, unpauses them, and waits until the machine config
    operator of OpenShift has drained and rebooted each node once. No BMC resets these nodes.
  - A power cycle is not part of that reboot. The BMC of the node does it before, and the plan says that the node goes
    down twice.
  - If a node of such a pool cannot be done, its pool is left as it is, so that no node is rebooted twice.
  - No BMC resets a node while its C(MachineConfigPool) changes nodes, is degraded, or is paused by somebody else. The
    module reads that again right before each reset.
  - No BMC writes or resets a node before it is proven to be that of the node. UUID and serial number of the system
    behind it are compared with C(systemUUID) of the C(Node) and with the DMI that the look of this run has seen, in the
    plan, and again right before each write. A BMC of another machine, one BMC for two nodes, and two nodes with one
    identity are refused. If nothing can be compared, the node is left out, unless its inventory has
    C(rdma_bmc_identity=asserted). The plan then says so.
  - Right before each write to a BMC or to the API server the module looks whether the run still holds its C(Lease). If
    not, it writes nothing more.
  - Then works on the nodes in waves. It sets the BIOS of a node, cordons and drains it, resets it through its BMC,
    waits until it is C(Ready) with another boot ID, and reads the BIOS again.
  - If C(rdma_cluster.disruption) is not V(reboot), a plan that needs a reset is refused before anything is changed.
  - C(rdma_cluster.node_pool.max_unavailable) nodes are away at the same time, or one where it is not set. Nodes that
    are not C(Ready), or are cordoned, count, also those outside of the inventory that C(rdma_cluster.node_selector)
    takes. They are counted anew before each wave.
  - Of the control-plane nodes, one is away at most. It is left out while another one is not C(Ready) or is cordoned, or
    while etcd does not have a member that is C(Ready) on each of them. The plan names single-node and compact clusters.
  - A node that a C(MachineHealthCheck) or a C(NodeHealthCheck) watches is left out, unless
    C(rdma_cluster.pause_health_checks) is true. These are then paused until the nodes are back. A pause of somebody
    else stays.
  - The drain uses evictions, so a C(PodDisruptionBudget) is obeyed. Pods of a C(DaemonSet) and static pods stay. Each
    eviction names the UID of its pod.
  - As with C(kubectl drain), a pod with C(emptyDir) data or without a controller stops the drain, unless
    C(rdma_cluster.drain) allows it.
  - While the API server is away (status 5xx, a broken connection, or 429), each step waits for it, for at most 10
    minutes.
  - A node that cannot be done is left out, and RV(counts) counts it. Reasons are a BMC that gives no answer, a value
    that the BIOS does not take, a C(PodDisruptionBudget) that allows no eviction, pods that no controller makes again,
    and a C(MachineConfigPool) that changes the node.
  - A node whose drain fails is left out and uncordoned, with the cause, and the roll continues with the next one. After
    twice the time of a drain for such nodes, the roll ends.
  - The first node that fails otherwise ends the roll. Later nodes are not changed.
  - The annotation C(linerate.rdma/roll) of a node holds what was done so far, and the boot ID before the reset. A run
    that was killed is therefore continued by the next one, and no node is reset twice for the same difference. A
    setting that did not take at a reset is reported, and its node is uncordoned.
  - The first C(SIGINT) or C(SIGTERM) ends the roll after the nodes of the wave. The second one ends it at once.
  - Takes address and credentials of each BMC from the variables of its node, as M(linerate.rdma.bmcs_info) does. They
    are no options, so that no log and no result ever has them.
  - Settings in the firmware of HCAs that the intent wants, and that wait for a reset, take the same one, by the facts
    C(firmware) and C(platform). It is a power cycle then, because a warm reboot does not always load them. Settings
    that are not set at all are not its task, see M(linerate.rdma.nic_firmware). HCAs on which the NIC configuration
    operator of NVIDIA or the Arm cores of a BlueField decide are left out.
  - The fact C(nic_firmware) of a node, which the result of M(linerate.rdma.nic_firmware) is kept as, says what was set,
    or would be set in check mode. If it says that a setting cannot be set, the node is left out.
  - The facts of M(linerate.rdma.nic_firmware_plan), M(linerate.rdma.custom_resources) (C(nic_templates)) and
    M(linerate.rdma.nic_device_info) say what the NIC configuration operator of NVIDIA does to the node. If it is not
    through, the node is left out.
  - The plan also names what other stages restart or drain later in the run. This module does not do it.
  - What a fact shows is seen again only by a new look at the node. Until then RV(counts) counts a node that was reset
    for it as V(unproven), and the annotation stays. Look at the nodes of RV(reset) again, then call the module with
    O(prove=true).
  - Keeps the HCAs that a node had before its reset as the fact C(hcas_before_reset), so that M(linerate.rdma.node_info)
    can wait until they are there again.
  - Does not fail if a node fails. The fact C(node_roll) holds the plan and the result of each node, which stage
    C(platform) judges.
options:
  fabrics:
    description: The variable C(rdma_fabrics). Without it, the firmware of HCAs is left out.
    type: raw
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  bmc_validate_certs:
    description: Check the certificate of each BMC. A fingerprint is always checked.
    type: bool
    default: true
  bmc_ca_path:
    description: File with the authorities of the certificates of the BMCs, or folder with such files. The default is
      the authorities of the controller.
    type: path
  bmc_seconds:
    description: Limit in seconds for all answers of one BMC together, each time that it is asked.
    type: float
    default: 120
  parallel:
    description: How many BMCs to ask at the same time.
    type: int
    default: 512
  delete_unmanaged:
    description:
      - Let a drain delete pods that no controller makes again. Otherwise a node with such a pod is left out.
      - The same as C(rdma_cluster.drain.force).
    type: bool
    default: false
  check_limit:
    description:
      - Only fail if C(--limit) of C(ansible-playbook) excludes nodes of the run. It reads no BMC and resets nothing.
      - Stage C(platform) does that before its first write, so that neither kernel arguments nor firmware are set.
    type: bool
    default: false
  prove:
    description:
      - Only see whether nodes that are V(unproven) are as wanted now, by the new facts of this run. It resets nothing.
      - A node that still differs is V(failed), and no later run resets it for the same difference.
    type: bool
    default: false
  resume_checks:
    description:
      - Only let the health checks go on that a killed run of the intent in O(cluster) has paused. It resets nothing.
      - A health check stays paused if a run of another intent paused it, or while a node that it watches is not
        C(Ready), or is in a roll. The fact C(checks_resumed) names it.
      - The role C(teardown) does that.
    type: bool
    default: false
  drain_seconds:
    description: Limit in seconds for the drain of one node.
    type: int
    default: 1800
  reset_seconds:
    description: Limit in seconds from the reset of a node until it is C(Ready).
    type: int
    default: 1800
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._options.lease
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - Asks the BMCs and the API server for real, and returns the plan.
  diff_mode:
    details:
      - Shows one line for each node.
seealso:
  - module: linerate.rdma.bios
    description: Sets the BIOS and resets nothing.
"""

EXAMPLES = r"""
# group_vars/rdma_nodes/bmc.yml has rdma_bmc_address: "{{ inventory_hostname }}-bmc.example.com", rdma_bmc_user,
# and rdma_bmc_password in a vault
- name: Begin a run
  linerate.rdma.run_begin:
    report_dir: build/report
    cluster: "{{ rdma_cluster }}"
  register: begun
  run_once: true

- name: Bring the nodes to what is wanted, two at a time
  linerate.rdma.node_roll:
    facts_dir: build/report
    run: "{{ begun.run }}"
    holder: "{{ begun.holder }}"
    cluster:
      bios:
        iommu: true
      disruption: reboot
      node_pool:
        max_unavailable: 2
    bmc_ca_path: /etc/pki/bmc-ca.pem
  run_once: true
"""

RETURN = r"""
plan:
  description: The plan, with one line for each node that something is done about or that is left out. A line says who
    reboots the node, and why.
  returned: success
  type: list
  elements: str
  sample:
    - "worker-2 (wave 1): set, drain, reset by its BMC, 14 pods go: BIOS iommu on (now ProcVtd Disabled), set by its
      BMC"
changes:
  description: What was done, or would be done in check mode, with one line for each node.
  returned: success
  type: list
  elements: str
  sample:
    - "worker-2: BIOS ProcVtd Disabled -> Enabled, cordoned, 14 pods evicted, reset (ForceRestart), uncordoned"
reset:
  description: Names of the nodes that were reset, and that have to be looked at again.
  returned: success
  type: list
  elements: str
  sample: [worker-2]
counts:
  description:
    - Number of nodes in each state. The states are V(nothing), V(planned), V(done), V(failed), V(blocked), V(left),
      V(unknown) and V(unproven).
    - V(unproven) is a node that was reset, and that nobody has looked at since.
    - V(left) is a node whose turn did not come, because the roll ended before.
  returned: success
  type: dict
  sample:
    done: 1
    nothing: 1
"""
