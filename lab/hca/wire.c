// SPDX-License-Identifier: GPL-2.0
/*
 * The wire between guests: frames of the fabric in Ethernet frames to all, with a type that is there for experiments.
 * In front of a frame are the number of its fabric (two bytes) and two bytes of zero.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <asm/unaligned.h>

#include "hca.h"

#define WIRE_TYPE 0x88b5
#define WIRE_HEADER_LEN 4

static char wire_name[IFNAMSIZ];
/* read with RCU, written with RTNL held */
static struct net_device __rcu *wire;
static bool ready;

static int wire_receive(struct sk_buff *skb, struct net_device *netdev, struct packet_type *type, struct net_device *original)
{
	if (!skb_linearize(skb) && skb->len > WIRE_HEADER_LEN + HCA_HEADER_LEN && skb->pkt_type != PACKET_OTHERHOST)
		hca_fabric_deliver(get_unaligned_be16(skb->data), NULL, skb->data + WIRE_HEADER_LEN, skb->len - WIRE_HEADER_LEN);
	kfree_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type wire_packets = {
	.type = cpu_to_be16(WIRE_TYPE),
	.func = wire_receive,
};

void hca_wire_send(unsigned int fabric, const struct net_device *from, const void *frame, unsigned int length)
{
	struct net_device *out;
	struct sk_buff *skb;

	rcu_read_lock();
	out = rcu_dereference(wire);
	if (!out)
		goto unlock;
	skb = alloc_skb(LL_RESERVED_SPACE(out) + WIRE_HEADER_LEN + length + out->needed_tailroom, GFP_ATOMIC);
	if (!skb)
		goto unlock;
	skb_reserve(skb, LL_RESERVED_SPACE(out));
	skb_reset_network_header(skb);
	put_unaligned_be32(fabric << 16, skb_put(skb, WIRE_HEADER_LEN));
	skb_put_data(skb, frame, length);
	skb->dev = out;
	skb->protocol = htons(WIRE_TYPE);
	if (dev_hard_header(skb, out, WIRE_TYPE, out->broadcast, out->dev_addr, skb->len) < 0)
		kfree_skb(skb);
	else
		dev_queue_xmit(skb);
unlock:
	rcu_read_unlock();
}

static void attach(struct net_device *netdev)
{
	struct net_device *old = rtnl_dereference(wire);

	if (old == netdev)
		return;
	if (netdev) {
		dev_hold(netdev);
		wire_packets.dev = netdev;
		dev_add_pack(&wire_packets);
	}
	rcu_assign_pointer(wire, netdev);
	if (old) {
		synchronize_net();
		dev_put(old);
	}
}

static void detach(void)
{
	if (rtnl_dereference(wire)) {
		dev_remove_pack(&wire_packets);
		attach(NULL);
	}
}

/* Takes the netdev of that name, whenever it comes */
static int wire_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(data);

	if (event == NETDEV_UNREGISTER && netdev == rtnl_dereference(wire))
		detach();
	else if ((event == NETDEV_REGISTER || event == NETDEV_CHANGENAME) && !rtnl_dereference(wire) &&
		 net_eq(dev_net(netdev), &init_net) && *wire_name && !strcmp(netdev->name, wire_name) && netdev->type == ARPHRD_ETHER)
		attach(netdev);
	return NOTIFY_DONE;
}

static struct notifier_block wire_notifier = {
	.notifier_call = wire_event,
};

static void look_up(void)
{
	struct net_device *netdev;

	ASSERT_RTNL();
	detach();
	netdev = *wire_name ? __dev_get_by_name(&init_net, wire_name) : NULL;
	if (netdev && netdev->type != ARPHRD_ETHER)
		pr_warn("%s is no Ethernet device\n", wire_name);
	else if (netdev)
		attach(netdev);
}

static int set_wire(const char *text, const struct kernel_param *param)
{
	char name[IFNAMSIZ];

	if (strscpy(name, text, sizeof(name)) < 0)
		return -EINVAL;
	rtnl_lock();
	strscpy(wire_name, strim(name), sizeof(wire_name));
	if (ready)
		look_up();
	rtnl_unlock();
	return 0;
}

static int get_wire(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%s\n", wire_name);
}

const struct kernel_param_ops hca_wire_param = {
	.set = set_wire,
	.get = get_wire,
};

int hca_wire_init(void)
{
	ready = true;
	/* it tells of all that are there already */
	return register_netdevice_notifier(&wire_notifier);
}

void hca_wire_exit(void)
{
	/* it tells that all are going */
	unregister_netdevice_notifier(&wire_notifier);
}
