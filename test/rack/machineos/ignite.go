package machineos

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos/ignition"
)

// ErrEmergency is the error of a system that did not boot and waits in the emergency shell of its initial ramdisk.
var ErrEmergency = errors.New("emergency mode")

// platformArguments are the kernel arguments that tell Ignition the platform.
var platformArguments = []string{"ignition.platform.id", "flatcar.oem.id", "coreos.oem.id"}

// needsConfigDrive reports whether the image's Ignition reads a config drive. It does unless a kernel argument names
// another platform than openstack.
func (i Image) needsConfigDrive() bool {
	for _, argument := range i.KernelArguments {
		key, value, _ := strings.Cut(argument, "=")
		if slices.Contains(platformArguments, key) && value != "openstack" {
			return false
		}
	}
	return true
}

// runIgnition runs Ignition in the initial ramdisk of the first boot. A real machine reboots at once when Ignition changes
// the kernel arguments; here the first boot already has them.
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

// applyUnitLinks enables and masks the units for which Ignition has made links.
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

// canEnable reports whether enabling the unit has an effect. A unit without a file is the image's own and can be enabled.
func (s *System) canEnable(unit string) bool {
	written, ok := s.Files[unitDirectory+unit]
	if !ok {
		return true
	}
	install := unitFile{environment: map[string]string{}, lists: map[string][]string{}}
	s.parseUnit(&install, string(written.Content))
	return len(install.lists["WantedBy"])+len(install.lists["RequiredBy"])+len(install.lists["Also"])+len(install.lists["Alias"]) > 0
}
