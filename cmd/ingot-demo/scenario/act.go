package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/test/environment"
)

var unstructuredConverter = runtime.DefaultUnstructuredConverter

// isNotServed says that the API server does not know the kind yet.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || runtime.IsNotRegisteredError(err)
}

// order pins one Machine to the first server and asks the pools for the rest.
func (t *story) order(ctx context.Context) error {
	first := t.site.First()
	t.s.step("ordering: one Machine pinned to %s, the others from %d pools", t.pinnedHost(), len(t.site.Pools))
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: pinned},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: first.Spec.NodeTypeRef, TenantClusterRef: first.Spec.TenantClusterRef, HostName: t.pinnedHost()},
	}
	if err := t.w.Fleet.Create(ctx, machine); err != nil {
		return fmt.Errorf("order the pinned Machine: %w", err)
	}
	if err := t.until(ctx, func(s observation.Snapshot) (bool, error) {
		m := s.Machine(pinned)
		return m != nil && m.Status.HostRef != nil, nil
	}); err != nil {
		return err
	}
	m := t.last.Machine(pinned)
	if m == nil || m.Status.HostRef == nil || m.Status.HostRef.Name != t.pinnedHost() {
		t.promise(false, observation.Unmet(m), "the pinned Machine has its server")
		return nil
	}
	for i, pool := range t.site.Pools {
		replicas, err := t.site.Share(pool, t.last.Hosts)
		if err != nil {
			return err
		}
		if i == 0 {
			replicas-- // the pinned Machine's
		}
		t.s.note("%s: %d x %s for tenant %s", pool.Name, replicas, pool.Spec.NodeTypeRef.Name, pool.Spec.TenantClusterRef.Name)
		if err := t.scale(ctx, pool, replicas); err != nil {
			return err
		}
	}
	return nil
}

// patch changes an object.
func (t *story) patch(ctx context.Context, o client.Object, merge string) error {
	if err := t.w.Fleet.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		return fmt.Errorf("change %s %s: %w", step.Kind(o), o.GetName(), err)
	}
	return nil
}

// trainingPod is the tenant's.
const trainingPod = "training"

func (t *story) createTrainingPod(ctx context.Context) error {
	one := corev1.ResourceList{corev1.ResourceName(t.site.Resource()): resource.MustParse("1")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: trainingPod},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "train", Image: "registry.example.com/research/train:v3", Resources: corev1.ResourceRequirements{Limits: one},
		}}},
	}
	if err := t.w.Nodes.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the tenant's pod: %w", err)
	}
	return nil
}

// admit waits for the nodes that were promised.
func (t *story) admit(ctx context.Context) error {
	t.s.step("power on, network boot, install, join, validate")
	waited := ""
	err := t.until(ctx, func(s observation.Snapshot) (bool, error) {
		reason, err := t.podWaits(ctx)
		if err != nil {
			return false, err
		}
		waited = cmp.Or(waited, reason)
		ready, settled := t.healthy(s)
		return ready == t.o.Servers-1 || settled, nil
	})
	if err != nil {
		return err
	}
	ready, _ := t.healthy(t.last)
	t.promise(ready == t.o.Servers-1, t.unmetHealthy(), "%d of %d healthy servers went from powered off to admitted node", ready, t.o.Servers-1)
	if ready == t.o.Servers-1 {
		if t.cost, err = environment.CountWrites(t.w.AuditLog("management"), t.w.ManagerUser()); err != nil {
			return err
		}
		t.promise(waited != "", cmp.Or(waited, "no node was seen to advertise GPUs behind the gate"), "the tenant's pod waited behind the gate")
	}
	return nil
}

// healthy counts the Ready Machines on servers that are promised to be healthy; settled when each of them is Ready or has failed.
func (t *story) healthy(s observation.Snapshot) (ready int, settled bool) {
	done := 0
	for _, server := range t.w.Rack.Servers() {
		if server.Name() == t.broken().Name() {
			continue
		}
		m := s.On(server.Name())
		if observation.Ready(m) {
			ready++
			done++
		} else if failing(m) {
			done++
		}
	}
	return ready, done == t.o.Servers-1
}

