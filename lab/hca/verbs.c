// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device of a function. Its verbs are those of siw, software iWARP: RC queue pairs over TCP on the function's netdev,
 * connected by rdma_cm. What it says of itself is what an InfiniBand HCA says.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#include "hca.h"
#include "siw.h"
#include "siw_verbs.h"

#define GIDS 8
#define PKEYS 128

static struct hca_function *function_of(struct ib_device *ib)
{
	return pci_get_drvdata(to_pci_dev(ib->dev.parent));
}

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct hca_function *function = function_of(ib);
	int error = siw_query_device(ib, attr, udata);

	if (error)
		return error;
	attr->fw_ver = 28ULL << 32 | 41 << 16 | 1000;
	attr->sys_image_guid = cpu_to_be64(function->hca->guid);
	attr->vendor_id = 0x02c9;
	/* not the number of the PCI device: perftest posts to a ConnectX-7 by calls that libsiw does not have */
	attr->vendor_part_id = 0;
	attr->max_pkeys = PKEYS;
	/* unlike siw's, it goes with its function alone */
	attr->kernel_cap_flags = function->vf < 0 ? 0 : IBK_VIRTUAL_FUNCTION;
	return 0;
}

/* Without RTNL, unlike siw: who asks may hold it. */
static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct hca_function *function = function_of(ib);
	const struct hca_port *state = &function->hca->state;
	bool active = READ_ONCE(function->active);

	memset(attr, 0, sizeof(*attr));
	if (function->vf < 0) {
		attr->state = state->state;
		attr->phys_state = state->phys_state;
		attr->lid = state->lid;
		attr->sm_lid = state->sm_lid;
	} else {
		bool linked = active || READ_ONCE(function->initializing);

		attr->state = active ? IB_PORT_ACTIVE : linked ? IB_PORT_INIT : IB_PORT_DOWN;
		attr->phys_state = linked ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_POLLING;
		/* of a port that no subnet manager has taken up, mlx5 says this */
		attr->lid = active ? function->lid : linked ? 0xffff : 0;
		attr->sm_lid = linked ? state->sm_lid : 0;
	}
	attr->subnet_prefix = HCA_SUBNET_PREFIX;
	attr->sm_sl = state->sm_sl;
	attr->lmc = state->lmc;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->active_speed = state->speed;
	attr->active_width = state->width;
	attr->gid_tbl_len = GIDS;
	attr->pkey_tbl_len = PKEYS;
	attr->max_msg_sz = 1 << 30;
	attr->max_vl_num = 4;
	attr->port_cap_flags = state->capabilities;
	return 0;
}

static int get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = GIDS;
	immutable->pkey_tbl_len = PKEYS;
	/* rdma_cm takes the address of an InfiniBand netdev to no port but one of InfiniBand; it connects as iWARP does */
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP | (function_of(ib)->ethernet ? 0 : RDMA_CORE_CAP_PROT_IB);
	return 0;
}

static int query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (!index) {
		gid->global.subnet_prefix = cpu_to_be64(HCA_SUBNET_PREFIX);
		gid->global.interface_id = cpu_to_be64(function_of(ib)->port_guid);
	}
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	*pkey = index < HCA_PKEYS ? function_of(ib)->hca->state.pkeys[index] : 0;
	return 0;
}

/* rdma-ndd, or an admin, writes the file node_desc */
static int modify_device(struct ib_device *ib, int mask, struct ib_device_modify *change)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	memcpy(ib->node_desc, change->node_desc, IB_DEVICE_NODE_DESC_MAX);
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port)
{
	return function_of(ib)->ethernet ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static void get_firmware(struct ib_device *ib, char *text)
{
	strscpy(text, HCA_FW_VERSION, IB_FW_VERSION_NAME_MAX);
}

/* ib_ipoib makes no netdev: it would want a subnet administrator, which is not there. The function has its own. */
static int netdev_params(struct ib_device *ib, u32 port, enum rdma_netdev_t type, struct rdma_netdev_alloc_params *params)
{
	return -ENODEV;
}

/* What a process has of a device goes without the process: unbinding and taking away VFs do not wait for it. */
static void disassociate(struct ib_ucontext *context)
{
}

static int process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		       const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey_index)
{
	static const struct hca_port still;
	struct hca_function *function = function_of(ib);

	return hca_port_answer(function->vf < 0 ? &function->hca->state : &still, in, out);
}

