package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

var onlyTaken = regexp.MustCompile(`; 10 hosts: (, |[0-9]+ taken|[0-9]+ still being given back)+$`)

func TestThirtyMachinesOfThreeManagersShareTenHosts(t *testing.T) {
	r := newRig(t, 10)
	for i := range 30 {
		r.addMachine(fmt.Sprintf("racer-%02d", i))
	}
	// Every other claim takes its time: it arrives when the host may long be another's.
	var claims atomic.Int64
	r.writes.delay = func(path string) time.Duration {
		if strings.Contains(path, "/baremetalhosts/") && claims.Add(1)%2 == 0 {
			return 400 * time.Millisecond
		}
		return 0
	}
	for range 3 {
		r.start()
	}
	ctx := t.Context()
	management.Eventually(t, "ten Machines have a host and twenty say why not", func() bool {
		machines, hosts := &v1alpha1.MachineList{}, &metal3.BareMetalHostList{}
		// The Machines first: whoever says that it has a host has it for good.
		if err := server.Client.List(ctx, machines, client.InNamespace(r.namespace)); err != nil {
			t.Fatal(err)
		}
		if err := server.Client.List(ctx, hosts, client.InNamespace(r.namespace)); err != nil {
			t.Fatal(err)
		}
		owners := map[types.UID]string{}
		for _, h := range hosts.Items {
			if ref := h.Spec.ConsumerRef; ref != nil {
				if other, twice := owners[ref.UID]; twice {
					t.Fatalf("%s has %s and %s", ref.Name, other, h.Name)
				}
				owners[ref.UID] = h.Name
			}
		}
		winners, losers := 0, 0
		for _, m := range machines.Items {
			claimed := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionClaimed)
			switch {
			case claimed == nil:
			case claimed.Status == metav1.ConditionTrue:
				if m.Status.HostRef == nil || owners[m.UID] != m.Status.HostRef.Name {
					t.Fatalf("%s says it has %v, the hosts say %q", m.Name, m.Status.HostRef, owners[m.UID])
				}
				winners++
			case claimed.Reason == v1alpha1.ReasonNoHostAvailable &&
				// The HostRecord of a claim may reach a manager before its host does, and nothing plans the loser again for that.
				onlyTaken.MatchString(claimed.Message):
				losers++
			}
		}
		return winners == 10 && losers == 20
	})
}

func TestAMachineWhoseNodeTypeIsGoneWaitsForItAndCanBeReleased(t *testing.T) {
	r := newRig(t, 1)
	r.addMachine("orphan")
	// Taken away at the claim, and its revision kept: what kubectl delete --cascade=orphan does.
	var taken atomic.Bool
	r.writes.delay = func(path string) time.Duration {
		if !strings.HasSuffix(path, "/machines/orphan/status") || taken.Load() {
			return 0
		}
		// The manager's last writes come after the test's own context has ended.
		ctx, m := context.WithoutCancel(t.Context()), &v1alpha1.Machine{}
		if err := server.Client.Get(ctx, r.key("orphan"), m); err == nil && m.Status.Phase == v1alpha1.MachineClaiming {
			taken.Store(true)
			if err := client.IgnoreNotFound(server.Client.Delete(ctx, &v1alpha1.NodeType{ObjectMeta: r.global()})); err != nil {
				t.Error(err)
			}
			// The next look is to find it gone, however late the watch is.
			for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
				if r.controller.Client.Get(ctx, types.NamespacedName{Name: r.namespace}, &v1alpha1.NodeType{}) != nil {
					break
				}
			}
		}
		return 0
	}
	r.start()
	management.Eventually(t, "the Machine asks for its NodeType", func() bool {
		s := r.machine("orphan").Status
		return s.Phase == v1alpha1.MachineProvisioning && strings.Contains(s.WaitingFor, "NodeType "+r.namespace+" does not exist")
	})
	if h, _ := r.host("server-00"); h.Spec.Image != nil {
		t.Error("an installation was asked for of which nobody knows what it promises")
	}
	if err := server.Client.Delete(t.Context(), r.machine("orphan")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Machine is gone and its host free", func() bool {
		h, _ := r.host("server-00")
		r.play("server-00")
		return r.machine("orphan").UID == "" && h.Spec.ConsumerRef == nil
	})
}

