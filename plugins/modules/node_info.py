#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node shows of its HCAs and its platform, in one look."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Show the HCAs of a node, its evidence for IOMMU and SR-IOV, and its clock
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads sysfs, procfs and PCI configuration space, and C(ip link) for what is set for VFs. It needs no right beyond reading, and takes one round trip.
  - Shows every RDMA device, and every PCI network function that has SR-IOV, is a virtual function, is of class InfiniBand or comes from a
    vendor of HCAs. Plain network cards are left out, unless O(netdevs) names them.
  - Files may vanish or refuse to be read while VFs are made. What vanished is left out; what could not be read is C(null) and is listed under
    RV(hcas.hcas[].unread) and RV(hcas.errors).
  - Of the platform it shows whether the firmware hands over an IOMMU, whether the kernel uses it, and which network functions can make VFs.
    It does not ask the BIOS or the HCA's firmware for their settings.
options:
  gather_subset:
    description:
      - What to read. A subset with C(!) before its name is left out.
      - V(hcas) are HCAs, ports, PFs and VFs. V(platform) is the evidence for IOMMU and SR-IOV, and NVIDIA's driver.
        V(clock) is the time, and whether a time service keeps it.
    type: list
    elements: str
    choices: [all, hcas, platform, clock, "!hcas", "!platform", "!clock"]
    default: [all]
  sysfs:
    description:
      - Where sysfs is mounted. With several folders their devices are shown as one list.
    type: list
    elements: path
    default:
      - /sys
  netdevs:
    description:
      - Network interfaces to show whatever carries them, such as a plain network card that is moved into a pod.
    type: list
    elements: str
    default: []
  moment:
    description:
      - With O(facts_dir), when in a run the node is looked at. The facts are of a kind of their own then, such as C(hcas_<moment>).
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.facts
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: See what the node has
  linerate.rdma.node_info:
  register: node

- name: See its HCAs alone
  linerate.rdma.node_info:
    gather_subset: [hcas]
"""

RETURN = r"""
hcas:
  description: The HCAs of the node, and what could not be read.
  returned: with the subset V(hcas)
  type: dict
  contains:
    hcas:
      description: RDMA devices first, in natural order, then functions without one, by PCI address.
      returned: success
      type: list
      elements: dict
      contains:
        name:
          description: The RDMA device, else the network interface, else the PCI address.
          returned: success
          type: str
          sample: mlx5_0
        rdma_device:
          description: The RDMA device. V(null) where there is none.
          returned: success
          type: str
          sample: mlx5_0
        netdevs:
          description:
            - Network interfaces of the function, with the RDMA device's port that each is on and the bond that it is a part of.
            - Of IPoIB, queue pair, subnet prefix and port GUID come from the 20 bytes of the hardware address.
            - Of Ethernet, the speed of the link, the fastest that the port supports and the fastest that its partner offers, in Gb/s.
          returned: success
          type: list
          elements: dict
          sample:
            - name: ibp60s0
              hardware_address: 00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:e0:00:01
              mtu: 4092
              state: up
              port_guid: "0xb83fd20300e00001"
              subnet_prefix: "0xfe80000000000000"
              queue_pair: 4169
              port: 1
              bond:
              speed_gbps:
              supported_gbps:
              partner_gbps:
        pci:
          description:
            - The PCI function with its driver, NUMA node and PCIe link, as it runs, and what card and slot can do.
            - Speeds are in GT/s, widths in lanes, the payload of a packet in bytes.
            - V(null) for a device without one.
          returned: success
          type: dict
          sample:
            address: "0000:3c:00.0"
            vendor: 15b3
            device: "1021"
            device_class: "0207"
            driver: mlx5_core
            numa_node: 0
            link:
              current_speed: 32.0
              current_width: 16
              max_speed: 32.0
              max_width: 16
              slot_speed: 32.0
              slot_width: 16
              payload: 256
              payload_could: 512
        node_guid:
          description: GUID of the device.
          returned: success
          type: str
          sample: "0xb83fd20300e00000"
        node_description:
          description: Free text that somebody wrote. Not to be trusted.
          returned: success
          type: str
          sample: worker-1 mlx5_0
        firmware:
          description: Firmware version.
          returned: success
          type: str
          sample: 28.41.1000
        board:
          description: Board id (PSID).
          returned: success
          type: str
          sample: MT_0000000838
        hca_type:
          description: Type as the driver names it.
          returned: success
          type: str
          sample: MT4129
        ports:
          description:
            - Ports of the RDMA device. Rates in Gb/s; V(null) for a LID or SM LID means that the port has none.
            - The MTU, in bytes, is the largest of the port's network interfaces. sysfs has no file for the port's own.
          returned: success
          type: list
          elements: dict
          sample:
            - number: 1
              state: ACTIVE
              physical_state: LinkUp
              link_layer: InfiniBand
              rate_gbps: 400.0
              width: 4
              speed: NDR
              lid: 4
              sm_lid: 1
              guid: "0xb83fd20300e00001"
              pkeys: ["0xffff"]
              mtu: 4092
        sriov:
          description: Most and present number of VFs. V(null) where SR-IOV is off in firmware or BIOS, or the function has no such capability.
          returned: success
          type: dict
          sample:
            total: 16
            current: 8
        physical_function:
          description: PCI address of the physical function, for a VF.
          returned: success
          type: str
          sample: "0000:3c:00.0"
        vf_index:
          description: Number of the VF on its physical function.
          returned: success
          type: int
          sample: 0
        administration:
          description:
            - What the physical function has set for a VF, by C(ip link) and, with NVIDIA's own driver packages, by sysfs. V(null) where the driver
              tells nothing.
            - The link policy is C(Follow), C(Up) or C(Down). Rates are in Mb/s, and 0 is no limit. VLAN 0 is none.
          returned: success
          type: dict
          sample:
            node_guid: "0x0200000000000001"
            port_guid: "0x0200000000000001"
            link_policy: Follow
            vlan: 0
            vlan_qos: 0
            trust: false
            spoof_check: true
            min_tx_rate: 0
            max_tx_rate: 0
        sriov_absence:
          description:
            - Why a physical function has no SR-IOV files, from its configuration space. V(null) where it has them, or where the space can't be read.
            - C(hidden) means that a bridge or the BIOS hides all extended capabilities.
            - C(off) means that the function offers no SR-IOV capability, or one with 0 VFs.
            - C(unused) means that it offers VFs and the kernel does not take them up.
          returned: success
          type: str
          sample: "off"
        held:
          description:
            - What of the function a pod has in its own network namespace, where the node does not show it. V(null) where the node has all of it.
            - C(netdevs) by their names there, C(names) that they had on the node where that is known, and, with RDMA in exclusive mode, C(rdma_device),
              C(node_guid) and C(ports).
          returned: success
          type: dict
        unread:
          description: Files that are there but could not be read or understood. Their values are V(null) and unknown.
          returned: success
          type: list
          elements: str
          sample: [ports/1/state]
    errors:
      description: What could not be read, and why.
      returned: success
      type: list
      elements: str
      sample: ["/sys/class/infiniband/mlx5_0/ports/1/state: Invalid argument"]
