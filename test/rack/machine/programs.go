package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/nvtool"
	"github.com/ingot-dev/ingot/test/rack/shell"
)

// programs returns the programs with an effect on accelerators, for services that start them without a shell.
func (m *Machine) programs() map[string]machineos.Program {
	out := map[string]machineos.Program{}
	for name, program := range m.commands(nil) {
		if program == nil {
			out[name] = nil
			continue
		}
		out[name] = func(arguments []string, environment map[string]string, _ func(string) ([]byte, error)) error {
			return program(shell.Call{Arguments: arguments, Environment: environment, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
		}
	}
	return out
}

// runShell runs a script of the system.
func (m *Machine) runShell(system *machineos.System, text string, environment map[string]string, arguments []string) error {
	m.System = system
	m.syncModules(system)
	return shell.Machine{Files: files{m, system}, Programs: m.commands(system)}.Run(text, environment, arguments...)
}

// commands returns the programs that change something or whose output scripts read. NVIDIA's programs come with its driver.
func (m *Machine) commands(system *machineos.System) map[string]shell.Program {
	out := map[string]shell.Program{"nvidia-smi": nil, "nvidia-mig-parted": nil, "nvidia-vgpu-dm": nil, "sriov-manage": nil, "nvidia-ctk": nil, "nvidia-container-runtime": nil}
	read := func(path string) ([]byte, error) { return m.System.ReadFile(path) }
	out["ip"] = m.showAddresses
	if system != nil {
		read = system.ReadFile
		out["systemctl"] = func(c shell.Call) error { return system.Systemctl(c.Arguments) }
		out["modprobe"] = func(c shell.Call) error { return m.modprobe(system, c.Arguments) }
		if m.installed.Software.ContainerToolkit != "" {
			disk := files{m, system}
			out["nvidia-container-runtime"] = func(shell.Call) error { return nil }
			out["nvidia-ctk"] = func(c shell.Call) error {
				return nvtool.CTK{Read: disk.ReadFile, Write: disk.WriteFile}.Run(c.Arguments, c.Stdout)
			}
		}
		out["curl"] = func(c shell.Call) error { return m.report(system, c) }
	}
	if !m.hasDriver("nvidia") {
		return out
	}
	out["nvidia-smi"] = m.runSMI
	if slices.Contains(m.installed.Programs, "nvidia-mig-parted") {
		out["nvidia-mig-parted"] = func(c shell.Call) error {
			return nvtool.MIGParted{GPUs: m.GPUs(), RenameProfile: m.options.RenameProfile}.Run(c.Arguments, c.Environment, read)
		}
	}
	if m.IsVGPUManager() {
		out["sriov-manage"] = func(shell.Call) error { return m.Bus.EnableVirtualFunctions() }
		if slices.Contains(m.installed.Programs, "nvidia-vgpu-dm") {
			out["nvidia-vgpu-dm"] = func(c shell.Call) error { return m.VGPUDM().Run(c.Arguments, read) }
		}
	}
	return out
}

// VGPUDM returns nvidia-vgpu-dm for the machine.
func (m *Machine) VGPUDM() nvtool.VGPUDM { return nvtool.VGPUDM{Bus: m.Bus, GPUs: m.GPUs()} }

// MIGParted returns nvidia-mig-parted for the machine.
func (m *Machine) MIGParted() nvtool.MIGParted {
	return nvtool.MIGParted{GPUs: m.GPUs(), RenameProfile: m.options.RenameProfile}
}

func (m *Machine) runSMI(c shell.Call) error {
	if err := nvtool.RunSMI(m.GPUs(), c.Arguments); err != nil {
		return err
	}
	text, err := nvtool.QuerySMI(m.GPUs(), c.Arguments, m.licensed)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.Stdout, text)
	return err
}

// modprobe loads and unloads modules, also blacklisted ones.
func (m *Machine) modprobe(system *machineos.System, words []string) error {
	if err := system.Modprobe(words); err != nil {
		return err
	}
	remove := len(words) > 0 && (words[0] == "-r" || words[0] == "--remove")
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			continue
		}
		module := strings.ReplaceAll(word, "-", "_")
		if remove {
			m.removed[module] = true
			m.Bus.UnloadModule(module)
			continue
		}
		delete(m.removed, module)
		m.loadModule(system, module)
	}
	return nil
}

