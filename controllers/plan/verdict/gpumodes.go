package verdict

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// checkGPUModes compares the MIG mode of each GPU that the node's own unit reports with the order. Without it: somebody turns the MIG mode of a GPU on after the boot.
// The device plugin with strategy none still advertises every GPU as whole, feature discovery sets the same labels, and the node is admitted, although no
// container can use that GPU.
//
// Whoever has the node, or administers the tenant, can write the report. So it can make this check fail and no other pass, and a report of another boot is
// none: the annotation outlives the boot that it tells of.
func checkGPUModes(in Input) []v1alpha1.Check {
	expected := in.Expectation.GPUModes
	if len(expected) == 0 {
		return nil
	}
	c := v1alpha1.Check{Name: CheckGPUModes, Result: v1alpha1.CheckPass, Expected: modesText(expected)}
	report := strings.Fields(in.Node.Annotations[v1alpha1.AnnotationGPUMode])
	if len(report) == 0 || report[0] != in.Node.Status.NodeInfo.BootID {
		c.Observed = "not reported"
		if in.GPUModeReport == v1alpha1.ReportRequired {
			c.Result = v1alpha1.CheckWait
			c.Hint = "validation.gpuModeReport is Required, and the node has not reported the mode of its GPUs in this boot. On the node: journalctl -u ingot-gpu-report"
		}
		return single(c)
	}
	c.Observed = input.Line(modesText(report[1:]), maxText)
	if strings.Join(report[1:], " ") != strings.Join(expected, " ") {
		c.Result = v1alpha1.CheckFail
		c.Hint = "the MIG mode of a GPU is not as ordered, in the order of nvidia-smi -L. On the node: nvidia-smi --query-gpu=index,mig.mode.current --format=csv; journalctl -u ingot-gpu-mode; then " +
			"systemctl restart ingot-gpu-mode ingot-gpu-report, when no pod uses a GPU"
		if seen := len(report) - 1; seen != len(expected) {
			c.Hint = fmt.Sprintf("the driver sees %d of the %d GPUs that are ordered. On the node: nvidia-smi -L; lspci -d 10de:; journalctl -k | grep -i -e nvrm -e xid", seen, len(expected))
		}
	}
	return single(c)
}

// modesText returns the modes with runs of equal ones shortened: 7 Disabled, 1 Enabled.
func modesText(modes []string) string {
	var parts []string
	for i := 0; i < len(modes); {
		n := 1
		for i+n < len(modes) && modes[i+n] == modes[i] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, modes[i]))
		i += n
	}
	return strings.Join(parts, ", ")
}
