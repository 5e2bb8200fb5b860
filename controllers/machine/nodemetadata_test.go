package machine_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// countNodeCalls counts the requests for one Node that the manager makes to the tenant's API server, by verb.
func countNodeCalls(name string, patches, reads *atomic.Int32) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			if strings.HasSuffix(q.URL.Path, "/nodes/"+name) {
				switch q.Method {
				case http.MethodPatch:
					patches.Add(1)
				case http.MethodGet:
					reads.Add(1)
				}
			}
			return next.RoundTrip(q)
		})
	}
}

// TestLabelsAndTaintsThatOthersRemoveCauseNoHotLoop has a program in the tenant's cluster that changes a label and removes a taint of the NodeType
// whenever they are on the Node.
func TestLabelsAndTaintsThatOthersRemoveCauseNoHotLoop(t *testing.T) {
	r := newRig(t, 1)
	var patches, reads atomic.Int32
	r.tenantWrap = countNodeCalls(r.namespace, &patches, &reads)
	r.start()
	r.addMachine(r.namespace)
	r.awaitInstallation(1)
	r.install(r.namespace, 1)
	sweep := func() {
		node := r.node(r.namespace)
		if node.Labels["team"] != "research" {
			return
		}
		before := node.DeepCopy()
		node.Labels["team"] = "swept"
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "gpu" })
		if err := server.Client.Patch(t.Context(), node, client.MergeFrom(before), client.FieldOwner("label-sweeper")); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() metav1.Condition { return r.condition(r.namespace, v1alpha1.ConditionNodeMetadataKept) }
	management.Eventually(t, "the Machine says when they are placed again", func() bool {
		sweep()
		return kept().Status == metav1.ConditionFalse && strings.Contains(kept().Message, "placed again at")
	})
	for _, part := range []string{"label team", "taint gpu", "removed 3 times, last by label-sweeper", "spec.node of the NodeType", "pods that do not tolerate it"} {
		if !strings.Contains(kept().Message, part) {
			t.Errorf("%q is not in: %s", part, kept().Message)
		}
	}
	placed, looked := patches.Load(), reads.Load()
	management.Eventually(t, "the controller looks ten times more", func() bool {
		sweep()
		r.poke(r.namespace)
		return reads.Load() >= looked+10
	})
	// The first one, and one for each removal but the last.
	if n := patches.Load(); placed > 6 || n > placed+1 {
		t.Errorf("the Node was written %d times, and %d times at the end", placed, n)
	}
	m := r.machine(r.namespace)
	if m.Status.Phase != v1alpha1.MachineReady || r.node(r.namespace).Spec.Unschedulable || m.Status.NodeMetadata == nil || m.Status.NodeMetadata.RemovedBy != "label-sweeper" {
		t.Errorf("%s, %+v", m.Status.Phase, m.Status.NodeMetadata)
	}
	management.Eventually(t, "one event says it", func() bool { return len(r.events(v1alpha1.ReasonNodeMetadataRemovedByOthers)) == 1 })
	// Whoever takes them out of the NodeType ends it.
	r.patch(&v1alpha1.NodeType{ObjectMeta: r.global()}, `{"spec":{"node":null}}`)
	management.Eventually(t, "the Node has what is left of the NodeType", func() bool { return kept().Status == metav1.ConditionTrue })
}

// TestANodeNamesItsHostAndRack: people and schedulers in the tenant's cluster find the nodes of a rack, also after a server was moved.
func TestANodeNamesItsHostAndRack(t *testing.T) {
	r := newRig(t, 1)
	r.start()
	r.addMachine(r.namespace)
	r.awaitInstallation(1)
	host := r.machine(r.namespace).Status.HostRef.Name
	r.install(r.namespace, 1)
	has := func(rack string) func() bool {
		return func() bool {
			labels := r.node(r.namespace).Labels
			return labels["ingot.dev/host"] == host && labels["ingot.dev/rack"] == rack
		}
	}
	management.Eventually(t, "the Node has its host and rack", has(r.namespace))
	r.patch(&metal3.BareMetalHost{ObjectMeta: r.meta(host)}, `{"metadata":{"labels":{"rack":"r9"}}}`)
	management.Eventually(t, "the Node has the rack that the host moved to", has("r9"))
}
