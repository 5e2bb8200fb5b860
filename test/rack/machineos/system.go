package machineos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos/kernel"
	"github.com/ingot-dev/ingot/test/rack/machineos/netdata"
)

// State is what an installed system keeps on its disk between boots.
type State struct {
	// InstanceID is the instance for which cloud-init has done its work.
	InstanceID string `json:"instanceID"`
	Hostname   string `json:"hostname"`
	// Ignited means that Ignition has run, which it does once.
	Ignited bool `json:"ignited"`
	// Files are the files that cloud-init or Ignition has written.
	Files map[string]File `json:"files"`
	// Links and Directories were made by Ignition: the targets of links and the modes of directories, by path.
	Links       map[string]string `json:"links"`
	Directories map[string]string `json:"directories"`
	// Enabled are the units that start in every boot, Masked those that never start; names have their suffix.
	Enabled map[string]bool `json:"enabled"`
	Masked  map[string]bool `json:"masked"`
	// Packages are the packages that cloud-init has installed, NAME or NAME=VERSION.
	Packages []string `json:"packages"`
	// Arguments are Ignition's changes of the kernel's command line.
	Arguments Arguments `json:"arguments"`
}

// Arguments are changes of the kernel's command line.
type Arguments struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}

// File is a written file. It may hold secrets.
type File struct {
	Content []byte `json:"content"`
	Mode    string `json:"mode"`
}

// System is a system that has booted.
type System struct {
	State
	Image   Image
	machine Machine
	// running are the units that are active, failures the errors of units that failed to start.
	running  map[string]bool
	failures map[string]error
	// restarting are services that failed and that systemd restarts.
	restarting []string
	// Network is the network configuration from the config drive.
	Network netdata.Network
	// modules are the modules that were loaded in this boot; coldplugConfig is the configuration when devices were found.
	modules        kernel.Modules
	coldplugConfig kernel.Config
	// Ignored are the commands that have no effect here, Failed the errors of those that failed.
	Ignored []string
	Failed  []error
}

// Boot boots the image with what earlier boots left (nil: this is the first) and with the config drive (nil: there is
// none). The error holds what cloud-init would log, and the system runs nevertheless. After an ErrEmergency nothing runs
// and the boot leaves no state.
func Boot(image Image, drive *ConfigDrive, earlier *State, machine Machine) (*System, error) {
	s := &System{Image: image, machine: machine, running: map[string]bool{}, failures: map[string]error{}}
	if earlier != nil {
		s.State = *earlier
	}
	s.Files, s.Enabled, s.Masked = cloneMap(s.Files), cloneMap(s.Enabled), cloneMap(s.Masked)
	if image.Ignition {
		if err := s.runIgnition(drive); err != nil {
			return s, fmt.Errorf("%w: %w", ErrEmergency, err)
		}
	}
	for _, unit := range machine.Missing {
		delete(s.Files, unitDirectory+unit)
		delete(s.Enabled, unit)
	}
	if s.Packages = slices.Clone(s.Packages); len(s.Packages) > 0 {
		s.installPackages()
	}
	s.bootKernel()
	s.startUnits(slices.Collect(maps.Keys(s.Enabled))...)
	var err error
	if !image.Ignition {
		err = s.runCloudInit(drive)
	}
	s.restartServices()
	return s, err
}

// isMissingUnit reports whether the path is that of a unit in Machine.Missing.
func (s *System) isMissingUnit(path string) bool {
	return slices.ContainsFunc(s.machine.Missing, func(unit string) bool { return path == unitDirectory+unit })
}

func cloneMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// Systemctl runs systemctl with these arguments. It fails where systemctl fails: when a unit does not start or is not
// active.
func (s *System) Systemctl(words []string) error {
	verb, now := "", false
	var units []string
	for _, word := range words {
		switch {
		case word == "--now":
			now = true
		case strings.HasPrefix(word, "-"):
		case verb == "":
			verb = word
		default:
			units = append(units, unitName(word))
		}
	}
	if verb == "start" || verb == "restart" || verb == "reload-or-restart" {
		return s.systemctlStart(units, verb != "start")
	}
	var failed error
	for _, unit := range units {
		if err := s.systemctlChange(verb, unit, now); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// systemctlStart starts or restarts the units together. It returns the error of the first one that fails.
func (s *System) systemctlStart(units []string, again bool) error {
	for _, unit := range units {
		if again {
			delete(s.running, unit)
		}
	}
	s.startUnits(units...)
	for _, unit := range units {
		if err := s.failures[unit]; err != nil {
			return err
		}
	}
	return nil
}

func (s *System) systemctlChange(verb, unit string, now bool) error {
	switch verb {
	case "is-active":
		if !s.running[unit] {
			return fmt.Errorf("%s: %w", unit, errInactive)
		}
	case "enable":
		return s.enableUnit(unit, now)
	case "disable", "mask":
		if verb == "mask" {
			s.Masked[unit] = true // what it was linked into stays as it is
		} else {
			delete(s.Enabled, unit)
		}
		if now {
			delete(s.running, unit)
		}
	case "unmask":
		delete(s.Masked, unit)
	case "stop":
		delete(s.running, unit)
	}
	return nil
}

func (s *System) enableUnit(unit string, now bool) error {
	if slices.Contains(s.machine.Missing, unit) {
		s.failures[unit] = fmt.Errorf("%s: %w", unit, errNotFound)
		return s.failures[unit]
	}
	if s.canEnable(unit) {
		s.Enabled[unit] = true
	}
	if !now {
		return nil
	}
	s.startUnits(unit)
	return s.failures[unit]
}

func unitName(word string) string {
	if strings.Contains(word, ".") {
		return word
	}
	return word + ".service"
}

// ReadFile is File with an error for a file that does not exist.
func (s *System) ReadFile(path string) ([]byte, error) {
	content, ok := s.File(path)
	if !ok {
		return nil, fmt.Errorf("open %s: no such file or directory", path)
	}
	return content, nil
}

// FilesBelow returns the paths of the files below a directory, sorted.
func (s *System) FilesBelow(directory string) []string {
	var out []string
	for path := range s.Files {
		if strings.HasPrefix(path, strings.TrimSuffix(directory, "/")+"/") {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// PrettyName returns PRETTY_NAME of os-release.
func (s *System) PrettyName() string {
	names := map[string]string{"debian": "Debian GNU/Linux", "ubuntu": "Ubuntu", "fedora": "Fedora CoreOS", "flatcar": "Flatcar Container Linux by Kinvolk", "rhcos": "Red Hat Enterprise Linux CoreOS", "rocky": "Rocky Linux"}
	return strings.TrimSpace(firstNonEmpty(names[s.Image.OS.ID], s.Image.OS.ID) + " " + s.Image.OS.Version)
}
