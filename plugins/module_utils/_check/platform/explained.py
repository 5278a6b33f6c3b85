# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage platform, for the pages to which the report links. Check ids:
``platform.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "platform.bios": Explanation(
        means=(
            "The BIOS leaves no room for virtual functions, or is not as `rdma_cluster.bios` asks. The kernel then"
            " makes none, whatever the firmware says."
        ),
        measured=(
            "Memory and bus numbers that the node has placed for VFs (sysfs, PCI configuration space); where a BMC is"
            " named, its BIOS attributes by Redfish."
        ),
        causes=(
            "SR-IOV is off in the BIOS (SriovGlobalEnable and the like).",
            "Above 4G decoding is off, or PCI got too little memory (MMIO).",
            "ARI is off, and the port above the card leads to too few buses.",
            "The BMC gives no answer (wrong password, expired certificate), so what only it knows is unknown.",
            "A change waits for a reset, or for a job of the BMC.",
        ),
        look=(
            "lspci -vvv -s ADDRESS",
            "dmesg",
            "racadm get BIOS.IntegratedDevices.SriovGlobalEnable",
            "racadm jobqueue view",
        ),
        remedy=(
            "Set what is named by the module `linerate.rdma.bios` or on the setup screen, then drain and reset the"
            " node. `rdma_cluster.bios` with `platform_settle: true` does all of it, node after node."
        ),
    ),
    "platform.bmc_identity": Explanation(
        means=(
            "The BMC that the inventory names for a node is that of another machine, or nobody can tell whose it is."
            " Its BIOS then proves nothing about the node, and `platform_settle` neither writes to it nor resets by it."
        ),
        measured=(
            "`ComputerSystem.UUID` and `SerialNumber` by Redfish (of Dell also `SKU`, the service tag), against"
            " `product_uuid`, `product_serial` and `board_serial` of the node's DMI. The same UUID in the other order"
            " of bytes is the same machine. A UUID of zeros or of F alone, `Not Specified`, `To be filled by O.E.M.`"
            " and the like are no identity. A roll compares with `systemUUID` of the Node as well."
        ),
        causes=(
            (
                "The addresses of two BMCs are exchanged in the inventory, or one address in group_vars is that of all"
                " nodes."
            ),
            "A board was replaced, or a BMC has got the address of another one by DHCP.",
            "The node was not looked at by root, who alone may read its DMI.",
            "The maker of the board or of the BMC has set no UUID and no serial number.",
            "Two nodes tell one UUID, as cloned machines and wrongly repaired boards do.",
        ),
        look=(
            "cat /sys/class/dmi/id/product_uuid /sys/class/dmi/id/product_serial",
            "kubectl get node NODE -o yaml",
            "ansible-inventory --host NODE",
        ),
        remedy=(
            "Correct `rdma_bmc_address` (and `rdma_bmc_system`) of the node. If nothing can be compared and you have"
            " checked by hand whose BMC it is, set `rdma_bmc_identity: asserted` for this node; it does not cover a BMC"
            " that is seen to be another's."
        ),
    ),
    "platform.driver": Explanation(
        means="An HCA that shall make virtual functions has no driver of the node's own.",
        measured="The link `driver` of the physical function in sysfs.",
        causes=(
            "The module is not loaded, or refused the function.",
            "The function is bound to vfio-pci.",
        ),
        look=(
            "lspci -nnk -d 15b3:",
            "dmesg",
            "driverctl list-overrides",
        ),
        remedy="Load the driver (`modprobe mlx5_core`), or take the function back: `driverctl unset-override ADDRESS`.",
    ),
    "platform.firmware": Explanation(
        means=(
            "The firmware of an HCA is not what the fabric needs, or not that of its like, or changes with the next"
            " reset."
        ),
        measured=(
            "PSID and version from sysfs and devlink; settings as they are in force and after the next reset from"
            " mstconfig, mlxconfig or NVIDIA's NIC configuration operator."
        ),
        causes=(
            "`SRIOV_EN` is 0, or `NUM_OF_VFS` below the fabric's `virtual_functions`.",
            "It is set and waits for a reset (reset pending).",
            "One node was flashed or set by hand, and the others were not.",
            "The link type is that of the other network.",
            "A setting is not what `rdma_cluster.firmware` asks for.",
            (
                "The tool is missing or has no right, so what waits for a reset is unknown, and so is what"
                " `rdma_cluster.firmware` asks for."
            ),
        ),
        look=(
            "mstconfig -d ADDRESS -e query",
            "devlink dev info",
            "mstflint -d ADDRESS query",
            "kubectl describe nicdevices.configuration.net.nvidia.com -A",
        ),
        remedy=(
            "Set it (`mstconfig -d ADDRESS -y set NUM_OF_VFS=8`) and power-cycle, or have `platform_settle: true` do"
            " both. Where NVIDIA's operator decides, set it in its NicConfigurationTemplate."
        ),
    ),
    "platform.iommu": Explanation(
        means=(
            "No IOMMU translates on the node. VFs of network interfaces work without; those that a pod drives itself"
            " (vfio-pci) do not. It only warns."
        ),
        measured="ACPI tables (DMAR, IVRS, IORT), /sys/class/iommu, IOMMU groups and kernel arguments.",
        causes=(
            "VT-d (Intel) or IOMMU (AMD) is off in the BIOS.",
            "The kernel does not use it: `intel_iommu=on` is missing.",
        ),
        look=(
            "cat /proc/cmdline",
            "ls /sys/class/iommu",
            "dmesg",
        ),
        remedy=(
            "Switch it on in the BIOS, or boot with `intel_iommu=on iommu=pt` (Intel) or `iommu=pt` (AMD):"
            " `rdma_cluster.host.kernel_arguments`."
        ),
    ),
    "platform.node": Explanation(
        means="A node did not say what it is made of, or some of its values could not be read.",
        measured="Whether `node_info` answered, and which files it could not read.",
        causes=(
            "ssh, sudo or the observer does not work.",
            "The task did not run as root.",
            "A driver hides the file.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "ls -l /sys/bus/pci/devices",
        ),
        remedy="Make the node answer as root. Read by hand what is named as unread.",
    ),
    "platform.returned": Explanation(
        means=(
            "A node was reset, and lacks since then an HCA, an RDMA device, a link or an interface that it had before."
            " It must not go back to work like that."
        ),
        measured="HCAs, ports, rates and interfaces of the node before its reset and five minutes after it is back.",
        causes=(
            "A link takes longer, or trained down after the reset.",
            "The card was not found at boot: PCIe training, power, a riser.",
            "The driver refused it after a change of firmware.",
            "The node did not answer, so what it has is unknown.",
            "What it had before its reset was not kept, so that nothing can be compared (unknown).",
        ),
        look=(
            "lspci -nn -d 15b3:",
            "dmesg",
            "ibstat",
        ),
        remedy=(
            "See why the HCA, its driver or its link did not come. Then run from stage discover on: `-e"
            " rdma_from=discover`."
        ),
    ),
    "platform.roll": Explanation(
        means=(
            "A node that was to be brought to what is wanted is not there yet: the plan was refused, or a node failed,"
            " was left out or did not take a setting."
        ),
        measured="The plan of the roll, and what became of each node: cordoned, drained, set, reset, looked at.",
        causes=(
            (
                "The BMC refuses: a job holds the BIOS, it is in lockdown, or somebody else changes settings at the"
                " same time (412)."
            ),
            "A PodDisruptionBudget holds a pod, so the node can't be drained.",
            "A setting did not take at its reset.",
            "`rdma_cluster.disruption` does not allow the reboot.",
            "The node did not come back.",
        ),
        look=(
            "racadm jobqueue view",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
            "kubectl get poddisruptionbudgets -A",
            "kubectl describe node NODE",
        ),
        remedy="Do what the finding says of that node, and run the stage again: it goes on where it ended.",
    ),
    "platform.scope": Explanation(
        means=(
            "Which HCAs belong to the fabric is not known, so nobody can say whether they can make virtual functions."
        ),
        measured="The members of the fabric: its subnet manager, or the selectors of the intent.",
        causes=(
            "On InfiniBand no port sees the fabric's subnet manager.",
            "`select` fits nothing.",
        ),
        look=(
            "sminfo",
            "ibstat",
        ),
        remedy="Correct what `fabric.membership` or `discover.hcas` names, and run again.",
    ),
    "platform.sriov": Explanation(
        means=(
            "An HCA can't make as many virtual functions as the fabric asks for. The finding names the layer: BIOS,"
            " firmware, kernel."
        ),
        measured="`sriov_totalvfs` of the physical function against `virtual_functions`, and its SR-IOV capability.",
        causes=(
            "`SRIOV_EN` is 0 or `NUM_OF_VFS` too low in the firmware.",
            "The setting is stored and waits for a reset.",
            "SR-IOV is off in the BIOS.",
            "The driver sets a lower limit.",
            (
                "The kernel is locked down, as with secure boot: the SR-IOV network operator then refuses policies on"
                " NVIDIA NICs (warn)."
            ),
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/device/sriov_totalvfs",
            "cat /sys/kernel/security/lockdown",
            "mstconfig -d ADDRESS -e query SRIOV_EN NUM_OF_VFS",
            "lspci -vvv -s ADDRESS",
        ),
        remedy=(
            "Raise `NUM_OF_VFS` in the firmware and reset the node (`platform_settle: true` does both), or ask for"
            " fewer in `virtual_functions`."
        ),
    ),
}
