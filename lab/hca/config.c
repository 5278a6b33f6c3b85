// SPDX-License-Identifier: GPL-2.0
/*
 * Configuration space in memory: of a root port, of a switch below it, and below that of the PF, its VFs, and a GPU.
 * The BARs get addresses, where nothing answers: the driver maps none of them.
 */
#include "hca.h"

#define VPD 0x48
#define EXP 0x60
#define ACS 0x100
#define ARI 0x100
#define SRIOV 0x140

#define VPD_SIZE 256
#define CLASS_INFINIBAND 0x0207
#define CLASS_ETHERNET 0x0200
#define CLASS_3D 0x0302

/* where each bridge has what is below it, counted from the root bus */
enum {
	ROOT_BUS,
	SWITCH_BUS,
	SLOTS_BUS,
	HCA_BUS,
	GPU_BUS,
};

/* what software may write, by kind of function */
static u8 bridge_mask[PCI_CFG_SPACE_EXP_SIZE];
static u8 gpu_mask[PCI_CFG_SPACE_EXP_SIZE];
static u8 pf_mask[PCI_CFG_SPACE_EXP_SIZE];
static u8 vf_mask[PCI_CFG_SPACE_EXP_SIZE];
/* of a PF whose VFs ask for more memory than there are addresses */
static u8 greedy_mask[PCI_CFG_SPACE_EXP_SIZE];

static u16 get16(const u8 *space, int at)
{
	return space[at] | space[at + 1] << 8;
}

static void put16(u8 *space, int at, u16 value)
{
	space[at] = value;
	space[at + 1] = value >> 8;
}

static void put32(u8 *space, int at, u32 value)
{
	put16(space, at, value);
	put16(space, at + 2, value >> 16);
}

/* Gen5 x16 for whoever reads it: nothing here has a speed */
static void put_express(u8 *space, unsigned int type, u32 device_capabilities)
{
	u16 width = 16 << 4;

	put16(space, PCI_STATUS, PCI_STATUS_CAP_LIST);
	space[PCI_CAPABILITY_LIST] = EXP;
	space[EXP] = PCI_CAP_ID_EXP;
	put16(space, EXP + PCI_EXP_FLAGS, 2 | type << 4);
	put32(space, EXP + PCI_EXP_DEVCAP,
	      device_capabilities | PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_EXT_TAG | 2);
	put16(space, EXP + PCI_EXP_DEVCTL,
	      PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_EXT_TAG | PCI_EXP_DEVCTL_NOSNOOP_EN |
	      PCI_EXP_DEVCTL_PAYLOAD_512B | PCI_EXP_DEVCTL_READRQ_512B);
	put32(space, EXP + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS_32_0GB | width);
	put16(space, EXP + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS_32_0GB | width | PCI_EXP_LNKSTA_SLC);
	put32(space, EXP + PCI_EXP_DEVCAP2, PCI_EXP_DEVCAP2_ARI);
	put32(space, EXP + PCI_EXP_LNKCAP2,
	      PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB | PCI_EXP_LNKCAP2_SLS_8_0GB |
	      PCI_EXP_LNKCAP2_SLS_16_0GB | PCI_EXP_LNKCAP2_SLS_32_0GB);
	put16(space, EXP + PCI_EXP_LNKCTL2, PCI_EXP_LNKCTL2_TLS_32_0GT);
}

