package machineos

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos/ignition"
)

// ErrEmergency is the error of a system that did not come up: it waits in the emergency shell of its initial ramdisk.
var ErrEmergency = errors.New("emergency mode")

// platformArguments are the kernel arguments by which images say which platform they run on, for Ignition.
var platformArguments = []string{"ignition.platform.id", "flatcar.oem.id", "coreos.oem.id"}

// readsDrive says whether the image's Ignition looks for a config drive. One that says nothing of its platform does.
func (i Image) needsConfigDrive() bool {
	for _, argument := range i.KernelArguments {
		key, value, _ := strings.Cut(argument, "=")
		if slices.Contains(platformArguments, key) && value != "openstack" {
			return false
		}
	}
	return true
}

// ignite is the first boot's initial ramdisk, which nothing on the disk is older than. With arguments that the kernel
// does not have yet the machine starts again before anything else: the first real boot has them.
func (s *System) runIgnition(drive *ConfigDrive) error {
	if s.Ignited {
		return nil
	}
	var text []byte
	if drive != nil && s.Image.needsConfigDrive() {
		text = drive.UserData
		s.InstanceID = drive.MetaData.UUID
	}
	made, err := ignition.Apply(text, ignition.Root{OS: s.Image.OS.ID, Read: s.File})
	if err != nil {
		return err
	}
	for path, file := range made.Files {
		s.Files[path] = File(file)
	}
	s.Links, s.Directories = made.Links, made.Directories
	s.Arguments = Arguments{Added: made.Added, Removed: made.Removed}
	for _, unit := range made.Masked {
		s.Masked[unit] = true
	}
	for _, unit := range made.Unmasked {
		delete(s.Masked, unit)
	}
	for _, unit := range made.Enabled {
		if s.canEnable(unit) {
			s.Enabled[unit] = true
		}
	}
	for _, unit := range made.Disabled {
		delete(s.Enabled, unit)
	}
	s.applyUnitLinks()
	name, _ := s.File("/etc/hostname")
	s.Hostname = firstNonEmpty(strings.TrimSpace(string(name)), "localhost")
	s.Ignited = true
	return nil
}

// linked are the units that links enable and mask by hand.
func (s *System) applyUnitLinks() {
	for _, path := range slices.Sorted(maps.Keys(s.Links)) {
		below, ok := strings.CutPrefix(path, unitDirectory)
		if !ok {
			continue
		}
		folder, unit, inFolder := strings.Cut(below, "/")
		switch {
		case s.Links[path] == "/dev/null" && !inFolder:
			s.Masked[below] = true
		case inFolder && (strings.HasSuffix(folder, ".wants") || strings.HasSuffix(folder, ".requires")):
			s.Enabled[unit] = true
		}
	}
}

// installable says whether enabling the unit does something. One that was never written is the image's, which can be.
func (s *System) canEnable(unit string) bool {
	written, ok := s.Files[unitDirectory+unit]
	if !ok {
		return true
	}
	install := unitFile{environment: map[string]string{}, lists: map[string][]string{}}
	s.parseUnit(&install, string(written.Content))
	return len(install.lists["WantedBy"])+len(install.lists["RequiredBy"])+len(install.lists["Also"])+len(install.lists["Alias"]) > 0
}
