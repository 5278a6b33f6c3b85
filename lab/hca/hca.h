/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An emulated InfiniBand HCA: what its parts know of each other.
 *
 * config.c   configuration space of a root port, a PF and its VFs, in memory
 * bus.c      root buses on which they are, and their IOMMU groups
 * main.c     the driver of the functions, and the parameters
 * netdev.c   the IPoIB netdev of a function, and what netlink asks of its VFs
 * verbs.c    the RDMA device of a function: siw below, InfiniBand above
 * fabric.c   the hub that carries frames from function to function
 * wire.c     the same, from guest to guest
 */
#ifndef HCA_H
#define HCA_H

#include <linux/if_infiniband.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <asm/pci.h>

#define HCA_MAX 8
#define HCA_MAX_VFS 16
#define HCA_MAX_HOST 127

#define HCA_VENDOR 0x15b3
#define HCA_PF_DEVICE 0x1021
#define HCA_VF_DEVICE 0x101e
#define HCA_FW_VERSION "28.41.1000"
#define HCA_BOARD_ID "MT_0000000838"
#define HCA_SM_LID 1
#define HCA_MTU 4092
#define HCA_SUBNET_PREFIX 0xfe80000000000000ULL

/* destination and protocol, as they are in front of the payload of a frame */
#define HCA_HEADER_LEN (INFINIBAND_ALEN + 4)

struct siw_device;

/* Configuration space of one function; ones in the mask are what can be written */
struct hca_config {
	u8 value[PCI_CFG_SPACE_EXP_SIZE];
	const u8 *mask;
};

/* What the PF has said of a VF; it outlives the VF */
struct hca_admin {
	u64 node_guid;
	u64 port_guid;
	int link_state;
};

struct hca {
	struct pci_sysdata sysdata;	/* of both buses: leads from a bus to here */
	struct resource buses;
	struct pci_bus *root;
	unsigned int number;
	unsigned int fabric;
	u64 guid;
	struct hca_config port;
	struct hca_config pf;
	struct hca_config vf[HCA_MAX_VFS];
	struct hca_admin admin[HCA_MAX_VFS];
};

/* A PF or a VF that has a driver */
struct hca_function {
	struct hca *hca;
	struct pci_dev *pdev;
	int vf;				/* -1: the PF */
	u64 node_guid;			/* as they were when the driver came */
	u64 port_guid;
	u16 lid;
	bool active;
	struct net_device *netdev;
	struct siw_device *verbs;
	struct list_head on_fabric;
};

/* main.c */
extern unsigned int hca_total_vfs;
extern unsigned int hca_mtu;
extern unsigned int hca_host;

/* config.c */
extern struct pci_ops hca_config_ops;
void hca_config_init(void);
void hca_config_fill(struct hca *hca, u8 root);

/* bus.c */
int hca_bus_init(void);
void hca_bus_exit(void);
struct hca *hca_bus_add(unsigned int number, u8 bus, int node, unsigned int fabric);
void hca_bus_remove(struct hca *hca);
struct hca *hca_of(struct pci_dev *pdev);

/* netdev.c */
struct net_device *hca_netdev_create(struct hca_function *function);

/* verbs.c */
int hca_verbs_create(struct hca_function *function);
void hca_verbs_remove(struct hca_function *function);
void hca_verbs_port_changed(struct hca_function *function);

/* fabric.c */
void hca_fabric_join(struct hca_function *function);
void hca_fabric_leave(struct hca_function *function);
void hca_fabric_settle(struct hca *hca);
bool hca_fabric_deliver(unsigned int fabric, const struct net_device *from,
			const void *frame, unsigned int length);

/* wire.c */
extern const struct kernel_param_ops hca_wire_param;
int hca_wire_init(void);
void hca_wire_exit(void);
void hca_wire_send(unsigned int fabric, const struct net_device *from,
		   const void *frame, unsigned int length);

#endif
