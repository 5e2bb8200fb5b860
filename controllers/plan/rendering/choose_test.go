package rendering

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// ofPlan is a rendering of revision a whose plan has one kernel argument.
func ofPlan(name, argument string) v1alpha1.NodeTypeRendering {
	return v1alpha1.NodeTypeRendering{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeTypeRenderingSpec{
			RevisionRef: v1alpha1.LocalReference{Name: "a"}, Encoding: v1alpha1.RenderingEncoding,
			Plan: v1alpha1.NodePlan{KernelArguments: []string{argument}},
		},
	}
}

func TestTheRenderingOfARevisionIsChosenInThisOrder(t *testing.T) {
	first, second, resolved := ofPlan("a-first", "one"), ofPlan("a-second", "two"), ofPlan("a-resolved", "three")
	other := ofPlan("b-one", "one")
	other.Spec.RevisionRef.Name = "b"
	stable := v1alpha1.NodeTypeStatus{StableRevision: "a", StableRendering: "a-first"}
	lost := v1alpha1.NodeTypeStatus{StableRevision: "a", StableRendering: "a-lost"}
	lostTarget := v1alpha1.NodeTypeStatus{StableRevision: "b", StableRendering: "b-one", TargetRevision: "a", TargetRendering: "a-lost"}
	for _, c := range []struct {
		name, requested string
		status          v1alpha1.NodeTypeStatus
		existing        []v1alpha1.NodeTypeRendering
		used            []string
		rejected        bool // the running version of Ingot resolves the revision to nothing
		want            Choice
	}{
		{name: "the one that is requested", requested: "a-second", status: stable, existing: []v1alpha1.NodeTypeRendering{first, second},
			want: Choice{Rendering: &second, Differences: []string{"kernelArguments[three] would be added", "kernelArguments[two] would be gone"}}},
		{name: "the resolved one, which is requested", requested: "a-resolved", status: stable, existing: []v1alpha1.NodeTypeRendering{first}, used: []string{"a-first"},
			want: Choice{Rendering: &resolved, IsNew: true}},
		{name: "the stable one, since nobody knows the requested one", requested: "a-unknown", status: stable, existing: []v1alpha1.NodeTypeRendering{first, resolved},
			want: Choice{Rendering: &first, UnknownRequest: "a-unknown", Differences: []string{"kernelArguments[one] would be gone", "kernelArguments[three] would be added"}}},
		{name: "the stable one, since another revision's is requested", requested: "b-one", status: stable, existing: []v1alpha1.NodeTypeRendering{first, other}, rejected: true,
			want: Choice{Rendering: &first}},
		{name: "the stable one, since one of a revision that is gone is requested", requested: "c-one", status: stable, existing: []v1alpha1.NodeTypeRendering{first}, rejected: true,
			want: Choice{Rendering: &first}},
		{name: "the resolved one of a new revision", existing: []v1alpha1.NodeTypeRendering{other}, want: Choice{Rendering: &resolved, IsNew: true}},
		{name: "none of a new revision that is rejected", rejected: true, want: Choice{}},
		{name: "none when the one that Machines have is lost", status: lost, existing: []v1alpha1.NodeTypeRendering{second}, used: []string{"a-lost"}, want: Choice{LostRendering: "a-lost"}},
		{name: "none when the target that Machines have is lost", status: lostTarget, existing: []v1alpha1.NodeTypeRendering{second, other}, used: []string{"a-lost"}, want: Choice{LostRendering: "a-lost"}},
		{name: "the newest when the lost one is used by nobody", status: lost, existing: []v1alpha1.NodeTypeRendering{second}, rejected: true, want: Choice{Rendering: &second}},
		{name: "the lost one again when it is the resolved one", status: v1alpha1.NodeTypeStatus{StableRevision: "a", StableRendering: "a-resolved"},
			existing: []v1alpha1.NodeTypeRendering{second}, used: []string{"a-resolved"}, want: Choice{Rendering: &resolved, IsNew: true}},
		{name: "a NodeType without renderings has lost none", status: v1alpha1.NodeTypeStatus{StableRevision: "a"}, used: []string{""}, want: Choice{Rendering: &resolved, IsNew: true}},
		{name: "another revision's lost one keeps nothing back", status: v1alpha1.NodeTypeStatus{StableRevision: "b", StableRendering: "b-lost"}, used: []string{"b-lost"},
			want: Choice{Rendering: &resolved, IsNew: true}},
	} {
		f := Facts{Revision: "a", Requested: c.requested, Status: c.status, Existing: c.existing, Resolved: &resolved}
		f.IsUsed = func(name string) bool { return slices.Contains(c.used, name) }
		if c.rejected {
			f.Resolved = nil
		}
		if got, err := Choose(f); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", c.name, got, err, c.want)
		}
	}
}

