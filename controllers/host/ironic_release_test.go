package host_test

import (
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// nodeText returns what Ironic's API shows of the server's node, in every detail.
func (r *rig) nodeText(running *ironicserver.Server, s ironicServer) string {
	r.t.Helper()
	text := string(readIronic(r.t.Context(), running, "/v1/nodes/"+r.nodeOf(running, s).UUID))
	if !strings.Contains(text, "instance_info") {
		r.t.Fatalf("Ironic says of the node of %s: %s", s.name, text)
	}
	return text
}

// removeClaim takes the claim away, as the machine controller does at the end of a release.
func (r *rig) removeClaim(s ironicServer) {
	r.t.Helper()
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef = nil })
}

// nodeOf returns the server's node as Ironic lists it.
func (r *rig) nodeOf(running *ironicserver.Server, s ironicServer) nodeState {
	r.t.Helper()
	all := listNodes(r.t.Context(), running)
	i := slices.IndexFunc(all, func(n nodeState) bool { return n.Name == r.namespace+"~"+s.name })
	if i < 0 {
		r.t.Fatalf("Ironic has no node of %s among %v", s.name, all)
	}
	return all[i]
}

// provisionedIronic registers a server without an agent, and installs it.
func (r *rig) provisionedIronic(s ironicServer, erase v1alpha1.EraseMode) {
	r.t.Helper()
	r.registerIronic(s)
	r.awaitAll([]ironicServer{s}, metal3.StateAvailable)
	r.claim(s, "m1", 1, erase)
	r.awaitAll([]ironicServer{s}, metal3.StateProvisioned)
}

func TestAReleaseWithoutAnEraseLeavesNothingOfTheTenantInIronic(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{})
	r := newIronicRig(t, running, "fake", 250)
	s := newIronicServer("node-1")
	r.provisionedIronic(s, v1alpha1.EraseNone)
	if text := r.nodeText(running, s); !strings.Contains(text, "configdrive") || !strings.Contains(text, r.image.URL) {
		t.Fatalf("the deployed node has no config drive: %s", text)
	}
	r.unassignNamed(s)
	_, record := r.await(s, "it is back in the pool", inState(metal3.StateAvailable))
	if e := record.Status.Erased; e == nil || e.Mode != v1alpha1.EraseNone || e.Tenant != "team/research" || record.Status.Installed != nil || record.Status.Failures > 0 {
		t.Errorf("erased %+v, installed %+v, %d failures", e, record.Status.Installed, record.Status.Failures)
	}
	if text := r.nodeText(running, s); strings.Contains(text, "configdrive") || strings.Contains(text, r.image.URL) {
		t.Errorf("Ironic keeps what was deployed: %s", text)
	}
	if n := r.nodeOf(running, s); n.State != "available" && n.State != "manageable" || n.Power != "power off" {
		t.Errorf("the node is %s, %s", n.State, n.Power)
	}
}

func TestADeletedHostLeavesItsNodeManageableAndCanBeRegisteredAgain(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{})
	for _, mode := range []v1alpha1.EraseMode{v1alpha1.EraseNone, v1alpha1.EraseMetadata} {
		t.Run(string(mode), func(t *testing.T) {
			r := newIronicRig(t, running, "direct", 250)
			s := newIronicServer("node-1")
			ironicserver.StartAgent(t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{})
			r.provisionedIronic(s, mode)
			host, _, err := r.get(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Client.Delete(t.Context(), host); err != nil {
				t.Fatal(err)
			}
			r.await(s, "it is kept for its Machine", func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool {
				return h.DeletionTimestamp != nil && h.Status.Provisioning.State == metal3.StateProvisioned
			})
			if n := r.nodeOf(running, s); n.State != "active" {
				t.Fatalf("the node under its Machine is %s", n.State)
			}
			// The Machine releases the host, whose erase mode stays until that has ended.
			r.edit(s, func(h *metal3.BareMetalHost) {
				h.Spec.ConsumerRef, h.Spec.Image, h.Spec.UserData, h.Spec.NetworkData, h.Spec.MetaData, h.Spec.Online = nil, nil, nil, nil, nil, false
			})
			eventually(t, "the host is gone", func() bool {
				_, _, err := r.get(s)
				return apierrors.IsNotFound(err)
			})
			if n := r.nodeOf(running, s); n.State != "manageable" || n.Power != "power off" {
				t.Errorf("the node that is left is %s, %s", n.State, n.Power)
			}
			if text := r.nodeText(running, s); strings.Contains(text, string(host.UID)) {
				t.Errorf("the node is still that of the deleted host: %s", text)
			}
			server.Create(t, r.ironicHost(s)) // its Secret is still there
			again, record := r.await(s, "it is available under its new uid", inState(metal3.StateAvailable))
			if again.UID == host.UID || record.Status.Failures > 0 {
				t.Errorf("uid %s, %d failures", again.UID, record.Status.Failures)
			}
		})
	}
}

// TestAHostThatIsRestoredUnderAnotherUIDHasItsNode does what a backup tool does: it creates the objects again, without status and owners.
func TestAHostThatIsRestoredUnderAnotherUIDHasItsNode(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{})
	r := newIronicRig(t, running, "direct", 250)
	s := newIronicServer("node-1")
	ironicserver.StartAgent(t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{})
	r.provisionedIronic(s, v1alpha1.EraseMetadata)
	r.unassignNamed(s)
	r.awaitAll([]ironicServer{s}, metal3.StateAvailable)
	r.removeClaim(s)
	before, _, err := r.get(s)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		r.stop()
		r.restore(s)
		r.start()
		after, record := r.await(s, "it is available", inState(metal3.StateAvailable)) // erased, because a backup does not tell what is on its disks
		if after.UID == before.UID || record.Status.Failures > 0 || len(v1alpha1.FormerUIDs(after)) != round+1 {
			t.Errorf("uid %s, formerly %v, %d failures", after.UID, v1alpha1.FormerUIDs(after), record.Status.Failures)
		}
		if n := r.nodeOf(running, s); n.State != "manageable" {
			t.Errorf("the node is %s", n.State)
		}
	}
	if all := listNodes(t.Context(), running); len(all) != 1 {
		t.Errorf("Ironic has the nodes %v", all)
	}
}

// restore deletes the host and its record and creates the host again, with the annotations that it had.
func (r *rig) restore(s ironicServer) {
	r.t.Helper()
	host, record, err := r.get(s)
	if err != nil {
		r.t.Fatal(err)
	}
	annotations := host.Annotations
	for _, o := range []client.Object{host, record} {
		if err := server.Client.Patch(r.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			r.t.Fatal(err)
		}
		if err := server.Client.Delete(r.t.Context(), o); err != nil && !apierrors.IsNotFound(err) {
			r.t.Fatal(err)
		}
	}
	eventually(r.t, "both are gone", func() bool {
		_, _, err := r.get(s)
		return apierrors.IsNotFound(err)
	})
	again := r.ironicHost(s)
	again.Annotations = annotations
	server.Create(r.t, again)
}
