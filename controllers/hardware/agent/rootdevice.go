package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// minRoot is the least size of a disk that is taken without being asked for: no operating system with a GPU driver fits less.
const minRoot = 4 << 30

// selectRoot picks the disk the image goes to: the smallest that fits, and of equals the first by name. It returns the others too.
func selectRoot(disks []Disk, hints hardware.RootDevice) (root Disk, others []Disk, err error) {
	if hints == (hardware.RootDevice{}) {
		hints.MinSizeBytes = minRoot
	}
	var fitting []int
	var passed []string
	for i, disk := range disks {
		if why := misfit(disk.Info(), hints); why != "" {
			passed = append(passed, disk.Info().Name+" "+why)
			continue
		}
		fitting = append(fitting, i)
	}
	if len(fitting) == 0 {
		seen := "the server has no disk"
		if len(passed) > 0 {
			seen = "seen: " + strings.Join(passed, "; ")
		}
		return nil, nil, failf(hardware.ReasonNoRootDevice, nil, "no disk fits the root device hints, %s", seen)
	}
	chosen := slices.MinFunc(fitting, func(i, j int) int {
		a, b := disks[i].Info(), disks[j].Info()
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.Name, b.Name))
	})
	return disks[chosen], slices.Delete(slices.Clone(disks), chosen, chosen+1), nil
}

// misfit says which hint the disk does not meet, "" when it meets all. The model may be given in part, as in Metal3's hints.
func misfit(disk hardware.Disk, hints hardware.RootDevice) string {
	switch {
	case hints.DeviceName != "" && disk.Name != hints.DeviceName:
		return "is not " + hints.DeviceName
	case hints.SerialNumber != "" && strings.TrimSpace(disk.SerialNumber) != hints.SerialNumber:
		return fmt.Sprintf("has serial number %q", disk.SerialNumber)
	case hints.WWN != "" && !strings.EqualFold(disk.WWN, hints.WWN):
		return fmt.Sprintf("has WWN %q", disk.WWN)
	case hints.Model != "" && !strings.Contains(disk.Model, hints.Model):
		return fmt.Sprintf("is a %q", disk.Model)
	case disk.SizeBytes < hints.MinSizeBytes:
		return fmt.Sprintf("has %d bytes, expected at least %d", disk.SizeBytes, hints.MinSizeBytes)
	}
	return ""
}