func TestAnUnreadableRenderingIsChosenAndNotCompared(t *testing.T) {
	newer, resolved := ofPlan("a-newer", "one"), ofPlan("a-resolved", "two")
	newer.Spec.Encoding = v1alpha1.RenderingEncoding + 1
	got, err := Choose(Facts{Revision: "a", Existing: []v1alpha1.NodeTypeRendering{newer}, Resolved: &resolved, IsUsed: func(string) bool { return true }})
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) || got.Rendering == nil || got.Rendering.Name != "a-newer" || got.Differences != nil {
		t.Errorf("got %+v (%v)", got, err)
	}
	if want := "NodeTypeRendering a-newer has encoding 2, and this version of Ingot reads 1 to 1: run the version that made it, or a newer one"; err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestADifferenceQuotesWhatIsShort(t *testing.T) {
	fits := strings.Repeat("a", maxQuoted)
	for _, c := range []struct {
		was, would any
		want       string
	}{
		{nil, "text", "at would be added"},
		{nil, true, "at would be added"},
		{nil, 7.0, "at would be added: 7"},
		{map[string]any{"b": 1.0}, nil, `at would be gone: {"b":1}`},
		{nil, []any{fits}, "at would be added"},
		{nil, []any{fits[4:]}, `at would be added: ["` + fits[4:] + `"]`},
		{nil, []any{fits[3:]}, "at would be added"},
		{fits, "b", "at is " + fits + " and would be b"},
		{fits + "a", "b", "at would have another content"},
		{"b", fits + "a", "at would have another content"},
		{"b", "line\nline", "at would have another content"},
		{1.0, false, "at is 1 and would be false"},
	} {
		if got := differenceText("at", c.was, c.would); got != c.want {
			t.Errorf("%v, %v:\n got %s\nwant %s", c.was, c.would, got, c.want)
		}
	}
}

func TestItemsOfListsAreComparedByWhatNamesThem(t *testing.T) {
	item := func(pairs ...string) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	for _, c := range []struct {
		name       string
		was, would []any
		want       []string
	}{
		{"two items of one name", []any{item("name", "a", "v", "1"), item("name", "a", "v", "2")}, []any{item("name", "a", "v", "1"), item("name", "a", "v", "3")},
			[]string{"[a]#2.v is 2 and would be 3"}},
		{"three items of one name", []any{"a", "a", "a"}, []any{"a", "a"}, []string{"[a]#3 would be gone"}},
		{"an empty name does not count", []any{item("name", "", "path", "/p", "v", "1")}, []any{item("name", "", "path", "/p", "v", "2")}, []string{"[/p].v is 1 and would be 2"}},
		{"items without a name go by their place", []any{item("v", "1"), item("v", "2")}, []any{item("v", "1"), item("v", "3")}, []string{"[1].v is 2 and would be 3"}},
		{"a member that is new", []any{item("name", "a")}, []any{item("name", "a", "v", "1")}, []string{"[a].v would be added"}},
		{"a whole item is one difference", nil, []any{item("name", "a", "v", "1")}, []string{`[a] would be added: {"name":"a","v":"1"}`}},
		{"another order", []any{"a", "b"}, []any{"b", "a"}, []string{" would be in another order"}},
	} {
		if got := differencesAt("", c.was, c.would); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := differencesAt("labels", nil, map[string]any{"a": "1", "b": "2"}); !slices.Equal(got, []string{"labels.a would be added", "labels.b would be added"}) {
		t.Errorf("a whole object: %q", got)
	}
}
