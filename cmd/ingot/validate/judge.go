package validate

import (
	"cmp"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Options of Judge.
type Options struct {
	// AllowMissing: a reference to what is not in the files is nothing wrong.
	AllowMissing bool
}

// Report is what `-o json` prints.
type Report struct {
	// Judged objects, and those of other kinds.
	Judged     int `json:"judged"`
	PassedOver int `json:"passedOver"`
	// Findings in the order of files and lines.
	Findings []offline.Finding `json:"findings"`
	// Warnings are what people must know although it is not wrong, such as what a vendor calls experimental.
	Warnings []offline.Finding `json:"warnings"`
}

// found is an object that an API server would take, and where it was read.
type found[T any] struct {
	offline.Manifest
	object T
}

// judge collects what the files have.
type judge struct {
	opts Options
	// all objects of Ingot's, also those that are refused: they can be referred to.
	all       map[key]offline.Manifest
	nodeTypes []found[v1alpha1.NodeType]
	providers []found[v1alpha1.NodeProvider]
	images    []found[v1alpha1.OSImage]
	hosts     []found[metal3.BareMetalHost]
	report    Report
}

// key of an object.
type key struct{ kind, namespace, name string }

// clusterScoped are the kinds that are referred to by name alone, also where somebody wrote a namespace by mistake.
var clusterScoped = []string{"NodeProvider", "NodeType", "OSImage"}

func keyOf(m offline.Manifest) key {
	if slices.Contains(clusterScoped, m.Kind()) {
		return key{kind: m.Kind(), name: m.Name()}
	}
	return key{m.Kind(), m.Namespace(), m.Name()}
}

// Judge finds all that is wrong with the files' objects. The error is not about them: the definitions cannot be read.
func Judge(files offline.Files, opts Options) (Report, error) {
	j := &judge{opts: opts, all: map[key]offline.Manifest{}, report: Report{Findings: []offline.Finding{}, Warnings: []offline.Finding{}}}
	var admitted []offline.Manifest
	for _, m := range files.Manifests {
		ok, err := j.admit(m)
		if err != nil {
			return Report{}, err
		}
		if ok {
			admitted = append(admitted, m)
		}
	}
	for _, m := range admitted {
		if err := j.take(m); err != nil {
			return Report{}, err
		}
	}
	for _, m := range files.Manifests {
		j.references(m)
	}
	j.namespaces()
	j.addresses()
	for _, n := range j.nodeTypes {
		j.selector(n)
		j.node(n)
	}
	slices.SortStableFunc(j.report.Findings, func(a, b offline.Finding) int {
		return cmp.Or(cmp.Compare(place(files, a.File), place(files, b.File)), cmp.Compare(a.Line, b.Line))
	})
	return j.report, nil
}

// place of a file in the order in which files were read.
func place(files offline.Files, name string) int {
	return slices.IndexFunc(files.Manifests, func(m offline.Manifest) bool { return m.File == name })
}

// add adds a finding that is not there yet: what several NodeTypes have in common is wrong once.
func (j *judge) add(found ...offline.Finding) {
	for _, f := range found {
		if !slices.Contains(j.report.Findings, f) {
			j.report.Findings = append(j.report.Findings, f)
		}
	}
}

// admit judges an object alone.
func (j *judge) admit(m offline.Manifest) (bool, error) {
	known, err := offline.Known(m)
	if err != nil {
		j.report.Judged++
		j.add(m.Finding("kind", "kind/unknown", "%v", err))
		return false, nil
	}
	if !known {
		j.report.PassedOver++
		return false, nil
	}
	j.report.Judged++
	if first, twice := j.all[keyOf(m)]; twice && m.Name() != "" {
		j.add(m.Finding("metadata.name", "object/twice", "%s is at %s:%d too: of the two the one that is applied last would stay", m, first.File, first.Line("")))
	} else {
		j.all[keyOf(m)] = m
	}
	refused, err := offline.Admit(m)
	j.add(refused...)
	return len(refused) == 0, err
}

// take decodes what later questions are about.
func (j *judge) take(m offline.Manifest) (err error) {
	switch m.Kind() {
	case "NodeType":
		j.nodeTypes, err = decode(j.nodeTypes, m)
	case "NodeProvider":
		j.providers, err = decode(j.providers, m)
	case "OSImage":
		j.images, err = decode(j.images, m)
	case "BareMetalHost":
		j.hosts, err = decode(j.hosts, m)
	}
	return err
}

func decode[T any](into []found[T], m offline.Manifest) ([]found[T], error) {
	one := found[T]{Manifest: m}
	if err := m.Decode(&one.object); err != nil {
		return nil, err
	}
	return append(into, one), nil
}

// named is the object of that name; nil: there is none, or an API server would refuse it.
func named[T any](all []found[T], name string) *found[T] {
	if i := slices.IndexFunc(all, func(f found[T]) bool { return f.Name() == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// reference is a field that names another object.
type reference struct {
	field []string
	kind  string
	// namespaced: it is in the namespace of the object that refers to it.
	namespaced bool
}

var (
	toNodeType = reference{[]string{"spec", "nodeTypeRef", "name"}, "NodeType", false}
	toTenant   = reference{[]string{"spec", "tenantClusterRef", "name"}, "TenantCluster", true}

	references = map[string][]reference{
		"NodeType": {{[]string{"spec", "providerRef", "name"}, "NodeProvider", false}, {[]string{"spec", "osImageRef", "name"}, "OSImage", false}},
		"NodePool": {toNodeType, toTenant},
		"Machine":  {toNodeType, toTenant},
	}
)

func (j *judge) references(m offline.Manifest) {
	if j.opts.AllowMissing || m.APIVersion() != v1alpha1.GroupVersion.String() {
		return
	}
	for _, r := range references[m.Kind()] {
		to := key{kind: r.kind, name: m.Word(r.field...)}
		if r.namespaced {
			to.namespace = m.Namespace()
		}
		if _, there := j.all[to]; there || to.name == "" {
			continue
		}
		in := ""
		if r.namespaced && to.namespace != "" {
			in = " in namespace " + to.namespace
		}
		j.add(m.Finding(path(r.field), "reference/missing", "there is no %s %s%s in the files: correct the name, add its file, or say --allow-missing if it is applied already", r.kind, to.name, in))
	}
}

func path(field []string) string {
	out := field[0]
	for _, f := range field[1:] {
		out += "." + f
	}
	return out
}
