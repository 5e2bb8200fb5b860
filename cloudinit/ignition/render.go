package ignition

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clarketm/json"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"gopkg.in/yaml.v3"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Config describes the node that a configuration is rendered for.
type Config struct {
	// Variant of the image.
	Variant Variant
	// Layers are the users' butane documents. A later one takes precedence over an earlier one.
	Layers []Layer
	// Hostname of the node.
	Hostname string
	// SSHKeys are authorized for the user core.
	SSHKeys []string
	// KernelArguments that the node needs. Baked are those that the image has already.
	KernelArguments, Baked []string
	// Packages that the node needs. No variant can install packages.
	Packages []string
	// Files of the node that have no secret.
	Files []v1alpha1.NodeFile
	// Units to enable. A unit that the image does not have has its content.
	Units []v1alpha1.SystemdUnit
	// Reserved are the paths that users may not write to, in addition to those of Files.
	Reserved []string
	// Secret are the files that have secrets. They are added last.
	Secret []v1alpha1.NodeFile
	// SecretData are files of bytes that have secrets. They are added before those of Secret.
	SecretData []Data
}

// Data is a file of bytes.
type Data struct {
	// Path is absolute; Mode is its permissions in octal, 0600.
	Path, Mode string
	// Content of the file.
	Content []byte
}

// Layer is a user's butane document.
type Layer struct {
	// Name is the name of the object that has the layer, and Property the key of its property; an empty Property: the layer is the
	// object's userData.
	Name, Property string
	// Text of the document. A blank document is ignored.
	Text string
}

// user is the user that every variant has, and the only one that openshift accepts.
const user = "core"

// Render returns the Ignition configuration. Errors are *Unsupported, *Invalid or *Conflict.
func Render(c Config) ([]byte, error) {
	merged, err := c.mergeWithoutSecrets()
	if err != nil {
		return nil, err
	}
	if len(c.Secret)+len(c.SecretData) > 0 {
		// This is the last step, so that no error of an earlier step can quote a secret.
		secret, err := c.toIgnition(butane{Storage: storage{Files: append(dataFiles(c.SecretData), files(c.Secret)...)}})
		if err != nil {
			return nil, err
		}
		merged = v3_4.Merge(merged, secret)
	}
	out, err := json.MarshalIndent(merged, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render Ignition: %w", err)
	}
	return append(out, '\n'), nil
}

// Validate reports errors in the users' layers, and what the node needs and the variant does not have. The errors are those of
// Render.
func Validate(c Config) error {
	_, err := c.mergeWithoutSecrets()
	return err
}

// mergeWithoutSecrets merges the users' layers and Ingot's document without the files that have secrets.
func (c Config) mergeWithoutSecrets() (types.Config, error) {
	c, err := c.placeFiles()
	if err != nil {
		return types.Config{}, err
	}
	document, err := c.butaneDocument()
	if err != nil {
		return types.Config{}, err
	}
	layers, err := c.mergeLayers(document)
	if err != nil {
		return types.Config{}, err
	}
	ours, err := c.toIgnition(document)
	if err != nil {
		return types.Config{}, err
	}
	return v3_4.Merge(layers, ours), nil
}

// placeFiles moves files to paths that can be written to on the variant, and changes these paths in all files and units.
func (c Config) placeFiles() (Config, error) {
	var moves []string
	out := c
	out.Files = slices.Clone(c.Files)
	for i, f := range c.Files {
		to, err := c.Variant.writablePath(f.Path)
		if err != nil {
			return c, err
		}
		if to != f.Path {
			moves = append(moves, f.Path, to)
			out.Files[i].Path = to
		}
	}
	if len(moves) == 0 {
		return out, nil
	}
	move := strings.NewReplacer(moves...)
	for i := range out.Files {
		out.Files[i].Content = move.Replace(out.Files[i].Content)
	}
	out.Units = slices.Clone(c.Units)
	for i := range out.Units {
		out.Units[i].Content = move.Replace(out.Units[i].Content)
	}
	return out, nil
}

