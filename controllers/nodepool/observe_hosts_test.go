package nodepool

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/test/management"
)

// awaitCondition waits until the condition has the reason and its message the text.
func awaitCondition(t *testing.T, pool *v1alpha1.NodePool, condition, reason, text string) {
	t.Helper()
	stored := &v1alpha1.NodePool{}
	management.Eventually(t, fmt.Sprintf("%s is %s: %s", condition, reason, text), func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), stored); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(stored.Status.Conditions, condition)
		return c != nil && c.Reason == reason && strings.Contains(c.Message, text)
	})
}

func awaitMachines(t *testing.T, pool *v1alpha1.NodePool, n int) []v1alpha1.Machine {
	t.Helper()
	var list []v1alpha1.Machine
	management.Eventually(t, fmt.Sprintf("there are %d Machines", n), func() bool { list = machines(t, pool); return len(list) == n })
	return list
}

func TestAPoolMakesNoMoreMachinesThanThereAreHostsFor(t *testing.T) {
	const nodeType = "scarce"
	newNodeType(t, nodeType)
	newHosts(t, nodeType, "a", "b")
	run(t)
	pool := newPool(t, nodeType, 100)
	for i, m := range awaitMachines(t, pool, 2) {
		claim(t, &m, nodeType, []string{"a", "b"}[i])
	}
	// One more waits for the next host, and one condition says what is missing.
	awaitMachines(t, pool, 3)
	awaitCondition(t, pool, v1alpha1.ConditionPlaced, v1alpha1.ReasonNoHostAvailable,
		"100 Machines are asked for, 2 have a host, and 0 hosts are free; NodeType scarce selects 2, of which 2 are claimed and 0 in error")
	awaitCondition(t, pool, v1alpha1.ConditionReady, v1alpha1.ReasonNoHostAvailable, "scale this NodePool to 2")
	management.Eventually(t, "3 Machines are counted, 2 of them with a host", func() bool {
		stored := &v1alpha1.NodePool{}
		err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), stored)
		return err == nil && stored.Status.Replicas == 3 && stored.Status.PlacedReplicas == 2
	})
	// Hosts come. The NodeType's controller, which is not there, counts them.
	newHosts(t, nodeType, "c", "d", "e")
	n := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: nodeType}}
	if err := server.Client.Status().Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"hosts":{"matching":5,"available":3,"claimed":2,"error":0}}}`))); err != nil {
		t.Fatal(err)
	}
	awaitMachines(t, pool, 5)
	awaitCondition(t, pool, v1alpha1.ConditionPlaced, v1alpha1.ReasonScaling, "2 have a host, and 3 hosts are free")
	// Who scales to what there are hosts for has a pool that is placed; those that wait go first, once their controller has said that they do.
	scale(t, pool, 2)
	awaitCondition(t, pool, v1alpha1.ConditionReady, v1alpha1.ReasonScaling, "of 3 nothing is known yet, and which ones are deleted is decided when it is")
	for _, m := range awaitMachines(t, pool, 5) {
		if m.Status.HostRef == nil {
			m.Status.Phase = v1alpha1.MachinePending
			if err := server.Client.Status().Update(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range awaitMachines(t, pool, 2) {
		if m.Status.HostRef == nil {
			t.Errorf("Machine %s without a host remained", m.Name)
		}
	}
	awaitCondition(t, pool, v1alpha1.ConditionPlaced, v1alpha1.ReasonPlaced, "all 2 Machines have a host")
}

// waitForHost makes a Machine wait for a host, as the machine controller does that has found none.
func waitForHost(t *testing.T, m *v1alpha1.Machine, reason string) {
	t.Helper()
	m.Status.Phase, m.Status.ObservedGeneration = v1alpha1.MachinePending, m.Generation
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionClaimed, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Now()}}
	if err := server.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestMachinesThatAnEarlierVersionMadeForNoHostGo(t *testing.T) {
	const nodeType = "crowded"
	newNodeType(t, nodeType)
	pool := newPool(t, nodeType, 20)
	r := reconciler(server.Client)
	for range 20 {
		if _, err := r.createMachine(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	made := machines(t, pool)
	for i := range made[1:] {
		waitForHost(t, &made[1+i], v1alpha1.ReasonNoHostAvailable)
	}
	claiming := &made[0]
	claiming.Status.Phase = v1alpha1.MachineClaiming
	if err := server.Client.Status().Update(t.Context(), claiming); err != nil {
		t.Fatal(err)
	}
	run(t)
	// The one that may have claimed a host stays: it counts as the one that waits.
	if left := awaitMachines(t, pool, 1); left[0].Name != claiming.Name {
		t.Errorf("%s is left, and %s was claiming a host", left[0].Name, claiming.Name)
	}
}

func TestAPoolWhoseTenantIsMissingOrLeavesMakesNoMachine(t *testing.T) {
	newNodeType(t, "tenantless")
	newHosts(t, "tenantless", "a", "b", "c")
	run(t)
	replicas := int32(2)
	pool := &v1alpha1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "training"},
		Spec: v1alpha1.NodePoolSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: "tenantless"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Replicas: &replicas,
		},
	}
	server.Create(t, pool)
	awaitCondition(t, pool, v1alpha1.ConditionReady, v1alpha1.ReasonTenantNotFound, "research does not exist")
	if n := len(machines(t, pool)); n != 0 {
		t.Errorf("%d Machines for a tenant that is not there", n)
	}
	tenant := createTenant(t, pool)
	made := awaitMachines(t, pool, 2)
	tenant.Finalizers = []string{"example.com/held"}
	if err := server.Client.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, pool, v1alpha1.ConditionPlaced, v1alpha1.ReasonTenantDeleting, "takes no further nodes: no Machine is created")
	// A Machine that is deleted then is not made again.
	deleteOneOfTwo(t, pool, &made[0])
}

func TestAPoolMakesNoMachineWhileAnotherClusterAnswers(t *testing.T) {
	const nodeType = "exchanged"
	newNodeType(t, nodeType)
	newHosts(t, nodeType, "a", "b", "c")
	pool := newPool(t, nodeType, 2)
	run(t)
	made := awaitMachines(t, pool, 2)
	ready := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		tenant := &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Spec.TenantClusterRef.Name}}
		patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, status, reason)
		if err := server.Client.Status().Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	ready(metav1.ConditionFalse, v1alpha1.ReasonClusterChanged)
	for _, condition := range []string{v1alpha1.ConditionPlaced, v1alpha1.ConditionReady} {
		awaitCondition(t, pool, condition, v1alpha1.ReasonClusterChanged, "leads to another cluster than the one that its Machines joined: no Machine is created")
	}
	deleteOneOfTwo(t, pool, &made[0])
	ready(metav1.ConditionTrue, v1alpha1.ReasonReady)
	awaitMachines(t, pool, 2)
}

func TestAPoolMakesNoMachineWhoseSettingsOfKubeletTheJoinCannotApply(t *testing.T) {
	const nodeType = "settings-of-kubelet"
	newNodeType(t, nodeType)
	newHosts(t, nodeType, "a")
	revision := &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: nodeType + "-new"}, Spec: v1alpha1.NodeTypeRevisionSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, HashVersion: 1, Kubelet: &runtime.RawExtension{Raw: []byte(`{"maxPods":64}`)},
		Image: v1alpha1.RevisionImage{Name: "debian", Checksum: "sha256:" + strings.Repeat("9b", 32), Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit},
	}}
	server.Create(t, revision)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), revision) })
	status := fmt.Appendf(nil, `{"status":{"stableRevision":%q}}`, revision.Name)
	if err := server.Client.Status().Patch(t.Context(), &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: nodeType}}, client.RawPatch(types.MergePatchType, status)); err != nil {
		t.Fatal(err)
	}
	replicas := int32(1)
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "training"}, Spec: v1alpha1.NodePoolSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Replicas: &replicas,
	}}
	tenant := createTenant(t, pool)
	join := func(patch string) {
		t.Helper()
		if err := server.Client.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"join":`+patch+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	join(`{"tlsBootstrap":null,"script":{"secretRef":{"name":"join"}}}`)
	server.Create(t, pool)
	run(t)
	awaitCondition(t, pool, v1alpha1.ConditionPlaced, v1alpha1.ReasonKubeletUnsupported, "cannot be applied by the join script of the TenantCluster")
	if n := len(machines(t, pool)); n != 0 {
		t.Errorf("%d Machines whose settings nobody would apply", n)
	}
	join(`{"kubeadm":{},"script":null}`)
	awaitMachines(t, pool, 1)
}

