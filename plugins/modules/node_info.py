#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the HCAs of a node, its platform and the firmware of its HCAs in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Show the HCAs of a node, their firmware, its IOMMU and SR-IOV support, its clock, and how it is tuned
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads sysfs, procfs, PCI configuration space, and the VF settings from C(ip link). It changes nothing and reads
    everything in one connection.
  - Shows every RDMA device. Shows every PCI network function that has SR-IOV, is a virtual function (VF), is of class
    InfiniBand, or is from a vendor of HCAs. Leaves out plain network cards unless O(netdevs) names them.
  - Files may disappear or become unreadable while VFs are created. The module leaves out files that disappeared. A
    value that could not be read is C(null) and appears in RV(hcas.hcas[].unread) and RV(hcas.errors).
  - For the platform, shows whether the firmware provides an IOMMU, whether the kernel uses it, and which network
    functions support VFs.
  - For their firmware, asks C(devlink) and C(mstconfig) if installed. See M(linerate.rdma.nic_firmware_info).
  - Does not read the settings of the BIOS. See M(linerate.rdma.bios_info).
options:
  gather_subset:
    description:
      - Subsets to read. The prefix C(!) excludes a subset.
      - V(hcas) reads HCAs, ports, physical functions (PFs) and VFs.
      - V(platform) reads IOMMU, SR-IOV support and the NVIDIA driver.
      - V(firmware) reads versions and settings of the firmware of the HCAs. C(mstconfig) takes a second or more for
        each HCA. The HCAs are asked at the same time, and all of them together may take 90 seconds.
      - V(clock) reads the time, and whether a time service synchronises the clock.
      - V(tuning) reads how CPUs, memory, kernel, PCI, GPUs, kubelet and network interfaces are tuned. Runs
        C(nvidia-smi) if there are GPUs, and C(dcb) if there are RDMA devices on Ethernet.
      - V(neighbours) listens on Ethernet NICs with RDMA for switches that speak LLDP, half a minute, and reads
        the neighbours that the kernel knows. It needs root, does nothing on nodes with InfiniBand unless
        O(beside_infiniband) is set, and is no part of V(all).
    type: list
    elements: str
    choices:
      [all, hcas, platform, firmware, clock, tuning, neighbours, "!hcas", "!platform", "!firmware", "!clock", "!tuning",
      "!neighbours"]
    default: [all]
  moment:
    description: Name of the point in time within the run. With O(facts_dir), it becomes part of the kind of the fact,
      such as C(hcas_<moment>).
    type: str
  since:
    description:
      - Name of an earlier point in time of the run, at which the HCAs were kept as C(hcas_<since>). RV(missing) then
        says what the node had and lacks now.
      - Needs O(facts_dir). V(before_reset) is what M(linerate.rdma.node_roll) keeps of each node that it resets.
    type: str
  wait_seconds:
    description: With O(since), time in seconds in which the node is asked again until nothing is missing. A driver and
      a link need a moment after a reset.
    type: int
    default: 0
extends_documentation_fragment:
  - linerate.rdma._options.facts
  - linerate.rdma._options.reading
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: Read everything
  linerate.rdma.node_info:
  register: node

- name: Read only the HCAs
  linerate.rdma.node_info:
    gather_subset: [hcas]
