package machineos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos/netdata"
	"github.com/ingot-dev/ingot/test/rack/machineos/userdata"
)

// runCloudInit does what cloud-init does in one boot. It goes on after an error; the error holds what cloud-init would log.
func (s *System) runCloudInit(drive *ConfigDrive) error {
	if drive == nil {
		return nil
	}
	if drive.MetaData.UUID == "" {
		return fmt.Errorf("%w: meta_data.json has no uuid", ErrNoConfigDrive)
	}
	network, failed := netdata.Parse(drive.NetworkData, s.machine.MACs)
	s.Network = network
	document, err := userdata.Parse(drive.UserData)
	failed = errors.Join(failed, err)
	for _, command := range document.BootCmd {
		s.runCommand(command)
	}
	if drive.MetaData.UUID == s.InstanceID {
		return failed
	}
	s.InstanceID = drive.MetaData.UUID
	s.Hostname = firstNonEmpty(document.Hostname, document.FQDN, drive.MetaData.Hostname, drive.MetaData.LocalHostname, "localhost")
	return errors.Join(failed, s.configureInstance(document))
}

// configureInstance does what cloud-init does once per instance.
func (s *System) configureInstance(document userdata.Document) error {
	err := s.writeFiles(document.Files, false)
	if len(document.SSHKeys) > 0 {
		// The image's user is called as the distribution.
		s.Files["/home/"+firstNonEmpty(s.Image.OS.ID, "cloud-user")+"/.ssh/authorized_keys"] = File{Content: []byte(strings.Join(document.SSHKeys, "\n") + "\n"), Mode: "0600"}
	}
	for _, wanted := range document.Packages {
		for _, words := range userdata.CommandLines(wanted) {
			s.Packages = append(s.Packages, strings.Join(words, "="))
		}
	}
	s.installPackages()
	if late := s.writeFiles(document.Files, true); err == nil {
		err = late
	}
	s.runScripts(document)
	return err
}

// installPackages adds the software of the installed packages to the image.
func (s *System) installPackages() {
	if s.machine.Install == nil || len(s.Packages) == 0 {
		return
	}
	if err := s.machine.Install(&s.Image, s.Packages); err != nil {
		s.Failed = append(s.Failed, err)
	}
	s.modules.Exists = s.Image.hasModule
}

// writeFiles runs the module write_files, or write_files_deferred when late is set. It stops at the first file that cannot
// be written.
func (s *System) writeFiles(files []userdata.File, late bool) error {
	for _, file := range files {
		if file.Defer != late || s.isMissingUnit(file.Path) {
			continue
		}
		content, err := file.Decode()
		if err != nil {
			return err
		}
		if before, there := s.File(file.Path); there && file.Append {
			content = append(slices.Clone(before), content...)
		}
		s.Files[file.Path] = File{Content: content, Mode: file.Mode()}
	}
	return nil
}

// runScripts runs the user's scripts in the order of their file names, and the commands of runcmd as a script of that name.
// A script that fails does not stop the others.
func (s *System) runScripts(document userdata.Document) {
	const runcmd = "runcmd"
	texts := map[string]string{}
	for _, script := range document.Scripts {
		texts[script.Name] = script.Text
	}
	if len(document.RunCmd) > 0 {
		texts[runcmd] = "" // written later, over a script of that name
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if name != runcmd || texts[name] != "" {
			if err := s.runScript(texts[name], nil); err != nil {
				s.Failed = append(s.Failed, fmt.Errorf("the script %s: %w", name, err))
			}
			continue
		}
		for _, command := range document.RunCmd {
			s.runCommand(command)
		}
	}
}

// runCommand runs the programs of a command that have an effect here, and records the others as ignored.
func (s *System) runCommand(command any) {
	for _, words := range userdata.CommandLines(command) {
		known, err := s.callProgram(words, nil)
		switch {
		case !known:
			s.Ignored = append(s.Ignored, words[0])
		case err != nil:
			s.Failed = append(s.Failed, err)
		}
	}
}
