// SPDX-License-Identifier: GPL-2.0
/* The IPoIB netdev of a function: 20-byte addresses, datagram mode; on a PF also what netlink asks and says of its VFs. */
#include <linux/ethtool.h>
#include <linux/etherdevice.h>
#include <linux/if_ether.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/skbuff.h>
#include <asm/unaligned.h>

#include "hca.h"

struct hca_netdev {
	struct hca_function *function;
};

static struct hca_function *function_of(struct net_device *netdev)
{
	return ((struct hca_netdev *)netdev_priv(netdev))->function;
}

static int create_header(struct sk_buff *skb, struct net_device *netdev, unsigned short type, const void *destination,
			 const void *source, unsigned int length)
{
	__be16 *protocol = skb_push(skb, 4);

	protocol[0] = htons(type);
	protocol[1] = 0;
	memcpy(skb_push(skb, INFINIBAND_ALEN), destination ?: netdev->broadcast, INFINIBAND_ALEN);
	return HCA_HEADER_LEN;
}

static const struct header_ops header_ops = {
	.create = create_header,
};

static netdev_tx_t transmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct hca_function *function = function_of(netdev);
	unsigned int fabric = function->hca->fabric;

	if (!READ_ONCE(function->active) || function->ethernet || skb->len < HCA_HEADER_LEN || skb_linearize(skb) || skb_cow_head(skb, 0) ||
	    (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))) {
		dev_core_stats_tx_dropped_inc(netdev);
		dev_kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	put_unaligned_be16(function->hca->state.pkeys[0], skb->data + INFINIBAND_ALEN + 2);
	dev_sw_netstats_tx_add(netdev, 1, skb->len - HCA_HEADER_LEN);
	if (!hca_fabric_deliver(fabric, netdev, skb->data, skb->len))
		hca_wire_send(fabric, netdev, skb->data, skb->len);
	dev_consume_skb_any(skb);
	return NETDEV_TX_OK;
}

static int init(struct net_device *netdev)
{
	netdev->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	return netdev->tstats ? 0 : -ENOMEM;
}

static void uninit(struct net_device *netdev)
{
	free_percpu(netdev->tstats);
}

static struct hca_admin *admin_of(struct net_device *netdev, int vf)
{
	return vf >= 0 && vf < hca_total_vfs ? &function_of(netdev)->hca->admin[vf] : NULL;
}

static int set_vf_guid(struct net_device *netdev, int vf, u64 guid, int type)
{
	struct hca_admin *admin = admin_of(netdev, vf);

	if (!admin)
		return -EINVAL;
	if (type == IFLA_VF_IB_NODE_GUID)
		admin->node_guid = guid;
	else if (type == IFLA_VF_IB_PORT_GUID)
		admin->port_guid = guid;
	else
		return -EINVAL;
	return 0;
}

static int get_vf_guid(struct net_device *netdev, int vf, struct ifla_vf_guid *node, struct ifla_vf_guid *port)
{
	struct hca_admin *admin = admin_of(netdev, vf);

	if (!admin)
		return -EINVAL;
	node->vf = vf;
	node->guid = admin->node_guid;
	port->vf = vf;
	port->guid = admin->port_guid;
	return 0;
}

static int get_vf_config(struct net_device *netdev, int vf, struct ifla_vf_info *info)
{
	struct hca_admin *admin = admin_of(netdev, vf);

	if (!admin)
		return -EINVAL;
	memset(info, 0, sizeof(*info));
	info->vf = vf;
	info->linkstate = admin->link_state;
	return 0;
}

static int set_vf_link_state(struct net_device *netdev, int vf, int state)
{
	struct hca_admin *admin = admin_of(netdev, vf);

	if (!admin || state < IFLA_VF_LINK_STATE_AUTO || state > IFLA_VF_LINK_STATE_DISABLE)
		return -EINVAL;
	admin->link_state = state;
	hca_fabric_settle(function_of(netdev)->hca);
	return 0;
}

static const struct net_device_ops pf_ops = {
	.ndo_init = init,
	.ndo_uninit = uninit,
	.ndo_start_xmit = transmit,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_set_vf_guid = set_vf_guid,
	.ndo_get_vf_guid = get_vf_guid,
	.ndo_get_vf_config = get_vf_config,
	.ndo_set_vf_link_state = set_vf_link_state,
};

static const struct net_device_ops vf_ops = {
	.ndo_init = init,
	.ndo_uninit = uninit,
	.ndo_start_xmit = transmit,
	.ndo_get_stats64 = dev_get_tstats64,
};

