// SPDX-License-Identifier: GPL-2.0
/* Emulated InfiniBand HCAs with SR-IOV: the parameters, and the driver that makes netdev and RDMA device of each function. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>

#include "hca.h"
#include "siw.h"

static char *hcas[HCA_MAX] = { "3c" };
static int hca_count = 1;
module_param_array(hcas, charp, &hca_count, 0444);
MODULE_PARM_DESC(hcas, "bus of each HCA, in hexadecimal; three buses before it and the next are its root port's, switch's and GPU's (default 3c)");

static int nodes[HCA_MAX];
module_param_array(nodes, int, NULL, 0444);
MODULE_PARM_DESC(nodes, "NUMA node of each HCA (default 0)");

static uint fabrics[HCA_MAX];
module_param_array(fabrics, uint, NULL, 0444);
MODULE_PARM_DESC(fabrics, "number of the fabric of each HCA: no frame goes from one to the other (default 0)");

static char *guids[HCA_MAX];
module_param_array(guids, charp, NULL, 0444);
MODULE_PARM_DESC(guids, "GUID of each HCA, in hexadecimal (default one by the number of the guest)");

static char *port_guids[HCA_MAX];
module_param_array(port_guids, charp, NULL, 0444);
MODULE_PARM_DESC(port_guids, "GUID of the port of each HCA (default that of the HCA)");

static int vfs[HCA_MAX] = { [0 ... HCA_MAX - 1] = -1 };
module_param_array(vfs, int, NULL, 0444);
MODULE_PARM_DESC(vfs, "VFs that the firmware of each HCA has, 0 to total_vfs (default total_vfs)");

static bool sriov[HCA_MAX] = { [0 ... HCA_MAX - 1] = true };
module_param_array(sriov, bool, NULL, 0444);
MODULE_PARM_DESC(sriov, "whether the firmware of each HCA has SR-IOV switched on (default 1)");

static bool ethernet[HCA_MAX];
module_param_array(ethernet, bool, NULL, 0444);
MODULE_PARM_DESC(ethernet, "whether the firmware of each HCA has its port on Ethernet (default 0)");

unsigned int hca_total_vfs = 8;
module_param_named(total_vfs, hca_total_vfs, uint, 0444);
MODULE_PARM_DESC(total_vfs, "VFs that the firmware of an HCA can be told to have, 0 to 127 (default 8)");

unsigned int hca_mtu = HCA_MTU;
module_param_named(mtu, hca_mtu, uint, 0444);
MODULE_PARM_DESC(mtu, "of the netdevs, 256 to 4092 (default 4092); a frame on the wire has 42 bytes more, with its Ethernet header");

unsigned int hca_host = 1;
module_param_named(host, hca_host, uint, 0444);
MODULE_PARM_DESC(host, "number of this guest, for GUIDs and LIDs: another one for each guest on a wire, 0 to 127 (default 1)");

module_param_cb(wire, &hca_wire_param, NULL, 0644);
MODULE_PARM_DESC(wire, "Ethernet netdev on which the fabrics go on to other guests (default none)");

module_param_cb(port, &hca_port_param, NULL, 0200);
MODULE_PARM_DESC(port, "the bus of an HCA, and what its port is like from now on: 3c state=1 phys_state=2 symbol_error=12");

static struct hca *hca_list[HCA_MAX];

static int bus_of(const struct hca *hca)
{
	return hca->buses.start + HCA_BUSES_BEFORE;
}

struct hca *hca_on_bus(u8 bus)
{
	int i;

	for (i = 0; i < HCA_MAX; i++)
		if (hca_list[i] && bus_of(hca_list[i]) == bus)
			return hca_list[i];
	return NULL;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct hca *hca = hca_of(pdev);
	struct hca_function *function;
	int error;

	/* a real one, by accident */
	if (!hca)
		return -ENODEV;
	function = kzalloc(sizeof(*function), GFP_KERNEL);
	if (!function)
		return -ENOMEM;
	function->hca = hca;
	function->pdev = pdev;
	function->vf = pdev->is_virtfn ? pdev->devfn - 1 : -1;
	function->node_guid = pdev->is_virtfn ? hca->admin[function->vf].node_guid : hca->guid;
	function->port_guid = pdev->is_virtfn ? hca->admin[function->vf].port_guid : hca->port_guid;
	function->ethernet = hca->ethernet;
	/* 1 is the subnet manager's. VFs for which there is no LID have that of their HCA, as vports may */
	function->lid = hca_host * 256 + hca->number * 32 + 2 + (function->vf + 1 < HCA_LIDS ? function->vf + 1 : 0);
	pci_set_drvdata(pdev, function);

	error = pci_enable_device(pdev);
	if (error)
		goto free_function;
	pci_set_master(pdev);
	error = -ENOMEM;
	function->netdev = hca_netdev_create(function);
	if (!function->netdev)
		goto disable_device;
	error = register_netdev(function->netdev);
	if (error)
		goto free_netdev;
	/* a port of iWARP, which siw's is, is asked about by way of a registered netdev */
	error = hca_verbs_create(function);
	if (error)
		goto unregister_netdev;
	error = hca_devlink_create(function);
	if (error)
		goto remove_verbs;
	hca_fabric_join(function);
	return 0;