// butane is the part of a butane document that Ingot writes.
type butane struct {
	Passwd  passwd          `yaml:"passwd,omitempty"`
	Storage storage         `yaml:"storage,omitempty"`
	Systemd systemd         `yaml:"systemd,omitempty"`
	Kernel  kernelArguments `yaml:"kernel_arguments,omitempty"`
}

type passwd struct {
	Users []account `yaml:"users,omitempty"`
}

type account struct {
	Name string   `yaml:"name"`
	Keys []string `yaml:"ssh_authorized_keys"`
}

type storage struct {
	Files []file `yaml:"files,omitempty"`
}

type file struct {
	Path      string   `yaml:"path"`
	Overwrite bool     `yaml:"overwrite"`
	Mode      int      `yaml:"mode"`
	Contents  contents `yaml:"contents"`
}

// contents has either the text or a data URL.
type contents struct {
	Inline *string `yaml:"inline,omitempty"`
	Source *string `yaml:"source,omitempty"`
}

type systemd struct {
	Units []unit `yaml:"units,omitempty"`
}

type unit struct {
	Name     string `yaml:"name"`
	Enabled  bool   `yaml:"enabled"`
	Contents string `yaml:"contents,omitempty"`
}

type kernelArguments struct {
	ShouldExist []string `yaml:"should_exist,omitempty"`
}

// butaneDocument returns Ingot's butane document. The error is an *Unsupported.
func (c Config) butaneDocument() (butane, error) {
	if len(c.Packages) > 0 {
		return butane{}, unsupported("the node needs the packages %s, and %s has no package manager that Ignition could call: bake them into the image", strings.Join(c.Packages, ", "), c.Variant)
	}
	var out butane
	for _, a := range c.KernelArguments {
		if !slices.Contains(c.Baked, a) {
			out.Kernel.ShouldExist = append(out.Kernel.ShouldExist, a)
		}
	}
	if len(out.Kernel.ShouldExist) > 0 && c.Variant == OpenShift {
		return butane{}, unsupported("the node needs the kernel arguments %s, which openshift takes from a MachineConfig and not from Ignition: bake them into the image, and add them to its kernelArguments",
			strings.Join(out.Kernel.ShouldExist, " "))
	}
	if len(c.SSHKeys) > 0 {
		out.Passwd.Users = []account{{Name: user, Keys: c.SSHKeys}}
	}
	out.Storage.Files = append(files([]v1alpha1.NodeFile{{Path: pathHostname, Mode: "0644", Content: c.Hostname + "\n"}}), files(c.Files)...)
	for _, u := range c.Units {
		out.Systemd.Units = append(out.Systemd.Units, unit{Name: u.Name, Enabled: true, Contents: u.Content})
	}
	return out, nil
}

const pathHostname = "/etc/hostname"

// files returns files with text as content.
func files(from []v1alpha1.NodeFile) []file {
	out := make([]file, len(from))
	for i, f := range from {
		out[i] = file{Path: f.Path, Overwrite: true, Mode: permissions(f.Mode), Contents: contents{Inline: &f.Content}}
	}
	return out
}

// dataFiles returns files with data URLs as content, because YAML text cannot have every byte.
func dataFiles(from []Data) []file {
	out := make([]file, len(from))
	for i, f := range from {
		source := "data:;base64," + base64.StdEncoding.EncodeToString(f.Content)
		out[i] = file{Path: f.Path, Overwrite: true, Mode: permissions(f.Mode), Contents: contents{Source: &source}}
	}
	return out
}

// permissions returns the mode as a number; 0600 when it is not octal.
func permissions(octal string) int {
	mode, err := strconv.ParseInt(octal, 8, 0)
	if err != nil {
		return 0o600
	}
	return int(mode)
}

// toIgnition translates a document of Ingot. The error is an *Unsupported.
func (c Config) toIgnition(b butane) (types.Config, error) {
	text, err := yaml.Marshal(b)
	if err != nil {
		return types.Config{}, fmt.Errorf("render butane: %w", err)
	}
	out, findings := translate(c.Variant, Layer{Name: "Ingot", Text: header[c.Variant] + string(text)})
	if len(findings) > 0 {
		return types.Config{}, unsupported("%s does not take what the node needs: %s", c.Variant, findings[0])
	}
	return out, nil
}
