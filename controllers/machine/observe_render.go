package machine

import (
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
)

// renderCache remembers, by the uid of a Machine, what came of rendering its documents last, so that they are rendered again only when what they are made of has
// changed. It holds no document. The zero value is empty.
type renderCache struct{ problems sync.Map }

// rendered is what came of rendering documents that are made of what from names.
type rendered struct{ from, problem string }

func (c *renderCache) forget(machine types.UID) { c.problems.Delete(machine) }

// problem returns why the documents cannot be rendered; empty: they can.
func (c *renderCache) problem(node documents.Node, rendering *v1alpha1.NodeTypeRendering) string {
	from, uid := madeOf(node, rendering), node.Machine.ClaimUID()
	if found, isFound := c.problems.Load(uid); isFound {
		if known, _ := found.(rendered); known.from == from {
			return known.problem
		}
	}
	known := rendered{from: from}
	if _, err := node.Render(nil, cloudinit.Secrets{}); err != nil {
		known.problem = err.Error()
	}
	c.problems.Store(uid, known)
	return known.problem
}

// madeOf names everything that the documents of a node are made of, but for secrets. Of objects whose status changes often it has what documents.Node reads.
func madeOf(node documents.Node, rendering *v1alpha1.NodeTypeRendering) string {
	version := func(o client.Object) string { return fmt.Sprint(o.GetUID(), o.GetGeneration()) }
	m := node.Machine
	out := fmt.Sprintln(version(m), m.Status.Attempt, m.Status.ProviderID, version(node.Revision), version(rendering), version(node.Image), version(node.NodeType), node.SecretAttempt)
	if node.Tenant != nil {
		out += fmt.Sprintln(node.Tenant.UID, node.Tenant.ResourceVersion)
	}
	if node.Host != nil {
		annotations := maps.Clone(node.Host.Annotations)
		delete(annotations, v1alpha1.AnnotationInstallation) // Ingot's own note, which changes with each installation
		out += fmt.Sprintln(node.Host.UID, node.Host.Spec.BootMACAddress, node.Host.Labels, annotations)
	}
	return out
}