func TestAPendingMachineSaysWhyItsNodeTypeIsNotReadyAsItChanges(t *testing.T) {
	r := newRig(t, 1)
	judged := func(conditions ...metav1.Condition) {
		t.Helper()
		nodeType := &v1alpha1.NodeType{}
		if err := server.Client.Get(t.Context(), types.NamespacedName{Name: r.namespace}, nodeType); err != nil {
			t.Fatal(err)
		}
		nodeType.Status.Conditions = conditions
		if err := server.Client.Status().Update(t.Context(), nodeType); err != nil {
			t.Fatal(err)
		}
	}
	judged()
	r.addMachine("early")
	r.start()
	says := func(text string) {
		t.Helper()
		management.Eventually(t, "the Machine says: "+text, func() bool { return strings.Contains(r.machine("early").Status.WaitingFor, text) })
	}
	says("NodeType " + r.namespace + " is new")
	not := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.Now()}
	not.Reason, not.Message = v1alpha1.ReasonOSImageNotFound, "create OSImage debian"
	judged(not)
	says("is not Ready, OSImageNotFound: create OSImage debian")
	not.Reason, not.Message = v1alpha1.ReasonDriverMissing, "bake one in"
	judged(not)
	says("is not Ready, DriverMissing: bake one in")
}

func TestAMachineGoesOnWhenTheRevisionThatItWaitsForAppears(t *testing.T) {
	r := newRig(t, 1)
	revision := &v1alpha1.NodeTypeRevision{}
	if err := server.Client.Get(t.Context(), types.NamespacedName{Name: r.namespace + "-1"}, revision); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	r.addMachine("waiter")
	r.start()
	management.Eventually(t, "the Machine misses the revision", func() bool {
		return strings.Contains(r.machine("waiter").Status.WaitingFor, r.namespace+"-1: it does not exist")
	})
	server.Create(t, &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: revision.Name}, Spec: revision.Spec})
	management.Eventually(t, "the Machine has a host", func() bool { return r.machine("waiter").Status.HostRef != nil })
}

