package verdict

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// containerdFinding is a word of the report and what to do.
type containerdFinding struct{ word, remedy string }

// containerdFindings are what the program of the node reports that containerd's configuration lacks, with what to do, the
// cause before what follows from it.
var containerdFindings = []containerdFinding{
	{v1alpha1.ContainerdInvalid, "containerd does not read its configuration: correct /etc/containerd/config.toml in the image"},
	{v1alpha1.ContainerdVersion, "the image's /etc/containerd/config.toml is not of version = 3, so that Ingot's drop-in was taken away: migrate it in the image (containerd config migrate)"},
	{v1alpha1.ContainerdImports, "the image's /etc/containerd/config.toml does not import the drop-in: add imports = ['/etc/containerd/conf.d/*.toml'] to it"},
	{v1alpha1.ContainerdCDI, "containerd injects no devices: set enable_cdi = true in the image, or take one with containerd 2"},
	{v1alpha1.ContainerdRuntime, "containerd has no runtime nvidia-container-runtime, or the program is missing: install NVIDIA's container toolkit in the image and configure it (nvidia-ctk runtime configure)"},
	{v1alpha1.ContainerdEnvironment, "the NodeType's gpu.tenancy is Shared, and NVIDIA's container toolkit gives a container the GPUs that NVIDIA_VISIBLE_DEVICES names: nvidia-ctk cannot change /etc/nvidia-container-runtime/config.toml, or is missing in the image"},
	{v1alpha1.ContainerdMirrors, "containerd does not read /etc/containerd/certs.d, where the NodeProvider's mirrors are: set config_path in the image"},
	{v1alpha1.ContainerdSandbox, "containerd uses another sandbox image than the NodeProvider's: set it in the image"},
}

// checkContainerd fails when the node's own unit reports that containerd's configuration lacks something. Without it: the image does not import the drop-in,
// the GPUs are advertised, and no container that is given one can use it.
//
// The report can make this check fail and no other pass. A node without a report of this boot has no such check, because it may need nothing, unless the
// expectation has one. Without that: the unit does not run, and the tenants that share the node get each other's GPUs by a variable.
func checkContainerd(in Input) []v1alpha1.Check {
	report := strings.Fields(in.Node.Annotations[v1alpha1.AnnotationContainerd])
	c := v1alpha1.Check{Name: CheckContainerd, Result: v1alpha1.CheckPass, Expected: v1alpha1.ContainerdOK}
	if len(report) != 2 || report[0] != in.Node.Status.NodeInfo.BootID {
		if !in.Expectation.ContainerdReport {
			return nil
		}
		c.Result, c.Observed = v1alpha1.CheckWait, "not reported"
		c.Hint = "the NodeType's gpu.tenancy is Shared, and the node has not reported in this boot that its container runtime keeps the tenants apart. On the node: journalctl -u ingot-containerd -u ingot-containerd-report"
		return single(c)
	}
	c.Observed = input.Line(report[1], maxText)
	if report[1] == v1alpha1.ContainerdOK {
		return single(c)
	}
	c.Result, c.Observed = v1alpha1.CheckFail, "lacks "+c.Observed
	lacks := strings.Split(report[1], ",")
	c.Hint = "on the node: journalctl -u ingot-containerd"
	if i := slices.IndexFunc(containerdFindings, func(f containerdFinding) bool { return slices.Contains(lacks, f.word) }); i >= 0 {
		c.Hint = containerdFindings[i].remedy + ". On the node: journalctl -u ingot-containerd"
	}
	return single(c)
}
