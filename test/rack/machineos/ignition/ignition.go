package ignition

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	failures "github.com/coreos/ignition/v2/config/shared/errors"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/coreos/vcontext/report"
)

// ErrRefused is the error of a configuration that Ignition does not accept or cannot apply.
var ErrRefused = errors.New("ignition")

const unitDirectory = "/etc/systemd/system/"

// Root is the root file system before Ignition runs.
type Root struct {
	// OS is the ID in os-release.
	OS string
	// Read returns the content of a file.
	Read func(path string) ([]byte, bool)
}

// Changes are the changes that Ignition makes to a system.
type Changes struct {
	// Files by path.
	Files map[string]File
	// Links are symbolic links, by path. Hard links are in Files.
	Links map[string]string
	// Directories are the directories of the configuration, with their mode in octal.
	Directories map[string]string
	// Enabled, Disabled, Masked and Unmasked are units in the order of the configuration.
	Enabled, Disabled, Masked, Unmasked []string
	// Added and Removed are kernel arguments.
	Added, Removed []string
}

// File is a file that Ignition writes.
type File struct {
	Content []byte
	// Mode in octal.
	Mode string
}

// Apply reads a configuration and returns the changes that it makes. Empty text makes none. Every error is an ErrRefused.
func Apply(text []byte, root Root) (Changes, error) {
	out := Changes{Files: map[string]File{}, Links: map[string]string{}, Directories: map[string]string{}}
	config, problems, err := parse(text)
	if errors.Is(err, failures.ErrEmpty) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("%w: %w%s", ErrRefused, err, describeErrors(problems))
	}
	if config.Ignition.Config.Replace.Source != nil || len(config.Ignition.Config.Merge) > 0 {
		return out, fmt.Errorf("%w: ignition.config names another configuration, and nothing is fetched here", ErrRefused)
	}
	m := provisioner{root: root, Changes: out}
	for _, step := range []func(types.Config) error{m.makeDirectories, m.makeFiles, m.makeLinks, m.writeSSHKeys, m.makeUnits} {
		if err := step(config); err != nil {
			return m.Changes, err
		}
	}
	for _, argument := range config.KernelArguments.ShouldExist {
		m.Added = append(m.Added, strings.Fields(string(argument))...)
	}
	for _, argument := range config.KernelArguments.ShouldNotExist {
		m.Removed = append(m.Removed, strings.Fields(string(argument))...)
	}
	return m.Changes, nil
}

// parse calls Ignition's parser. A panic of the parser is reported as an invalid configuration.
func parse(text []byte) (config types.Config, problems report.Report, err error) {
	defer func() {
		if recover() != nil {
			err = failures.ErrInvalid
		}
	}()
	return v3_4.ParseCompatibleVersion(text)
}

// describeErrors returns the places of errors and the validator's messages. A message with quotes is replaced, because it
// may quote secret content.
func describeErrors(problems report.Report) string {
	var out strings.Builder
	for _, e := range problems.Entries {
		if e.Kind != report.Error {
			continue
		}
		message, _, _ := strings.Cut(e.Message, ":")
		if strings.ContainsAny(message, "\"'`") {
			message = "it is not what Ignition takes"
		}
		fmt.Fprintf(&out, "; %s: %s", e.Context.String(), message)
	}
	return out.String()
}

// provisioner collects the changes of one configuration.
type provisioner struct {
	Changes
	root Root
}

// checkWritable returns an error for a path on a read-only file system.
func (m *provisioner) checkWritable(name string) error {
	local := strings.HasPrefix(name, "/usr/local/") && m.root.OS != "flatcar"
	if strings.HasPrefix(path.Clean(name)+"/", "/usr/") && !local {
		return fmt.Errorf("%w: creating %s: read-only file system", ErrRefused, name)
	}
	return nil
}

// isTaken reports whether a file exists at the path that may not be overwritten.
func (m *provisioner) isTaken(node types.Node) bool {
	if node.Overwrite != nil && *node.Overwrite {
		return false
	}
	_, written := m.Files[node.Path]
	_, there := m.root.Read(node.Path)
	return written || there
}

func (m *provisioner) makeDirectories(config types.Config) error {
	for _, d := range config.Storage.Directories {
		if err := m.checkWritable(d.Path); err != nil {
			return err
		}
		if _, file := m.root.Read(d.Path); file && (d.Overwrite == nil || !*d.Overwrite) {
			return fmt.Errorf("%w: error creating directory %s: a non-directory already exists and overwrite is false", ErrRefused, d.Path)
		}
		m.Directories[d.Path] = formatMode(d.Mode, 0o755)
	}
	return nil
}