// services returns the effects of the vendors' services.
func (m *Machine) services() map[string]func(*machineos.System) error {
	nvidia := func(system *machineos.System) error {
		m.syncModules(system)
		if len(m.GPUs()) == 0 {
			return errors.New("NVIDIA's driver drives no GPU")
		}
		return nil
	}
	return map[string]func(*machineos.System) error{
		"nvidia-persistenced.service": nvidia,
		"nvidia-fabricmanager.service": func(system *machineos.System) error {
			version := m.installed.Software.FabricManager
			if err := nvidia(system); err != nil || version == "" || version == m.driver.Version {
				return err
			}
			return fmt.Errorf("fabric manager %s: the driver is %s, and the versions do not match", version, m.driver.Version)
		},
		"nvidia-gridd.service": m.requestLicense,
		"nvidia-vgpu-mgr.service": func(system *machineos.System) error {
			if err := nvidia(system); err != nil || m.IsVGPUManager() {
				return err
			}
			return errors.New("the driver is no vGPU manager")
		},
	}
}

// requestLicense gets a licence when there is a token and the feature type in gridd.conf is valid.
func (m *Machine) requestLicense(system *machineos.System) error {
	m.syncModules(system)
	token, err := system.ReadFile("/etc/nvidia/ClientConfigToken/client_configuration_token.tok")
	if err != nil || len(token) == 0 {
		return nil // the service runs and waits for one
	}
	config, err := system.ReadFile("/etc/nvidia/gridd.conf")
	if err != nil {
		return nil
	}
	feature := "0"
	for line := range strings.Lines(string(config)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && key == "FeatureType" {
			feature = value
		}
	}
	// Without a feature type the driver asks for that of its vGPU type.
	m.licensed = slices.Contains([]string{"1", "2", "4"}, feature) || !strings.Contains(string(config), "FeatureType")
	return nil
}

// files gives scripts access to sysfs and to the files on the disk.
type files struct {
	machine *Machine
	system  *machineos.System
}

// ReadFile implements shell.Files.
func (f files) ReadFile(path string) ([]byte, error) {
	if text, ok := f.machine.topologyFile(path); ok {
		return []byte(text), nil
	}
	if path == bootIDFile {
		return []byte(f.machine.options.Boot + "\n"), nil
	}
	if isVirtualPath(path) {
		return f.machine.Bus.ReadFile(path)
	}
	if content, ok := f.system.File(path); ok {
		return content, nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// WriteFile implements shell.Files.
func (f files) WriteFile(path string, content []byte) error {
	if isVirtualPath(path) {
		return f.machine.Bus.WriteFile(path, content)
	}
	f.system.Files[path] = machineos.File{Content: slices.Clone(content), Mode: "0644"}
	return nil
}

// Remove implements shell.Files.
func (f files) Remove(path string) { delete(f.system.Files, path) }

// List implements shell.Files.
func (f files) List(path string) ([]string, error) {
	if names := f.machine.topologyNames(path); len(names) > 0 {
		return names, nil
	}
	if isVirtualPath(path) {
		return f.machine.Bus.List(path)
	}
	found := map[string]bool{}
	for name := range f.system.Files {
		if below, ok := strings.CutPrefix(name, strings.TrimSuffix(path, "/")+"/"); ok {
			first, _, _ := strings.Cut(below, "/")
			found[first] = true
		}
	}
	if len(found) == 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Readlink implements shell.Files.
func (f files) Readlink(path string) (string, bool) { return f.machine.Bus.Readlink(path) }

func isVirtualPath(path string) bool {
	return path == "/sys" || strings.HasPrefix(path, "/sys/") || strings.HasPrefix(path, "/proc/")
}
