package validate

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/controllers/plan/feasibility"
)

// checkHostNamespaces finds NodeProviders that share a host namespace. Both would drive the same BMCs: one would switch a server off while
// the other installs it.
func (v *validator) checkHostNamespaces() {
	owners := map[string]string{}
	for _, p := range v.providers {
		namespace := p.object.Spec.HostNamespace
		if owner := owners[namespace]; owner != "" && owner != p.Name() {
			v.add(p.NewFinding("spec.hostNamespace", "provider/host-namespace", "namespace %s is that of NodeProvider %s: give each provider a namespace of its own", namespace, owner))
			continue
		}
		owners[namespace] = p.Name()
	}
}

// checkNodeType checks whether the NodeType can make nodes. checkReferences reports objects that are missing.
func (v *validator) checkNodeType(n located[v1alpha1.NodeType]) {
	in := feasibility.Inputs{NodeType: &n.object}
	provider := findByName(v.providers, n.object.Spec.ProviderRef.Name)
	if provider != nil {
		in.Provider = &provider.object
	}
	if image := findByName(v.images, n.object.Spec.OSImageRef.Name); image != nil {
		in.Image = &image.object
	}
	place := func(f feasibility.Finding) offline.Finding {
		at := n.Manifest
		if f.Kind == feasibility.KindNodeProvider && provider != nil {
			at = provider.Manifest
		}
		return at.NewFinding(f.Field, f.Rule, "%s", f.Message)
	}
	judged := feasibility.Check(in)
	for _, f := range judged.Refusals {
		v.add(place(f))
	}
	for _, w := range judged.Warnings {
		v.report.Warnings = append(v.report.Warnings, place(w))
	}
	if len(judged.Refusals) == 0 {
		v.checkHostNetworks(in, judged.Plan)
	}
}

// checkHostSelector finds a hostSelector that no host can match, whatever its labels are.
func (v *validator) checkHostSelector(n located[v1alpha1.NodeType]) {
	compiled, err := metav1.LabelSelectorAsSelector(&n.object.Spec.HostSelector)
	if err != nil {
		v.add(n.NewFinding("spec.hostSelector", "selector/invalid", "%v", err))
		return
	}
	all, _ := compiled.Requirements()
	facts := map[string]string{v1alpha1.LabelZone: n.object.Spec.Zone}
	if gpu := n.object.Spec.GPU; gpu != nil {
		facts[v1alpha1.LabelGPUModel], facts[v1alpha1.LabelGPUCount] = gpu.Model, strconv.Itoa(int(gpu.Count))
	}
	for _, r := range all {
		if value := facts[r.Key()]; value != "" && !r.Matches(labels.Set{r.Key(): value}) {
			field := map[string]string{v1alpha1.LabelZone: "spec.zone", v1alpha1.LabelGPUModel: "spec.gpu.model", v1alpha1.LabelGPUCount: "spec.gpu.count"}[r.Key()]
			v.add(n.NewFinding("spec.hostSelector", "selector/contradiction", "%s selects no host that also has %s, which is the label's value on such hosts: correct one of them", r.String(), field+" "+value))
		}
	}
	for _, k := range requirementKeys(all) {
		if !isSatisfiable(all, k) {
			v.add(n.NewFinding("spec.hostSelector", "selector/contradiction", "no value of the label %s fits all that is asked of it, so that no host can be selected", k))
		}
	}
}

func requirementKeys(all labels.Requirements) []string {
	seen := sets.New[string]()
	for _, r := range all {
		seen.Insert(r.Key())
	}
	return sets.List(seen)
}

// isSatisfiable says whether any value of a label, or its absence, meets all requirements.
func isSatisfiable(all labels.Requirements, key string) bool {
	own := slices.DeleteFunc(slices.Clone(all), func(r labels.Requirement) bool { return r.Key() != key })
	return slices.ContainsFunc(candidates(own, key), func(candidate labels.Set) bool {
		return !slices.ContainsFunc(own, func(r labels.Requirement) bool { return !r.Matches(candidate) })
	})
}

// candidates returns the absence of a label, every value that a requirement names, and one value that none names. Requirements do not
// distinguish any others.
func candidates(own labels.Requirements, key string) []labels.Set {
	out, other := []labels.Set{{}}, "x"
	for _, r := range own {
		for value := range r.Values() {
			out = append(out, labels.Set{key: value})
			other += value // longer than every value that is named
		}
	}
	return append(out, labels.Set{key: other})
}