"""

RETURN = r"""
hcas:
  description: HCAs of the node, and errors of the reading.
  returned: with the subset V(hcas)
  type: dict
  contains:
    hcas:
      description: RDMA devices in natural order, then functions without an RDMA device, by PCI address.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the RDMA device. If there is none, the network interface or the PCI address.
          type: str
          sample: mlx5_0
        rdma_device:
          description: RDMA device. V(null) if there is none.
          type: str
        netdevs:
          description:
            - Network interfaces of the function. Each has the port of the RDMA device, the bond to which it belongs,
              and the bridge of which it is a port.
            - For IPoIB, the queue pair, subnet prefix and port GUID come from the 20-byte hardware address.
            - For Ethernet, in Gb/s, the speed of the link, and the maximum speeds of the port and its link partner.
          type: list
          elements: dict
          sample:
            [{name: ibp60s0, hardware_address: "00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:e0:00:01", mtu: 4092,
            state: up, port_guid: "0xb83fd20300e00001", subnet_prefix: "0xfe80000000000000", queue_pair: 4169, port: 1,
            bond: null, speed_gbps: null, supported_gbps: null, partner_gbps: null}]
        pci:
          description:
            - The PCI function with its driver, its NUMA node and its PCIe link.
            - C(current_*) is the present state of the link, C(max_*) the limit of the card, C(slot_*) that of the slot.
            - Speeds are in GT/s, widths in lanes, packet payloads in bytes.
            - V(null) if the device is not a PCI function.
          type: dict
          sample:
            {address: "0000:3c:00.0", vendor: 15b3, device: "1021", device_class: "0207", driver: mlx5_core,
            numa_node: 0, link: {current_speed: 32.0, current_width: 16, max_speed: 32.0, max_width: 16,
            slot_speed: 32.0, slot_width: 16, payload: 256, payload_could: 512}}
        node_guid:
          description: Node GUID of the device.
          type: str
          sample: "0xb83fd20300e00000"
        node_description:
          description: Node description, a free text. Do not rely on it.
          type: str
        firmware:
          description: Firmware version.
          type: str
          sample: 28.41.1000
        board:
          description: Board ID (PSID).
          type: str
          sample: MT_0000000838
        hca_type:
          description: HCA type as reported by the driver.
          type: str
        ports:
          description:
            - Ports of the RDMA device. Rates are in Gb/s. If a port has no LID or SM LID, the value is V(null).
            - The MTU in bytes is the largest of the network interfaces of the port. sysfs does not show the port's own.
          type: list
          elements: dict
          sample:
            [{number: 1, state: ACTIVE, physical_state: LinkUp, link_layer: InfiniBand, rate_gbps: 400.0, width: 4,
            speed: NDR, lid: 4, sm_lid: 1, guid: "0xb83fd20300e00001", pkeys: ["0xffff"], mtu: 4092}]
        sriov:
          description: Maximum and current number of VFs. V(null) if SR-IOV is disabled or not supported.
          type: dict
          sample: {total: 16, current: 8}
        physical_function:
          description: For a VF, the PCI address of its PF.
          type: str
          sample: "0000:3c:00.0"
        vf_index:
          description: Index of the VF on its PF.
          type: int
        administration:
          description:
            - For a VF, the settings that its PF has made, from C(ip link) and, with NVIDIA's own drivers, from sysfs.
            - V(null) if the driver does not show them.
            - C(link_policy) is C(Follow), C(Up) or C(Down). Rates are in Mb/s, 0 is no limit. VLAN 0 is no VLAN.
          type: dict
          sample:
            {node_guid: "0x0200000000000001", port_guid: "0x0200000000000001", link_policy: Follow, vlan: 0,
            vlan_qos: 0, trust: false, spoof_check: true, min_tx_rate: 0, max_tx_rate: 0}
        sriov_absence:
          description:
            - Why a PF has no SR-IOV files, from its PCI configuration space. V(null) if it has them, or if the
              configuration space cannot be read.
            - C(hidden) means that a bridge or the BIOS hides all extended capabilities.
            - C(off) means that the function has no SR-IOV capability, or one with 0 VFs.
            - C(unused) means that the function offers VFs, but the kernel does not use them.
          type: str
        held:
          description:
            - Parts of the function that a pod has in its network namespace, so that the node does not show them.
              V(null) if the node shows the whole function.
            - C(netdevs) are the interfaces by their names in the pod, C(names) their former names on the node.
            - With RDMA in exclusive mode, also C(rdma_device), C(node_guid) and C(ports).
          type: dict
        unread:
          description: Files that exist but could not be read or parsed. Their values are V(null).
          type: list
          elements: str
          sample: [ports/1/state]
    errors:
      description: Files that could not be read, each with the reason.
      type: list
      elements: str
      sample: ["/sys/class/infiniband/mlx5_0/ports/1/state: Invalid argument"]