func TestAPoolWithoutFreeHostsKeepsMachinesThatMayHaveOne(t *testing.T) {
	const nodeType = "restored-without-status"
	newNodeType(t, nodeType)
	newHosts(t, nodeType, "a")
	pool := newPool(t, nodeType, 8)
	r := reconciler(server.Client)
	for range 7 {
		if _, err := r.createMachine(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	all := machines(t, pool)
	// Three have no status, as after a restore from a backup of objects. The others say what they wait for.
	waitForHost(t, &all[3], v1alpha1.ReasonHostOrphaned)
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts-of-" + nodeType, Name: "a"}}
	patch := fmt.Appendf(nil, `{"spec":{"consumerRef":{"apiVersion":"ingot.dev/v1alpha1","kind":"Machine","namespace":%q,"name":%q}}}`, all[4].Namespace, all[4].Name)
	if err := server.Client.Patch(t.Context(), host, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	waitForHost(t, &all[4], v1alpha1.ReasonNoHostAvailable) // its host still names it
	waitForHost(t, &all[5], v1alpha1.ReasonNoHostAvailable)
	waitForHost(t, &all[6], v1alpha1.ReasonNoHostAvailable)
	run(t)
	left := awaitMachines(t, pool, 5)
	for _, m := range left {
		if m.Name == all[5].Name || m.Name == all[6].Name {
			t.Errorf("Machine %s waits for a host and remained", m.Name)
		}
	}
	awaitCondition(t, pool, v1alpha1.ConditionPlaced, v1alpha1.ReasonNoHostAvailable, "0 hosts are free")
	awaitMachines(t, pool, 5)
}

func TestAPoolCountsTheHostsThatItsOwnTenantHadLast(t *testing.T) {
	const nodeType = "returning"
	newNodeType(t, nodeType)
	newHosts(t, nodeType, "a", "b", "c")
	pool := newPool(t, nodeType, 3)
	tenant := &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Spec.TenantClusterRef.Name}}
	if err := server.Client.Status().Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"status":{"clusterUID":"cluster-1"}}`))); err != nil {
		t.Fatal(err)
	}
	// Nothing was erased: another tenant could not have these hosts, and the same may.
	for _, name := range []string{"a", "b", "c"} {
		record := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts-of-" + nodeType, Name: name}}
		patch := fmt.Appendf(nil, `{"status":{"lastTenant":"%s/%s","lastTenantClusterUID":"cluster-1"}}`, tenant.Namespace, tenant.Name)
		if err := server.Client.Status().Patch(t.Context(), record, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	run(t)
	awaitMachines(t, pool, 3)
	awaitCondition(t, pool, v1alpha1.ConditionPlaced, v1alpha1.ReasonScaling, "0 have a host, and 3 hosts are free")
}

func TestTheColumnsOfANodePoolSayWhyItIsNotReady(t *testing.T) {
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "nodepools.ingot.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var names []string
	for _, column := range versions[0].(map[string]any)["additionalPrinterColumns"].([]any) {
		names = append(names, column.(map[string]any)["name"].(string))
	}
	if got, want := strings.Join(names, " "), "NodeType Tenant Desired Machines Placed Up Ready Reason Age Message"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
}

func TestAClaimantIsAMachineOfIngot(t *testing.T) {
	var facts []placement.HostFacts
	for name, apiVersion := range map[string]string{"ours": v1alpha1.GroupVersion.String(), "of-the-cluster-api": "cluster.x-k8s.io/v1beta1"} {
		facts = append(facts, placement.HostFacts{Host: &metal3.BareMetalHost{Spec: metal3.BareMetalHostSpec{
			ConsumerRef: &corev1.ObjectReference{APIVersion: apiVersion, Kind: "Machine", Namespace: "team", Name: name},
		}}})
	}
	if got := claimants("team", facts); len(got) != 1 || !got["ours"] {
		t.Errorf("claimants %v", got)
	}
}

// deleteOneOfTwo deletes one of the pool's two Machines and checks that the pool counts the other and makes none in its place.
func deleteOneOfTwo(t *testing.T, pool *v1alpha1.NodePool, machine *v1alpha1.Machine) {
	t.Helper()
	machine.Finalizers = nil
	if err := server.Client.Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "one Machine is counted", func() bool {
		stored := &v1alpha1.NodePool{}
		return server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), stored) == nil && stored.Status.Replicas == 1
	})
	if n := len(machines(t, pool)); n != 1 {
		t.Errorf("%d Machines, expected the one that is left", n)
	}
}
