package claims

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

func claim(namespace, name, class string, count int64) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}},
	}}}
}

// allocated gives a claim so many devices of a node.
func allocated(c *resourcev1.ResourceClaim, node string, count int, holder types.UID) *resourcev1.ResourceClaim {
	a := &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
	for i := range count {
		a.Devices.Results = append(a.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: "gpu.nvidia.com", Pool: node, Device: "gpu-" + string(rune('0'+i))})
	}
	c.Status.Allocation = a
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "training", UID: holder}}
	return c
}

// TestWhoHoldsWhatIsReadFromBothClusters has one control plane as both clusters.
func TestWhoHoldsWhatIsReadFromBothClusters(t *testing.T) {
	shared, tenant, node := server.Namespace(t), server.Namespace(t), "node-of-claims"
	meta := metav1.ObjectMeta{Namespace: shared, Name: "gpus"}
	// A claim that no pod holds would lose its allocation.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "training"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "registry.example/none"}}, SchedulerName: "nobody",
		ResourceClaims: []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: ptr.To("training")}},
	}}
	server.Create(t, pod)
	spec := v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "gpus"}}
	server.Create(t,
		&v1alpha1.TenantCluster{ObjectMeta: meta, Spec: v1alpha1.TenantClusterSpec{KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}}},
		&v1alpha1.Entitlement{ObjectMeta: meta, Spec: v1alpha1.EntitlementSpec{
			TenantClusterRef: v1alpha1.LocalReference{Name: "gpus"}, Tenant: "legal-ai", Namespaces: v1alpha1.TenantNamespaces{Names: []string{tenant}},
		}, Status: v1alpha1.EntitlementStatus{Classes: []v1alpha1.EntitledClassStatus{{Name: "h100", DeviceClass: "legal-ai-h100"}}}},
		&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: shared, Name: "training-1"}, Spec: spec, Status: v1alpha1.MachineStatus{
			NodeRef: &v1alpha1.NodeReference{Name: node, UID: "n"}, HostRef: &v1alpha1.NamespacedReference{Namespace: shared, Name: "server-04"},
		}},
		&metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: shared, Name: "server-04", Labels: map[string]string{"rack": "r7"}}},
		allocated(claim(tenant, "training", "legal-ai-h100", 2), node, 2, pod.UID), claim(tenant, "waiting", "legal-ai-h100", 1), claim(tenant, "other", "somebody-a100", 1),
	)
	file := server.KubeconfigFile(t)
	run := func(args ...string) (int, string, string) {
		var out, err bytes.Buffer
		status := cli.Run(context.Background(), Command(), append(args, "--kubeconfig", file), &out, &err)
		return status, out.String(), err.String()
	}
	args := []string{"gpus", "-n", shared, "--shared-kubeconfig", file, "--claim-namespace", tenant}
	status, out, stderr := run(append(args, "-o", "json")...)
	var rows []Row
	if err := json.Unmarshal([]byte(out), &rows); status != cli.ExitOK || err != nil {
		t.Fatal(out, stderr, err)
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Claim, b.Claim) })
	for i := range rows {
		rows[i].Since = time.Time{}
	}
	want := []Row{
		{Tenant: "legal-ai", Namespace: tenant, Claim: "other", Class: "somebody-a100", Devices: 1, IsWaiting: true, Reason: v1alpha1.WaitUnused},
		{
			Tenant: "legal-ai", Namespace: tenant, Claim: "training", Class: "legal-ai-h100", Devices: 2, Node: node, Machine: shared + "/training-1", Host: "server-04", Rack: "r7",
			Holder: "training",
		},
		{Tenant: "legal-ai", Namespace: tenant, Claim: "waiting", Class: "legal-ai-h100", Devices: 1, IsWaiting: true, Reason: v1alpha1.WaitUnused},
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%+v\nwant %+v", rows, want)
	}
	if status, out, stderr = run(args...); status != cli.ExitOK || !strings.Contains(out, "Unused, asks for 1") || strings.Index(out, "/training ") < strings.Index(out, "/waiting ") {
		t.Errorf("claims without devices come first:\n%s%s", out, stderr)
	}
	for says, args := range map[string][]string{
		"expected -n":                            {"gpus", "--shared-kubeconfig", file},
		"read --shared-kubeconfig":               {"gpus", "-n", shared, "--shared-kubeconfig", "/nothing"},
		"read TenantCluster " + shared + "/none": {"none", "-n", shared, "--shared-kubeconfig", file},
	} {
		if status, _, stderr := run(args...); status == cli.ExitOK || !strings.Contains(stderr, says) {
			t.Errorf("%v says %q, want %q", args, stderr, says)
		}
	}
}

