package bmc

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed products.yaml
var productsYAML []byte

// Resources are what the inventory of a product holds, in place of what follows from Options.Hardware.
type Resources struct {
	// Remove are paths: what is at them and below them is removed first.
	Remove []string `json:"remove"`
	// Expand is how the BMC answers $expand; nil: it ignores it.
	Expand *ExpandRules `json:"expand"`
	// Add are resources that are added, or changed, in this order.
	Add []Resource `json:"add"`
}

// Resource is a resource of a product, or several that differ in a number. In every text {n} stands for the number.
type Resource struct {
	// At is the path.
	At string `json:"at"`
	// From is the first number, and Count how many resources there are; 0: one.
	From  int `json:"from"`
	Count int `json:"count"`
	// Set are members that are set; null removes one.
	Set map[string]any `json:"set"`
	// ListedBy are lists that get a link to the resource, as PATH#MEMBER. The member may be below another one: Links.PCIeFunctions.
	ListedBy []string `json:"listedBy"`
}

// ExpandRules are what a BMC says of $expand in ProtocolFeaturesSupported, and what it answers.
type ExpandRules struct {
	ExpandAll bool `json:"expandAll"`
	NoLinks   bool `json:"noLinks"`
	Levels    bool `json:"levels"`
	MaxLevels int  `json:"maxLevels"`
	// Form is how the answer deviates.
	Form ExpandForm `json:"form"`
}

// ExpandForm is how an answer to $expand deviates. Empty: it does not.
type ExpandForm string

// Deviating answers to $expand.
const (
	// ExpandWithoutIDs means that the expanded resources lack Id and Name (DGX H100).
	ExpandWithoutIDs ExpandForm = "WithoutIDs"
	// ExpandAfterError means that an error object precedes the resource in the same body (iDRAC without a licence).
	ExpandAfterError ExpandForm = "AfterError"
	// ExpandRefused means that $expand is answered with 501, although the BMC says that it supports it.
	ExpandRefused ExpandForm = "Refused"
)

var products = sync.OnceValues(func() (map[string]Resources, error) {
	var all map[string]Resources
	if err := yaml.UnmarshalStrict(productsYAML, &all); err != nil {
		return nil, fmt.Errorf("reading the products' resources: %w", err)
	}
	return all, nil
})

// Products returns the names of the products whose resources are known.
func Products() ([]string, error) {
	all, err := products()
	return slices.Sorted(maps.Keys(all)), err
}

// ProductNamed returns the personality of a product with its resources.
func ProductNamed(name string) (Personality, error) {
	all, err := products()
	if err != nil {
		return Personality{}, err
	}
	resources, ok := all[name]
	if !ok {
		return Personality{}, fmt.Errorf("no resources of a product %q: expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	personality, err := PersonalityNamed(name)
	personality.Resources = &resources
	return personality, err
}

// canExpand reports whether the BMC answers $expand.
func (r *Resources) canExpand() bool { return r != nil && r.Expand != nil }

// addResources changes the tree as the resources say.
func (t tree) addResources(r *Resources) {
	if r == nil {
		return
	}
	for _, prefix := range r.Remove {
		maps.DeleteFunc(t, func(at string, _ map[string]any) bool { return at == prefix || strings.HasPrefix(at, prefix+"/") })
	}
	if r.Expand != nil {
		t[pathRoot]["ProtocolFeaturesSupported"] = map[string]any{"ExpandQuery": map[string]any{
			"ExpandAll": r.Expand.ExpandAll, "NoLinks": r.Expand.NoLinks, "Levels": r.Expand.Levels, "MaxLevels": r.Expand.MaxLevels,
		}}
	}
	for _, resource := range r.Add {
		for n := range max(resource.Count, 1) {
			t.addResource(resource, strconv.Itoa(resource.From+n))
		}
	}
}

// addResource adds or changes one resource.
func (t tree) addResource(r Resource, number string) {
	at := strings.ReplaceAll(r.At, "{n}", number)
	if t[at] == nil {
		t.add(at, "#Resource.v1_0_0.Resource", map[string]any{})
	}
	for name, value := range r.Set {
		if t[at][name] = numbered(value, number); value == nil {
			delete(t[at], name)
		}
	}
	for _, list := range r.ListedBy {
		owner, member, _ := strings.Cut(strings.ReplaceAll(list, "{n}", number), "#")
		if t[owner] == nil {
			t.add(owner, "#Collection.Collection", map[string]any{"Name": path.Base(owner)})
		}
		appendLink(t[owner], strings.Split(member, "."), at)
	}
}

// appendLink appends a link to the list that the names lead to.
func appendLink(document map[string]any, names []string, at string) {
	for len(names) > 1 {
		inner, _ := document[names[0]].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		document[names[0]] = inner
		document, names = inner, names[1:]
	}
	links, _ := document[names[0]].([]any)
	document[names[0]] = append(links, ref(at))
}

// numbered returns a copy of the value with the number in its texts.
func numbered(value any, number string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, "{n}", number)
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, numbered(item, number))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			out[name] = numbered(item, number)
		}
		return out
	}
	return value
}

// expanded returns the document with the resources that it links to in place of the links, one level deep and without those under Links.
func (b *BMC) expanded(document map[string]any) map[string]any {
	out := maps.Clone(document)
	for name, value := range out {
		if name == "Links" {
			continue
		}
		if links, isList := value.([]any); isList {
			var items []any
			for _, item := range links {
				items = append(items, b.followed(item))
			}
			out[name] = items
		} else {
			out[name] = b.followed(value)
		}
	}
	return out
}

// followed returns the resource that a link leads to, and any other value as it is.
func (b *BMC) followed(value any) any {
	link, isLink := value.(map[string]any)
	at, hasPath := link["@odata.id"].(string)
	target := b.tree[strings.TrimRight(at, "/")]
	if !isLink || !hasPath || len(link) != 1 || target == nil {
		return value
	}
	if b.options.Personality.Resources.Expand.Form == ExpandWithoutIDs {
		target = maps.Clone(target)
		delete(target, "Id")
		delete(target, "Name")
	}
	return target
}
