package rollout_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// hold has a claim of the tenant legal hold a device of a node. A claim that no pod holds would lose its allocation.
func (s *site) hold(name, node string) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "registry.example/none"}}, SchedulerName: "nobody",
		ResourceClaims: []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: ptr.To(name)}},
	}}
	server.Create(s.t, pod)
	server.Create(s.t, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "legal-h100", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}},
	}}, Status: resourcev1.ResourceClaimStatus{
		Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.nvidia.com", Pool: node, Device: "gpu-0"}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
		},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: pod.UID}},
	}})
}

// share gives the rollout a Machine under way, one that is next and one that has moved, in a shared cluster with that uid.
func (s *site) share(uid types.UID) {
	s.t.Helper()
	meta := metav1.ObjectMeta{Namespace: s.name, Name: "gpus"}
	server.Create(s.t,
		&v1alpha1.TenantCluster{ObjectMeta: meta, Spec: v1alpha1.TenantClusterSpec{KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}},
			Status: v1alpha1.TenantClusterStatus{ClusterUID: uid}},
		&v1alpha1.Entitlement{ObjectMeta: meta, Spec: v1alpha1.EntitlementSpec{
			TenantClusterRef: v1alpha1.LocalReference{Name: "gpus"}, Tenant: "legal", Namespaces: v1alpha1.TenantNamespaces{Names: []string{s.name}},
		}})
	for name, revision := range map[string]string{"goes": "-one", "waits": "-one", "moved": "-two"} {
		server.Create(s.t, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name},
			Spec:   v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: s.name}, TenantClusterRef: v1alpha1.LocalReference{Name: "gpus"}},
			Status: v1alpha1.MachineStatus{Revision: s.name + revision, NodeRef: &v1alpha1.NodeReference{Name: s.name + "-" + name, UID: "n"}}})
		s.hold("claim-of-"+name, s.name+"-"+name)
	}
	r := s.get()
	r.Status.Phase, r.Status.InProgress = v1alpha1.RolloutRolling, []string{s.name + "/goes"}
	r.Status.InUse = []v1alpha1.DevicesInUse{{Machine: s.name + "/goes", DeviceClass: "legal-h100", Devices: 3, Claims: 2}}
	if err := server.Client.Status().Update(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

func TestStatusCountsWhatIsInUseAndNamesTheClaimsToWhoMayReadThem(t *testing.T) {
	s := newSite(t)
	var system corev1.Namespace
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		t.Fatal(err)
	}
	s.share(system.UID)
	status, out, stderr := s.run("status", s.name)
	for _, want := range []string{"in use     " + s.name + "/goes: of legal-h100 3 held in 2 claims when its drain began\n", "ingot rollout status " + s.rollout + " --shared-kubeconfig FILE"} {
		if status != cli.ExitOK || !strings.Contains(out, want) || strings.Contains(out, "claim-of-") {
			t.Errorf("status %d, %s: %q is missing, or a claim is named, in\n%s", status, stderr, want, out)
		}
	}
	status, out, stderr = s.run("status", s.name, "--shared-kubeconfig", s.kubeconfig)
	goes, waits := strings.Index(out, "claim-of-goes"), strings.Index(out, "claim-of-waits")
	if status != cli.ExitOK || goes < 0 || waits < goes || strings.Contains(out, "claim-of-moved") || !strings.Contains(out, "under way") || !strings.Contains(out, "legal") {
		t.Errorf("status %d, %s:\n%s", status, stderr, out)
	}
	if strings.Contains(out, "--shared-kubeconfig FILE") || !strings.Contains(out, "of legal-h100 3 held in 2 claims when its drain began, 1 now\n") {
		t.Errorf("the claims are named below:\n%s", out)
	}
	_, out, stderr = s.run("status", s.name, "--shared-kubeconfig", s.kubeconfig, "-o", "json")
	var all []struct {
		v1alpha1.Rollout
		Holders []struct{ Stage, Tenant, Claim, Machine string }
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Name != s.rollout || len(all[0].Holders) != 2 {
		t.Fatalf("%v, %s: %s", err, stderr, out)
	}
	if got := all[0].Holders[1]; got.Stage != "next" || got.Tenant != "legal" || got.Claim != "claim-of-waits" || got.Machine != s.name+"/waits" {
		t.Errorf("%+v", got)
	}
	if status, _, stderr := s.run("status", "--shared-kubeconfig", s.kubeconfig); status == cli.ExitOK || !strings.Contains(stderr, "expected a NodeType or a Rollout") {
		t.Errorf("status %d: %s", status, stderr)
	}
	s.setPhase(v1alpha1.RolloutDone)
	if status, out, _ := s.run("status", s.name, "--shared-kubeconfig", s.kubeconfig); status != cli.ExitOK || strings.Contains(out, "claim-of-") || strings.Contains(out, "in use  ") {
		t.Errorf("status %d: a Rollout that is Done takes nothing away:\n%s", status, out)
	}
}

func TestTheClaimsOfAnotherClusterAreNotTakenForThoseOfTheRollout(t *testing.T) {
	s := newSite(t)
	s.share("another")
	status, out, stderr := s.run("status", s.name, "--shared-kubeconfig", s.kubeconfig)
	if status == cli.ExitOK || !strings.Contains(stderr, "reaches another cluster than TenantCluster "+s.name+"/gpus") || strings.Contains(out, "claim-of") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

// TestADrainThatHasEmptiedANodeIsNoContradiction: the count of status.inUse stays until the Machine is Ready again.
func TestADrainThatHasEmptiedANodeIsNoContradiction(t *testing.T) {
	s := newSite(t)
	s.share("")
	r := s.get()
	r.Status.InUse = []v1alpha1.DevicesInUse{{Machine: s.name + "/goes", DeviceClass: "legal-a100", Devices: 1, Claims: 1}}
	if err := server.Client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if status, out, stderr := s.run("status", s.name, "--shared-kubeconfig", s.kubeconfig); status != cli.ExitOK || !strings.Contains(out, "of legal-a100 1 held in 1 claim when its drain began, 0 now\n") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

// TestAListOfRolloutsSaysThatOneWaitsForATenant: nothing has failed, and nothing moves.
func TestAListOfRolloutsSaysThatOneWaitsForATenant(t *testing.T) {
	s := newSite(t)
	r := s.get()
	r.Status.Phase, r.Status.StoppedBy = v1alpha1.RolloutCanary, ""
	r.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionTenantsHaveRoom, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDevicesHeld, Message: "1 wait for devices that are in use: class legal-a100", LastTransitionTime: metav1.Now(),
	}}
	if err := server.Client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want := "DevicesHeld: 1 wait for devices that are in use: class legal-a100"
	for _, args := range [][]string{{"status"}, {"status", s.name}} {
		if status, out, stderr := s.run(args...); status != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("%v: status %d: %s%s", args, status, out, stderr)
		}
	}
}