func TestClaimsThatWaitComeFirstTheLongestWaitingBeforeTheOthers(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(c *resourcev1.ResourceClaim, minute int) resourcev1.ResourceClaim {
		c.CreationTimestamp.Time = noon.Add(time.Duration(minute) * time.Minute)
		return *c
	}
	held := allocated(claim("b", "held", "x", 1), "n", 1, "u")
	allocation := metav1.NewTime(noon.Add(time.Hour))
	held.Status.Allocation.AllocationTimestamp = &allocation
	rows := Rows([]resourcev1.ResourceClaim{at(held, 0), at(claim("a", "young", "x", 1), 9), at(claim("z", "old", "x", 1), 1)}, nil, Site{})
	var names []string
	for _, r := range rows {
		names = append(names, r.Claim)
	}
	if got := strings.Join(names, " "); got != "old young held" || !rows[2].Since.Equal(allocation.Time) {
		t.Errorf("%s, held since %s", got, rows[2].Since)
	}
}

// TestAClaimHasItsTenantWhenItsClassWasTakenAway: neither Entitlement has a class any more.
func TestAClaimHasItsTenantWhenItsClassWasTakenAway(t *testing.T) {
	of := func(tenant string, namespaces v1alpha1.TenantNamespaces) v1alpha1.Entitlement {
		return v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{TenantClusterRef: v1alpha1.LocalReference{Name: "gpus"}, Tenant: tenant, Namespaces: namespaces}}
	}
	labelled := v1alpha1.TenantNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "ai"}}}
	site := NewSite("gpus", []v1alpha1.Entitlement{of("legal", v1alpha1.TenantNamespaces{Names: []string{"contracts"}}), of("research", labelled), of("research-ai", labelled)}, nil, nil)
	for c, want := range map[*resourcev1.ResourceClaim]string{
		claim("contracts", "a", "legal-h100", 1): "legal", claim("lab", "b", "research-h100", 1): "research", claim("lab", "c", "research-ai-h100", 1): "", claim("lab", "d", "a100", 1): "",
	} {
		if rows := Rows([]resourcev1.ResourceClaim{*c}, nil, site); len(rows) != 1 || rows[0].Tenant != want {
			t.Errorf("claim %s of class %s: %+v, expected tenant %q", c.Name, c.Spec.Devices.Requests[0].Exactly.DeviceClassName, rows, want)
		}
	}
}

// TestAClaimOfAVirtualClusterHasTheNameThatItsTenantKnows: the syncer writes both names on what it makes.
func TestAClaimOfAVirtualClusterHasTheNameThatItsTenantKnows(t *testing.T) {
	synced := claim("vc-legal", "training-x-team-x-legal", "legal-h100", 1)
	synced.Annotations = map[string]string{"vcluster.loft.sh/object-name": "training", "vcluster.loft.sh/object-namespace": "team"}
	synced.Labels = map[string]string{"vcluster.loft.sh/managed-by": "legal"}
	rows := Rows([]resourcev1.ResourceClaim{*synced}, nil, NewSite("gpus", nil, nil, nil))
	if want := (Virtual{Cluster: "legal", Namespace: "team", Claim: "training"}); len(rows) != 1 || rows[0].Virtual == nil || *rows[0].Virtual != want || rows[0].Claim != synced.Name {
		t.Fatalf("%+v", rows)
	}
	if got := Table(rows, time.Now())[1][2]; got != "legal:team/training" {
		t.Errorf("the table has %q", got)
	}
}
