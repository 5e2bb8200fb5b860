package ramdisk_test

import (
	"fmt"
	"strings"
)

// pci returns the modalias of a PCI device (file2alias.c of the kernel). ids are vendor, device, and then the class where the driver goes by that.
func pci(vendor, device uint32, class ...uint32) string {
	c := uint32(0x020000)
	if len(class) > 0 {
		c = class[0]
	}
	hex := func(value uint32, digits int) string { return strings.ToUpper(fmt.Sprintf("%0*x", digits, value)) }
	return "pci:v" + hex(vendor, 8) + "d" + hex(device, 8) + "sv" + hex(vendor, 8) + "sd" + hex(1, 8) + "bc" + hex(c>>16, 2) + "sc" + hex(c>>8&0xff, 2) + "i" + hex(c&0xff, 2)
}

// Classes of controllers.
const raid, sas = 0x010400, 0x010700

// claims are the devices that README and the documentation of the ramdisk claim, by modalias, with the driver that serves each. The ids are those of
// pci.ids (pci-ids.ucw.cz); the classes of USB those of usb.org.
var claims = []struct{ device, modalias, driver string }{
	// Network cards.
	{"Mellanox ConnectX-3", pci(0x15b3, 0x1003), "mlx4_core"},
	{"Mellanox ConnectX-4 Lx", pci(0x15b3, 0x1015), "mlx5_core"},
	{"Mellanox ConnectX-5", pci(0x15b3, 0x1017), "mlx5_core"},
	{"Mellanox ConnectX-6 Dx", pci(0x15b3, 0x101d), "mlx5_core"},
	{"NVIDIA ConnectX-7", pci(0x15b3, 0x1021), "mlx5_core"},
	{"NVIDIA BlueField-3", pci(0x15b3, 0xa2dc), "mlx5_core"},
	{"Intel E810-C", pci(0x8086, 0x1592), "ice"},
	{"Intel E810-XXV", pci(0x8086, 0x159b), "ice"},
	{"Intel X710", pci(0x8086, 0x1572), "i40e"},
	{"Intel XXV710", pci(0x8086, 0x158b), "i40e"},
	{"Intel X722", pci(0x8086, 0x37d2), "i40e"},
	{"Intel 82599", pci(0x8086, 0x10fb), "ixgbe"},
	{"Intel X550", pci(0x8086, 0x1563), "ixgbe"},
	{"Intel adaptive virtual function", pci(0x8086, 0x1889), "iavf"},
	{"Intel I350", pci(0x8086, 0x1521), "igb"},
	{"Intel I210", pci(0x8086, 0x1533), "igb"},
	{"Intel I225", pci(0x8086, 0x15f2), "igc"},
	{"Intel 82574", pci(0x8086, 0x10d3), "e1000e"},
	{"Intel 82540", pci(0x8086, 0x100e), "e1000"},
	{"Broadcom BCM57414", pci(0x14e4, 0x16d7), "bnxt_en"},
	{"Broadcom BCM57508", pci(0x14e4, 0x1750), "bnxt_en"},
	{"Broadcom BCM57810", pci(0x14e4, 0x168e), "bnx2x"},
	{"Broadcom BCM5709", pci(0x14e4, 0x1639), "bnx2"},
	{"Broadcom BCM5720", pci(0x14e4, 0x165f), "tg3"},
	{"Realtek RTL8168", pci(0x10ec, 0x8168), "r8169"},
	{"Realtek RTL8125", pci(0x10ec, 0x8125), "r8169"},
	{"QLogic QL45000", pci(0x1077, 0x1634), "qede"},
	{"QLogic QL41000", pci(0x1077, 0x8070), "qede"},
	{"Chelsio T520", pci(0x1425, 0x5407), "cxgb4"},
	{"Chelsio T62100", pci(0x1425, 0x6407), "cxgb4"},
	{"Aquantia AQC107", pci(0x1d6a, 0x07b1), "atlantic"},
	{"Solarflare SFC9220", pci(0x1924, 0x0a03), "sfc"},
	{"Emulex OneConnect", pci(0x10df, 0x0720), "be2net"},
	{"Cisco VIC", pci(0x1137, 0x0043), "enic"},
	{"Netronome NFP-4000", pci(0x19ee, 0x4000), "nfp"},
	{"Amazon ENA", pci(0x1d0f, 0xec20), "ena"},
	{"Google gVNIC", pci(0x1ae0, 0x0042), "gve"},
	{"VMware vmxnet3", pci(0x15ad, 0x07b0), "vmxnet3"},
	{"virtio device", pci(0x1af4, 0x1041), "virtio_pci"},
	{"virtio network", "virtio:d00000001v00001AF4", "virtio_net"},
	// Disks and their controllers.
	{"NVMe drive", pci(0x144d, 0xa824, 0x010802), "nvme"},
	{"Intel VMD", pci(0x8086, 0x28c0, 0x010400), "vmd"},
	{"AHCI", pci(0x8086, 0xa182, 0x010601), "ahci"},
	{"MegaRAID 3108", pci(0x1000, 0x005d, raid), "megaraid_sas"},
	{"MegaRAID 3916", pci(0x1000, 0x10e2, raid), "megaraid_sas"},
	{"SAS3008", pci(0x1000, 0x0097, sas), "mpt3sas"},
	{"SAS3816", pci(0x1000, 0x00e6, sas), "mpt3sas"},
	{"SAS4116", pci(0x1000, 0x00a5, sas), "mpi3mr"},
	{"SAS1068", pci(0x1000, 0x0054, 0x010000), "mptsas"},
	{"Smart Array (smartpqi)", pci(0x9005, 0x028f, raid), "smartpqi"},
	{"Smart Array P440", "pci:v0000103Cd00003239sv0000103Csd000021C1bc01sc04i00", "hpsa"},
	{"Adaptec Series 8", pci(0x9005, 0x028d, raid), "aacraid"},
	{"ATTO (SPCv)", "pci:v0000117Cd00008072sv0000117Csd00000072bc01sc07i00", "pm80xx"},
	{"Marvell 9485", "pci:v00001B4Bd00009485sv00001B4Bsd00009480bc01sc04i00", "mvsas"},
	{"Areca 1880", pci(0x17d3, 0x1880, raid), "arcmsr"},
	{"VMware paravirtual SCSI", pci(0x15ad, 0x07c0, 0x010000), "vmw_pvscsi"},
	{"virtio block", "virtio:d00000002v00001AF4", "virtio_blk"},
	{"virtio SCSI", "virtio:d00000008v00001AF4", "virtio_scsi"},
	{"SCSI disk", "scsi:t-0x00", "sd_mod"},
	{"CD-ROM", "scsi:t-0x05", "sr_mod"},
	// USB: keyboards, virtual media, the BMC's network interface.
	{"xHCI", pci(0x8086, 0xa1af, 0x0c0330), "xhci_pci"},
	{"EHCI", pci(0x8086, 0x1d26, 0x0c0320), "ehci_pci"},
	{"USB storage", "usb:v046BpFF20d0100dc00dsc00dp00ic08isc06ip50in00", "usb_storage"},
	{"USB attached SCSI", "usb:v174Cp55AAd0100dc00dsc00dp00ic08isc06ip62in00", "uas"},
	{"USB keyboard", "usb:v046BpFF10d0100dc00dsc00dp00ic03isc01ip01in00", "usbhid"},
	{"keyboard", "hid:b0003g0001v0000046Bp0000FF10", "hid_generic"},
	{"BMC's interface, CDC Ethernet", "usb:v046BpFFB0d0100dc02dsc00dp00ic02isc06ip00in00", "cdc_ether"},
	{"BMC's interface, RNDIS", "usb:v046BpFFB0d0100dc02dsc00dp00ic02isc02ipFFin00", "rndis_host"},
	// The BMC, media, and what the kernel asks for by name.
	{"IPMI", "acpi:IPI0001:", "ipmi_si"},
	{"IPMI device", "ipmi_devintf", "ipmi_devintf"},
	{"CD's file system", "fs-iso9660", "isofs"},
	{"DVD's file system", "fs-udf", "udf"},
	{"EFI system partition", "fs-vfat", "vfat"},
	{"its code page", "nls_cp437", "nls_cp437"},
	{"firmware's variables", "fs-efivarfs", "efivarfs"},
	{"bond", "bonding", "bonding"},
	{"VLAN", "8021q", "8021q"},
}
