package inuse

import (
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Object names one of the objects that others depend on. All of them are cluster-scoped.
type Object struct {
	Kind, Name string
}

// The kinds of Object.
const (
	NodeType     = "NodeType"
	NodeProvider = "NodeProvider"
	OSImage      = "OSImage"
	Revision     = "NodeTypeRevision"
	Rendering    = "NodeTypeRendering"
)

// Facts are all objects that may use another one.
type Facts struct {
	NodeTypes     []v1alpha1.NodeType
	NodeProviders []v1alpha1.NodeProvider
	Revisions     []v1alpha1.NodeTypeRevision
	Rollouts      []v1alpha1.Rollout
	NodePools     []v1alpha1.NodePool
	Machines      []v1alpha1.Machine
	Hosts         []metal3.BareMetalHost
}

// Users are the names of the users of each object, in the order in which they are ended. An object that is not in the map may be deleted.
type Users map[Object][]string

// FindUsers returns for every object that is in use who uses it.
//
// A NodeType is used by the Machines and NodePools that name it. A NodeTypeRevision and a NodeTypeRendering are used by the Machines that
// have them or are to have them, by Rollouts that are under way, and by the NodeType that makes nodes from them. An OSImage is used by the
// NodeTypes that name it and by the revisions in use that were made of it, because a node is installed again from its URL. A NodeProvider is used
// by the NodeTypes that name it and by the hosts of its namespace that a Machine has or that Ingot has to release.
func FindUsers(f Facts) Users {
	u := Users{}
	for i := range f.NodePools {
		p := &f.NodePools[i]
		u.add(Object{NodeType, p.Spec.NodeTypeRef.Name}, "NodePool "+p.Namespace+"/"+p.Name)
	}
	for i := range f.Machines {
		u.addMachine(&f.Machines[i])
	}
	for i := range f.NodeTypes {
		u.addNodeType(&f.NodeTypes[i])
	}
	for i := range f.Rollouts {
		u.addRollout(&f.Rollouts[i])
	}
	for i := range f.Revisions {
		if r := &f.Revisions[i]; len(u[Object{Revision, r.Name}]) > 0 {
			u.add(Object{OSImage, r.Spec.Image.Name}, "NodeTypeRevision "+r.Name)
		}
	}
	for i := range f.Hosts {
		if h := &f.Hosts[i]; v1alpha1.IsMachineRef(h.Spec.ConsumerRef) || slices.Contains(h.Finalizers, v1alpha1.HostFinalizer) {
			u.addHost(h, f.NodeProviders)
		}
	}
	for o, names := range u {
		// NodePools come before their Machines: whoever deletes the Machines first gets new ones.
		slices.SortFunc(names, compareUsers)
		u[o] = slices.Compact(names)
	}
	return u
}

func (u Users) add(o Object, user string) {
	if o.Name != "" {
		u[o] = append(u[o], user)
	}
}

func (u Users) addPair(pair v1alpha1.RenderedRevision, user string) {
	u.add(Object{Revision, pair.Revision}, user)
	u.add(Object{Rendering, pair.Rendering}, user)
}

func (u Users) addMachine(m *v1alpha1.Machine) {
	user := "Machine " + m.Namespace + "/" + m.Name
	u.add(Object{NodeType, m.Spec.NodeTypeRef.Name}, user)
	u.addPair(m.Status.Installed(), user)
	if m.DeletionTimestamp == nil {
		u.addPair(m.Spec.Asked(), user) // a Machine that is released is not installed again
	}
}

// addNodeType counts the revisions of a NodeType that is being deleted only by its Machines. Without that: the NodeType is kept by nothing, its
// revisions are kept by the NodeType, and a deletion in the foreground waits for ever.
func (u Users) addNodeType(t *v1alpha1.NodeType) {
	user := "NodeType " + t.Name
	u.add(Object{OSImage, t.Spec.OSImageRef.Name}, user)
	u.add(Object{NodeProvider, t.Spec.ProviderRef.Name}, user)
	if t.DeletionTimestamp == nil {
		u.addPair(t.Status.Stable(), user)
		u.addPair(t.Status.Target(), user)
	}
}

func (u Users) addRollout(r *v1alpha1.Rollout) {
	if r.Status.Phase.IsFinal() || r.DeletionTimestamp != nil {
		return
	}
	u.addPair(r.Spec.Source(), "Rollout "+r.Name)
	u.addPair(r.Spec.Target(), "Rollout "+r.Name)
}

func (u Users) addHost(h *metal3.BareMetalHost, providers []v1alpha1.NodeProvider) {
	for i := range providers {
		if p := &providers[i]; p.Spec.HostNamespace == h.Namespace {
			u.add(Object{NodeProvider, p.Name}, "BareMetalHost "+h.Namespace+"/"+h.Name)
		}
	}
}

// Count returns how many objects of each kind use the object; nil: none does.
func (u Users) Count(o Object) *v1alpha1.UsedBy {
	if len(u[o]) == 0 {
		return nil
	}
	counted := &v1alpha1.UsedBy{Count: int32(len(u[o]))}
	for _, user := range u[o] {
		kind, _, _ := strings.Cut(user, " ")
		if last := len(counted.ByKind) - 1; last >= 0 && counted.ByKind[last].Kind == kind {
			counted.ByKind[last].Count++
			continue
		}
		counted.ByKind = append(counted.ByKind, v1alpha1.KindCount{Kind: kind, Count: 1})
	}
	return counted
}
