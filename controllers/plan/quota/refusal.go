package quota

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Refusal returns why a Machine has no place, by the status of its NodeQuota; empty: nothing there is against it, and the next decision says whether it
// gets one. gpus is the gpu.count of its NodeType.
func Refusal(quota *v1alpha1.NodeQuota, machine *v1alpha1.Machine, gpus int32) string {
	m := MachineOf(machine, gpus, false)
	row, waitsForGPUs := rowOf(quota, m.NodeType), quota.Status.Next
	taken := use{machines: map[string]int32{m.NodeType: row.Used}, gpus: quota.Status.GPUs}
	name := "NodeQuota " + quota.Namespace + "/" + quota.Name
	full := refusal(quota.Spec, taken, m)
	switch {
	case full == "" && (waitsForGPUs == "" || waitsForGPUs == m.Name || gpus == 0):
		return ""
	case full == "":
		return fmt.Sprintf("%s: the GPUs that are left are for older Machines that wait, of which %s is the next; raise the limits, or delete a Machine", name, waitsForGPUs)
	}
	next := row.Next
	if machinesRefusal(quota.Spec, taken, m) == "" {
		next = cmp.Or(waitsForGPUs, next)
	}
	switch next {
	case "":
	case m.Name:
		full += "; this Machine is the next"
	default:
		full += "; of those that wait, " + next + " is the next"
	}
	return name + ": " + full + "; raise the limit, or delete a Machine"
}

// Room returns how many more Machines of a NodeType the NodeQuota has room for, by its status.
func Room(quota *v1alpha1.NodeQuota, nodeType string, gpus int32) int {
	room := maxRoom
	if limit := limitOf(quota.Spec, nodeType); limit != nil {
		room = int(*limit - rowOf(quota, nodeType).Used)
	}
	if limit := quota.Spec.GPUs; limit != nil && gpus > 0 {
		room = min(room, int((*limit-quota.Status.GPUs)/gpus))
	}
	return max(room, 0)
}

// maxRoom is the highest number of replicas of a NodePool.
const maxRoom = 10000

// refusal says which limits have no room for the Machine beside what is taken; empty: all have.
func refusal(spec v1alpha1.NodeQuotaSpec, taken use, m Machine) string {
	var full []string
	for _, one := range []string{machinesRefusal(spec, taken, m), gpusRefusal(spec, taken, m)} {
		if one != "" {
			full = append(full, one)
		}
	}
	return strings.Join(full, ", and ")
}

func machinesRefusal(spec v1alpha1.NodeQuotaSpec, taken use, m Machine) string {
	limit := limitOf(spec, m.NodeType)
	if used := taken.machines[m.NodeType]; limit != nil && used+1 > *limit {
		return fmt.Sprintf("%d of %d Machines of NodeType %s are used", used, *limit, m.NodeType)
	}
	return ""
}

func gpusRefusal(spec v1alpha1.NodeQuotaSpec, taken use, m Machine) string {
	if limit := spec.GPUs; limit != nil && m.GPUs > 0 && taken.gpus+m.GPUs > *limit {
		return fmt.Sprintf("%d of %d GPUs are used, and a Machine of NodeType %s has %d", taken.gpus, *limit, m.NodeType, m.GPUs)
	}
	return ""
}

// limitOf returns the limit of a NodeType; nil: it has none.
func limitOf(spec v1alpha1.NodeQuotaSpec, nodeType string) *int32 {
	for i := range spec.Machines {
		if spec.Machines[i].NodeType == nodeType {
			return &spec.Machines[i].Limit
		}
	}
	return nil
}
