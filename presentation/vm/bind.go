package vm

import (
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// bind is the mode in which every GPU of the model, or each that is named by address, is held for virtual machines.
func bind(model catalogue.Model, count int32, driver string, addresses []string) []string {
	devices := "/sys/bus/pci/devices/*"
	if len(addresses) > 0 {
		devices = "/sys/bus/pci/devices/" + strings.Join(addresses, " /sys/bus/pci/devices/")
	}
	var ids []string
	for _, id := range model.PCIDevices {
		ids = append(ids, "0x"+model.PCIVendor+":0x"+id)
	}
	n := strconv.Itoa(int(count))
	return []string{
		"# Bind the GPUs to " + driver + " before kubelet starts, for virtual machines.",
		"driver_of() {",
		"\tif [ -e \"$1/driver\" ]; then",
		"\t\tbasename \"$(readlink -f \"$1/driver\")\"",
		"\tfi",
		"}",
		"modprobe " + driver,
		"bound=0",
		"for device in " + devices + "; do",
		"\tcase \"$(cat \"$device/vendor\"):$(cat \"$device/device\")\" in",
		"\t" + strings.Join(ids, " | ") + ") ;;",
		"\t*) continue ;;",
		"\tesac",
		"\tif [ \"$(driver_of \"$device\")\" != " + driver + " ]; then",
		"\t\techo " + driver + " >\"$device/driver_override\"",
		"\t\tif [ -e \"$device/driver\" ]; then",
		"\t\t\techo \"${device##*/}\" >\"$device/driver/unbind\"",
		"\t\tfi",
		"\t\techo \"${device##*/}\" >/sys/bus/pci/drivers_probe",
		"\tfi",
		"\tif [ \"$(driver_of \"$device\")\" != " + driver + " ]; then",
		"\t\techo \"the GPU ${device##*/} is not held by " + driver + " but by '$(driver_of \"$device\")': is the IOMMU on? dmesg | grep -i -e iommu -e vfio\" >&2",
		"\t\texit 1",
		"\tfi",
		"\tbound=$((bound + 1))",
		"done",
		"if [ \"$bound\" -ne " + n + " ]; then",
		"\techo \"$bound GPUs of the model " + model.Name + " are there, and " + n + " were ordered: lspci -nn\" >&2",
		"\texit 1",
		"fi",
	}
}
