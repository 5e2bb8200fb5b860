package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Labelling is what to change in a BareMetalHost's labels; the zero value changes nothing.
type Labelling struct {
	// Set are labels to be written, Remove keys to be removed.
	Set    map[string]string
	Remove []string
	// Reason and Message tell of the change; Warning says that a person should look. They are empty when nothing changes.
	Reason, Message string
	Warning         bool
}

// IsEmpty says whether nothing is to be changed.
func (l Labelling) IsEmpty() bool { return len(l.Set) == 0 && len(l.Remove) == 0 }

// Label compares the labels of a host with what inspection found in it. The keys gpu.ingot.dev/model and
// gpu.ingot.dev/count are Ingot's own:
//
//   - count is the number of all GPUs, also 0, and also of GPUs that the catalogue does not know;
//   - model is there only while all GPUs are of one model of the catalogue. With several models, or an unknown one, no name
//     would be true, so a selector by model takes no such host;
//   - a value that somebody else wrote is set back to what was found, and the event says so: hosts are chosen by labels,
//     and these two promise to be facts. A person's own labels have other keys.
//
// A host that was never inspected keeps the labels that it has: nothing is known that contradicts them.
func Label(have map[string]string, found *v1alpha1.HostInventory) Labelling {
	if found == nil {
		return Labelling{}
	}
	want := gpuLabels(found.GPUs)
	l := Labelling{Set: map[string]string{}}
	var was []string
	for _, key := range []string{v1alpha1.LabelGPUModel, v1alpha1.LabelGPUCount} {
		before, is := have[key]
		after, wanted := want[key]
		if is == wanted && before == after {
			continue
		}
		if is {
			was = append(was, key+"="+before)
		}
		if wanted {
			l.Set[key] = after
		} else {
			l.Remove = append(l.Remove, key)
		}
	}
	if l.IsEmpty() {
		return Labelling{}
	}
	return explained(l, found.GPUs, want, was)
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

// explained is the labelling with what the labels are now, what they were, and why there is no model.
func explained(l Labelling, found []v1alpha1.GPUInventory, now map[string]string, was []string) Labelling {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(now)) {
		pairs = append(pairs, key+"="+now[key])
	}
	l.Reason, l.Message = "Labelled", "inspection found "+strings.Join(pairs, ", ")
	if len(was) > 0 {
		l.Warning, l.Reason = true, "Relabelled"
		l.Message += fmt.Sprintf("; the labels said %s. Ingot sets these labels by what it finds: select by a label of your own to overrule it", strings.Join(was, ", "))
	}
	if note := withoutModel(found, now); note != "" {
		l.Warning = true
		l.Message += "; " + note
	}
	return l
}

// withoutModel says why a host with GPUs has no label for their model.
func withoutModel(found []v1alpha1.GPUInventory, now map[string]string) string {
	if _, named := now[v1alpha1.LabelGPUModel]; named || len(found) == 0 {
		return ""
	}
	var models, unknown []string
	for _, g := range found {
		if g.Model == "" {
			unknown = append(unknown, g.VendorID+":"+g.DeviceID)
			continue
		}
		models = append(models, fmt.Sprintf("%d %s", g.Count, g.Model))
	}
	if len(unknown) > 0 {
		return fmt.Sprintf("no label %s, because the PCI id %s is not in Ingot's catalogue", v1alpha1.LabelGPUModel, strings.Join(unknown, ", "))
	}
	return fmt.Sprintf("no label %s, because the models differ: %s", v1alpha1.LabelGPUModel, strings.Join(models, ", "))
}
