package validate

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/presentation"
)

// namespaces: two providers would drive the same BMCs.
func (j *judge) namespaces() {
	owners := map[string]string{}
	for _, p := range j.providers {
		namespace := p.object.Spec.HostNamespace
		if owner := owners[namespace]; owner != "" && owner != p.Name() {
			j.add(p.Finding("spec.hostNamespace", "provider/host-namespace", "namespace %s is that of NodeProvider %s: give each provider a namespace of its own", namespace, owner))
			continue
		}
		owners[namespace] = p.Name()
	}
}

// node asks presentation and cloudinit about the nodes of a NodeType.
func (j *judge) node(n found[v1alpha1.NodeType]) {
	image, provider := named(j.images, n.object.Spec.OSImageRef.Name), named(j.providers, n.object.Spec.ProviderRef.Name)
	if image == nil {
		return
	}
	shape := offline.Shape{NodeType: &n.object, Image: &image.object}
	if provider != nil {
		shape.Provider = &provider.object
	}
	plan, err := shape.Plan()
	var refusal *presentation.Refusal
	var invalid *cloudinit.Invalid
	var conflict *cloudinit.Conflict
	var said *properties.Invalid
	var network *cloudinit.NetworkInvalid
	switch {
	case err == nil:
		for _, w := range plan.Warnings {
			j.report.Warnings = append(j.report.Warnings, n.Finding("spec.gpu", w.Rule, "%s", w.Message))
		}
	case errors.As(err, &refusal):
		j.add(n.Finding(fieldOf(refusal.Rule), refusal.Rule, "%s", refusal.Message))
	case errors.As(err, &invalid):
		j.userData(n, provider, "user-data/invalid", invalid.Findings)
	case errors.As(err, &conflict):
		j.userData(n, provider, "user-data/conflict", conflict.Findings)
	case errors.As(err, &said):
		for _, f := range said.Findings {
			j.add(layer(n, provider, f.Level).Finding("spec.properties["+f.Key+"]", "properties/invalid", "%s", f.Message))
		}
	case errors.As(err, &network) && provider != nil:
		j.add(provider.Finding("spec.network", "network/invalid", "%v", network))
	default:
		j.add(n.Finding("spec", "node/impossible", "%v", err))
	}
}

// fieldOf is the part of a NodeType that a rule of presentation is about.
func fieldOf(rule string) string {
	switch domain, _, _ := strings.Cut(rule, "/"); domain {
	case "promise":
		return "spec.resources"
	case "image":
		return "spec.osImageRef"
	default:
		return "spec.gpu"
	}
}

// userData puts findings where their layer is.
func (j *judge) userData(n found[v1alpha1.NodeType], provider *found[v1alpha1.NodeProvider], rule string, all []cloudinit.Finding) {
	for _, f := range all {
		message := f.Message
		if f.Path != "" {
			message = f.Path + ": " + message
		}
		field := "spec.userData"
		if _, property, found := strings.Cut(f.Layer, ": property "); found {
			field = "spec.properties[" + property + "]"
		}
		j.add(layer(n, provider, f.Layer).Finding(field, rule, "%s", message))
	}
}

// layer is the object that gives the layer of that name.
func layer(n found[v1alpha1.NodeType], provider *found[v1alpha1.NodeProvider], name string) offline.Manifest {
	if provider != nil && strings.HasPrefix(name, provider.String()) {
		return provider.Manifest
	}
	return n.Manifest
}

// selector finds a hostSelector that no host can match, whatever its labels are.
func (j *judge) selector(n found[v1alpha1.NodeType]) {
	compiled, err := metav1.LabelSelectorAsSelector(&n.object.Spec.HostSelector)
	if err != nil {
		j.add(n.Finding("spec.hostSelector", "selector/invalid", "%v", err))
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
			j.add(n.Finding("spec.hostSelector", "selector/contradiction", "%s selects no host that also has %s, which is the label's value on such hosts: correct one of them", r.String(), field+" "+value))
		}
	}
	for _, k := range keys(all) {
		if !possible(all, k) {
			j.add(n.Finding("spec.hostSelector", "selector/contradiction", "no value of the label %s fits all that is asked of it, so that no host can be selected", k))
		}
	}
}

func keys(all labels.Requirements) []string {
	seen := sets.New[string]()
	for _, r := range all {
		seen.Insert(r.Key())
	}
	return sets.List(seen)
}

// possible says whether any value of a label, or its absence, fits all requirements.
func possible(all labels.Requirements, key string) bool {
	own := slices.DeleteFunc(slices.Clone(all), func(r labels.Requirement) bool { return r.Key() != key })
	return slices.ContainsFunc(candidates(own, key), func(candidate labels.Set) bool {
		return !slices.ContainsFunc(own, func(r labels.Requirement) bool { return !r.Matches(candidate) })
	})
}

// candidates are the absence of a label, every value that is named, and one that is not: requirements tell no others apart.
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
