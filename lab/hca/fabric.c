// SPDX-License-Identifier: GPL-2.0
/*
 * The fabric: a hub for each fabric. A frame is what a netdev sends: the 20 bytes of the destination, protocol, two bytes
 * that IPoIB has no use for and that are the partition key of the sender here, payload.
 */
#include <linux/if_link.h>
#include <linux/skbuff.h>
#include <asm/unaligned.h>
#include <rdma/ib_verbs.h>

#include "hca.h"

/* read with RCU; written, as are 'active' and the carrier, with this lock held */
static LIST_HEAD(functions);
static DEFINE_SPINLOCK(lock);

static bool is_multicast(const u8 *address)
{
	return address[4] == 0xff;
}

/* The link of a VF is up when the port of the HCA is, the PF lets it, and when it has a GUID; the driver of a VF takes a GUID when it is bound. */
static bool should_be_linked(const struct hca_function *function)
{
	if (function->hca->state.state != IB_PORT_ACTIVE)
		return false;
	if (function->vf < 0)
		return true;
	return function->hca->admin[function->vf].link_state != IFLA_VF_LINK_STATE_DISABLE && function->port_guid && ~function->port_guid;
}

/* Two ports of a partition meet where one of them at least is a full member (IBA 10.9.3) */
static bool meets(const struct hca_port *port, u16 pkey)
{
	int i;

	for (i = 0; i < HCA_PKEYS; i++)
		if (!((port->pkeys[i] ^ pkey) & 0x7fff) && pkey & 0x7fff && (port->pkeys[i] | pkey) & 0x8000)
			return true;
	return false;
}

static void settle(struct hca_function *function)
{
	bool linked = should_be_linked(function);
	bool active = linked && (function->vf < 0 || function->hca->state.virtualization);

	function->initializing = linked && !active;
	if (function->active == active)
		return;
	function->active = active;
	if (active)
		netif_carrier_on(function->netdev);
	else
		netif_carrier_off(function->netdev);
	hca_verbs_port_changed(function);
}

/* After a change of what the PF has said of its VFs */
void hca_fabric_settle(struct hca *hca)
{
	struct hca_function *function;

	spin_lock_bh(&lock);
	list_for_each_entry(function, &functions, on_fabric)
		if (function->hca == hca)
			settle(function);
	spin_unlock_bh(&lock);
}

/* What the port of an HCA is like from now on */
void hca_fabric_set_port(struct hca *hca, const struct hca_port *port)
{
	struct hca_function *function;
	bool others;

	spin_lock_bh(&lock);
	others = memcmp(hca->state.pkeys, port->pkeys, sizeof(port->pkeys));
	hca->state = *port;
	list_for_each_entry(function, &functions, on_fabric)
		if (others && function->hca == hca)
			hca_verbs_pkeys_changed(function);
	spin_unlock_bh(&lock);
	hca_fabric_settle(hca);
}

/* With the netdev and the RDMA device registered, so that both hear of the change */
void hca_fabric_join(struct hca_function *function)
{
	spin_lock_bh(&lock);
	settle(function);
	list_add_tail_rcu(&function->on_fabric, &functions);
	spin_unlock_bh(&lock);
}

void hca_fabric_leave(struct hca_function *function)
{
	spin_lock_bh(&lock);
	list_del_rcu(&function->on_fabric);
	spin_unlock_bh(&lock);
	synchronize_net();
}

static void receive(struct net_device *netdev, const void *frame, unsigned int length)
{
	struct sk_buff *skb = netdev_alloc_skb(netdev, length - HCA_HEADER_LEN);

	if (!skb) {
		netdev->stats.rx_dropped++;
		return;
	}
	skb_put_data(skb, frame + HCA_HEADER_LEN, length - HCA_HEADER_LEN);
	skb->protocol = *(const __be16 *)(frame + INFINIBAND_ALEN);
	if (!is_multicast(frame))
		skb->pkt_type = PACKET_HOST;
	else if (!memcmp(frame + 4, netdev->broadcast + 4, INFINIBAND_ALEN - 4))
		skb->pkt_type = PACKET_BROADCAST;
	else
		skb->pkt_type = PACKET_MULTICAST;
	skb_reset_mac_header(skb);
	dev_sw_netstats_rx_add(netdev, length - HCA_HEADER_LEN);
	netif_rx(skb);
}

/* Returns whether it is a frame for one port, and that port is here */
bool hca_fabric_deliver(unsigned int fabric, const struct net_device *from, const void *frame, unsigned int length)
{
	u16 pkey = get_unaligned_be16(frame + INFINIBAND_ALEN + 2);
	struct hca_function *function;
	bool found = false;

	rcu_read_lock();
	list_for_each_entry_rcu(function, &functions, on_fabric) {
		struct net_device *netdev = function->netdev;

		if (function->hca->fabric != fabric || netdev == from || !READ_ONCE(function->active) || function->ethernet)
			continue;
		if (!is_multicast(frame)) {
			if (memcmp(frame + 4, netdev->dev_addr + 4, INFINIBAND_ALEN - 4))
				continue;
			found = true;
		}
		if (netif_running(netdev) && meets(&function->hca->state, pkey))
			receive(netdev, frame, length);
	}
	rcu_read_unlock();
	return found;
}
