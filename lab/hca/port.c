// SPDX-License-Identifier: GPL-2.0
/*
 * What the port of an HCA is like: its place in a subnet, its state, and its counters, as whoever simulates the fabric says by
 * the parameter 'port'. Until then it is a port that runs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_pma.h>
#include <rdma/ib_verbs.h>

#include "hca.h"

/* as the files of sysfs are named; PortCounters (IBA 16.1.3.5) has them with fewer bits */
static const char *const counter_names[HCA_COUNTERS] = {
	[HCA_SYMBOL_ERROR] = "symbol_error",
	[HCA_LINK_ERROR_RECOVERY] = "link_error_recovery",
	[HCA_LINK_DOWNED] = "link_downed",
	[HCA_RCV_ERRORS] = "port_rcv_errors",
	[HCA_RCV_REMOTE_PHYSICAL_ERRORS] = "port_rcv_remote_physical_errors",
	[HCA_RCV_SWITCH_RELAY_ERRORS] = "port_rcv_switch_relay_errors",
	[HCA_XMIT_DISCARDS] = "port_xmit_discards",
	[HCA_XMIT_CONSTRAINT_ERRORS] = "port_xmit_constraint_errors",
	[HCA_RCV_CONSTRAINT_ERRORS] = "port_rcv_constraint_errors",
	[HCA_LOCAL_LINK_INTEGRITY_ERRORS] = "local_link_integrity_errors",
	[HCA_EXCESSIVE_BUFFER_OVERRUN_ERRORS] = "excessive_buffer_overrun_errors",
	[HCA_VL15_DROPPED] = "VL15_dropped",
	[HCA_XMIT_DATA] = "port_xmit_data",
	[HCA_RCV_DATA] = "port_rcv_data",
	[HCA_XMIT_PACKETS] = "port_xmit_packets",
	[HCA_RCV_PACKETS] = "port_rcv_packets",
	[HCA_XMIT_WAIT] = "port_xmit_wait",
};

void hca_port_init(struct hca_port *port, u16 lid)
{
	*port = (struct hca_port){
		.lid = lid,
		.sm_lid = HCA_SM_LID,
		.state = IB_PORT_ACTIVE,
		.phys_state = IB_PORT_PHYS_STATE_LINK_UP,
		.speed = IB_SPEED_NDR,
		.width = IB_WIDTH_4X,
		.capabilities = IB_PORT_CM_SUP,
		.virtualization = true,
		.pkeys = { IB_DEFAULT_PKEY_FULL },
	};
}

/* "pkey0" to "pkey7" */
static int set_pkey(struct hca_port *port, const char *number, u64 value)
{
	unsigned int index;

	if (kstrtouint(number, 10, &index) || index >= HCA_PKEYS || value > U16_MAX)
		return -EINVAL;
	port->pkeys[index] = value;
	return 0;
}

/* What the firmware has of it: seen when the function is found anew */
static int set_firmware(struct hca *hca, const char *name, u64 value)
{
	if (!strcmp(name, "sriov")) {
		hca_config_show_sriov(hca, value);
	} else if (!strcmp(name, "vfs")) {
		if (value > hca_total_vfs)
			return -EINVAL;
		hca_config_set_vfs(hca, value);
	} else if (!strcmp(name, "gpu")) {
		/* in the slot beside it */
		hca->has_gpu = value;
	} else if (!strcmp(name, "ethernet")) {
		hca->ethernet = value;
		hca_config_set_class(hca);
	} else {
		return -ENOENT;
	}
	return 0;
}

static int set_value(struct hca *hca, struct hca_port *port, const char *name, u64 value)
{
	int i = set_firmware(hca, name, value);

	if (i != -ENOENT)
		return i;

	if (!strcmp(name, "lid"))
		port->lid = value;
	else if (!strcmp(name, "sm_lid"))
		port->sm_lid = value;
	else if (!strcmp(name, "sm_sl"))
		port->sm_sl = value;
	else if (!strcmp(name, "lmc"))
		port->lmc = value;
	else if (!strcmp(name, "state"))
		port->state = value;
	else if (!strcmp(name, "phys_state"))
		port->phys_state = value;
	else if (!strcmp(name, "speed"))
		port->speed = value;
	else if (!strcmp(name, "width"))
		port->width = value;
	else if (!strcmp(name, "capabilities"))
		port->capabilities = value;
	else if (!strcmp(name, "virtualization"))
		port->virtualization = value;
	else if (!strncmp(name, "pkey", 4))
		return set_pkey(port, name + 4, value);
	else if (!strcmp(name, "room"))
		/* as the BIOS would: seen when the function is found anew */
		hca_config_give_room(hca, value);
	else if (!strcmp(name, "pcie_speed"))
		hca_config_set_link(hca, PCI_EXP_LNKSTA_CLS, value);
	else if (!strcmp(name, "pcie_width"))
		hca_config_set_link(hca, PCI_EXP_LNKSTA_NLW, value << PCI_EXP_LNKSTA_NLW_SHIFT);
	else {
		i = match_string(counter_names, HCA_COUNTERS, name);
		if (i < 0)
			return i;
		port->counters[i] = value;
	}
	return 0;
}

