package ramdisk

import (
	"maps"
	"slices"
	"strings"
)

// firmwarePackages are the packages of Debian 12 with the firmware that drivers of servers ask for, by the beginning of the files' names: those
// made from the source package firmware-nonfree (component non-free-firmware), and firmware-linux-free (component main). What they hold is listed at
// https://packages.debian.org/bookworm/PACKAGE.
var firmwarePackages = []struct{ prefix, name string }{
	{"bnx2/", "firmware-bnx2"}, {"bnx2x/", "firmware-bnx2x"},
	{"isci/", "firmware-linux-free"},
	{"liquidio/", "firmware-cavium"},
	{"myri10ge_", "firmware-myricom"},
	{"netronome/", "firmware-netronome"},
	{"phanfw.bin", "firmware-netxen"},
	{"cbfw-", "firmware-qlogic"}, {"ctfw-", "firmware-qlogic"}, {"ct2fw-", "firmware-qlogic"}, {"qed/", "firmware-qlogic"},
	{"qlogic/", "firmware-qlogic"}, {"ql2", "firmware-qlogic"},
	{"rtl_nic/", "firmware-realtek"},
	{"3com/", "firmware-misc-nonfree"}, {"advansys/", "firmware-misc-nonfree"}, {"cxgb3/", "firmware-misc-nonfree"}, {"cxgb4/", "firmware-misc-nonfree"},
	{"e100/", "firmware-misc-nonfree"}, {"ene-ub6250/", "firmware-misc-nonfree"}, {"intel/ice/", "firmware-misc-nonfree"},
	{"kaweth/", "firmware-misc-nonfree"}, {"r8a779x_", "firmware-misc-nonfree"}, {"tehuti/", "firmware-misc-nonfree"}, {"tigon/", "firmware-misc-nonfree"},
}

// FirmwarePackage returns the package of Debian that has the firmware file, "" when none is known.
func FirmwarePackage(file string) string {
	for _, p := range firmwarePackages {
		if strings.HasPrefix(file, p.prefix) {
			return p.name
		}
	}
	return ""
}

// missingPackages returns the modules by the package that brings what they miss.
func missingPackages(missing map[string][]string) map[string][]string {
	out := map[string][]string{}
	for _, module := range slices.Sorted(maps.Keys(missing)) {
		for _, file := range missing[module] {
			if name := FirmwarePackage(file); !slices.Contains(out[name], module) {
				out[name] = append(out[name], module)
			}
		}
	}
	return out
}
