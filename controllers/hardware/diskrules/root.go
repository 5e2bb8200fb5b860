package diskrules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// minRootBytes is the minimum size of a disk that is selected without hints. An operating system with a GPU driver needs more.
const minRootBytes = 4 << 30

// Root says which disk an image is written to. The fields are those of hardware.InstallSpec.
type Root struct {
	Hints    hardware.RootDevice
	Previous hardware.Disk
	Accepted string
}

// SelectRoot returns the index of the disk that the image is written to, and what a person should know of the choice; the error is a *Refusal. An installation
// that follows another one for the same Machine is written to the disk of that one, or to the one that an administrator has accepted. Otherwise it is written to
// the smallest disk that matches the hints, and of several of that size to the first by name; then the note says so when there were others.
//
// Example for the rule about the disk before: its driver finds the root disk of a server too late, or the disk is broken. By size another
// disk is next, with the data of the Machine that is only rolled. Without the rule the image is written over that data.
func SelectRoot(found Found, want Root) (index int, note string, err error) {
	hasHints := want.Hints != (hardware.RootDevice{})
	if !hasHints {
		want.Hints.MinSizeBytes = minRootBytes
	}
	matching, rejected := matchHints(found.Disks, want.Hints, hasHints)
	if want.Previous != (hardware.Disk{}) {
		chosen, err := findPrevious(found, matching, want, hasHints)
		if err != nil {
			return -1, "", err
		}
		return chosen, "written to disk " + found.Disks[chosen].String(), nil
	}
	if len(matching) == 0 {
		detail := "the server has no disk"
		if len(rejected) > 0 {
			detail = "seen: " + strings.Join(rejected, "; ")
		}
		return -1, "", refusef(hardware.ReasonNoRootDevice, "no disk fits the root device hints, %s", detail)
	}
	chosen := smallest(found.Disks, matching)
	note = "written to disk " + found.Disks[chosen].String()
	if !hasHints && len(matching) > 1 {
		var candidates []hardware.Disk
		for _, i := range matching {
			candidates = append(candidates, found.Disks[i])
		}
		note += fmt.Sprintf(", the smallest of %d that fit: %s; set spec.rootDeviceHints of the BareMetalHost to select another one", len(matching), diskTexts(candidates))
	}
	return chosen, note, nil
}

// findPrevious returns the index of the disk that the installation before was written to, or of the one that is accepted in its place.
func findPrevious(found Found, matching []int, want Root, hasHints bool) (int, error) {
	chosen := slices.IndexFunc(found.Disks, func(d hardware.Disk) bool { return d.IsNamed(want.Accepted) })
	if chosen < 0 {
		chosen = hardware.MatchDisks([]hardware.Disk{want.Previous}, found.Disks)[0]
		if chosen >= 0 && isOtherNamespace(want.Previous, found.Disks[chosen]) {
			chosen = -1
		}
	}
	const remedy = "; if the Machine may lose what is on another disk, annotate the BareMetalHost with ingot.dev/root-disk and the serial number of that disk"
	switch {
	case chosen < 0:
		text := fmt.Sprintf("the installation before was written to disk %s, which is not found", want.Previous)
		for _, disk := range found.Unusable {
			if disk.IsSame(want.Previous) {
				text += ": it " + disk.Why
			}
		}
		if want.Accepted != "" {
			text += fmt.Sprintf("; ingot.dev/root-disk accepts %q, which is not found either", want.Accepted)
		}
		return -1, refusef(hardware.ReasonRootDiskDiffers, "%s; %s%s", text, otherChoice(found.Disks, matching), remedy)
	case !slices.Contains(matching, chosen) && hasHints:
		excluded := "the installation before was written to disk " + want.Previous.String()
		if found.Disks[chosen].IsNamed(want.Accepted) {
			excluded += " and ingot.dev/root-disk accepts disk " + found.Disks[chosen].String()
		}
		return -1, refusef(hardware.ReasonRootDiskDiffers, "%s, which the root device hints exclude; %s%s",
			excluded, otherChoice(found.Disks, matching), remedy+", or correct spec.rootDeviceHints")
	}
	return chosen, nil
}

// isOtherNamespace reports whether two disks with the same serial number differ in both size and WWN: they are two namespaces of one
// controller.
func isOtherNamespace(a, b hardware.Disk) bool {
	return a.SizeBytes != b.SizeBytes && a.WWN != "" && b.WWN != "" && hardware.NormalWWN(a.WWN) != hardware.NormalWWN(b.WWN)
}

// otherChoice says which disk would be written without the rule about the disk before.
func otherChoice(disks []hardware.Disk, matching []int) string {
	if len(matching) == 0 {
		return fmt.Sprintf("%d other disks seen: %s", len(disks), diskTexts(disks))
	}
	return "the image is not written to disk " + disks[smallest(disks, matching)].String()
}

// matchHints returns the indexes of the disks that match the hints, and why the others do not. Without hints a USB disk is none: somebody has put it
// there, or it is a card for something else, and as the smallest disk it would be the first choice.
func matchHints(disks []hardware.Disk, hints hardware.RootDevice, hasHints bool) (matching []int, rejected []string) {
	for i, disk := range disks {
		reason := mismatch(disk, hints)
		if reason == "" && !hasHints && disk.Transport == "usb" {
			reason = "is a USB disk, which only spec.rootDeviceHints of the BareMetalHost selects"
		}
		if reason != "" {
			rejected = append(rejected, disk.Name+" "+reason)
			continue
		}
		matching = append(matching, i)
	}
	return matching, rejected
}

// smallest returns the index of the smallest of the matching disks.
func smallest(disks []hardware.Disk, matching []int) int {
	return slices.MinFunc(matching, func(i, j int) int {
		return cmp.Or(cmp.Compare(disks[i].SizeBytes, disks[j].SizeBytes), cmp.Compare(disks[i].Name, disks[j].Name))
	})
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
