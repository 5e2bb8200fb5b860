package amd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// partition says how every GPU of a node is partitioned.
type partition struct{ compute, memory string }

// displayDriver is the driver of the display that BMCs provide.
const displayDriver = "ast"

// unpartitioned is the partition that every GPU has after a boot.
var unpartitioned = partition{"SPX", "NPS1"}

// Compute and memory modes as the kernel spells them; compute modes in the order in which messages list them.
var (
	computeModes = []string{"SPX", "DPX", "TPX", "QPX", "CPX"}
	memoryModes  = map[string]int{"NPS1": 1, "NPS2": 2, "NPS3": 3, "NPS4": 4}
)

// documentedPartitions are the partitions that AMD documents for each model, beside the unpartitioned GPU (its partitioning guide
// of 2025-09; for MI350X and MI355X what the tests of its operator's device config manager have).
var documentedPartitions = map[string][]partition{"MI300X-192GB": {{"CPX", "NPS1"}, {"CPX", "NPS4"}}, "MI350X-288GB": cdna4Partitions, "MI355X-288GB": cdna4Partitions}

var cdna4Partitions = []partition{{"DPX", "NPS1"}, {"DPX", "NPS2"}, {"QPX", "NPS1"}, {"QPX", "NPS2"}, {"CPX", "NPS1"}, {"CPX", "NPS2"}}

// configProfiles are the profiles in the default configuration of the device config manager.
var configProfiles = map[partition]string{
	unpartitioned: "default", {"CPX", "NPS1"}: "cpx_nps1_all", {"CPX", "NPS4"}: "cpx_nps4_all", {"DPX", "NPS2"}: "dpx_nps2_all", {"QPX", "NPS1"}: "qpx_nps1_all",
}

// devicesPerGPU returns the number of devices that one GPU becomes, or 0 when the compute mode is not known.
func (p partition) devicesPerGPU(xcc int) int {
	switch p.compute {
	case "SPX":
		return 1
	case "DPX":
		return 2
	case "TPX":
		return 3
	case "QPX":
		return 4
	case "CPX":
		return xcc
	}
	return 0
}

// isValid reports whether GPUs of the model can have the partition. The rules are those of the
// kernel (amdgpu's __aqua_vanjaram_is_valid_mode), and AMD's rule that the memory is not split into more parts than the compute dies.
func (p partition) isValid(model catalogue.Model) bool {
	nps, known := memoryModes[p.memory]
	if !known || model.XCC == 0 || nps > p.devicesPerGPU(model.XCC) {
		return false
	}
	rule, known := partitionRules[p.compute]
	modes := rule.memoryModes
	if model.Architecture == catalogue.CDNA4 {
		modes = rule.cdna4
	}
	return known && slices.Contains(modes, nps) && rule.dies(model.XCC, nps)
}

// partitionRules has for each compute mode the numbers of memory partitions that it allows, those that it allows on CDNA4 (the kernel's commit "Update supported modes
// for GC v9.5.0"; these GPUs have two halves of memory, and no NPS4), and the condition on the number of compute dies.
var partitionRules = map[string]struct {
	memoryModes, cdna4 []int
	dies               func(xcc, nps int) bool
}{
	"SPX": {[]int{1}, []int{1}, func(int, int) bool { return true }},
	"DPX": {[]int{1, 2}, []int{1, 2}, func(xcc, _ int) bool { return xcc%4 == 0 }},
	"TPX": {[]int{1, 3}, nil, func(xcc, _ int) bool { return xcc%3 == 0 }},
	"QPX": {[]int{1, 4}, []int{1, 2}, func(xcc, _ int) bool { return xcc/4 >= 2 }},
	"CPX": {[]int{1, 4}, []int{1, 2}, func(xcc, nps int) bool { return xcc%nps == 0 }},
}

// String returns the partition as the device plugin and the labels write it: cpx_nps4.
func (p partition) String() string { return strings.ToLower(p.compute + "_" + p.memory) }