platform:
  description: IOMMU and SR-IOV support. V(null) means that a value could not be read, an empty list that there is none.
  returned: with the subset V(platform)
  type: dict
  contains:
    kernel:
      description: Kernel release.
      type: str
      sample: 6.12.95+deb12-amd64
    machine:
      description: Machine type.
      type: str
    kernel_arguments:
      description: Kernel command line arguments about IOMMU and PCI, and those of O(kernel_arguments) that it has.
      type: list
      elements: str
      sample: [intel_iommu=on, iommu=pt]
    iommu_devices:
      description: Active IOMMUs.
      type: list
      elements: str
      sample: [dmar0]
    iommu_groups:
      description: Number of IOMMU groups.
      type: int
    acpi_tables:
      description: ACPI tables that the BIOS provides. Only DMAR (Intel), IVRS (AMD) and IORT (Arm) are listed.
      type: list
      elements: str
      sample: [DMAR]
    boot:
      description: ID of the running boot.
      type: str
      sample: 1f1c2ad1-3b0e-4b4e-a86e-6f8f7f7f0c55
    functions:
      description:
        - Network functions, the same as in RV(hcas.hcas).
        - For a PF, C(capability) is the SR-IOV capability in its PCI configuration space, C(memory) lists the BARs of
          its VFs that have an address and those that have none, C(last_bus) is the last bus number below the port above
          it, and C(acs) are the Access Control Services of that port.
        - These are V(null) if they do not exist or cannot be read. Only root can read C(capability) and C(acs).
      type: list
      elements: dict
      sample:
        [{address: "0000:3c:00.0", driver: mlx5_core, sriov_total: 16, sriov_current: 8, iommu_group: 31,
        physical_function: null, unread: [], capability: {initial: 16, total: 16, current: 8, offset: 1, stride: 1,
        ari: true, bars: [0]}, memory: {placed: [0], unplaced: []}, last_bus: 60, acs: {capability: 95, control: 29}}]
    gpu:
      description: Properties of the NVIDIA driver that matter for GPUDirect RDMA. V(null) if the driver is not loaded.
      type: dict
      sample: {version: 570.86.15, open: true, peermem: false, peer_clients: [], ofed: null}
    signed_modules:
      description: Whether the kernel loads only signed modules, as with secure boot. V(null) if it does not say.
      type: bool
    uplinks:
      description: Interfaces of the default routes, and those below them. V(null) if the routes could not be read.
      type: list
      elements: str
      sample: [eno1]
    networks:
      description: Networks that the node reaches over its NICs without a gateway, each with the C(interface) of the
        NIC, which may be below a bond, a bridge or a VLAN. V(null) if the routes could not be read.
      type: list
      elements: dict
      sample: [{interface: eno1, network: 192.0.2.0/24}]
    errors:
      description: Files that could not be read, each with the reason.
      type: list
      elements: str
