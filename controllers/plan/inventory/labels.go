package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// IsLabelUnknown reports whether the host of the record lacks the label because nobody could tell yet what its value is: gpu.ingot.dev/count while
// the number of GPUs is unknown, gpu.ingot.dev/model while that or the model of one of them is. A requirement of a hostSelector that only this
// absence fails counts as met: the agent looks at the PCI bus before an installation writes the first byte. A host without a record has no such
// agent, so that there the absence of a label means what it means for every other label.
func IsLabelUnknown(record *v1alpha1.HostRecord, key string) bool {
	if record == nil || key != v1alpha1.LabelGPUCount && key != v1alpha1.LabelGPUModel {
		return false
	}
	found := record.Status.Inventory
	if !found.IsGPUCountKnown() {
		return true
	}
	return key == v1alpha1.LabelGPUModel && slices.ContainsFunc(found.GPUs, func(g v1alpha1.GPUInventory) bool { return g.DeviceID == "" })
}

// LabelChange is a change of a BareMetalHost's labels. The zero value changes nothing.
type LabelChange struct {
	// Set are the labels to be written, Remove the keys to be removed.
	Set    map[string]string
	Remove []string
	// Reason and Message are those of the event about the change. Warning is true when somebody should look at it. All of them are empty
	// when nothing changes that an event tells of.
	Reason, Message string
	Warning         bool
}

// IsEmpty reports whether nothing is to be changed.
func (l LabelChange) IsEmpty() bool { return len(l.Set) == 0 && len(l.Remove) == 0 }

// GPULabelChange compares the labels of a host with what inspection found in it, and returns the change. The keys gpu.ingot.dev/model and
// gpu.ingot.dev/count belong to Ingot:
//
//   - count is the number of all GPUs. It may be 0, and includes GPUs that the catalogue does not have.
//   - model is set only while all GPUs are of one model of the catalogue. With several models, or an unknown one, no name
//     would be true, so that a selector by model does not select such a host.
//   - A value that somebody else wrote is replaced by what was found, and the event says so, because hosts are selected by these labels.
//     Labels of other keys are left alone.
//   - Both are absent while nobody can tell which GPUs the host has. Without it: a BMC that lists no PCI devices gives a server with eight
//     GPUs the label count=0, a NodeType for servers without GPUs selects it, and the NodeType that it was bought for never does.
//
// A host that was never inspected keeps the labels that it has, because nothing is known that contradicts them.
func GPULabelChange(have map[string]string, found *v1alpha1.HostInventory) LabelChange {
	if found == nil {
		return LabelChange{}
	}
	desired := map[string]string{}
	if found.IsGPUCountKnown() {
		desired = gpuLabels(found.GPUs)
	}
	l := LabelChange{Set: map[string]string{}}
	var previous []string
	for _, key := range []string{v1alpha1.LabelGPUModel, v1alpha1.LabelGPUCount} {
		before, isSet := have[key]
		after, isDesired := desired[key]
		if isSet == isDesired && before == after {
			continue
		}
		if isSet {
			previous = append(previous, key+"="+before)
		}
		if isDesired {
			l.Set[key] = after
		} else {
			l.Remove = append(l.Remove, key)
		}
	}
	if l.IsEmpty() {
		return LabelChange{}
	}
	if !found.IsGPUCountKnown() {
		return withUnknownMessage(l, previous)
	}
	return withMessage(l, found.GPUs, desired, previous)
}

func gpuLabels(found []v1alpha1.GPUInventory) map[string]string {
	var count int32
	model := ""
	for i, g := range found {
		count += g.Count
		if i == 0 || g.Model == model {
			model = g.Model
		} else {
			model = ""
		}
	}
	labels := map[string]string{v1alpha1.LabelGPUCount: strconv.Itoa(int(count))}
	if model != "" {
		labels[v1alpha1.LabelGPUModel] = model
	}
	return labels
}

// withUnknownMessage returns the change with its event for a host whose GPUs nobody can tell.
func withUnknownMessage(l LabelChange, previous []string) LabelChange {
	l.Warning, l.Reason = true, "Unlabelled"
	l.Message = fmt.Sprintf("inspection could not tell which GPUs the host has; the labels said %s and were removed. NodeTypes that select by these "+
		"labels can still claim the host: the agent counts the GPUs before the first byte is written", strings.Join(previous, ", "))
	return l
}

// withMessage returns the change with its event: what the labels are now, what they were, and why there is no model.
func withMessage(l LabelChange, found []v1alpha1.GPUInventory, desired map[string]string, previous []string) LabelChange {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		pairs = append(pairs, key+"="+desired[key])
	}
	l.Reason, l.Message = "Labelled", "inspection found "+strings.Join(pairs, ", ")
	if len(previous) > 0 {
		l.Warning, l.Reason = true, "Relabelled"
		l.Message += fmt.Sprintf("; the labels said %s. Ingot sets these labels by what it finds: select by a label of your own to overrule it", strings.Join(previous, ", "))
	}
	if note := missingModelReason(found, desired); note != "" {
		l.Warning = true
		l.Message += "; " + note
	}
	return l
}

// missingModelReason says why a host with GPUs has no label for their model.
func missingModelReason(found []v1alpha1.GPUInventory, desired map[string]string) string {
	if _, isNamed := desired[v1alpha1.LabelGPUModel]; isNamed || len(found) == 0 {
		return ""
	}
	var models, unknown []string
	for _, g := range found {
		switch {
		case g.DeviceID == noDeviceID:
			return fmt.Sprintf("no label %s, because the BMC does not tell the model of %d GPUs", v1alpha1.LabelGPUModel, g.Count)
		case g.Model == "":
			unknown = append(unknown, g.VendorID+":"+g.DeviceID)
		default:
			models = append(models, fmt.Sprintf("%d %s", g.Count, g.Model))
		}
	}
	if len(unknown) > 0 {
		return fmt.Sprintf("no label %s, because the PCI id %s is not in Ingot's catalogue", v1alpha1.LabelGPUModel, strings.Join(unknown, ", "))
	}
	return fmt.Sprintf("no label %s, because the models differ: %s", v1alpha1.LabelGPUModel, strings.Join(models, ", "))
}