func failing(m *v1alpha1.Machine) bool {
	if m == nil {
		return false
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValidated)
	return m.Status.Verdict != nil && m.Status.Verdict.Result == v1alpha1.CheckFail || c != nil && c.Reason == v1alpha1.ReasonValidationTimedOut
}

func (t *story) unmetHealthy() string {
	var all []string
	for _, server := range t.w.Rack.Servers() {
		if m := t.last.On(server.Name()); server.Name() != t.broken().Name() && !observation.Ready(m) {
			if m == nil {
				all = append(all, server.Name()+" has no Machine")
			} else {
				all = append(all, observation.Unmet(m))
			}
		}
	}
	return lines(all)
}

// podWaits returns the scheduler's word on the tenant's pod when the gate keeps it waiting. The pod is created when a node
// advertises GPUs and nothing but the gate is on it: a pod that was there before would not be looked at again until then.
func (t *story) podWaits(ctx context.Context) (string, error) {
	var nodes corev1.NodeList
	if err := t.w.Nodes.List(ctx, &nodes); err != nil {
		return "", fmt.Errorf("look at the tenant's nodes: %w", err)
	}
	var pod corev1.Pod
	err := t.w.Nodes.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: trainingPod}, &pod)
	if apierrors.IsNotFound(err) && slices.ContainsFunc(nodes.Items, t.onlyGated) {
		t.s.note("a node advertises its GPUs behind the gate; a tenant's pod asks for one")
		return "", t.createTrainingPod(ctx)
	}
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("look at the tenant's pod: %w", err)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "untolerated taint") {
			return c.Message, nil
		}
	}
	return "", nil
}

// onlyGated: the node advertises GPUs, and its one taint is the gate.
func (t *story) onlyGated(n corev1.Node) bool {
	gpus := n.Status.Allocatable[corev1.ResourceName(t.site.Resource())]
	return gpus.Value() > 0 && len(n.Spec.Taints) == 1 && n.Spec.Taints[0].Key == t.site.Gate()
}

// proveGate waits for the tenant's pod to run on an admitted node.
func (t *story) proveGate(ctx context.Context) error {
	t.s.step("the gate is open: the tenant's pod runs")
	var pod corev1.Pod
	err := t.until(ctx, func(observation.Snapshot) (bool, error) {
		err := t.w.Nodes.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: trainingPod}, &pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
	admitted := observation.Ready(t.last.Machine(pod.Spec.NodeName))
	kept, detail := pod.Status.Phase == corev1.PodRunning && admitted, ""
	if !kept {
		detail = fmt.Sprintf("pod %s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
	}
	t.promise(kept, detail, "then it ran, on admitted node %s", pod.Spec.NodeName)
	return err
}

// keepOut waits for the verdict on the server that lost a GPU.
func (t *story) keepOut(ctx context.Context) error {
	t.s.step("%s came up with 7 of 8 GPUs: the verdict", t.broken().Name())
	var check v1alpha1.Check
	err := t.until(ctx, func(s observation.Snapshot) (bool, error) {
		m := s.On(t.broken().Name())
		if m == nil || m.Status.Verdict == nil {
			return false, nil
		}
		for _, c := range m.Status.Verdict.Checks {
			if c.Name == "resource/"+t.site.Resource() && c.Result == v1alpha1.CheckFail {
				check = c
			}
		}
		return check.Name != "", nil
	})
	m := t.last.On(t.broken().Name())
	kept := check.Name != "" && gated(m)
	if kept {
		t.s.note("verdict on %s: %s %s, expected %s, observed %s", t.broken().Name(), check.Result, check.Name, check.Expected, check.Observed)
	}
	t.promise(kept, observation.Unmet(m), "the server with a missing GPU is kept out by check resource/%s", t.site.Resource())
	return err
}

// scale asks a pool for so many Machines.
func (t *story) scale(ctx context.Context, pool *v1alpha1.NodePool, replicas int) error {
	return t.patch(ctx, &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name}},
		fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}
