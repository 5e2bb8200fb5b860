package vgpu

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/nvidia"
)

const sriov = "/usr/lib/nvidia/sriov-manage -e ALL"

// makeMdevs is the mode in which every GPU has its mediated devices.
func makeMdevs(model catalogue.Model, types []want) []string {
	lines := whole(model, types)
	if model.Architecture != catalogue.Turing {
		lines = append(lines, sriov)
	}
	return append(lines,
		"nvidia-vgpu-dm apply -f "+configFile+" -c "+configName,
		"nvidia-vgpu-dm assert -f "+configFile+" -c "+configName,
	)
}

// whole begins with what the script does, and turns the MIG mode off where the GPU is shared in time.
func whole(model catalogue.Model, types []want) []string {
	lines := []string{"# Make the virtual GPUs before kubelet starts. They are gone after every boot."}
	if model.Geometry != nil && types[0].Slices == 0 {
		lines = append(lines, nvidia.MIGOff()...)
	}
	return lines
}

// setTypes is the mode in which so many virtual functions of every GPU have a type.
func setTypes(model catalogue.Model, count int32, t want) []string {
	var ids []string
	for _, id := range model.PCIDevices {
		ids = append(ids, "0x"+model.PCIVendor+":0x"+id)
	}
	return append(whole(model, []want{t}),
		sriov,
		"gpus=0",
		"for gpu in /sys/bus/pci/devices/*; do",
		"\tcase \"$(cat \"$gpu/vendor\"):$(cat \"$gpu/device\")\" in",
		"\t"+strings.Join(ids, " | ")+") ;;",
		"\t*) continue ;;",
		"\tesac",
		"\tif [ -e \"$gpu/physfn\" ]; then",
		"\t\tcontinue",
		"\tfi",
		"\tgpus=$((gpus + 1))",
		"\tmade=0",
		"\tfor function in \"$gpu\"/virtfn*; do",
		fmt.Sprintf("\t\tif [ \"$made\" -eq %d ]; then", t.count),
		"\t\t\tbreak",
		"\t\tfi",
		"\t\tif [ \"$(cat \"$function/nvidia/current_vgpu_type\")\" = 0 ]; then",
		"\t\t\ttype=$(sed -n 's/^ *\\([0-9][0-9]*\\) *: *\\(NVIDIA \\|GRID \\)\\{0,1\\}"+t.Name+" *$/\\1/p' \"$function/nvidia/creatable_vgpu_types\")",
		"\t\t\tif [ -z \"$type\" ]; then",
		"\t\t\t\techo \"$function can be no "+t.Name+", but: $(cat \"$function/nvidia/creatable_vgpu_types\")\" >&2",
		"\t\t\t\texit 1",
		"\t\t\tfi",
		"\t\t\techo \"$type\" >\"$function/nvidia/current_vgpu_type\"",
		"\t\tfi",
		"\t\tmade=$((made + 1))",
		"\tdone",
		fmt.Sprintf("\tif [ \"$made\" -ne %d ]; then", t.count),
		fmt.Sprintf("\t\techo \"$gpu has $made virtual functions, and %d of %s were ordered\" >&2", t.count, t.Name),
		"\t\texit 1",
		"\tfi",
		"done",
		fmt.Sprintf("if [ \"$gpus\" -ne %d ]; then", count),
		fmt.Sprintf("\techo \"$gpus GPUs of the model %s are there, and %d were ordered: lspci -nn\" >&2", model.Name, count),
		"\texit 1",
		"fi",
	)
}
