package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Report is what a NodeQuota's status says of the namespace.
type Report struct {
	Machines      []v1alpha1.NodeTypeUse
	GPUs, Waiting int32
	// Excess says which limits less was allowed by than is used; empty: none.
	Excess string
}

// Summarize returns what is used, for every NodeType that is limited or that a Machine has.
func Summarize(f Facts) Report {
	reserved := f.reserved()
	used := f.used(reserved)
	report := Report{GPUs: used.gpus}
	waiting := map[string]int32{}
	names := map[string]bool{}
	for _, limit := range f.Spec.Machines {
		names[limit.NodeType] = true
	}
	for _, m := range f.Machines {
		names[m.NodeType] = true
		if m.IsWaiting && !m.HasHost && !reserved[m.UID] {
			waiting[m.NodeType]++
			report.Waiting++
		}
	}
	var excess []string
	for name := range names {
		row := v1alpha1.NodeTypeUse{NodeType: name, Used: used.machines[name], Limit: limitOf(f.Spec, name), Waiting: waiting[name]}
		if row.Limit != nil && row.Used > *row.Limit {
			excess = append(excess, fmt.Sprintf("%d Machines of NodeType %s have a host, and the limit is %d", row.Used, name, *row.Limit))
		}
		report.Machines = append(report.Machines, row)
	}
	slices.SortFunc(report.Machines, func(a, b v1alpha1.NodeTypeUse) int { return cmp.Compare(a.NodeType, b.NodeType) })
	slices.Sort(excess)
	if limit := f.Spec.GPUs; limit != nil && used.gpus > *limit {
		excess = append(excess, fmt.Sprintf("%d GPUs are used, and the limit is %d", used.gpus, *limit))
	}
	report.Excess = strings.Join(excess, "; ")
	return report
}

// UnknownNodeTypes says which NodeTypes are limited that do not exist, and which do; empty: all exist.
func UnknownNodeTypes(spec v1alpha1.NodeQuotaSpec, nodeTypes []v1alpha1.NodeType) string {
	known := make([]string, len(nodeTypes))
	for i := range nodeTypes {
		known[i] = nodeTypes[i].Name
	}
	slices.Sort(known)
	var unknown []string
	for _, limit := range spec.Machines {
		if !slices.Contains(known, limit.NodeType) {
			unknown = append(unknown, limit.NodeType)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	slices.Sort(unknown)
	there := "there is none at all"
	if len(known) > 0 {
		there = "there are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("there is no NodeType %s, so that its limit limits nothing: %s", strings.Join(unknown, ", "), there)
}
