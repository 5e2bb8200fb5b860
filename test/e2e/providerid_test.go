package e2e

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// setProviderID sets the Node's providerID as the cloud provider of the tenant's cluster does.
func (p *pipeline) setProviderID(t *testing.T, node, providerID string) {
	t.Helper()
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"providerID": "`+providerID+`"}}`))
	if err := p.env.TenantClient.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch); err != nil {
		t.Fatal(err)
	}
}

// TestAMachineLivesWhereTheClusterSetsProviderIDs has the tenant's cluster set the providerID of each Node, while a machine of the tenant's own has the
// Machine's name at first.
func TestAMachineLivesWhereTheClusterSetsProviderIDs(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	byCluster := func(_ *pipeline, samples []*unstructured.Unstructured) error {
		return environment.SetField(samples, "TenantCluster", string(v1alpha1.ProviderIDByCluster), "spec", "join", "providerID")
	}
	p := startEditedPipeline(t, programFolder(t), byCluster, []rack.ServerSpec{{Name: "server-1", Profile: profile}})
	const name = "worker-1"
	await := func(what string, ok func(observation) bool) observation {
		t.Helper()
		v, err := p.fleet.await(t.Context(), 2*time.Minute, name, "server-1", what, ok)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	await("the host is available", func(v observation) bool {
		return v.host != nil && v.host.Status.Provisioning.State == metal3.StateAvailable
	})

	// It has a gate, for the watch expects one of every Node.
	foreign := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: gateKey, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "4c4c4544-0042-3010-8053-b8c04f334499"}},
	}
	if err := p.env.TenantClient.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if err := p.order(t.Context(), name, "server-1"); err != nil {
		t.Fatal(err)
	}
	conflict := await("another machine has its name", func(v observation) bool {
		return v.condition(v1alpha1.ConditionJoined).Reason == v1alpha1.ReasonNodeConflict
	})
	if m := conflict.condition(v1alpha1.ConditionJoined).Message; !strings.Contains(m, foreign.Status.NodeInfo.SystemUUID) {
		t.Errorf("the message does not name the server that has the name: %s", m)
	}
	if conflict.node == nil || conflict.node.UID != foreign.UID || len(conflict.node.Labels) > 0 || conflict.node.Spec.Unschedulable {
		t.Errorf("the other machine's Node was touched: %+v", conflict.node)
	}
	if err := p.env.TenantClient.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}

	first := await("the Machine is Ready", observation.isReady)
	if first.node.Spec.ProviderID != "" {
		t.Errorf("kubelet registered with providerID %q", first.node.Spec.ProviderID)
	}
	p.setProviderID(t, name, "vcluster://"+name)
	change := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sshKeys":["ssh-ed25519 AAAA ops"]}}`))
	if err := p.env.ManagementClient.Patch(t.Context(), &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: nodeType}}, change); err != nil {
		t.Fatal(err)
	}
	second := await("the Machine is rolled", func(v observation) bool { return v.isReady() && v.machine.Status.Attempt == 2 })
	if second.node.UID == first.node.UID || second.node.Spec.ProviderID != "" {
		t.Errorf("after the roll the Node is %s with providerID %q, before it was %s", second.node.UID, second.node.Spec.ProviderID, first.node.UID)
	}
	p.setProviderID(t, name, "vcluster://"+name)

	if err := p.env.ManagementClient.Delete(t.Context(), second.machine); err != nil {
		t.Fatal(err)
	}
	await("the host is back in the pool", observation.isBack)
	if err := p.env.TenantClient.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node of the released server: %v", err)
	}
	p.judge(t.Context(), t)
}
