package convert

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// fight is something that users' scripts do and that Ingot does on the node too, or undoes.
type fight struct {
	command *regexp.Regexp
	// gpu: it only matters on nodes with GPUs.
	gpu bool
	why string
}

var fights = []fight{
	{regexp.MustCompile(`nvidia-smi\s[^\n;|&]*(-mig\b|--multi-instance-gpu\b|\bmig\b)|nvidia-mig-parted|nvidia-mig-manager`), true, "GPUs are partitioned by spec.gpu.presentation.mig before kubelet starts, at every boot"},
	{regexp.MustCompile(`(amd-smi\s+set|rocm-smi)\s[^\n;|&]*partition|current_(compute|memory)_partition`), true, "GPUs are partitioned by spec.gpu.presentation.partitions before kubelet starts, at every boot"},
	{regexp.MustCompile(`(modprobe|rmmod)\s[^\n;|&]*(nvidia|amdgpu|nouveau|vfio)|driver_override|drivers/vfio-pci`), true, "spec.gpu.presentation decides which driver has the GPUs"},
	{regexp.MustCompile(`(apt|apt-get|dnf|yum|zypper)\s[^\n;|&]*(nvidia|cuda-drivers|amdgpu|rocm)|NVIDIA-Linux-[^\s]*\.run`), true, "the driver is in the image, or is named by spec.gpu.driver"},
	{regexp.MustCompile(`nvidia-(persistenced|fabricmanager|imex|gridd|vgpud)|nv-fabricmanager|sriov-manage|mdev_supported_types`), true, "the presentation starts the services that the GPUs need"},
	{regexp.MustCompile(`kubeadm\s+join|/node/join\?token=`), false, "the node joins by the join of its TenantCluster"},
	{regexp.MustCompile(`systemctl\s[^\n;|&]*(start|restart|enable|stop|disable|mask)[^\n;|&]*kubelet|/var/lib/kubelet/config\.yaml|KUBELET_EXTRA_ARGS`), false, "kubelet is configured and started after the GPUs have their presentation"},
}

// nameFights adds a finding for each command in the user data of a node type that fights what Ingot does on the node. said are the
// node type's own properties, and inherited those of its provider.
func (c *converter) nameFights(m offline.Manifest, field, name string, said, inherited map[string]any, hasGPU bool) {
	all := maps.Clone(inherited)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, said)
	for _, text := range c.userData(all) {
		for _, f := range fights {
			if f.gpu && !hasGPU {
				continue
			}
			found := f.command.FindAllString(text, -1)
			for i := range found {
				found[i] = strings.Join(strings.Fields(found[i]), " ")
			}
			slices.Sort(found)
			if found = slices.Compact(found); len(found) > 0 {
				c.AddFinding(m, field, conversion.RuleCheck, "NodeType %s: its user data has %s, and %s: remove it", name, quoteAll(found), f.why)
			}
		}
	}
}

// userData returns the user data that properties have: their own, and that of the template that they name.
func (c *converter) userData(all map[string]any) []string {
	template := conversion.ValueAt[string](all, "vcluster.com/user-data-template-config")
	return []string{conversion.ValueAt[string](all, properties.UserData), c.templates[template].StringField("spec", "cloudInitTemplate")}
}

// maxQuoted is how many commands a finding has.
const maxQuoted = 3

func quoteAll(commands []string) string {
	more := ""
	if len(commands) > maxQuoted {
		commands, more = commands[:maxQuoted], " and more"
	}
	return "`" + strings.Join(commands, "`, `") + "`" + more
}