// requestedPartition returns the partition that the NodeType orders, and refuses one that the kernel refuses.
func requestedPartition(partitions *v1alpha1.PartitionSpec, model catalogue.Model) (partition, error) {
	if partitions == nil {
		return unpartitioned, nil
	}
	p := partition{partitions.Compute, partitions.Memory}
	if p.isValid(model) {
		return p, nil
	}
	var fits []string
	for _, c := range computeModes {
		for _, m := range []string{"NPS1", "NPS2", "NPS3", "NPS4"} {
			if (partition{c, m}).isValid(model) {
				fits = append(fits, c+" with "+m)
			}
		}
	}
	return partition{}, spec.Invalid(spec.PresentationField("partitions.compute"), "amd/partition", "%s with memory %s is not possible on %s, which has %d compute dies: it can be %s", partitions.Compute, partitions.Memory, model.Name, model.XCC, strings.Join(fits, ", "))
}

// modeScript returns the lines that write the partition of every GPU of the model, and that fail when a GPU does not have it or
// is missing.
func (p partition) modeScript(model catalogue.Model, count int32) []string {
	var ids []string
	for _, id := range model.PCIDevices {
		ids = append(ids, "0x"+model.PCIVendor+":0x"+id)
	}
	lines := []string{"# Partition every GPU as " + p.compute + " with " + p.memory + " before kubelet starts. GPUs are whole again after every boot."}
	if p.compute == "CPX" {
		lines = append(lines, freeDeviceNumbers("\tmodprobe -r amdgpu", "\tmodprobe amdgpu")...)
	}
	return append(lines,
		"gpus=$(for device in /sys/bus/pci/devices/*; do",
		"\tcase \"$(cat \"$device/vendor\"):$(cat \"$device/device\")\" in",
		"\t"+strings.Join(ids, " | ")+") echo \"$device\" ;;",
		"\tesac",
		"done)",
		"seen=$(echo \"$gpus\" | grep -c .) || :",
		fmt.Sprintf("if [ \"$seen\" -ne %d ]; then", count),
		fmt.Sprintf("\techo \"$seen GPUs of the model %s are there, and %d were ordered: lspci -nn\" >&2", model.Name, count),
		"\texit 1",
		"fi",
		"wrong() {",
		"\tfor device in $gpus; do",
		"\t\tif [ \"$(cat \"$device/current_$1_partition\")\" != \"$2\" ]; then",
		"\t\t\techo \"$device\"",
		"\t\tfi",
		"\tdone",
		"}",
		"apply() {",
		"\tfor device in $(wrong \"$1\" \"$2\"); do",
		"\t\techo \"$2\" >\"$device/current_$1_partition\"",
		"\tdone",
		"}",
		"apply memory "+p.memory,
		"if [ -n \"$(wrong memory "+p.memory+")\" ]; then",
		"\tmodprobe -r amdgpu",
		"\tmodprobe amdgpu",
		"fi",
		"apply compute "+p.compute,
		"left=\"$(wrong memory "+p.memory+")$(wrong compute "+p.compute+")\"",
		"if [ -n \"$left\" ]; then",
		"\techo \"not "+p.compute+" with "+p.memory+": $left; what it can be is in available_compute_partition and available_memory_partition there\" >&2",
		"\texit 1",
		"fi",
	)
}

// freeDeviceNumbers returns the lines that unload the driver of the BMC's display, followed by start. That driver holds a device
// number that partitions need. At the first boot it was loaded before the blacklist was written. Device numbers are given out
// when the driver of the GPUs starts, so it must start after this.
func freeDeviceNumbers(start ...string) []string {
	lines := []string{"if [ -e /sys/module/" + displayDriver + " ]; then", "\tmodprobe -r " + displayDriver}
	return append(append(lines, start...), "fi")
}

func (p partition) isDocumented(model catalogue.Model) bool {
	return p == unpartitioned || slices.Contains(documentedPartitions[model.Name], p)
}
