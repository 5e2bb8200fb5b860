package machineos

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/test/rack/machineos/ignition"
	"github.com/ingot-dev/ingot/test/rack/machineos/userdata"
)

// rendered is where the documents are that the product renders, as files: nothing of what renders them is imported.
const rendered = "../../../cloudinit/testdata/"

// machineLabel is what every node of the product registers with.
const machineLabel = "ingot.dev/machine-uid="

// golden are the documents of one kind, by the name of their user data's file.
func golden(t *testing.T, ending string) map[string]*ConfigDrive {
	t.Helper()
	names, err := filepath.Glob(rendered + "*.user-data." + ending)
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents %s: %v", ending, err)
	}
	out := map[string]*ConfigDrive{}
	for _, path := range names {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		read := func(file string) []byte {
			text, err := os.ReadFile(rendered + file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			return text
		}
		// Some have only user data.
		drive := &ConfigDrive{UserData: read(filepath.Base(path)), NetworkData: read(name + ".network_data.json"), MetaData: MetaData{UUID: "of-the-test", Hostname: "of-the-test"}}
		if meta := read(name + ".meta_data.json"); meta != nil {
			if err := json.Unmarshal(meta, &drive.MetaData); err != nil {
				t.Fatal(err)
			}
		}
		out[filepath.Base(path)] = drive
	}
	return out
}

// imageOf is an image with what nodes need.
func imageOf(id string) Image {
	ignites := id != "debian"
	return Image{OS: OS{ID: id, Version: "1"}, Ignition: ignites, Software: Software{Kubelet: "1.37.0", GPUDriver: &GPUDriver{Vendor: "nvidia", Version: "580.126.09"}}}
}

// look is all that can be seen of a system.
func look(s *System, err error) string {
	var out strings.Builder
	state, _ := json.Marshal(s.State) // it is plain data
	command, cmdErr := s.Command("kubelet", "")
	fmt.Fprintf(&out, "%v %s\n%q %v\n%v %v %v\n%+v\n", err, state, command, cmdErr, slices.Sorted(maps.Keys(s.running)), s.Ignored, s.Failed, s.Network)
	for _, module := range []string{"nvidia", "nvidia_uvm", "nvidia_modeset", "nouveau", "nvidia_drm", "vfio_pci"} {
		fmt.Fprintln(&out, module, s.IsModuleLoaded(module), s.IsModuleBlacklisted(module), s.ModuleOptions(module))
	}
	return out.String()
}

// labels are those that a document says in plain text that kubelet registers with.
var labels = regexp.MustCompile(`--node-labels=\S+`)

// isNode says what is missing of a node of the product: kubelet with its configuration and these flags.
func isNode(s *System, flags ...string) error {
	var problems []error
	if !s.IsRunning("kubelet") || !s.Enabled["kubelet.service"] {
		problems = append(problems, fmt.Errorf("kubelet does not run, or not after the next boot: %w", s.Failure("kubelet")))
	}
	command, err := s.Command("kubelet", "")
	if err != nil {
		return err
	}
	for _, flag := range append(flags, "--hostname-override="+s.Hostname) {
		if !strings.Contains(strings.Join(command, " "), flag) {
			problems = append(problems, fmt.Errorf("kubelet is started as %q, without %s", command, flag))
		}
	}
	if _, ok := s.File("/etc/kubernetes/kubelet.yaml"); !ok {
		problems = append(problems, errors.New("kubelet has no configuration"))
	}
	return errors.Join(problems...)
}

func TestEveryRenderedCloudConfigBootsToWhatItSays(t *testing.T) {
	for name, drive := range golden(t, "yaml") {
		t.Run(name, func(t *testing.T) {
			s, err := Boot(imageOf("debian"), drive, nil, Machine{})
			if err != nil || len(s.Failed) > 0 {
				t.Fatal(err, s.Failed)
			}
			var config map[string]any
			if err := yaml.Unmarshal(drive.UserData, &config); err != nil {
				t.Fatal(err)
			}
			checkFiles(t, s, config)
			// What starts kubelet after a join by script is the script's, or its agent's.
			joinsByScript := strings.Contains(string(drive.UserData), "INGOT_KUBELET_ARGS=")
			if strings.Contains(string(drive.UserData), "--hostname-override") && string(drive.NetworkData) != "" && !joinsByScript {
				if err := isNode(s, labels.FindString(string(drive.UserData))); err != nil {
					t.Error(err)
				}
			}
			again, err := Boot(imageOf("debian"), drive, &s.State, Machine{})
			if err != nil || again.IsRunning("kubelet") != s.IsRunning("kubelet") || again.IsModuleLoaded("nvidia") != s.IsModuleLoaded("nvidia") {
				t.Errorf("the next boot: %v, kubelet: %v", err, again.Failure("kubelet"))
			}
		})
	}
}

