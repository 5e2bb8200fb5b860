package pci

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// computeDies are the numbers of compute dies of AMD's partitionable GPUs, by device id.
var computeDies = map[string]int{"74a0": 6, "74a1": 8, "74a2": 4, "74a5": 8, "74a8": 4, "75a0": 8}

// resetPartitions sets the partitions that a GPU has when the driver starts: one partition, except for a memory partition
// that was requested before.
func (d *Device) resetPartitions() {
	if computeDies[d.DeviceID] == 0 {
		return
	}
	d.compute, d.memory = "SPX", "NPS1"
	if d.pendingMemory != "" {
		d.memory, d.pendingMemory = d.pendingMemory, ""
		if !isValidPartition(d.compute, d.memory, computeDies[d.DeviceID]) {
			d.compute = "CPX" // the only one that every memory partition allows
		}
	}
}

// Partition returns the partition modes of the GPU as the kernel writes them, or empty strings when it cannot be
// partitioned.
func (d *Device) Partition() (compute, memory string) {
	if d.Driver != "amdgpu" {
		return "", ""
	}
	return d.compute, d.memory
}

// PartitionCount returns the number of devices into which the compute partition divides the GPU.
func (d *Device) PartitionCount() int {
	compute, _ := d.Partition()
	return max(1, map[string]int{"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4, "CPX": computeDies[d.DeviceID]}[compute])
}

// partitionModes are the compute partition modes with the memory partitions and numbers of dies that they allow
// (__aqua_vanjaram_is_valid_mode of the kernel's driver).
var partitionModes = map[string]struct {
	memories []int
	dies     func(dies, memories int) bool
}{
	"SPX": {[]int{1}, func(int, int) bool { return true }},
	"DPX": {[]int{1, 2}, func(dies, _ int) bool { return dies%4 == 0 }},
	"TPX": {[]int{1, 3}, func(dies, _ int) bool { return dies%3 == 0 }},
	"QPX": {[]int{1, 4}, func(dies, _ int) bool { return dies/4 >= 2 }},
	"CPX": {[]int{1, 4}, func(dies, memories int) bool { return dies%memories == 0 }},
}

func isValidPartition(compute, memory string, dies int) bool {
	memories, known := map[string]int{"NPS1": 1, "NPS2": 2, "NPS3": 3, "NPS4": 4}[memory]
	c, exists := partitionModes[compute]
	return known && exists && slices.Contains(c.memories, memories) && c.dies(dies, memories)
}

// SetPartition writes to one of the two sysfs files. A compute partition takes effect at once, a memory partition at the
// driver's next start.
func (d *Device) SetPartition(kind, value string) error {
	value = strings.TrimSpace(value)
	if kind == "compute" {
		if !isValidPartition(value, d.memory, computeDies[d.DeviceID]) {
			return fmt.Errorf("write error: invalid argument: %s does not go with %s", value, d.memory)
		}
		d.compute = value
		return nil
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(partitionModes)), func(c string) bool { return isValidPartition(c, value, computeDies[d.DeviceID]) }) {
		return fmt.Errorf("write error: invalid argument: %s", value)
	}
	d.pendingMemory = value
	return nil
}
