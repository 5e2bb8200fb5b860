package inuse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// order is the order in which users are counted and named.
var order = []string{"NodePool", "NodeType", "Rollout", "Machine", "NodeTypeRevision", "BareMetalHost"}

func compareUsers(a, b string) int {
	rank := func(user string) int {
		kind, _, _ := strings.Cut(user, " ")
		return slices.Index(order, kind)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// State is what Plan needs to know of one object.
type State struct {
	// Deleting is true when the object has a deletion timestamp, Finalizer when it has v1alpha1.InUseFinalizer.
	Deleting, Finalizer bool
}

// Action is what is done with an object.
type Action string

// The actions.
const (
	// None writes the status only.
	None Action = ""
	// Protect adds the finalizer.
	Protect Action = "Protect"
	// Release removes the finalizer, so that a deleted object goes. The caller reads everything from the API server before and plans once more.
	Release Action = "Release"
)

// Plan decides what is done with an object that has these users; nil: it has none.
//
// Every object gets the finalizer before anything uses it. Without it: a Machine is created and claims a host while the NodeType, which has
// no user yet, is deleted. The admission policy sees a count of 0 and lets it go, and the Machine's node is never judged.
func Plan(s State, users *v1alpha1.UsedBy) Action {
	switch {
	case !s.Deleting && !s.Finalizer:
		return Protect
	case s.Deleting && s.Finalizer && users == nil:
		return Release
	}
	return None
}

// advice says how the users of a kind are ended.
var advice = map[string]string{
	NodeType:     "delete the NodePools and Machines that name it",
	NodeProvider: "delete the NodeTypes that name it, the Machines on its hosts and, unless a baremetal-operator serves these (spec.metal3), the BareMetalHosts in its host namespace",
	OSImage:      "give the NodeTypes another osImageRef, and let their Rollouts end",
	Revision:     "give the NodeType another specification, and let its Rollout end",
	Rendering:    "ingot rollout refresh moves the Machines to another rendering",
}

// HeldMessage says of an object that is being deleted what holds it, and what to do. Tenants may read it, so it names nobody.
func HeldMessage(o Object, users *v1alpha1.UsedBy) string {
	return fmt.Sprintf("%s %s is being deleted, which cannot be undone, and is kept for what uses it: %s. They go on as before, and nothing new uses it. To let it go: %s. kubectl ingot users %s %s lists them",
		o.Kind, o.Name, users, advice[o.Kind], strings.ToLower(o.Kind), o.Name)
}