func TestAMachineLivesFromPendingToReadyAndIsReleased(t *testing.T) {
	r := newRig(t, 1)
	r.start()
	ctx := t.Context()
	r.addMachine("one")
	phase := func(want v1alpha1.MachinePhase) {
		t.Helper()
		management.Eventually(t, "the Machine is "+string(want), func() bool { return r.machine("one").Status.Phase == want })
	}

	management.Eventually(t, "the installation is asked for", func() bool { h, _ := r.host("server-00"); return h.Spec.Image != nil })
	h, record := r.host("server-00")
	m := r.machine("one")
	if h.Spec.ConsumerRef.UID != m.UID || !h.Spec.Online || *h.Spec.Image.DiskFormat != "raw" || h.Spec.Image.ChecksumType != metal3.SHA256 {
		t.Errorf("the host is asked for %+v", h.Spec)
	}
	if s := record.Spec; s.Machine.UID != m.UID || s.Attempt != 1 || s.Image.Format != v1alpha1.FormatRawZstd || s.Tenant != r.tenant.String() || s.Erase != v1alpha1.EraseMetadata {
		t.Errorf("the HostRecord asks for %+v", s)
	}
	if len(r.tokens(m)) > 0 || !apierrors.IsNotFound(server.Client.Get(ctx, r.key("server-00-claim"), &corev1.Secret{})) {
		t.Error("there is a token or a claim Secret, and no agent waits for it")
	}
	if ref := h.Spec.UserData; ref == nil || ref.Name != "server-00-claim" || h.Spec.MetaData == nil {
		t.Errorf("the host's documents are to be read from %+v", h.Spec)
	}
	r.play("server-00")
	token := r.token(m)
	if _, record := r.host("server-00"); string(token.Data["expiration"]) < record.Status.Wanted.Deadline.UTC().Format(time.RFC3339) {
		t.Errorf("the token expires at %s, before the installation may end", token.Data["expiration"])
	}
	id, secret := string(token.Data["token-id"]), string(token.Data["token-secret"])
	claim := &corev1.Secret{}
	if err := server.Client.Get(ctx, r.key("server-00-claim"), claim); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(claim.Data["userData"], []byte(id+"."+secret)) || len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].UID != h.UID {
		t.Error("the claim Secret has no user data with the token, or no owner")
	}
	if !bytes.Contains(claim.Data["userData"], []byte("final_message: one of the hall\n")) {
		t.Errorf("the revision's properties did not reach the node:\n%s", claim.Data["userData"])
	}

	management.Eventually(t, "progress is shown", func() bool { p := r.machine("one").Status.Progress; return p != nil && p.DoneBytes == 400 })
	r.play("server-00")
	phase(v1alpha1.MachineJoining)
	if got := r.machine("one").Status.SystemUUID; got != "dmi-server-00" {
		t.Errorf("system UUID %q", got)
	}

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("ingot://%s/1", m.UID),
		Taints: []corev1.Taint{{Key: v1alpha1.DefaultGateTaintKey, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot-1"}}}
	server.Create(t, node)
	phase(v1alpha1.MachineValidating)
	management.Eventually(t, "the token and its traces are gone", func() bool {
		err := server.Client.Get(ctx, client.ObjectKeyFromObject(token), &corev1.Secret{})
		return apierrors.IsNotFound(err) && server.Client.Get(ctx, r.key("server-00-claim"), claim) == nil &&
			!bytes.Contains(claim.Data["userData"], []byte(secret)) && claim.Data["bootstrapToken"] == nil && len(claim.Data["userData"]) > 0
	})
	management.Eventually(t, "the Node has its labels and taints, and keeps the gate", func() bool {
		if err := server.Client.Get(ctx, client.ObjectKey{Name: "one"}, node); err != nil {
			t.Fatal(err)
		}
		keys := ""
		for _, taint := range node.Spec.Taints {
			keys += taint.Key + " "
		}
		return node.Labels["team"] == "research" && node.Labels[v1alpha1.LabelMachineUID] == string(m.UID) &&
			strings.Contains(keys, "gpu ") && strings.Contains(keys, v1alpha1.DefaultGateTaintKey)
	})
	r.judge("one", v1alpha1.Verdict{Result: v1alpha1.CheckPass, Admitted: true, NodeUID: node.UID, BootID: "boot-1", Revision: r.namespace + "-1", Rendering: r.namespace + "-1-made"})
	phase(v1alpha1.MachineReady)
	if !meta.IsStatusConditionTrue(r.machine("one").Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("Ready is not True")
	}
	r.judge("one", v1alpha1.Verdict{Result: v1alpha1.CheckFail, NodeUID: node.UID, BootID: "boot-1", Revision: r.namespace + "-1", Rendering: r.namespace + "-1-made",
		Checks: []v1alpha1.Check{{Name: "resource/nvidia.com/gpu", Result: v1alpha1.CheckFail, Expected: "8", Observed: "7"}}})
	phase(v1alpha1.MachineValidating)
	if got := r.machine("one").Status.WaitingFor; got != "nvidia.com/gpu: 7 of 8" {
		t.Errorf("waits for %q", got)
	}
	r.judge("one", v1alpha1.Verdict{Result: v1alpha1.CheckPass, Admitted: true, NodeUID: node.UID, BootID: "boot-1", Revision: r.namespace + "-1", Rendering: r.namespace + "-1-made"})
	phase(v1alpha1.MachineReady)

	server.Create(t, &corev1.Pod{ObjectMeta: r.meta("tenants-own"), Spec: corev1.PodSpec{
		NodeName: "one", Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
	}})
	r.release("one")
	r.checkBudgets("one")
}

func TestAMachineWhoseHostWasTakenAwayTouchesItNoMore(t *testing.T) {
	r := newRig(t, 1)
	r.start()
	r.addMachine("robbed")
	management.Eventually(t, "the installation is asked for", func() bool { h, _ := r.host("server-00"); return h.Spec.Image != nil })
	h, _ := r.host("server-00")
	before := h.DeepCopy()
	h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Person", Name: "eve", UID: "eve"}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Machine says HostLost, and its token is gone", func() bool {
		m := r.machine("robbed")
		ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == v1alpha1.ReasonHostLost && len(r.tokens(m)) == 0
	})
	if err := server.Client.Delete(t.Context(), r.machine("robbed")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Machine is gone", func() bool { return r.machine("robbed").UID == "" })
	after, _ := r.host("server-00")
	if after.ResourceVersion != h.ResourceVersion {
		t.Errorf("the host was touched: %+v", after.Spec)
	}
}

func TestAClaimWhoseMachineIsGoneIsFreed(t *testing.T) {
	r := newRig(t, 1)
	h, _ := r.host("server-00")
	before := h.DeepCopy()
	h.Spec.ConsumerRef = &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: r.namespace, Name: "late", UID: "gone",
	}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.start()
	management.Eventually(t, "the host is free", func() bool { h, _ := r.host("server-00"); return h.Spec.ConsumerRef == nil })
}

