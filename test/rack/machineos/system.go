package machineos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// State is what an installed system keeps on its disk.
type State struct {
	// InstanceID is cloud-init's: its once-per-instance work is done for this one.
	InstanceID string `json:"instanceID"`
	Hostname   string `json:"hostname"`
	// Files were written by cloud-init.
	Files map[string]File `json:"files"`
	// Enabled are the units that start with every boot, masked those that never do; with their suffix.
	Enabled map[string]bool `json:"enabled"`
	Masked  map[string]bool `json:"masked"`
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
	// running are the units that were started in this boot, failures why others were not.
	running  map[string]bool
	failures map[string]error
	// Ignored are the commands that do nothing here, Failed why others of cloud-init's failed.
	Ignored []string
	Failed  []error
}

// Boot starts the image: with what is left of earlier boots (nil: the first), and with what cloud-init makes of the
// drive (nil: there is none). The error tells what cloud-init would have put into its log; the system runs all the same.
func Boot(image Image, drive *ConfigDrive, earlier *State, machine Machine) (*System, error) {
	s := &System{Image: image, machine: machine, running: map[string]bool{}, failures: map[string]error{}}
	if earlier != nil {
		s.State = *earlier
	}
	s.Files, s.Enabled, s.Masked = orEmpty(s.Files), orEmpty(s.Enabled), orEmpty(s.Masked)
	for _, unit := range machine.Missing {
		delete(s.Files, unitDirectory+unit)
		delete(s.Enabled, unit)
	}
	s.start(slices.Collect(maps.Keys(s.Enabled))...)
	if drive == nil {
		return s, nil
	}
	if drive.MetaData.UUID == "" {
		return s, fmt.Errorf("%w: meta_data.json has no uuid", ErrNoConfigDrive)
	}
	config, err := parseUserData(drive.UserData)
	if err != nil {
		return s, err
	}
	for _, command := range config.BootCmd {
		s.run(command)
	}
	if drive.MetaData.UUID == s.InstanceID {
		return s, nil
	}
	s.InstanceID = drive.MetaData.UUID
	s.Hostname = firstOf(config.Hostname, config.FQDN, drive.MetaData.Hostname, drive.MetaData.LocalHostname, "localhost")
	return s, s.configure(config)
}

// configure does what cloud-init does once per instance.
func (s *System) configure(config cloudConfig) error {
	var failed error
	for _, late := range []bool{false, true} {
		for _, file := range config.Files {
			if file.Defer != late || slices.ContainsFunc(s.machine.Missing, func(unit string) bool { return file.Path == unitDirectory+unit }) {
				continue
			}
			content, err := file.decoded()
			if err != nil {
				failed = err // cloud-init goes on with the next module
				break
			}
			if file.Append {
				content = append(slices.Clone(s.Files[file.Path].Content), content...)
			}
			s.Files[file.Path] = File{Content: content, Mode: file.mode()}
		}
	}
	for _, command := range config.RunCmd {
		s.run(command)
	}
	return failed
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// run interprets the commands that change what runs, those of systemctl, and those that change the machine.
func (s *System) run(command any) {
	for _, words := range commandLines(command) {
		if len(words) > 1 && strings.TrimPrefix(words[0], "/usr/bin/") == "systemctl" {
			s.systemctl(words[1:])
			continue
		}
		if known, err := s.call(words, nil); known {
			if err != nil {
				s.Failed = append(s.Failed, err)
			}
			continue
		}
		s.Ignored = append(s.Ignored, words[0])
	}
}

// Systemctl is the program, with the words behind its name. Its error is that of a question with the answer no.
func (s *System) Systemctl(words []string) error {
	if len(words) > 1 && words[0] == "is-active" {
		for _, unit := range words[1:] {
			if !strings.HasPrefix(unit, "-") && !s.Running(unit) {
				return fmt.Errorf("%s: inactive", unit)
			}
		}
		return nil
	}
	s.systemctl(words)
	return nil
}

func (s *System) systemctl(words []string) {
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
		for _, unit := range units {
			if verb != "start" {
				delete(s.running, unit)
			}
		}
		s.start(units...)
		return
	}
	for _, unit := range units {
		s.change(verb, unit, now)
	}
}

func (s *System) change(verb, unit string, now bool) {
	switch verb {
	case "enable":
		if slices.Contains(s.machine.Missing, unit) {
			s.failures[unit] = fmt.Errorf("%s: %w", unit, errNotFound)
			return
		}
		s.Enabled[unit] = true
		if now {
			s.start(unit)
		}
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
}

func unitName(word string) string {
	if strings.Contains(word, ".") {
		return word
	}
	return word + ".service"
}

// ReadFile returns a file that cloud-init wrote.
func (s *System) ReadFile(path string) ([]byte, error) {
	file, ok := s.Files[path]
	if !ok {
		return nil, fmt.Errorf("open %s: no such file or directory", path)
	}
	return file.Content, nil
}

// PrettyName is how the system calls itself, PRETTY_NAME of os-release.
func (s *System) PrettyName() string {
	names := map[string]string{"debian": "Debian GNU/Linux", "ubuntu": "Ubuntu", "flatcar": "Flatcar Container Linux by Kinvolk", "rocky": "Rocky Linux"}
	return strings.TrimSpace(firstOf(names[s.Image.OS.ID], s.Image.OS.ID) + " " + s.Image.OS.Version)
}
