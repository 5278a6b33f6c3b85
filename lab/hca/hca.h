/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An emulated InfiniBand HCA: what its parts know of each other.
 *
 * config.c   configuration space of a root port, a switch, a PF with its VFs and a GPU, in memory
 * bus.c      root buses on which they are, and their IOMMU groups
 * main.c     the driver of the functions, and the parameters
 * devlink.c  what the driver says of the firmware
 * netdev.c   the IPoIB netdev of a function, and what netlink asks of its VFs
 * port.c     state and counters of a port, as whoever simulates the fabric says
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
#define HCA_MAX_VFS 127
/* LIDs of an HCA: its own, and those of as many VFs */
#define HCA_LIDS 30
#define HCA_PKEYS 8
#define HCA_MAX_HOST 127

#define HCA_VENDOR 0x15b3
#define HCA_PF_DEVICE 0x1021
#define HCA_VF_DEVICE 0x101e
#define HCA_FW_VERSION "28.41.1000"
#define HCA_BOARD_ID "MT_0000000838"
/* bytes of memory that a PF, a GPU and a VF have, and what there is for all of them */
#define HCA_PF_BAR (32 << 20)
#define HCA_GPU_BAR (16 << 20)
#define HCA_VF_BAR (1 << 20)
#define HCA_WINDOW (256 << 20)
#define HCA_SM_LID 1
#define HCA_MTU 4092
#define HCA_SUBNET_PREFIX 0xfe80000000000000ULL

/* destination, protocol, and the partition key of the sender, as they are in front of the payload of a frame */
#define HCA_HEADER_LEN (INFINIBAND_ALEN + 4)

/* buses of an HCA: of its root port, of the switch, of the switch's ports downward, of the HCA, of a GPU */
#define HCA_BUSES_BEFORE 3
#define HCA_BUSES_AFTER 1

struct devlink;
struct ib_mad;
struct siw_device;

enum {
	HCA_SYMBOL_ERROR,
	HCA_LINK_ERROR_RECOVERY,
	HCA_LINK_DOWNED,
	HCA_RCV_ERRORS,
	HCA_RCV_REMOTE_PHYSICAL_ERRORS,
	HCA_RCV_SWITCH_RELAY_ERRORS,
	HCA_XMIT_DISCARDS,
	HCA_XMIT_CONSTRAINT_ERRORS,
	HCA_RCV_CONSTRAINT_ERRORS,
	HCA_LOCAL_LINK_INTEGRITY_ERRORS,
	HCA_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
	HCA_VL15_DROPPED,
	HCA_XMIT_DATA,
	HCA_RCV_DATA,
	HCA_XMIT_PACKETS,
	HCA_RCV_PACKETS,
	HCA_XMIT_WAIT,
	HCA_COUNTERS
};

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

/* The port of an HCA. States, speed and width are numbers of the InfiniBand architecture */
struct hca_port {
	u16 lid;
	u16 sm_lid;
	u8 sm_sl;
	u8 lmc;
	u8 state;
	u8 phys_state;
	u16 speed;
	u8 width;
	u32 capabilities;
	bool virtualization;		/* the subnet manager serves VFs */
	u16 pkeys[HCA_PKEYS];
	u64 counters[HCA_COUNTERS];
};

/* What the firmware has when the kernel finds an HCA */
struct hca_firmware {
	unsigned int vfs;
	bool sriov;
	bool ethernet;
};

struct hca {
	struct pci_sysdata sysdata;	/* of all buses: leads from a bus to here */
	struct resource buses;
	struct resource memory;
	struct pci_bus *root;
	unsigned int number;
	unsigned int fabric;
	u64 guid;
	u64 port_guid;
	struct hca_port state;		/* written with the lock of the fabric held */
	bool ethernet;			/* the type of the link, as the firmware has it when a driver comes */
	bool has_gpu;			/* beside it, below the same switch */
	struct hca_config port;
	struct hca_config upstream;
	struct hca_config downstream[2];	/* to the HCA, and to the GPU */
	struct hca_config gpu;
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
	u16 lid;			/* of a VF; that of a PF is its port's */
	bool ethernet;
	bool initializing;		/* the link is up, and the subnet manager does not take the port up */
	bool active;
	struct net_device *netdev;
	struct siw_device *verbs;
	struct devlink *devlink;	/* of a PF */
	struct list_head on_fabric;
};

/* main.c */
extern unsigned int hca_total_vfs;
extern unsigned int hca_mtu;
extern unsigned int hca_host;
struct hca *hca_on_bus(u8 bus);

/* config.c */
extern struct pci_ops hca_config_ops;
void hca_config_init(void);
void hca_config_fill(struct hca *hca, const struct hca_firmware *firmware);
void hca_config_show_sriov(struct hca *hca, bool shown);
void hca_config_give_room(struct hca *hca, bool room);
void hca_config_set_link(struct hca *hca, u16 field, u16 value);
void hca_config_set_vfs(struct hca *hca, u16 count);
void hca_config_set_class(struct hca *hca);

/* bus.c */
int hca_bus_init(void);
void hca_bus_exit(void);
struct hca *hca_bus_add(unsigned int number, u8 bus, int node, unsigned int fabric, u64 guid, u64 port_guid,
			const struct hca_firmware *firmware);
void hca_bus_remove(struct hca *hca);
struct hca *hca_of(struct pci_dev *pdev);

/* devlink.c */
int hca_devlink_create(struct hca_function *function);
void hca_devlink_remove(struct hca_function *function);

/* netdev.c */
struct net_device *hca_netdev_create(struct hca_function *function);

/* port.c */
extern const struct kernel_param_ops hca_port_param;
void hca_port_init(struct hca_port *port, u16 lid);
int hca_port_answer(const struct hca_port *port, const struct ib_mad *in, struct ib_mad *out);

/* verbs.c */
int hca_verbs_create(struct hca_function *function);
void hca_verbs_remove(struct hca_function *function);
void hca_verbs_port_changed(struct hca_function *function);
void hca_verbs_pkeys_changed(struct hca_function *function);

/* fabric.c */
void hca_fabric_join(struct hca_function *function);
void hca_fabric_leave(struct hca_function *function);
void hca_fabric_settle(struct hca *hca);
void hca_fabric_set_port(struct hca *hca, const struct hca_port *port);
bool hca_fabric_deliver(unsigned int fabric, const struct net_device *from,
			const void *frame, unsigned int length);

/* wire.c */
extern const struct kernel_param_ops hca_wire_param;
int hca_wire_init(void);
void hca_wire_exit(void);
void hca_wire_send(unsigned int fabric, const struct net_device *from,
		   const void *frame, unsigned int length);

#endif