// release deletes the Machine and plays its host, and looks at the order of things.
func (r *rig) release(name string) {
	t, ctx := r.t, r.t.Context()
	t.Helper()
	if err := server.Client.Delete(ctx, r.machine(name)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the pod is evicted and waited for", func() bool {
		pod := &corev1.Pod{}
		if err := server.Client.Get(ctx, r.key("tenants-own"), pod); err != nil {
			t.Fatal(err)
		}
		return pod.DeletionTimestamp != nil && r.machine(name).Status.WaitingFor == "1 pod to leave: "+r.key("tenants-own").String()
	})
	if h, _ := r.host("server-00"); !h.Spec.Online {
		t.Error("the host was powered off while a pod was leaving")
	}
	if err := server.Client.Delete(ctx, &corev1.Pod{ObjectMeta: r.meta("tenants-own")}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the host is powered off", func() bool { h, _ := r.host("server-00"); return !h.Spec.Online })
	node := &corev1.Node{}
	if err := server.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil || !node.Spec.Unschedulable {
		t.Errorf("before the power-off is confirmed the Node must be there and cordoned: %v, %v", node.Spec.Unschedulable, err)
	}
	if h, _ := r.host("server-00"); h.Spec.Image == nil {
		t.Error("the image was taken away before the power-off was confirmed")
	}
	r.play("server-00")
	management.Eventually(t, "the Node is deleted and the host deprovisioned", func() bool {
		h, _ := r.host("server-00")
		return apierrors.IsNotFound(server.Client.Get(ctx, client.ObjectKey{Name: name}, node)) && h.Spec.Image == nil
	})
	if h, _ := r.host("server-00"); h.Spec.ConsumerRef == nil {
		t.Error("the host was returned before it was erased")
	}
	r.play("server-00")
	r.play("server-00")
	management.Eventually(t, "the Machine is gone", func() bool { return r.machine(name).UID == "" })
	h, record := r.host("server-00")
	if h.Spec.ConsumerRef != nil || h.Spec.UserData != nil || record.Spec.Machine != nil {
		t.Errorf("the host keeps %+v, its record %+v", h.Spec, record.Spec)
	}
	if err := server.Client.Get(ctx, r.key("server-00-claim"), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the claim Secret remains: %v", err)
	}
}

// checkBudgets: a life costs little, and its history is short.
func (r *rig) checkBudgets(name string) {
	r.t.Helper()
	r.writes.mu.Lock()
	defer r.writes.mu.Unlock()
	// What a Machine waits for is told as it is seen, so how often its status is written depends on how fast things come
	// about: the bound on it is only against writing for nothing. All else is the same in every life.
	status := 0
	for _, path := range r.writes.paths {
		if strings.HasSuffix(path, "/machines/"+name+"/status") {
			status++
		}
	}
	others := r.writes.count - status
	r.t.Logf("%d writes of the status, %d other mutating requests to the management cluster", status, others)
	if others > 16 || status > 32 {
		r.t.Errorf("%d writes of the status, %d other mutating requests:\n%s", status, others, strings.Join(r.writes.paths, "\n"))
	}
	list := &eventsv1.EventList{}
	if err := server.Client.List(r.t.Context(), list, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	count := 0
	for _, e := range list.Items {
		if e.Regarding.Name == name {
			count++
			r.t.Logf("event %s: %s", e.Reason, e.Note)
		}
	}
	if count > 8 {
		r.t.Errorf("%d events", count)
	}
}

func (r *rig) token(m *v1alpha1.Machine) *corev1.Secret {
	r.t.Helper()
	all := r.tokens(m)
	if len(all) != 1 {
		r.t.Fatalf("%d bootstrap tokens", len(all))
	}
	return &all[0]
}

func (r *rig) tokens(m *v1alpha1.Machine) []corev1.Secret {
	r.t.Helper()
	list := &corev1.SecretList{}
	if err := server.Client.List(r.t.Context(), list, client.InNamespace("kube-system"), client.MatchingLabels{v1alpha1.LabelMachine: string(m.UID)}); err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

// judge is the validation controller.
func (r *rig) judge(name string, v v1alpha1.Verdict) {
	r.t.Helper()
	m := r.machine(name)
	before := m.DeepCopy()
	m.Status.Verdict = &v
	if err := server.Client.Status().Patch(r.t.Context(), m, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}
