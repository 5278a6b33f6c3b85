// SPDX-License-Identifier: GPL-2.0
/* The root bus of each HCA; an IOMMU group and a modalias for each function on it. */
#include <linux/if_link.h>
#include <linux/iommu.h>
#include <linux/slab.h>

#include "hca.h"

struct hca *hca_of(struct pci_dev *pdev)
{
	return pdev->bus->ops == &hca_config_ops ? container_of(pdev->bus->sysdata, struct hca, sysdata) : NULL;
}

/*
 * Firmware tells an IOMMU of the buses that it knows, which these are not, so the kernel gives their functions no group.
 * As a real root port with ACS would have it: each function has one of its own, where the guest has an IOMMU at all.
 */
static void join_group(struct pci_dev *pdev)
{
	struct iommu_group *group = iommu_group_get(&pdev->dev);

	if (!group && iommu_present(&pci_bus_type)) {
		group = iommu_group_alloc();
		if (IS_ERR(group))
			return;
		if (iommu_group_add_device(group, &pdev->dev))
			pci_warn(pdev, "no IOMMU group\n");
	}
	/* the device holds the group */
	iommu_group_put(group);
}

static void leave_group(struct pci_dev *pdev)
{
	struct iommu_group *group = iommu_group_get(&pdev->dev);

	if (!group)
		return;
	iommu_group_remove_device(&pdev->dev);
	iommu_group_put(group);
}

/*
 * Programs that are linked with libmlx5 (perftest, UCX) give it each RDMA device whose PCI device it knows by its modalias, before they load libsiw,
 * which these devices are for. It does not know small letters; whoever takes the numbers out of the file does.
 */
static ssize_t modalias_show(struct device *device, struct device_attribute *attribute, char *text)
{
	struct pci_dev *pdev = to_pci_dev(device);

	return sysfs_emit(text, "pci:v%08xd%08xsv%08xsd%08xbc%02xsc%02xi%02x\n", pdev->vendor, pdev->device, pdev->subsystem_vendor,
			  pdev->subsystem_device, (u8)(pdev->class >> 16), (u8)(pdev->class >> 8), (u8)pdev->class);
}
static DEVICE_ATTR_RO(modalias);

static void replace_modalias(struct pci_dev *pdev)
{
	/* by its name; it goes with the others of the device */
	sysfs_remove_file(&pdev->dev.kobj, &dev_attr_modalias.attr);
	if (sysfs_create_file(&pdev->dev.kobj, &dev_attr_modalias.attr))
		pci_warn(pdev, "no modalias\n");
}

static int bus_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);

	if (!hca_of(pdev))
		return NOTIFY_DONE;
	if (event == BUS_NOTIFY_ADD_DEVICE) {
		join_group(pdev);
		if (pdev->vendor == HCA_VENDOR)
			replace_modalias(pdev);
	} else if (event == BUS_NOTIFY_DEL_DEVICE) {
		leave_group(pdev);
	}
	return NOTIFY_OK;
}

static struct notifier_block bus_notifier = {
	.notifier_call = bus_event,
};

int hca_bus_init(void)
{
	hca_config_init();
	return bus_register_notifier(&pci_bus_type, &bus_notifier);
}

void hca_bus_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &bus_notifier);
}

/* The slot stays empty until the parameter 'port' says that there is a GPU */
static void take_gpu_out(struct hca *hca)
{
	struct pci_dev *gpu = pci_get_domain_bus_and_slot(pci_domain_nr(hca->root), hca->buses.end, PCI_DEVFN(0, 0));

	hca->has_gpu = false;
	if (!gpu)
		return;
	pci_stop_and_remove_bus_device(gpu);
	pci_dev_put(gpu);
}

/* With the lock of rescans held. Returns the HCA, or an error. */
struct hca *hca_bus_add(unsigned int number, u8 bus, int node, unsigned int fabric, u64 guid, u64 port_guid,
			const struct hca_firmware *firmware)
{
	LIST_HEAD(resources);
	struct hca *hca;
	int i;

	hca = kvzalloc(sizeof(*hca), GFP_KERNEL);
	if (!hca)
		return ERR_PTR(-ENOMEM);
	hca->number = number;
	hca->fabric = fabric;
	hca->guid = guid ?: 0xe89e490300000000ULL | hca_host << 16 | number << 8;
	hca->port_guid = port_guid ?: hca->guid;
	hca->ethernet = firmware->ethernet;
	/* 1 is the subnet manager's */
	hca_port_init(&hca->state, hca_host * 256 + number * 32 + 2);
	hca->sysdata.node = node_possible(node) && node_online(node) ? node : NUMA_NO_NODE;
	for (i = 0; i < HCA_MAX_VFS; i++)
		hca->admin[i].link_state = IFLA_VF_LINK_STATE_DISABLE;
	hca->buses = (struct resource){
		.name = "emulated HCA",
		.start = bus - HCA_BUSES_BEFORE,
		.end = bus + HCA_BUSES_AFTER,
		.flags = IORESOURCE_BUS,
	};
	hca->memory = (struct resource){
		.name = "emulated HCA",
		.flags = IORESOURCE_MEM | IORESOURCE_MEM_64 | IORESOURCE_PREFETCH,
	};
	/* above all memory of a guest */
	if (allocate_resource(&iomem_resource, &hca->memory, HCA_WINDOW, 1ULL << 36, ~0ULL, HCA_WINDOW, NULL, NULL)) {
		pr_err("no addresses for the BARs\n");
		kvfree(hca);
		return ERR_PTR(-ENOSPC);
	}
	hca_config_fill(hca, firmware);
	/* its slot has room for it from the beginning */
	hca->has_gpu = true;
	pci_add_resource(&resources, &hca->buses);
	pci_add_resource(&resources, &hca->memory);
	hca->root = pci_create_root_bus(NULL, hca->buses.start, &hca_config_ops, &hca->sysdata, &resources);
	if (!hca->root) {
		pr_err("no root bus %02x: is the number taken?\n", bus - HCA_BUSES_BEFORE);
		pci_free_resource_list(&resources);
		release_resource(&hca->memory);
		kvfree(hca);
		return ERR_PTR(-EBUSY);
	}
	pci_scan_child_bus(hca->root);
	pci_assign_unassigned_bus_resources(hca->root);
	take_gpu_out(hca);
	pci_bus_add_devices(hca->root);
	return hca;
}

/* With the lock of rescans held, and no driver on the functions */
void hca_bus_remove(struct hca *hca)
{
	pci_stop_root_bus(hca->root);
	pci_remove_root_bus(hca->root);
	release_resource(&hca->memory);
	kvfree(hca);
}
