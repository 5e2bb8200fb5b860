package placement

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// HardwareSummary compares what a NodeType promises and requires with all hosts that it selects.
type HardwareSummary struct {
	// Selected is how many hosts the NodeType selects by provider, labels and zone. Known is how many of them have a known number of GPUs or, for a
	// NodeType without GPUs, an inventory.
	Selected, Known int
	// Differing are the hosts with other GPUs than promised, Lacking those without what spec.hardware requires, sorted by name, each with what it has.
	Differing, Lacking []Evaluation
	hasGPUs            bool
}

// SummarizeHardware compares the hosts that the NodeType selects with spec.gpu and spec.hardware.
func SummarizeHardware(nodeType v1alpha1.NodeTypeSpec, provider v1alpha1.NodeProviderSpec, hosts []HostFacts) HardwareSummary {
	summary := HardwareSummary{hasGPUs: nodeType.GPU != nil}
	selector := compileSelector(nodeType.HostSelector)
	for _, facts := range sortedByName(hosts) {
		result := checkFit(facts, nodeType, provider, selector)
		if !isMatching(result.Reason) {
			continue
		}
		summary.Selected++
		if facts.Record != nil && (facts.Record.Status.Inventory.IsGPUCountKnown() || nodeType.GPU == nil && facts.Record.Status.Inventory != nil) {
			summary.Known++
		}
		switch result.Reason {
		case HardwareDiffers:
			summary.Differing = append(summary.Differing, result)
		case HardwareInsufficient:
			summary.Lacking = append(summary.Lacking, result)
		}
	}
	return summary
}

// maxDiffering is how many hosts Message names of each kind.
const maxDiffering = 4

// Message says in one sentence how the hosts compare with the promise.
func (s HardwareSummary) Message() string {
	known := "the GPUs of %d are known and as spec.gpu promises"
	unknown := "the GPUs of the %s that are selected are not known"
	if !s.hasGPUs {
		known, unknown = "none of the %d whose hardware is known lacks what spec.hardware requires", "the hardware of the %s that are selected is not known"
	}
	switch {
	case len(s.Differing)+len(s.Lacking) == 0 && s.Known == 0:
		return fmt.Sprintf(unknown, hostCount(s.Selected))
	case len(s.Differing)+len(s.Lacking) == 0:
		return fmt.Sprintf("of the %s that are selected, "+known, hostCount(s.Selected), s.Known)
	}
	var parts []string
	if len(s.Differing) > 0 {
		parts = append(parts, fmt.Sprintf("%d have other GPUs than spec.gpu promises and are not claimed: %s", len(s.Differing), nameHosts(s.Differing)))
	}
	if len(s.Lacking) > 0 {
		parts = append(parts, fmt.Sprintf("%d lack what spec.hardware requires and are not claimed: %s", len(s.Lacking), nameHosts(s.Lacking)))
	}
	return fmt.Sprintf("of the %s that are selected, %s", hostCount(s.Selected), strings.Join(parts, "; "))
}

// nameHosts names the first hosts, each with what it has.
func nameHosts(hosts []Evaluation) string {
	var named []string
	for _, d := range hosts[:min(len(hosts), maxDiffering)] {
		named = append(named, d.Name+" "+d.Message)
	}
	if more := len(hosts) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%s more", hostCount(more)))
	}
	return strings.Join(named, "; ")
}
