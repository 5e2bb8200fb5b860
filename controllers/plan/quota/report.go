package quota

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Report is what a NodeQuota's status says of the namespace.
type Report struct {
	Machines      []v1alpha1.NodeTypeUse
	GPUs, Waiting int32
	// Next is the Machine that has waited longest for GPUs; empty: none does.
	Next string
	// Excess says which limits less was allowed by than is used; empty: none.
	Excess string

	// next are the Machines that have waited longest, by NodeType.
	next map[string]string
}

// setNext notes a Machine that waits. The oldest of a NodeType comes first.
func (r *Report) setNext(m Machine) {
	if r.next == nil {
		r.next = map[string]string{}
	}
	r.next[m.NodeType] = cmp.Or(r.next[m.NodeType], m.Name)
}

// describe sets what is used and waited for, for every NodeType that is limited or that a Machine has.
func (r *Report) describe(f Facts, used use, waiting []Machine) {
	names, waits := map[string]bool{}, map[string]int32{}
	for _, limit := range f.Spec.Machines {
		names[limit.NodeType] = true
	}
	for _, m := range f.Machines {
		names[m.NodeType] = true
	}
	for _, m := range waiting {
		waits[m.NodeType]++
	}
	r.GPUs, r.Waiting = used.gpus, int32(min(len(waiting), math.MaxInt32))
	var excess []string
	for name := range names {
		row := v1alpha1.NodeTypeUse{NodeType: name, Used: used.machines[name], Limit: limitOf(f.Spec, name), Waiting: waits[name], Next: r.next[name]}
		if row.Limit != nil && row.Used > *row.Limit {
			excess = append(excess, fmt.Sprintf("%d Machines of NodeType %s have a host, and the limit is %d", row.Used, name, *row.Limit))
		}
		r.Machines = append(r.Machines, row)
	}
	slices.SortFunc(r.Machines, func(a, b v1alpha1.NodeTypeUse) int { return cmp.Compare(a.NodeType, b.NodeType) })
	slices.Sort(excess)
	if limit := f.Spec.GPUs; limit != nil && used.gpus > *limit {
		excess = append(excess, fmt.Sprintf("%d GPUs are used, and the limit is %d", used.gpus, *limit))
	}
	r.Excess = strings.Join(excess, "; ")
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
