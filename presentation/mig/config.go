package mig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/mig/layout"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// What mig-parted reads. Its package's own service writes config.yaml in this directory anew at every boot.
const (
	configFile = "/etc/nvidia-mig-manager/ingot.yaml"
	hooksFile  = "/etc/nvidia-mig-manager/hooks.yaml"
	configName = "ingot"
)

// packaged keeps the service of mig-parted's package, where the image has it, from applying a configuration of its own.
const packaged = "/etc/systemd/system/nvidia-mig-manager.service.d/90-ingot.conf"

// noHooks keeps mig-parted from stopping services, kubelet among them: nothing uses the GPUs yet.
const noHooks = "version: v1\nhooks: {}\n"

func (c *cutting) files() []v1alpha1.NodeFile {
	return []v1alpha1.NodeFile{
		{Path: configFile, Mode: "0644", Content: c.config(configName)},
		{Path: hooksFile, Mode: "0644", Content: noHooks},
		{Path: packaged, Mode: "0644", Content: "[Unit]\nBefore=" + nvidia.ModeUnit + "\nConditionPathExists=!" + configFile + "\n"},
	}
}

// config is a configuration of mig-parted, version v1, of that name, with one entry for the GPUs of each layout.
func (c *cutting) config(name string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "version: v1\n%s:\n  %s:\n", wellknown.MIGConfigsKey, name)
	for g, want := range c.gpus {
		alike := func(other layout.Multiset) bool { return (other == nil) == (want == nil) && slices.Equal(other, want) }
		if slices.ContainsFunc(c.gpus[:g], alike) {
			continue
		}
		var gpus []string
		for other := g; other < len(c.gpus); other++ {
			if alike(c.gpus[other]) {
				gpus = append(gpus, fmt.Sprint(other))
			}
		}
		fmt.Fprintf(&out, "  - devices: [%s]\n    mig-enabled: %t\n", strings.Join(gpus, ", "), want != nil)
		if want == nil {
			out.WriteString("    mig-devices: {}\n")
			continue
		}
		out.WriteString("    mig-devices:\n")
		for i, n := range want {
			if n > 0 {
				fmt.Fprintf(&out, "      %q: %d\n", c.names[i], n)
			}
		}
	}
	return out.String()
}
