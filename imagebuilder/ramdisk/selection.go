package ramdisk

import (
	"cmp"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/kernel"
)

// selected are the directories and modules of a kernel that a ramdisk includes: what a server needs to reach its network, its disks, its
// console and the media of its BMC. A path that ends with a slash is a directory.
var selected = []string{
	// Networks. mdio, phy and pcs are chosen by the drivers that use them, at run time.
	"kernel/drivers/net/ethernet/", "kernel/drivers/net/phy/", "kernel/drivers/net/mdio/", "kernel/drivers/net/pcs/", "kernel/drivers/net/bonding/",
	"kernel/drivers/net/virtio_net.ko", "kernel/drivers/net/vmxnet3/", "kernel/drivers/net/hyperv/", "kernel/drivers/hv/", "kernel/net/8021q/",
	"kernel/net/packet/af_packet.ko", "kernel/net/ipv6/ipv6.ko",
	// The BMC's own network interface is one of USB (cdc_ether, rndis_host), and so are the network cards that people plug in.
	"kernel/drivers/net/usb/",
	// Disks and their controllers. VMD hides NVMe drives behind a controller of its own.
	"kernel/drivers/nvme/host/", "kernel/drivers/ata/", "kernel/drivers/scsi/", "kernel/drivers/message/fusion/", "kernel/drivers/block/virtio_blk.ko",
	"kernel/drivers/block/mtip32xx/",
	"kernel/drivers/virtio/", "kernel/drivers/pci/controller/", "kernel/drivers/cdrom/",
	// USB, for virtual media and keyboards.
	"kernel/drivers/usb/host/", "kernel/drivers/usb/storage/", "kernel/drivers/usb/core/", "kernel/drivers/usb/common/", "kernel/drivers/hid/hid.ko",
	"kernel/drivers/hid/hid-generic.ko", "kernel/drivers/hid/usbhid/",
	// File systems of media and of the EFI system partition.
	"kernel/fs/isofs/", "kernel/fs/udf/", "kernel/fs/fat/", "kernel/fs/nls/nls_ascii.ko", "kernel/fs/nls/nls_cp437.ko", "kernel/fs/nls/nls_iso8859-1.ko", "kernel/fs/nls/nls_utf8.ko",
	// The BMC from within the server, the firmware's variables, and the TPM.
	"kernel/drivers/char/ipmi/", "kernel/fs/efivarfs/", "kernel/drivers/char/tpm/", "kernel/drivers/firmware/",
}

// leftOut are directories within the selected ones: switches, and cards that are no server's way to a network.
var leftOut = []string{
	"kernel/drivers/net/ethernet/mellanox/mlxsw/", "kernel/drivers/net/ethernet/8390/", "kernel/drivers/net/ethernet/xircom/",
	"kernel/drivers/net/ethernet/fujitsu/", "kernel/drivers/net/ethernet/smsc/", "kernel/drivers/net/ethernet/3com/", "kernel/drivers/scsi/pcmcia/",
	"kernel/drivers/ata/pata_", "kernel/drivers/usb/host/sl811", "kernel/drivers/firmware/google/",
	// The watchdog resets a server that nobody feeds it for, and the other one powers off by IPMI what the agent shuts down.
	"kernel/drivers/char/ipmi/ipmi_watchdog", "kernel/drivers/char/ipmi/ipmi_poweroff",
	// Modems and telephones.
	"kernel/drivers/net/usb/cdc-phonet", "kernel/drivers/net/usb/cdc_mbim", "kernel/drivers/net/usb/hso", "kernel/drivers/net/usb/huawei_cdc_ncm",
	"kernel/drivers/net/usb/ipheth", "kernel/drivers/net/usb/lg-vl600", "kernel/drivers/net/usb/qmi_wwan", "kernel/drivers/net/usb/sierra_net",
}

// isSelected reports whether the module belongs in a ramdisk for its own sake. PCMCIA cards are in many directories. A newer driver of a vendor
// (updates/dkms) is chosen by the place of the kernel's own that it replaces.
func isSelected(m kernel.Module) bool {
	m.Path = cmp.Or(m.Replaces, m.Path)
	return hasAnyPrefix(m.Path, selected) && !hasAnyPrefix(m.Path, leftOut) && !strings.HasSuffix(m.Path, "_cs.ko")
}

func hasAnyPrefix(text string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