/* "3c state=4 lid=9 symbol_error=12": what is not named stays */
static int set_port(const char *text, const struct kernel_param *param)
{
	struct hca_port port;
	struct hca *hca = NULL;
	char *copy, *words, *word;
	int error = -EINVAL;
	u64 value;
	u8 bus;

	words = copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	word = strsep(&words, " \n");
	if (!kstrtou8(word, 16, &bus))
		hca = hca_on_bus(bus);
	if (!hca)
		goto out;
	port = hca->state;
	while ((word = strsep(&words, " \n"))) {
		char *name = strsep(&word, "=");

		if (!*name)
			continue;
		error = word ? kstrtou64(word, 0, &value) : -EINVAL;
		if (!error)
			error = set_value(hca, &port, name, value);
		if (error) {
			pr_err("port %02x: %s is nothing of a port, or no number\n", bus, name);
			goto out;
		}
	}
	error = 0;
	hca_fabric_set_port(hca, &port);
out:
	kfree(copy);
	return error;
}

const struct kernel_param_ops hca_port_param = {
	.set = set_port,
};

static u64 at_most(u64 value, u64 most)
{
	return min(value, most);
}

static void put_counters(struct ib_pma_portcounters *answer, const u64 *counters)
{
	answer->symbol_error_counter = cpu_to_be16(at_most(counters[HCA_SYMBOL_ERROR], U16_MAX));
	answer->link_error_recovery_counter = at_most(counters[HCA_LINK_ERROR_RECOVERY], U8_MAX);
	answer->link_downed_counter = at_most(counters[HCA_LINK_DOWNED], U8_MAX);
	answer->port_rcv_errors = cpu_to_be16(at_most(counters[HCA_RCV_ERRORS], U16_MAX));
	answer->port_rcv_remphys_errors = cpu_to_be16(at_most(counters[HCA_RCV_REMOTE_PHYSICAL_ERRORS], U16_MAX));
	answer->port_rcv_switch_relay_errors = cpu_to_be16(at_most(counters[HCA_RCV_SWITCH_RELAY_ERRORS], U16_MAX));
	answer->port_xmit_discards = cpu_to_be16(at_most(counters[HCA_XMIT_DISCARDS], U16_MAX));
	answer->port_xmit_constraint_errors = at_most(counters[HCA_XMIT_CONSTRAINT_ERRORS], U8_MAX);
	answer->port_rcv_constraint_errors = at_most(counters[HCA_RCV_CONSTRAINT_ERRORS], U8_MAX);
	answer->link_overrun_errors = at_most(counters[HCA_LOCAL_LINK_INTEGRITY_ERRORS], 15) << 4 |
				      at_most(counters[HCA_EXCESSIVE_BUFFER_OVERRUN_ERRORS], 15);
	answer->vl15_dropped = cpu_to_be16(at_most(counters[HCA_VL15_DROPPED], U16_MAX));
	answer->port_xmit_data = cpu_to_be32(at_most(counters[HCA_XMIT_DATA], U32_MAX));
	answer->port_rcv_data = cpu_to_be32(at_most(counters[HCA_RCV_DATA], U32_MAX));
	answer->port_xmit_packets = cpu_to_be32(at_most(counters[HCA_XMIT_PACKETS], U32_MAX));
	answer->port_rcv_packets = cpu_to_be32(at_most(counters[HCA_RCV_PACKETS], U32_MAX));
	answer->port_xmit_wait = cpu_to_be32(at_most(counters[HCA_XMIT_WAIT], U32_MAX));
}

static void put_wide_counters(struct ib_pma_portcounters_ext *answer, const u64 *counters)
{
	answer->port_xmit_data = cpu_to_be64(counters[HCA_XMIT_DATA]);
	answer->port_rcv_data = cpu_to_be64(counters[HCA_RCV_DATA]);
	answer->port_xmit_packets = cpu_to_be64(counters[HCA_XMIT_PACKETS]);
	answer->port_rcv_packets = cpu_to_be64(counters[HCA_RCV_PACKETS]);
	answer->port_unicast_xmit_packets = answer->port_xmit_packets;
	answer->port_unicast_rcv_packets = answer->port_rcv_packets;
}

/*
 * The kernel makes the files of counters/ of what a performance management agent answers. No other MAD comes here: the port has
 * no queue pairs for them.
 */
int hca_port_answer(const struct hca_port *port, const struct ib_mad *in, struct ib_mad *out)
{
	/* behind the header of 64 bytes, of which a struct ib_mad has taken 24 */
	void *data = out->data + 40;

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT || in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	*out = *in;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	memset(data, 0, sizeof(out->data) - 40);
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		((struct ib_class_port_info *)data)->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
		break;
	case IB_PMA_PORT_COUNTERS:
		put_counters(data, port->counters);
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		put_wide_counters(data, port->counters);
		break;
	default:
		out->mad_hdr.status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
