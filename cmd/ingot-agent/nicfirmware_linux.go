package main

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// addNICFirmware adds the versions of the NICs' firmware that their drivers tell, where sysfs has none.
func addNICFirmware(inventory *hardware.Inventory) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return // The versions stay unknown.
	}
	defer func() { _ = unix.Close(socket) }()
	for i := range inventory.NICs {
		nic := &inventory.NICs[i]
		if info, err := unix.IoctlGetEthtoolDrvinfo(socket, nic.Name); err == nil {
			nic.Firmware = cmp.Or(nic.Firmware, firmwareVersion(info.Fw_version[:]))
		}
	}
}

// firmwareVersion returns the version of ETHTOOL_GDRVINFO, "" where the driver has none: the field is then empty or says N/A (include/uapi/linux/ethtool.h).
func firmwareVersion(field []byte) string {
	if at := slices.Index(field, 0); at >= 0 {
		field = field[:at]
	}
	version := strings.TrimSpace(strings.ToValidUTF8(string(field), ""))
	if strings.EqualFold(version, "N/A") {
		return ""
	}
	return version
}