firmware:
  description: Firmware of the PFs, as in RV(linerate.rdma.nic_firmware_info#module:firmware).
  returned: with the subset V(firmware)
  type: dict
counts:
  description: Number of items in each fact. The facts themselves are then in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
  sample: {hcas: 72, platform: 72, firmware: 8}
missing:
  description: What the node had at the moment O(since) and lacks now, in words.
  returned: if O(since) is set, and the HCAs of that moment were kept
  type: list
  elements: str
  sample: ["mlx5_0 port 1, which was ACTIVE and is INIT"]
clock:
  description: Clock of the node.
  returned: with the subset V(clock)
  type: dict
  contains:
    seconds:
      description: Time of the node's clock, in seconds since 1970-01-01 UTC.
      type: float
      sample: 1767323045.25
    synchronised:
      description: Whether a time service synchronises the clock. V(null) if the kernel does not say so.
      type: bool
    error_seconds:
      description: Maximum error of a synchronised clock in seconds, as estimated by the kernel.
      type: float
      sample: 0.018
    asked:
      description: Time of the controller just before it asked the node.
      type: float
    answered:
      description: Time of the controller just after the answer.
      type: float
neighbours:
  description: What the node shows of the networks that its Ethernet NICs are cabled to.
  returned: with the subset V(neighbours)
  type: dict
  contains:
    netdevs:
      description:
        - Interfaces of HCAs on Ethernet that have a link. Empty with InfiniBand, unless O(beside_infiniband) is set.
        - C(switch_ports) is what was heard by LLDP, C(hardware_addresses) are the neighbours that the kernel knows.
      type: list
      elements: dict
      sample:
        [{name: ens1f0np0, hardware_address: "b8:3f:d2:00:00:10", switch_ports: [{chassis: "9c:05:91:00:00:01",
        port: swp3, system: leaf1, vlan: 100}], hardware_addresses: ["b8:3f:d2:00:01:10"]}]
    uplinks:
      description: Interfaces of the default routes, and the interfaces that those are made of.
      type: list
      elements: str
      sample: [eno1]
    errors:
      description: What could not be read, each with the reason.
      type: list
      elements: str
tuning:
  description: How the node is tuned, in rows. The README of the role P(linerate.rdma.tuning#role) lists them.
  returned: with the subset V(tuning)
  type: dict
  contains:
    rows:
      description:
        - By name of the row, its values. Each has the parts of the node that show it, such as CPUs, HCAs or GPUs. If
          there are none, it is the whole node.
        - An empty list means that the node has no such thing.
      type: dict
      sample:
        {governor: [{value: performance, where: ["0-254"]}, {value: powersave, where: ["255"]}],
        numa_balancing: [{value: "0", where: []}], gpu_ecc: []}
    unread:
      description: By name of the row, why it could not be read, or not all of it.
      type: dict
      sample:
        max_read_request: "0000:3c:00.0/config: only 64 bytes of the configuration space can be read; root reads all"
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import OBSERVER_SPEC, run
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.fact_kinds import HOST, LLDP, list_kinds_at
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.look import Look

SUBSETS = list_kinds_at(HOST, LLDP)


def choose_subsets(words: typing.Sequence[str]) -> list[str]:
    """Return the names of the requested subsets in their usual order. The option is interpreted like gather_subset of
    ansible.builtin.setup. ``all``, and an option that only excludes subsets, do not include the subsets about switches.
    Unknown names are ignored.

    :param words: value of the option: names of subsets, ``all``, or ``!`` and the name of a subset to exclude
    """
    taken = [word for word in words if not word.startswith("!")]
    if not taken or "all" in taken:
        taken += list_kinds_at(HOST)
    return [name for name in SUBSETS if name in taken and f"!{name}" not in words]


def read(params: dict[str, typing.Any]) -> dict[str, typing.Any]:
    look = Look(
        params["sysfs"],
        params["netdevs"],
        kernel_arguments=params["kernel_arguments"],
        beside_infiniband=params["beside_infiniband"],
    )
    return {kind: look.at(kind) for kind in choose_subsets(params["gather_subset"])}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "gather_subset": {
                "type": "list",
                "elements": "str",
                "choices": ["all", *SUBSETS, *(f"!{name}" for name in SUBSETS)],
                "default": ["all"],
            },
            "sysfs": {"type": "list", "elements": "path", "default": ["/sys"]},
            "netdevs": {"type": "list", "elements": "str", "default": []},
            "kernel_arguments": {"type": "list", "elements": "str", "default": []},
            "beside_infiniband": {"type": "bool", "default": False},
            **OBSERVER_SPEC,
            "moment": {"type": "str"},
            "since": {"type": "str"},
            "wait_seconds": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