// checkFiles compares the system with write_files as another parser reads it.
func checkFiles(t *testing.T, s *System, config map[string]any) {
	t.Helper()
	files, _ := config["write_files"].([]any)
	if len(files) == 0 {
		t.Error("the document writes no files")
	}
	for _, entry := range files {
		file := entry.(map[string]any)
		path := file["path"].(string)
		content, ok := s.File(path)
		encoding, _ := file["encoding"].(string)
		if !ok || encoding == "" && string(content) != file["content"] || s.Files[path].Mode != file["permissions"] {
			t.Errorf("%s: %t, mode %s, content %q", path, ok, s.Files[path].Mode, content)
		}
		if text, ok := strings.CutPrefix(path, "/etc/modules-load.d/"); ok {
			for module := range strings.FieldsSeq(string(content)) {
				if !s.IsModuleLoaded(module) {
					t.Errorf("%s names %s, which is not loaded", text, module)
				}
			}
		}
	}
}

// livedBy are the keys of cloud-config that the simulated system knows; the others change nothing that can be seen.
var livedBy = []string{"#cloud-config", "hostname:", "fqdn:", "write_files:", "bootcmd:", "runcmd:", "ssh_authorized_keys:"}

// without gives the document without each of its lines that means something.
func without(text string) map[string]string {
	lines := strings.SplitAfter(text, "\n")
	out := map[string]string{}
	key := ""
	for i, line := range lines {
		if line != "" && !strings.ContainsAny(line[:1], " -") {
			key, _, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		plain := strings.TrimSpace(strings.TrimLeft(line, " -"))
		switch {
		case !slices.Contains(livedBy, key) || plain == "":
		case strings.HasPrefix(plain, "owner:"), strings.HasPrefix(plain, "permissions:") && strings.Contains(plain, "0644"): // the defaults
		case strings.Contains(plain, "daemon-reload"): // units are read when they start
		case strings.Contains(plain, `"stop", "kubelet"`): // this image starts none before
		default:
			out[fmt.Sprintf("line %d: %s", i+1, plain)] = strings.Join(slices.Concat(lines[:i], lines[i+1:]), "")
		}
	}
	return out
}

func TestALineLessOfACloudConfigIsAnotherSystem(t *testing.T) {
	for name, drive := range golden(t, "yaml") {
		whole := look(Boot(imageOf("debian"), drive, nil, Machine{}))
		for line, text := range without(string(drive.UserData)) {
			broken := *drive
			broken.UserData = []byte(text)
			if look(Boot(imageOf("debian"), &broken, nil, Machine{})) == whole {
				t.Errorf("%s: nothing depends on %s", name, line)
			}
		}
	}
}

func TestRenderedScriptsRunBeforeTheCommandsOfTheNode(t *testing.T) {
	for name, drive := range golden(t, "mime") {
		var said []string
		machine := Machine{Programs: map[string]Program{"echo": func(words []string, _ map[string]string, _ func(string) ([]byte, error)) error {
			said = append(said, words...)
			return nil
		}}}
		s, err := Boot(imageOf("debian"), drive, nil, machine)
		if err != nil || len(s.Failed) > 0 {
			t.Fatal(name, err, s.Failed)
		}
		if err := isNode(s, machineLabel); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if first := slices.Index(said, "machine"); first != 0 || !slices.Contains(said, "provider") {
			t.Errorf("%s: the scripts and commands say %q", name, said)
		}
		whole := look(s, err)
		for broken, text := range map[string]string{
			"its first line":       strings.SplitAfterN(string(drive.UserData), "\n", 2)[1],
			"its last boundary":    strings.TrimSuffix(strings.TrimSpace(string(drive.UserData)), "--"),
			"the encoding":         strings.Replace(string(drive.UserData), "Content-Transfer-Encoding: base64\n", "", 1),
			"a line of the config": strings.Replace(string(drive.UserData), "d3JpdGVfZmlsZXM6", "", 1),
		} {
			if text == string(drive.UserData) {
				continue // the line is not there
			}
			other := *drive
			other.UserData = []byte(text)
			if look(Boot(imageOf("debian"), &other, nil, Machine{})) == whole {
				t.Errorf("%s: nothing depends on %s", name, broken)
			}
		}
	}
}

// systemOf is the operating system that a rendered Ignition configuration is for.
func systemOf(name string) string {
	for prefix, id := range map[string]string{"flatcar": "flatcar", "openshift": "rhcos"} {
		if strings.HasPrefix(name, prefix) {
			return id
		}
	}
	return "fedora"
}

func TestEveryRenderedIgnitionConfigurationBootsToWhatItSays(t *testing.T) {
	for name, drive := range golden(t, "ign") {
		t.Run(name, func(t *testing.T) {
			image := imageOf(systemOf(name))
			s, err := Boot(image, drive, nil, Machine{})
			if err != nil || len(s.Failed) > 0 {
				t.Fatal(err, s.Failed)
			}
			if err := isNode(s, machineLabel); err != nil {
				t.Error(err)
			}
			if s.Hostname != drive.MetaData.Hostname || s.InstanceID != drive.MetaData.UUID || !s.IsRunning("ingot-gpu-mode") {
				t.Errorf("host name %s, instance %s, the mode unit: %v", s.Hostname, s.InstanceID, s.Failure("ingot-gpu-mode"))
			}
			if !s.IsModuleLoaded("nvidia") || !s.IsModuleBlacklisted("nouveau") {
				t.Error("the modules are not as modules-load.d and modprobe.d say")
			}
			var config struct {
				KernelArguments struct {
					ShouldExist []string `json:"shouldExist"`
				} `json:"kernelArguments"`
			}
			if err := json.Unmarshal(drive.UserData, &config); err != nil || !slices.Equal(s.KernelArguments(), config.KernelArguments.ShouldExist) {
				t.Errorf("the kernel boots with %v, and not with %v: %v", s.KernelArguments(), config.KernelArguments.ShouldExist, err)
			}
			// Ignition runs once: another configuration changes nothing, a broken one does no harm.
			drive := *drive
			drive.UserData = []byte("{")
			if again, err := Boot(image, &drive, &s.State, Machine{}); err != nil || isNode(again) != nil || !slices.Equal(again.KernelArguments(), s.KernelArguments()) {
				t.Errorf("the next boot: %v", err)
			}
		})
	}
}

// lacking gives the configuration without each entry of its lists.
func lacking(t *testing.T, text []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, at := range []string{"storage.files", "systemd.units", "kernelArguments.shouldExist", "passwd.users"} {
		for i := 0; ; i++ {
			var config map[string]any
			if err := json.Unmarshal(text, &config); err != nil {
				t.Fatal(err)
			}
			section, key, _ := strings.Cut(at, ".")
			parent, _ := config[section].(map[string]any)
			list, _ := parent[key].([]any)
			if i >= len(list) {
				break
			}
			parent[key] = slices.Delete(list, i, i+1)
			less, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			out[fmt.Sprintf("%s[%d]", at, i)] = less
		}
	}
	return out
}

func TestAnEntryLessOfAnIgnitionConfigurationIsAnotherSystem(t *testing.T) {
	for name, drive := range golden(t, "ign") {
		image := imageOf(systemOf(name))
		whole := look(Boot(image, drive, nil, Machine{}))
		entries := lacking(t, drive.UserData)
		if len(entries) < 12 {
			t.Errorf("%s has only %d entries", name, len(entries))
		}
		for entry, text := range entries {
			broken := *drive
			broken.UserData = text
			if look(Boot(image, &broken, nil, Machine{})) == whole {
				t.Errorf("%s: nothing depends on %s", name, entry)
			}
		}
	}
}

func TestWhatIsMeantForTheOtherKindOfImageDoesNotMakeANode(t *testing.T) {
	for name, drive := range golden(t, "ign") {
		if s, err := Boot(imageOf("debian"), drive, nil, Machine{}); !errors.Is(err, userdata.ErrUserData) || s.IsRunning("kubelet") {
			t.Errorf("%s for cloud-init: %v", name, err)
		}
	}
	for name, drive := range golden(t, "yaml") {
		s, err := Boot(imageOf("fedora"), drive, nil, Machine{})
		if !errors.Is(err, ErrEmergency) || !errors.Is(err, ignition.ErrRefused) || s.Ignited || len(s.running) > 0 {
			t.Errorf("%s for Ignition: %v", name, err)
		}
	}
}