remove_verbs:
	hca_verbs_remove(function);
unregister_netdev:
	unregister_netdev(function->netdev);
free_netdev:
	free_netdev(function->netdev);
disable_device:
	pci_disable_device(pdev);
free_function:
	kfree(function);
	return error;
}

static void remove(struct pci_dev *pdev)
{
	struct hca_function *function = pci_get_drvdata(pdev);

	if (!pdev->is_virtfn)
		pci_disable_sriov(pdev);
	hca_fabric_leave(function);
	hca_devlink_remove(function);
	/* connections hold the netdev: they go first */
	hca_verbs_remove(function);
	unregister_netdev(function->netdev);
	free_netdev(function->netdev);
	pci_disable_device(pdev);
	kfree(function);
}

static int sriov_configure(struct pci_dev *pdev, int count)
{
	int error;

	if (!count) {
		pci_disable_sriov(pdev);
		return 0;
	}
	error = pci_enable_sriov(pdev, count);
	return error ?: count;
}

static const struct pci_device_id functions[] = {
	{ PCI_DEVICE(HCA_VENDOR, HCA_PF_DEVICE) },
	{ PCI_DEVICE(HCA_VENDOR, HCA_VF_DEVICE) },
	{ }
};

static struct pci_driver driver = {
	.name = "mlx5_core",
	.id_table = functions,
	.probe = probe,
	.remove = remove,
	.sriov_configure = sriov_configure,
};

static void remove_buses(void)
{
	int i;

	pci_lock_rescan_remove();
	for (i = 0; i < HCA_MAX; i++)
		if (hca_list[i])
			hca_bus_remove(hca_list[i]);
	pci_unlock_rescan_remove();
}

static bool is_free(u8 bus)
{
	int i;

	for (i = 0; i < HCA_MAX; i++)
		if (hca_list[i] && abs(bus_of(hca_list[i]) - bus) <= HCA_BUSES_BEFORE + HCA_BUSES_AFTER)
			return false;
	return bus > HCA_BUSES_BEFORE && bus <= U8_MAX - HCA_BUSES_AFTER;
}

static int add_buses(void)
{
	int i, error = 0;

	pci_lock_rescan_remove();
	for (i = 0; i < hca_count && !error; i++) {
		struct hca *hca;
		struct hca_firmware firmware = {
			.vfs = vfs[i] < 0 ? hca_total_vfs : vfs[i],
			.sriov = sriov[i],
			.ethernet = ethernet[i],
		};
		u64 guid = 0, port_guid = 0;
		u8 bus;

		error = kstrtou8(hcas[i], 16, &bus);
		if (!error && guids[i])
			error = kstrtou64(guids[i], 16, &guid);
		if (!error && port_guids[i])
			error = kstrtou64(port_guids[i], 16, &port_guid);
		if (error || !is_free(bus)) {
			pr_err("%s is no number of a bus, is too near to another one, or its GUID is none\n", hcas[i]);
			error = -EINVAL;
			break;
		}
		if (firmware.vfs > hca_total_vfs) {
			pr_err("the firmware of %s cannot have more VFs than total_vfs\n", hcas[i]);
			error = -EINVAL;
			break;
		}
		hca = hca_bus_add(i, bus, nodes[i], fabrics[i], guid, port_guid, &firmware);
		if (IS_ERR(hca))
			error = PTR_ERR(hca);
		else
			hca_list[i] = hca;
	}
	pci_unlock_rescan_remove();
	if (error)
		remove_buses();
	return error;
}

static int __init start(void)
{
	int error;

	if (hca_total_vfs > HCA_MAX_VFS || hca_host > HCA_MAX_HOST || hca_mtu < 256 || hca_mtu > HCA_MTU) {
		pr_err("total_vfs, host or mtu is out of range\n");
		return -EINVAL;
	}
	error = siw_init();
	if (error)
		return error;
	error = hca_wire_init();
	if (error)
		goto exit_siw;
	error = hca_bus_init();
	if (error)
		goto exit_wire;
	error = add_buses();
	if (error)
		goto exit_bus;
	error = pci_register_driver(&driver);
	if (!error)
		return 0;
	remove_buses();
exit_bus:
	hca_bus_exit();
exit_wire:
	hca_wire_exit();
exit_siw:
	siw_exit();
	return error;
}

static void __exit stop(void)
{
	pci_unregister_driver(&driver);
	remove_buses();
	hca_bus_exit();
	hca_wire_exit();
	siw_exit();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Emulated InfiniBand HCAs with SR-IOV");
MODULE_LICENSE("GPL");