/* A BAR of 64 bits that can be prefetched, in two registers: what can't be written says how large it is */
static void put_bar(u8 *space, int at)
{
	put32(space, at, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
}

static void mask_bar(u8 *mask, int at, u32 size)
{
	put32(mask, at, ~(size - 1));
	put32(mask, at + 4, ~0);
}

/* A port between two buses. Where packets between functions below it may turn, ACS can send them up instead */
static void fill_bridge(struct hca_config *config, unsigned int type, u8 primary, u8 secondary, u8 subordinate)
{
	u8 *space = config->value;

	config->mask = bridge_mask;
	put16(space, PCI_VENDOR_ID, type == PCI_EXP_TYPE_ROOT_PORT ? PCI_VENDOR_ID_INTEL : PCI_VENDOR_ID_LSI_LOGIC);
	put16(space, PCI_DEVICE_ID, type == PCI_EXP_TYPE_ROOT_PORT ? 0x352a : 0xc030);
	put32(space, PCI_CLASS_REVISION, PCI_CLASS_BRIDGE_PCI_NORMAL << 8);
	space[PCI_HEADER_TYPE] = PCI_HEADER_TYPE_BRIDGE;
	space[PCI_PRIMARY_BUS] = primary;
	space[PCI_SECONDARY_BUS] = secondary;
	space[PCI_SUBORDINATE_BUS] = subordinate;
	/* windows that end before they begin, until the kernel gives them addresses */
	space[PCI_IO_BASE] = 0xf0;
	put16(space, PCI_MEMORY_BASE, 0xfff0);
	put16(space, PCI_PREF_MEMORY_BASE, 0xfff0 | PCI_PREF_RANGE_TYPE_64);
	put16(space, PCI_PREF_MEMORY_LIMIT, PCI_PREF_RANGE_TYPE_64);
	put_express(space, type, 0);
	if (type == PCI_EXP_TYPE_UPSTREAM)
		return;
	put32(space, ACS, PCI_EXT_CAP_ID_ACS | 1 << 16);
	put16(space, ACS + PCI_ACS_CAP, PCI_ACS_SV | PCI_ACS_TB | PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_UF);
}

static void put_class(const struct hca *hca, u8 *space)
{
	put32(space, PCI_CLASS_REVISION, (hca->ethernet ? CLASS_ETHERNET : CLASS_INFINIBAND) << 16);
}

static void fill_function(const struct hca *hca, struct hca_config *config, const u8 *mask, u16 device)
{
	u8 *space = config->value;

	memset(space, 0, sizeof(config->value));
	config->mask = mask;
	put16(space, PCI_VENDOR_ID, HCA_VENDOR);
	put16(space, PCI_DEVICE_ID, device);
	put_class(hca, space);
	put16(space, PCI_SUBSYSTEM_VENDOR_ID, HCA_VENDOR);
	put16(space, PCI_SUBSYSTEM_ID, 0x0041);
	put_express(space, PCI_EXP_TYPE_ENDPOINT, PCI_EXP_DEVCAP_FLR);
}

/* The list of capabilities leads on to it, or ends */
static void show_sriov(struct hca_config *config, bool shown)
{
	put16(config->value, ARI + 2, 1 | (shown ? SRIOV << 4 : 0));
}

void hca_config_show_sriov(struct hca *hca, bool shown)
{
	show_sriov(&hca->pf, shown);
}

/* The BIOS of a machine without "Above 4G decoding" has no addresses for the BARs of VFs */
void hca_config_give_room(struct hca *hca, bool room)
{
	hca->pf.mask = room ? pf_mask : greedy_mask;
}

/* As many VFs as the firmware has: the kernel takes the number when it finds the function */
void hca_config_set_vfs(struct hca *hca, u16 count)
{
	put16(hca->pf.value, SRIOV + PCI_SRIOV_INITIAL_VF, count);
	put16(hca->pf.value, SRIOV + PCI_SRIOV_TOTAL_VF, count);
}

/* The firmware has another type of link */
void hca_config_set_class(struct hca *hca)
{
	put_class(hca, hca->pf.value);
}

static void set_link(struct hca_config *config, u16 field, u16 value)
{
	u16 status = get16(config->value, EXP + PCI_EXP_LNKSTA);

	put16(config->value, EXP + PCI_EXP_LNKSTA, (status & ~field) | (value & field));
}

/* What the card and its slot have agreed upon: both ends of the link say the same */
void hca_config_set_link(struct hca *hca, u16 field, u16 value)
{
	set_link(&hca->pf, field, value);
	set_link(&hca->downstream[0], field, value);
}

static void fill_pf(struct hca *hca, const struct hca_firmware *firmware)
{
	u8 *space = hca->pf.value;

	fill_function(hca, &hca->pf, pf_mask, HCA_PF_DEVICE);
	put_bar(space, PCI_BASE_ADDRESS_0);
	put_bar(space, SRIOV + PCI_SRIOV_BAR);
	space[EXP + PCI_CAP_LIST_NEXT] = VPD;
	space[VPD] = PCI_CAP_ID_VPD;
	put32(space, ARI, PCI_EXT_CAP_ID_ARI | 1 << 16);
	show_sriov(&hca->pf, firmware->sriov);
	put32(space, SRIOV, PCI_EXT_CAP_ID_SRIOV | 1 << 16);
	hca_config_set_vfs(hca, firmware->vfs);
	put16(space, SRIOV + PCI_SRIOV_VF_OFFSET, 1);
	put16(space, SRIOV + PCI_SRIOV_VF_STRIDE, 1);
	put16(space, SRIOV + PCI_SRIOV_VF_DID, HCA_VF_DEVICE);
	put32(space, SRIOV + PCI_SRIOV_SUP_PGSIZE, 0x553);
	put32(space, SRIOV + PCI_SRIOV_SYS_PGSIZE, 1);
}

static void fill_vfs(struct hca *hca)
{
	int i;

	for (i = 0; i < hca_total_vfs; i++)
		fill_function(hca, &hca->vf[i], vf_mask, HCA_VF_DEVICE);
}

/* An H100. It has no driver here, and is what it is by its place */
static void fill_gpu(struct hca *hca)
{
	u8 *space = hca->gpu.value;

	hca->gpu.mask = gpu_mask;
	put16(space, PCI_VENDOR_ID, PCI_VENDOR_ID_NVIDIA);
	put16(space, PCI_DEVICE_ID, 0x2330);
	put32(space, PCI_CLASS_REVISION, CLASS_3D << 16);
	put16(space, PCI_SUBSYSTEM_VENDOR_ID, PCI_VENDOR_ID_NVIDIA);
	put16(space, PCI_SUBSYSTEM_ID, 0x16c1);
	put_express(space, PCI_EXP_TYPE_ENDPOINT, PCI_EXP_DEVCAP_FLR);
	put_bar(space, PCI_BASE_ADDRESS_0);
}

void hca_config_fill(struct hca *hca, const struct hca_firmware *firmware)
{
	u8 root = hca->buses.start, last = hca->buses.end;

	fill_bridge(&hca->port, PCI_EXP_TYPE_ROOT_PORT, root, root + SWITCH_BUS, last);
	fill_bridge(&hca->upstream, PCI_EXP_TYPE_UPSTREAM, root + SWITCH_BUS, root + SLOTS_BUS, last);
	fill_bridge(&hca->downstream[0], PCI_EXP_TYPE_DOWNSTREAM, root + SLOTS_BUS, root + HCA_BUS, root + HCA_BUS);
	fill_bridge(&hca->downstream[1], PCI_EXP_TYPE_DOWNSTREAM, root + SLOTS_BUS, root + GPU_BUS, root + GPU_BUS);
	fill_gpu(hca);
	fill_pf(hca, firmware);
	fill_vfs(hca);
}

static void mask_common(u8 *mask)
{
	put16(mask, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
				 PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	mask[PCI_CACHE_LINE_SIZE] = 0xff;
	mask[PCI_INTERRUPT_LINE] = 0xff;
	/* all but the reset, which ends at once */
	put16(mask, EXP + PCI_EXP_DEVCTL, 0x7fff);
	put16(mask, EXP + PCI_EXP_LNKCTL, 0x0fdb);
	put16(mask, EXP + PCI_EXP_DEVCTL2, 0xffff);
	put16(mask, EXP + PCI_EXP_LNKCTL2, 0xffff);
}

void hca_config_init(void)
{
	mask_common(bridge_mask);
	mask_common(gpu_mask);
	mask_common(pf_mask);
	mask_common(vf_mask);
	bridge_mask[PCI_PRIMARY_BUS] = 0xff;
	bridge_mask[PCI_SECONDARY_BUS] = 0xff;
	bridge_mask[PCI_SUBORDINATE_BUS] = 0xff;
	bridge_mask[PCI_IO_BASE] = 0xf0;
	bridge_mask[PCI_IO_LIMIT] = 0xf0;
	put16(bridge_mask, PCI_MEMORY_BASE, 0xfff0);
	put16(bridge_mask, PCI_MEMORY_LIMIT, 0xfff0);
	put16(bridge_mask, PCI_PREF_MEMORY_BASE, 0xfff0);
	put16(bridge_mask, PCI_PREF_MEMORY_LIMIT, 0xfff0);
	put32(bridge_mask, PCI_PREF_BASE_UPPER32, ~0);
	put32(bridge_mask, PCI_PREF_LIMIT_UPPER32, ~0);
	put16(bridge_mask, PCI_BRIDGE_CONTROL, 0x0fff);
	put16(bridge_mask, ACS + PCI_ACS_CTRL, PCI_ACS_SV | PCI_ACS_TB | PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_UF);
	mask_bar(gpu_mask, PCI_BASE_ADDRESS_0, HCA_GPU_BAR);
	mask_bar(pf_mask, PCI_BASE_ADDRESS_0, HCA_PF_BAR);
	mask_bar(pf_mask, SRIOV + PCI_SRIOV_BAR, HCA_VF_BAR);
	put16(pf_mask, VPD + PCI_VPD_ADDR, 0xffff);
	put16(pf_mask, SRIOV + PCI_SRIOV_CTRL,
	      PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE | PCI_SRIOV_CTRL_ARI);
	put16(pf_mask, SRIOV + PCI_SRIOV_NUM_VF, 0xffff);
	put32(pf_mask, SRIOV + PCI_SRIOV_SYS_PGSIZE, ~0);
	memcpy(greedy_mask, pf_mask, sizeof(greedy_mask));
	mask_bar(greedy_mask, SRIOV + PCI_SRIOV_BAR, HCA_WINDOW);
}

static int put_field(u8 *vpd, int at, const char *keyword, const char *text)
{
	int length = strlen(text);

	memcpy(vpd + at, keyword, 2);
	vpd[at + 2] = length;
	memcpy(vpd + at + 3, text, length);
	return at + 3 + length;
}

static int put_tag(u8 *vpd, int at, u8 tag, u16 length)
{
	vpd[at] = tag;
	put16(vpd, at + 1, length);
	return at + 3;
}

/* Vital product data: the name, and a read-only section that ends with the checksum of all before it */
static void make_vpd(const struct hca *hca, u8 *vpd)
{
	static const char name[] = "Emulated NVIDIA ConnectX-7 HCA, NDR, single-port OSFP, PCIe 5.0 x16";
	u8 sum = 0;
	int section, at, i;
	char serial[16];

	snprintf(serial, sizeof(serial), "EMU%05u%02u", hca_host, hca->number);
	at = put_tag(vpd, 0, 0x82, strlen(name));
	memcpy(vpd + at, name, strlen(name));
	section = at + strlen(name);
	at = put_field(vpd, section + 3, "PN", "MCX75310AAS-NEAT");
	at = put_field(vpd, at, "EC", "A1");
	at = put_field(vpd, at, "SN", serial);
	at = put_field(vpd, at, "V0", "PCIeGen5 x16");
	at = put_field(vpd, at, "RV", " ");
	put_tag(vpd, section, 0x90, at - section - 3);
	vpd[at - 1] = 0;
	for (i = 0; i < at; i++)
		sum += vpd[i];
	vpd[at - 1] = -sum;
	vpd[at] = 0x78;
}

/* Software writes an address, and reads the data when the flag in it has turned to 1 */
static void read_vpd(struct hca *hca, u8 *space)
{
	u8 vpd[VPD_SIZE] = { 0 };
	u16 address = get16(space, VPD + PCI_VPD_ADDR);

	if (address & PCI_VPD_ADDR_F)
		return;
	make_vpd(hca, vpd);
	memset(space + VPD + PCI_VPD_DATA, 0, 4);
	if (address <= VPD_SIZE - 4)
		memcpy(space + VPD + PCI_VPD_DATA, vpd + address, 4);
	put16(space, VPD + PCI_VPD_ADDR, address | PCI_VPD_ADDR_F);
}

static bool overlaps(int where, int size, int at, int length)
{
	return where < at + length && at < where + size;
}

static void after_write(struct hca *hca, struct hca_config *config, int where, int size, u16 control)
{
	if (config != &hca->pf)
		return;
	if (overlaps(where, size, VPD + PCI_VPD_ADDR, 2))
		read_vpd(hca, config->value);
	/* VFs that come are new ones */
	if (!(control & PCI_SRIOV_CTRL_VFE) && get16(config->value, SRIOV + PCI_SRIOV_CTRL) & PCI_SRIOV_CTRL_VFE)
		fill_vfs(hca);
}

static struct hca_config *find(struct hca *hca, struct pci_bus *bus, unsigned int devfn)
{
	const u8 *pf = hca->pf.value;

	switch (bus->number - hca->buses.start) {
	case ROOT_BUS:
		return devfn == PCI_DEVFN(1, 0) ? &hca->port : NULL;
	case SWITCH_BUS:
		return devfn ? NULL : &hca->upstream;
	case SLOTS_BUS:
		return devfn == PCI_DEVFN(0, 0) || devfn == PCI_DEVFN(1, 0) ? &hca->downstream[PCI_SLOT(devfn)] : NULL;
	case GPU_BUS:
		return devfn || !hca->has_gpu ? NULL : &hca->gpu;
	case HCA_BUS:
		break;
	default:
		return NULL;
	}
	if (!devfn)
		return &hca->pf;
	if (get16(pf, SRIOV + PCI_SRIOV_CTRL) & PCI_SRIOV_CTRL_VFE &&
	    devfn <= min_t(u16, get16(pf, SRIOV + PCI_SRIOV_NUM_VF), hca_total_vfs))
		return &hca->vf[devfn - 1];
	return NULL;
}

/* Both are called with the lock of all configuration space held */
static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct hca *hca = container_of(bus->sysdata, struct hca, sysdata);
	struct hca_config *config = find(hca, bus, devfn);

	*value = ~0;
	if (!config || where + size > PCI_CFG_SPACE_EXP_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = 0;
	memcpy(value, config->value + where, size);
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct hca *hca = container_of(bus->sysdata, struct hca, sysdata);
	struct hca_config *config = find(hca, bus, devfn);
	u16 control = get16(hca->pf.value, SRIOV + PCI_SRIOV_CTRL);
	int i;

	if (!config || where + size > PCI_CFG_SPACE_EXP_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (i = 0; i < size; i++) {
		u8 mask = config->mask[where + i];
		u8 *byte = &config->value[where + i];

		*byte = (*byte & ~mask) | ((value >> 8 * i) & mask);
	}
	after_write(hca, config, where, size, control);
	return PCIBIOS_SUCCESSFUL;
}

struct pci_ops hca_config_ops = {
	.read = config_read,
	.write = config_write,
};
