package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// minRootBytes is the minimum size of a disk that is selected without hints. An operating system with a GPU driver needs more.
const minRootBytes = 4 << 30

// selectRootDisk returns the disk for the image and the other disks. An installation that follows another one for the same Machine is
// written to the disk of that one, or to the one that an administrator has accepted. Otherwise it is written to the smallest disk that
// matches the hints, and of several of that size to the first by name; then note says so when there were others.
//
// Example for the rule about the disk before: its driver finds the root disk of a server too late, or the disk is broken. By size another
// disk is next, with the data of the Machine that is only rolled. Without the rule the image is written over that data.
func selectRootDisk(set diskSet, instructions protocol.Instructions) (root Disk, others []Disk, note string, err error) {
	hints := instructions.RootDevice
	hasHints := hints != (hardware.RootDevice{})
	if !hasHints {
		hints.MinSizeBytes = minRootBytes
	}
	matching, rejected := matchHints(set.disks, hints, hasHints)
	if previous := instructions.PreviousRootDisk; previous != (hardware.Disk{}) {
		chosen, err := findPreviousDisk(set, matching, instructions)
		if err != nil {
			return nil, nil, "", err
		}
		root, others = takeDisk(set.disks, chosen)
		return root, others, "written to disk " + root.Info().String(), nil
	}
	if len(matching) == 0 {
		detail := "the server has no disk"
		if len(rejected) > 0 {
			detail = "seen: " + strings.Join(rejected, "; ")
		}
		return nil, nil, "", failuref(hardware.ReasonNoRootDevice, nil, "no disk fits the root device hints, %s", detail)
	}
	chosen := smallestDisk(set.disks, matching)
	root, others = takeDisk(set.disks, chosen)
	note = "written to disk " + root.Info().String()
	if !hasHints && len(matching) > 1 {
		var candidates []string
		for _, i := range matching {
			candidates = append(candidates, set.disks[i].Info().String())
		}
		note += fmt.Sprintf(", the smallest of %d that fit: %s; set spec.rootDeviceHints of the BareMetalHost to select another one",
			len(matching), strings.Join(candidates, "; "))
	}
	return root, others, note, nil
}

// findPreviousDisk returns the index of the disk that the installation before was written to, or of the one that is accepted in its place.
func findPreviousDisk(set diskSet, matching []int, instructions protocol.Instructions) (int, error) {
	previous, accepted := instructions.PreviousRootDisk, instructions.AcceptedRootDisk
	chosen := slices.IndexFunc(set.disks, func(d Disk) bool { return d.Info().IsNamed(accepted) })
	if chosen < 0 {
		chosen = hardware.MatchDisks([]hardware.Disk{previous}, diskInfos(set.disks))[0]
		if chosen >= 0 && isOtherNamespace(previous, set.disks[chosen].Info()) {
			chosen = -1
		}
	}
	const remedy = "; if the Machine may lose what is on another disk, annotate the BareMetalHost with ingot.dev/root-disk and the serial number of that disk"
	switch {
	case chosen < 0:
		text := fmt.Sprintf("the installation before was written to disk %s, which is not found", previous)
		for _, disk := range set.unusable {
			if disk.IsSame(previous) {
				text += ": it " + disk.Why
			}
		}
		if accepted != "" {
			text += fmt.Sprintf("; ingot.dev/root-disk accepts %q, which is not found either", accepted)
		}
		return -1, failuref(hardware.ReasonRootDiskDiffers, nil, "%s; %s%s", text, otherChoice(set.disks, matching), remedy)
	case !slices.Contains(matching, chosen) && instructions.RootDevice != (hardware.RootDevice{}):
		excluded := "the installation before was written to disk " + previous.String()
		if set.disks[chosen].Info().IsNamed(accepted) {
			excluded += " and ingot.dev/root-disk accepts disk " + set.disks[chosen].Info().String()
		}
		return -1, failuref(hardware.ReasonRootDiskDiffers, nil, "%s, which the root device hints exclude; %s%s",
			excluded, otherChoice(set.disks, matching), remedy+", or correct spec.rootDeviceHints")
	}
	return chosen, nil
}

// isOtherNamespace reports whether two disks with the same serial number differ in both size and WWN: they are two namespaces of one
// controller.
func isOtherNamespace(a, b hardware.Disk) bool {
	return a.SizeBytes != b.SizeBytes && a.WWN != "" && b.WWN != "" && hardware.NormalWWN(a.WWN) != hardware.NormalWWN(b.WWN)
}

// otherChoice says which disk would be written without the rule about the disk before.
func otherChoice(disks []Disk, matching []int) string {
	if len(matching) == 0 {
		return fmt.Sprintf("%d other disks seen: %s", len(disks), strings.Join(diskTexts(disks), "; "))
	}
	return "the image is not written to disk " + disks[smallestDisk(disks, matching)].Info().String()
}

// matchHints returns the indexes of the disks that match the hints, and why the others do not. Without hints a USB disk is none: somebody has put it
// there, or it is a card for something else, and as the smallest disk it would be the first choice.
func matchHints(disks []Disk, hints hardware.RootDevice, hasHints bool) (matching []int, rejected []string) {
	for i, disk := range disks {
		reason := mismatch(disk.Info(), hints)
		if reason == "" && !hasHints && disk.Info().Transport == "usb" {
			reason = "is a USB disk, which only spec.rootDeviceHints of the BareMetalHost selects"
		}
		if reason != "" {
			rejected = append(rejected, disk.Info().Name+" "+reason)
			continue
		}
		matching = append(matching, i)
	}
	return matching, rejected
}

// smallestDisk returns the index of the smallest of the matching disks.
func smallestDisk(disks []Disk, matching []int) int {
	return slices.MinFunc(matching, func(i, j int) int {
		a, b := disks[i].Info(), disks[j].Info()
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.Name, b.Name))
	})
}

// takeDisk returns the disk at the index and the others.
func takeDisk(disks []Disk, chosen int) (Disk, []Disk) {
	return disks[chosen], slices.Delete(slices.Clone(disks), chosen, chosen+1)
}

func diskInfos(disks []Disk) []hardware.Disk {
	var out []hardware.Disk
	for _, disk := range disks {
		out = append(out, disk.Info())
	}
	return out
}

func diskTexts(disks []Disk) []string {
	var texts []string
	for _, disk := range disks {
		texts = append(texts, disk.Info().String())
	}
	return texts
}

// mismatch returns which hint the disk does not match, "" when it matches all. The model may be a part of the disk's model, as in
// Metal3's hints.
func mismatch(disk hardware.Disk, hints hardware.RootDevice) string {
	switch {
	case hints.DeviceName != "" && disk.Name != hints.DeviceName:
		return "is not " + hints.DeviceName
	case hints.SerialNumber != "" && !hardware.Disk{SerialNumber: disk.SerialNumber}.IsNamed(hints.SerialNumber):
		return fmt.Sprintf("has serial number %q", disk.SerialNumber)
	case hints.WWN != "" && hardware.NormalWWN(disk.WWN) != hardware.NormalWWN(hints.WWN):
		return fmt.Sprintf("has WWN %q", disk.WWN)
	case hints.Model != "" && !strings.Contains(disk.Model, hints.Model):
		return fmt.Sprintf("is a %q", disk.Model)
	case disk.SizeBytes < hints.MinSizeBytes:
		return fmt.Sprintf("has %d bytes, expected at least %d", disk.SizeBytes, hints.MinSizeBytes)
	}
	return ""
}
