package validate

import (
	"cmp"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Options are the options of Validate.
type Options struct {
	// AllowMissing accepts references to objects that are not in the files.
	AllowMissing bool
}

// Report is what `-o json` prints.
type Report struct {
	// Judged is the number of objects that were checked, PassedOver the number of those of other kinds.
	Judged     int `json:"judged"`
	PassedOver int `json:"passedOver"`
	// Findings in the order of files and lines.
	Findings []offline.Finding `json:"findings"`
	// Warnings are about what is not wrong and must be known, such as what a vendor calls experimental.
	Warnings []offline.Finding `json:"warnings"`
}

// located is an object that an API server would accept, and the place where it was read.
type located[T any] struct {
	offline.Manifest
	object T
}

// validator collects the objects of the files and the findings.
type validator struct {
	options Options
	// all objects of Ingot, including those that are refused, because others may refer to them.
	all       map[key]offline.Manifest
	nodeTypes []located[v1alpha1.NodeType]
	providers []located[v1alpha1.NodeProvider]
	images    []located[v1alpha1.OSImage]
	hosts     []located[metal3.BareMetalHost]
	tenants   []located[v1alpha1.TenantCluster]
	report    Report
}

// key identifies an object.
type key struct{ kind, namespace, name string }

// clusterScoped are the kinds that are referred to by name alone, even where a manifest has a namespace by mistake.
var clusterScoped = []string{"NodeProvider", "NodeType", "OSImage"}

func keyOf(m offline.Manifest) key {
	if slices.Contains(clusterScoped, m.Kind()) {
		return key{kind: m.Kind(), name: m.Name()}
	}
	return key{m.Kind(), m.Namespace(), m.Name()}
}

// Validate returns all that is wrong with the objects. The error says that the definitions cannot be read.
func Validate(files offline.Files, opts Options) (Report, error) {
	j := &validator{options: opts, all: map[key]offline.Manifest{}, report: Report{Findings: []offline.Finding{}, Warnings: []offline.Finding{}}}
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
		if err := j.decode(m); err != nil {
			return Report{}, err
		}
	}
	for _, m := range files.Manifests {
		j.checkReferences(m)
	}
	j.checkHostNamespaces()
	j.checkAddresses()
	j.checkServers()
	for _, n := range j.nodeTypes {
		j.checkHostSelector(n)
		j.checkNodeType(n)
	}
	j.checkJoins()
	slices.SortStableFunc(j.report.Findings, func(a, b offline.Finding) int {
		return cmp.Or(cmp.Compare(fileIndex(files, a.File), fileIndex(files, b.File)), cmp.Compare(a.Line, b.Line))
	})
	return j.report, nil
}

// fileIndex returns the position of a file in the order in which files were read.
func fileIndex(files offline.Files, name string) int {
	return slices.IndexFunc(files.Manifests, func(m offline.Manifest) bool { return m.File == name })
}

// add adds findings that are not there yet. A fault of an object that several NodeTypes share is reported once.
func (v *validator) add(found ...offline.Finding) {
	for _, f := range found {
		if !slices.Contains(v.report.Findings, f) {
			v.report.Findings = append(v.report.Findings, f)
		}
	}
}

// admit checks an object by itself, as an API server does.
func (v *validator) admit(m offline.Manifest) (bool, error) {
	known, err := offline.IsKnown(m)
	if err != nil {
		v.report.Judged++
		v.add(m.NewFinding("kind", "kind/unknown", "%v", err))
		return false, nil
	}
	if !known {
		v.report.PassedOver++
		return false, nil
	}
	v.report.Judged++
	if first, twice := v.all[keyOf(m)]; twice && m.Name() != "" {
		v.add(m.NewFinding("metadata.name", "object/twice", "%s is at %s:%d too: of the two the one that is applied last would stay", m, first.File, first.Line("")))
	} else {
		v.all[keyOf(m)] = m
	}
	refused, err := offline.Admit(m)
	v.add(refused...)
	return len(refused) == 0, err
}

// decode decodes the objects that the later checks need.
func (v *validator) decode(m offline.Manifest) (err error) {
	switch m.Kind() {
	case "NodeType":
		v.nodeTypes, err = appendDecoded(v.nodeTypes, m)
	case "NodeProvider":
		v.providers, err = appendDecoded(v.providers, m)
	case "OSImage":
		v.images, err = appendDecoded(v.images, m)
	case "BareMetalHost":
		v.hosts, err = appendDecoded(v.hosts, m)
	case "TenantCluster":
		v.tenants, err = appendDecoded(v.tenants, m)
	}
	return err
}

func appendDecoded[T any](into []located[T], m offline.Manifest) ([]located[T], error) {
	one := located[T]{Manifest: m}
	if err := m.Decode(&one.object); err != nil {
		return nil, err
	}
	return append(into, one), nil
}

// findByName returns the object of a name; nil: there is none, or an API server would refuse it.
func findByName[T any](all []located[T], name string) *located[T] {
	if i := slices.IndexFunc(all, func(f located[T]) bool { return f.Name() == name }); i >= 0 {
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

func (v *validator) checkReferences(m offline.Manifest) {
	if v.options.AllowMissing || m.APIVersion() != v1alpha1.GroupVersion.String() {
		return
	}
	for _, r := range references[m.Kind()] {
		to := key{kind: r.kind, name: m.StringField(r.field...)}
		if r.namespaced {
			to.namespace = m.Namespace()
		}
		if _, exists := v.all[to]; exists || to.name == "" {
			continue
		}
		in := ""
		if r.namespaced && to.namespace != "" {
			in = " in namespace " + to.namespace
		}
		v.add(m.NewFinding(joinPath(r.field), "reference/missing", "there is no %s %s%s in the files: correct the name, add its file, or say --allow-missing if it is applied already", r.kind, to.name, in))
	}
}

func joinPath(field []string) string {
	out := field[0]
	for _, f := range field[1:] {
		out += "." + f
	}
	return out
}