func (m *provisioner) makeFiles(config types.Config) error {
	inOrder := slices.Clone(config.Storage.Files)
	slices.SortStableFunc(inOrder, func(a, b types.File) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range inOrder {
		if err := m.checkWritable(f.Path); err != nil {
			return err
		}
		if err := m.makeFile(f); err != nil {
			return err
		}
	}
	return nil
}

func (m *provisioner) makeFile(f types.File) error {
	var content []byte
	before, there := m.root.Read(f.Path)
	switch {
	case f.Contents.Source != nil && m.isTaken(f.Node):
		return fmt.Errorf("%w: error creating file %s: a file exists there already and overwrite is false", ErrRefused, f.Path)
	case f.Contents.Source != nil:
		var err error
		if content, err = decodeContent(f.Path, f.Contents); err != nil {
			return err
		}
	case there && (f.Overwrite == nil || !*f.Overwrite):
		content = slices.Clone(before)
	}
	for _, more := range f.Append {
		next, err := decodeContent(f.Path, more)
		if err != nil {
			return err
		}
		content = append(content, next...)
	}
	m.Files[f.Path] = File{Content: content, Mode: formatMode(f.Mode, 0o644)}
	return nil
}

func (m *provisioner) makeLinks(config types.Config) error {
	for _, l := range config.Storage.Links {
		if err := m.checkWritable(l.Path); err != nil {
			return err
		}
		if m.isTaken(l.Node) {
			return fmt.Errorf("%w: error creating link %s: a file exists there already and overwrite is false", ErrRefused, l.Path)
		}
		if l.Target == nil {
			continue
		}
		if l.Hard == nil || !*l.Hard {
			m.Links[l.Path] = *l.Target
			continue
		}
		content, ok := m.Files[*l.Target]
		if before, there := m.root.Read(*l.Target); !ok && there {
			content, ok = File{Content: before, Mode: "0644"}, true
		}
		if !ok {
			return fmt.Errorf("%w: error creating hard link %s: no file at its target", ErrRefused, l.Path)
		}
		m.Files[l.Path] = content
	}
	return nil
}

// writeSSHKeys writes the users' SSH keys, each to a file in the user's home directory.
func (m *provisioner) writeSSHKeys(config types.Config) error {
	for _, u := range config.Passwd.Users {
		var keys strings.Builder
		for _, key := range u.SSHAuthorizedKeys {
			keys.WriteString(string(key) + "\n")
		}
		if keys.Len() == 0 || u.ShouldExist != nil && !*u.ShouldExist {
			continue
		}
		home := "/home/" + u.Name
		if u.Name == "root" {
			home = "/root"
		}
		if u.HomeDir != nil && *u.HomeDir != "" {
			home = *u.HomeDir
		}
		name := home + "/.ssh/authorized_keys.d/ignition"
		if m.root.OS == "flatcar" {
			name = home + "/.ssh/authorized_keys"
		}
		m.Files[name] = File{Content: []byte(keys.String()), Mode: "0600"}
	}
	return nil
}

func (m *provisioner) makeUnits(config types.Config) error {
	for _, u := range config.Systemd.Units {
		if u.Contents != nil && *u.Contents != "" {
			m.Files[unitDirectory+u.Name] = File{Content: []byte(*u.Contents), Mode: "0644"}
		}
		for _, d := range u.Dropins {
			if d.Contents != nil && *d.Contents != "" {
				m.Files[unitDirectory+u.Name+".d/"+d.Name] = File{Content: []byte(*d.Contents), Mode: "0644"}
			}
		}
		addByValue(u.Name, u.Mask, &m.Masked, &m.Unmasked)
		addByValue(u.Name, u.Enabled, &m.Enabled, &m.Disabled)
	}
	return nil
}

// addByValue adds the name to the list for true or the list for false; without a value it adds nothing.
func addByValue(name string, said *bool, yes, no *[]string) {
	switch {
	case said == nil:
	case *said:
		*yes = append(*yes, name)
	default:
		*no = append(*no, name)
	}
}

func formatMode(mode *int, otherwise int) string {
	if mode != nil {
		otherwise = *mode
	}
	return fmt.Sprintf("%04o", otherwise)
}
