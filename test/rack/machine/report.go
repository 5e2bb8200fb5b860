package machine

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/nvtool"
	"github.com/ingot-dev/ingot/test/rack/shell"
)

// bootIDFile has the kernel's id of the boot (proc(5)).
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID returns the kernel's id of the boot.
func (m *Machine) BootID() string { return m.options.Boot }

// report is curl with which the node's own units change annotations of its Node. What they send is kept in Annotations. kubelet has a credential for it a
// while after it has started.
func (m *Machine) report(system *machineos.System, c shell.Call) error {
	if !system.IsRunning("kubelet") {
		return errors.New("could not load the client's certificate")
	}
	at := slices.Index(c.Arguments, "--data")
	if at < 0 || at+1 == len(c.Arguments) || !slices.Contains(c.Arguments, "PATCH") || !slices.ContainsFunc(c.Arguments, func(a string) bool { return strings.Contains(a, "/api/v1/nodes/") }) {
		return errors.New("only a PATCH of the Node is simulated")
	}
	var patch struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(c.Arguments[at+1]), &patch); err != nil {
		return err
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	maps.Copy(m.Annotations, patch.Metadata.Annotations)
	return nil
}

// IsToolkitOpen reports whether the container toolkit gives containers that are not privileged what NVIDIA_VISIBLE_DEVICES names: by the settings of
// its pod, or else by its file on the disk.
func (m *Machine) IsToolkitOpen() bool {
	if m.ToolkitEnvironment != nil {
		return m.ToolkitEnvironment["ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"] != "false"
	}
	config, _ := m.File(nvtool.ToolkitConfig)
	return nvtool.IsToolkitOpen(config)
}