static int get_link_ksettings(struct net_device *netdev, struct ethtool_link_ksettings *settings)
{
	bool up = netif_carrier_ok(netdev);

	settings->base.speed = up ? SPEED_400000 : SPEED_UNKNOWN;
	settings->base.duplex = up ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.autoneg = AUTONEG_DISABLE;
	settings->base.port = PORT_OTHER;
	settings->base.phy_address = 255;
	return 0;
}

static void get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	/* as a netdev that ib_ipoib has from mlx5_core says it */
	strscpy(info->driver, function_of(netdev)->ethernet ? KBUILD_MODNAME : KBUILD_MODNAME "[ib_ipoib]", sizeof(info->driver));
	strscpy(info->fw_version, HCA_FW_VERSION " (" HCA_BOARD_ID ")", sizeof(info->fw_version));
	strscpy(info->bus_info, pci_name(function_of(netdev)->pdev), sizeof(info->bus_info));
}

static const struct ethtool_ops ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
	.get_drvinfo = get_drvinfo,
};

static ssize_t mode_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "datagram\n");
}
static DEVICE_ATTR_RO(mode);

static ssize_t pkey_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "0x%04x\n", function_of(to_net_dev(device))->hca->state.pkeys[0] | 0x8000);
}
static DEVICE_ATTR_RO(pkey);

static struct attribute *netdev_attributes[] = {
	&dev_attr_mode.attr,
	&dev_attr_pkey.attr,
	NULL,
};

static const struct attribute_group netdev_group = {
	.attrs = netdev_attributes,
};

static void setup_ethernet(struct net_device *netdev)
{
	ether_setup(netdev);
	netdev->ethtool_ops = &ethtool_ops;
	netdev->features |= NETIF_F_LLTX;
	netdev->priv_flags |= IFF_NO_QUEUE;
}

static void setup(struct net_device *netdev)
{
	static const u8 broadcast[INFINIBAND_ALEN] = {
		0x00, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
	};

	netdev->type = ARPHRD_INFINIBAND;
	netdev->addr_len = INFINIBAND_ALEN;
	netdev->hard_header_len = HCA_HEADER_LEN;
	netdev->header_ops = &header_ops;
	netdev->ethtool_ops = &ethtool_ops;
	netdev->flags = IFF_BROADCAST | IFF_MULTICAST;
	netdev->features |= NETIF_F_LLTX;
	netdev->tx_queue_len = 1000;
	netdev->priv_flags |= IFF_NO_QUEUE;
	netdev->mtu = hca_mtu;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = HCA_MTU;
	memcpy(netdev->broadcast, broadcast, sizeof(broadcast));
}

static void set_address(struct hca_function *function, struct net_device *netdev)
{
	u8 address[INFINIBAND_ALEN];

	/* flags and queue pair, prefix of the subnet, GUID of the port */
	put_unaligned_be32(0x100 + function->lid, address);
	put_unaligned_be64(HCA_SUBNET_PREFIX, address + 4);
	put_unaligned_be64(function->port_guid, address + 12);
	dev_addr_set(netdev, address);
}

/* As mlx5 makes it of the GUID: without the two bytes in the middle */
static void set_ethernet_address(struct hca_function *function, struct net_device *netdev)
{
	u8 guid[8], address[ETH_ALEN];

	put_unaligned_be64(function->port_guid, guid);
	memcpy(address, guid, 3);
	memcpy(address + 3, guid + 5, 3);
	if (is_valid_ether_addr(address))
		eth_hw_addr_set(netdev, address);
	else
		eth_hw_addr_random(netdev);
}

/*
 * Not registered yet; its hardware address holds for as long as the function has its driver. On Ethernet nothing carries its
 * frames.
 */
struct net_device *hca_netdev_create(struct hca_function *function)
{
	bool ethernet = function->ethernet;
	struct net_device *netdev = alloc_netdev(sizeof(struct hca_netdev), ethernet ? "eth%d" : "ib%d", NET_NAME_ENUM, ethernet ? setup_ethernet : setup);

	if (!netdev)
		return NULL;
	((struct hca_netdev *)netdev_priv(netdev))->function = function;
	netdev->netdev_ops = function->vf < 0 && !ethernet ? &pf_ops : &vf_ops;
	if (ethernet) {
		set_ethernet_address(function, netdev);
	} else {
		netdev->sysfs_groups[0] = &netdev_group;
		set_address(function, netdev);
	}
	SET_NETDEV_DEV(netdev, &function->pdev->dev);
	netif_carrier_off(netdev);
	return netdev;
}
