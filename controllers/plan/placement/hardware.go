package placement

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// HardwareSummary compares what a NodeType promises with all hosts that it selects.
type HardwareSummary struct {
	// Selected is how many hosts the NodeType selects by provider, labels and zone. Known is how many of them have a known number of GPUs.
	Selected, Known int
	// Differing are the hosts with other GPUs than promised, sorted by name, each with what it has.
	Differing []Evaluation
}

// SummarizeHardware compares the GPUs of the hosts that the NodeType selects with those that it promises.
func SummarizeHardware(nodeType v1alpha1.NodeTypeSpec, provider v1alpha1.NodeProviderSpec, hosts []HostFacts) HardwareSummary {
	var summary HardwareSummary
	for _, facts := range sortedByName(hosts) {
		result := CheckFit(facts, nodeType, provider)
		if !isMatching(result.Reason) {
			continue
		}
		summary.Selected++
		if facts.Record != nil && facts.Record.Status.Inventory.IsGPUCountKnown() {
			summary.Known++
		}
		if result.Reason == HardwareDiffers {
			summary.Differing = append(summary.Differing, result)
		}
	}
	return summary
}

// maxDiffering is how many differing hosts Message names.
const maxDiffering = 4

// Message says in one sentence how the hosts compare with the promise.
func (s HardwareSummary) Message() string {
	switch {
	case len(s.Differing) == 0 && s.Known == 0:
		return fmt.Sprintf("the GPUs of the %s that are selected are not known", hostCount(s.Selected))
	case len(s.Differing) == 0:
		return fmt.Sprintf("of the %s that are selected, the GPUs of %d are known and as spec.gpu promises", hostCount(s.Selected), s.Known)
	}
	var named []string
	for _, d := range s.Differing[:min(len(s.Differing), maxDiffering)] {
		named = append(named, d.Name+" "+d.Message)
	}
	if more := len(s.Differing) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%s more", hostCount(more)))
	}
	return fmt.Sprintf("of the %s that are selected, %d have other GPUs than spec.gpu promises and are not claimed: %s", hostCount(s.Selected), len(s.Differing), strings.Join(named, "; "))
}