/* as mlx5_ib names them, with optional ones left out */
static const struct rdma_stat_desc hw_counters[] = {
	{ .name = "duplicate_request" }, { .name = "implied_nak_seq_err" }, { .name = "local_ack_timeout_err" },
	{ .name = "out_of_buffer" }, { .name = "out_of_sequence" }, { .name = "packet_seq_err" }, { .name = "req_cqe_error" },
	{ .name = "req_cqe_flush_error" }, { .name = "req_remote_access_errors" }, { .name = "req_remote_invalid_request" },
	{ .name = "resp_cqe_error" }, { .name = "resp_cqe_flush_error" }, { .name = "resp_local_length_error" },
	{ .name = "resp_remote_access_errors" }, { .name = "rnr_nak_retry_err" }, { .name = "rx_atomic_requests" },
	{ .name = "rx_dct_connect" }, { .name = "rx_read_requests" }, { .name = "rx_write_requests" },
};

static struct rdma_hw_stats *alloc_hw_counters(struct ib_device *ib, u32 port)
{
	return rdma_alloc_hw_stats_struct(hw_counters, ARRAY_SIZE(hw_counters), RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* Nothing counts: verbs are TCP's */
static int get_hw_counters(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index)
{
	memset(stats->value, 0, stats->num_counters * sizeof(*stats->value));
	return stats->num_counters;
}

static ssize_t hca_type_show(struct device *device, struct device_attribute *attribute, char *text)
{
	struct siw_device *verbs = rdma_device_to_drv_device(device, struct siw_device, base_dev);

	return sysfs_emit(text, "MT%u\n", function_of(&verbs->base_dev)->pdev->device);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "0\n");
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, HCA_BOARD_ID "\n");
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *device_attributes[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	&dev_attr_board_id.attr,
	NULL,
};

static const struct attribute_group device_group = {
	.attrs = device_attributes,
};

/* these go before siw's own */
static const struct ib_device_ops device_ops = {
	.alloc_hw_port_stats = alloc_hw_counters,
	.device_group = &device_group,
	.disassociate_ucontext = disassociate,
	.get_dev_fw_str = get_firmware,
	.get_hw_stats = get_hw_counters,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.modify_device = modify_device,
	.process_mad = process_mad,
	.query_device = query_device,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.rdma_netdev_get_params = netdev_params,
};

int hca_verbs_create(struct hca_function *function)
{
	struct siw_device *verbs = siw_device_create(function->netdev, &device_ops);
	struct ib_device *ib;
	int error;

	if (!verbs)
		return -ENOMEM;
	function->verbs = verbs;
	ib = &verbs->base_dev;
	ib->node_type = RDMA_NODE_IB_CA;
	ib->node_guid = cpu_to_be64(function->node_guid);
	ib->dev.parent = &function->pdev->dev;
	snprintf(ib->node_desc, sizeof(ib->node_desc), "emulated HCA %s", pci_name(function->pdev));
	verbs->numa_node = dev_to_node(&function->pdev->dev);
	error = ib_register_device(ib, "mlx5_%d", NULL);
	if (error)
		ib_dealloc_device(ib);
	return error;
}

void hca_verbs_remove(struct hca_function *function)
{
	/* it frees the device, too */
	ib_unregister_device(&function->verbs->base_dev);
}

static void tell(struct hca_function *function, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &function->verbs->base_dev,
		.element.port_num = 1,
		.event = type,
	};

	ib_dispatch_event(&event);
}

void hca_verbs_port_changed(struct hca_function *function)
{
	tell(function, function->active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

void hca_verbs_pkeys_changed(struct hca_function *function)
{
	tell(function, IB_EVENT_PKEY_CHANGE);
}
