# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage platform, for the pages to which the report links. Check ids:
``platform.*``.
"""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "platform.bios": Explanation(
        means=(
            "The BIOS leaves no room for virtual functions, or its settings differ from `rdma_cluster.bios`. Without"
            " room, the kernel creates no VFs, even if the firmware allows them."
        ),
        measured=(
            "Memory and bus numbers that the node has assigned to VFs (sysfs, PCI configuration space). If the"
            " inventory names a BMC, also the BIOS attributes that the BMC reports through Redfish."
        ),
        causes=(
            "SR-IOV is disabled in the BIOS (SriovGlobalEnable or a similar attribute).",
            "Above 4G decoding is disabled, or the BIOS gives PCI too little memory (MMIO).",
            "ARI is disabled, and the port above the card leads to too few buses.",
            (
                "The BMC does not respond (wrong password, expired certificate), so the settings that only the BMC"
                " reports are unknown."
            ),
            "A changed setting is waiting for a reset, or for a job of the BMC.",
        ),
        look=(
            "lspci -vvv -s ADDRESS",
            "dmesg",
            "racadm get BIOS.IntegratedDevices.SriovGlobalEnable",
            "racadm jobqueue view",
        ),
        remedy=(
            "Set the named setting with the module `linerate.rdma.bios` or on the BIOS setup screen, then drain and"
            " reset the node. `rdma_cluster.bios` with `platform_settle: true` does all of this, one node after"
            " another. Then run stage `platform` again."
        ),
    ),
    "platform.bmc_identity": Explanation(
        means=(
            "The BMC that the inventory names for a node belongs to a different machine, or its owner could not be"
            " verified. This collection then ignores the BIOS settings that the BMC reports, and `platform_settle`"
            " neither changes settings nor resets a node through it."
        ),
        measured=(
            "`ComputerSystem.UUID` and `SerialNumber` from Redfish (on Dell also `SKU`, the service tag), compared with"
            " `product_uuid`, `product_serial` and `board_serial` from the DMI data of the node. The same UUID in the"
            " other byte order is the same machine. A UUID of only zeros or only F, `Not Specified`, `To be filled by"
            " O.E.M.` and similar values do not identify a machine. A roll also compares with `systemUUID` of the Node"
            " object."
        ),
        causes=(
            (
                "The addresses of two BMCs are exchanged in the inventory, or group_vars sets the same address for all"
                " nodes."
            ),
            "A board was replaced, or a BMC got the address of another BMC by DHCP.",
            "The data collection did not run as root, and only root can read the DMI data of the node.",
            "The vendor of the board or of the BMC has set no UUID and no serial number.",
            "Two nodes report the same UUID, which happens with cloned machines and wrongly repaired boards.",
        ),
        look=(
            "cat /sys/class/dmi/id/product_uuid /sys/class/dmi/id/product_serial",
            "kubectl get node NODE -o yaml",
            "ansible-inventory --host NODE",
        ),
        remedy=(
            "Correct `rdma_bmc_address` (and `rdma_bmc_system`) of the node. If no identity can be compared, and you"
            " have checked by hand that the BMC belongs to the node, set `rdma_bmc_identity: asserted` for this node."
            " This setting has no effect on a BMC that reports the identity of a different machine. Then run stage"
            " `platform` again."
        ),
    ),
    "platform.driver": Explanation(
        means="No kernel driver of the node is bound to an HCA that must create virtual functions.",
        measured="The link `driver` of the physical function in sysfs.",
        causes=(
            "The kernel module is not loaded, or it rejected the function.",
            "The function is bound to vfio-pci.",
        ),
        look=(
            "lspci -nnk -d 15b3:",
            "dmesg",
            "driverctl list-overrides",
        ),
        remedy=(
            "Load the driver of the vendor (`modprobe mlx5_core`, `bnxt_en`, `ice` or `ionic`), or return the function"
            " to the node: `driverctl unset-override ADDRESS`. Then run stage `platform` again."
        ),
    ),
    "platform.firmware": Explanation(
        means=(
            "The firmware of an HCA does not meet the requirements of the fabric, differs from other HCAs of its model,"
            " or changes at the next reset."
        ),
        measured=(
            "PSID and firmware version from sysfs and devlink. Active settings, and the settings after the next reset,"
            " from mstconfig, mlxconfig or NVIDIA's NIC configuration operator."
        ),
        causes=(
            "`SRIOV_EN` is 0, or `NUM_OF_VFS` is lower than `virtual_functions` of the fabric.",
            "The setting is stored and takes effect at the next reset (reset pending).",
            "One node was updated or configured by hand, but the other nodes were not.",
            "The link type is that of the other network (InfiniBand or Ethernet).",
            "A setting differs from `rdma_cluster.firmware`.",
            (
                "The firmware tool is missing or has insufficient rights. The settings after the next reset, and the"
                " settings that `rdma_cluster.firmware` requires, are then unknown."
            ),
            (
                "A setting of `rdma_cluster.firmware` is stored, and the firmware does not report the value in force"
                " (`N/A` in the column Current, or no such column)."
            ),
        ),
        look=(
            "mstconfig -d ADDRESS -e query",
            "devlink dev info",
            "mstflint -d ADDRESS query",
            "kubectl describe nicdevices.configuration.net.nvidia.com -A",
        ),
        remedy=(
            "Change the setting (`mstconfig -d ADDRESS -y set NUM_OF_VFS=8`), then drain and power-cycle the node,"
            " or set `platform_settle: true`, which does both. If NVIDIA's operator manages the NIC, change the"
            " setting in its NicConfigurationTemplate. Then run stage `platform` again."
        ),
    ),
    "platform.iommu": Explanation(
        means=(
            "The IOMMU of the node is not active. VFs for network interfaces work without it. VFs that a pod drives"
            " itself (vfio-pci) do not. This finding is only a warning."
        ),
        measured="ACPI tables (DMAR, IVRS, IORT), /sys/class/iommu, IOMMU groups and kernel arguments.",
        causes=(
            "VT-d (Intel) or IOMMU (AMD) is disabled in the BIOS.",
            "The kernel does not use the IOMMU: `intel_iommu=on` is missing.",
        ),
        look=(
            "cat /proc/cmdline",
            "ls /sys/class/iommu",
            "dmesg",
        ),
        remedy=(
            "Enable the IOMMU in the BIOS, or boot with `intel_iommu=on iommu=pt` (Intel) or `iommu=pt` (AMD): set"
            " `rdma_cluster.host.kernel_arguments`. Then run stage `platform` again."
        ),
    ),
    "platform.node": Explanation(
        means="The data collection failed on a node, or some values of the node could not be read.",
        measured="Whether the module `node_info` returned data, and the files that it could not read.",
        causes=(
            "The connection by ssh, sudo or the pod that inspects the node does not work.",
            "The task did not run as root.",
            "A driver does not provide the file.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "ls -l /sys/bus/pci/devices",
        ),
        remedy=(
            "Make the node reachable as root, and read the listed files by hand to see the errors. Then run stage"
            " `platform` again."
        ),
    ),
    "platform.returned": Explanation(
        means=(
            "A node was reset, and an HCA, an RDMA device, a link or an interface that it had before the reset is"
            " missing. Do not run jobs on the node in this state."
        ),
        measured="HCAs, ports, rates and interfaces of the node before its reset, and five minutes after its return.",
        causes=(
            "A link needs more time, or it trained to a lower speed or width after the reset.",
            "The node did not detect the card at boot because of PCIe training, power or a riser.",
            "The driver rejected the card after a firmware change.",
            "The node did not respond, so its HCAs and links are unknown.",
            "The data from before the reset was not stored, so no comparison is possible (unknown).",
        ),
        look=(
            "lspci -nn -d 15b3:",
            "dmesg",
            "ibstat",
        ),
        remedy=(
            "Find the reason why the HCA, its driver or its link is missing, and correct it. Then run the stages from"
            " discover on: `-e rdma_from=discover`."
        ),
    ),
    "platform.roll": Explanation(
        means=(
            "A roll did not bring a node to the desired settings: the plan was refused, or the node failed, was left"
            " out or did not apply a setting."
        ),
        measured="The plan of the roll, and the steps completed on each node: cordoned, drained, set, reset, checked.",
        causes=(
            (
                "The BMC rejects the change: a job blocks the BIOS, the BMC is in lockdown mode, or another client"
                " changes settings at the same time (412)."
            ),
            "A PodDisruptionBudget protects a pod, so the node cannot be drained.",
            "A setting did not take effect at the reset.",
            "`rdma_cluster.disruption` does not allow the reboot.",
            "The node did not return after the reset.",
        ),
        look=(
            "racadm jobqueue view",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
            "kubectl get poddisruptionbudgets -A",
            "kubectl describe node NODE",
        ),
        remedy=(
            "Follow the remedy of the finding for the node, then run stage `platform` again. The roll continues at the"
            " point where it stopped."
        ),
    ),
    "platform.scope": Explanation(
        means=(
            "The HCAs of the fabric could not be determined, so it is unknown whether they can create virtual"
            " functions."
        ),
        measured="The members of the fabric, found by its subnet manager or by the selectors of the intent.",
        causes=(
            "On InfiniBand, no port sees the subnet manager of the fabric.",
            "`select` matches no HCA.",
        ),
        look=(
            "sminfo",
            "ibstat",
        ),
        remedy=(
            "Correct the errors in the findings `fabric.membership` and `discover.hcas`, then run stage `platform`"
            " again."
        ),
    ),
    "platform.sriov": Explanation(
        means=(
            "An HCA cannot create as many virtual functions as the fabric requires. The finding names the cause: BIOS,"
            " firmware or kernel."
        ),
        measured=(
            "`sriov_totalvfs` of the physical function, compared with `virtual_functions`, and the SR-IOV capability of"
            " the function."
        ),
        causes=(
            "`SRIOV_EN` is 0 or `NUM_OF_VFS` is too low in the firmware.",
            "The setting is stored and takes effect at the next reset.",
            "SR-IOV is disabled in the BIOS.",
            "The driver sets a lower limit.",
            (
                "The kernel is locked down, for example by secure boot. The SR-IOV network operator then rejects"
                " policies for NVIDIA NICs (warning)."
            ),
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/device/sriov_totalvfs",
            "cat /sys/kernel/security/lockdown",
            "mstconfig -d ADDRESS -e query SRIOV_EN NUM_OF_VFS",
            "lspci -vvv -s ADDRESS",
        ),
        remedy=(
            "Raise `NUM_OF_VFS` in the firmware, then drain and reset the node (`platform_settle: true` does both),"
            " or reduce `virtual_functions`. Then run stage `platform` again."
        ),
    ),
}