platform:
  description: The evidence. V(null) means that it could not be read, an empty list that it was read and there is none.
  returned: with the subset V(platform)
  type: dict
  contains:
    kernel:
      description: Release of the kernel.
      returned: success
      type: str
      sample: 6.12.95+deb12-amd64
    machine:
      description: Machine type.
      returned: success
      type: str
      sample: x86_64
    kernel_arguments:
      description: Those arguments of the kernel's command line that concern IOMMU and PCI.
      returned: success
      type: list
      elements: str
      sample: [intel_iommu=on, iommu=pt]
    iommu_devices:
      description: IOMMUs that translate.
      returned: success
      type: list
      elements: str
      sample: [dmar0]
    iommu_groups:
      description: Number of IOMMU groups.
      returned: success
      type: int
      sample: 42
    acpi_tables:
      description: Those of the tables DMAR (Intel), IVRS (AMD) and IORT (Arm) that the BIOS hands over.
      returned: success
      type: list
      elements: str
      sample: [DMAR]
    functions:
      description: Network functions, those of RV(hcas.hcas).
      returned: success
      type: list
      elements: dict
      sample:
        - address: "0000:3c:00.0"
          driver: mlx5_core
          sriov_total: 16
          sriov_current: 8
          iommu_group: 31
          physical_function: null
          unread: []
    gpu:
      description: NVIDIA's driver, as far as it decides how NICs reach the memory of GPUs; V(null) where it is not loaded.
      returned: success
      type: dict
      sample:
        version: 570.86.15
        open: true
        peermem: false
        peer_clients: []
        ofed: null
    errors:
      description: What could not be read, and why.
      returned: success
      type: list
      elements: str
      sample: []
counts:
  description: With O(facts_dir), how much each fact holds. The facts themselves are in the folder then.
  returned: with O(facts_dir)
  type: dict
  sample: {hcas: 72, platform: 72}
clock:
  description: The clock of the node.
  returned: with the subset V(clock)
  type: dict
  contains:
    seconds:
      description: Since 1970-01-01 UTC, by the clock of the node.
      returned: success
      type: float
      sample: 1767323045.25
    synchronised:
      description: Whether the kernel's clock is kept by a time service; V(null) where the kernel did not say.
      returned: success
      type: bool
    error_seconds:
      description: The most that the kernel holds its clock to be off; counts only where it is synchronised.
      returned: success
      type: float
      sample: 0.018
    asked:
      description: The time of the controller just before the node was asked.
      returned: success
      type: float
      sample: 1767323044.75
    answered:
      description: The time of the controller just after the answer.
      returned: success
      type: float
      sample: 1767323045.5
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils import _ansible
from ansible_collections.linerate.rdma.plugins.module_utils._observe.look import NODE as SUBSETS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.look import Look


def chosen(words: typing.Sequence[str]) -> typing.List[str]:
    """Subsets that are asked for, as gather_subset of ansible.builtin.setup reads its words."""
    taken = [word for word in words if not word.startswith("!")]
    return [name for name in SUBSETS if (not taken or "all" in taken or name in taken) and f"!{name}" not in words]


def read(params: typing.Dict[str, typing.Any]) -> typing.Dict[str, typing.Any]:
    look = Look(params["sysfs"], params["netdevs"])
    return {kind: look.at(kind) for kind in chosen(params["gather_subset"])}


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
            **_ansible.OBSERVER_SPEC,
            "moment": {"type": "str"},
        },
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
