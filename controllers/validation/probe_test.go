package validation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/probe"
)

// TestANodeIsAdmittedAfterItsDevicesWereUsed has the real scheduler, which binds the pod to the gated node; the test plays the container.
func TestANodeIsAdmittedAfterItsDevicesWereUsed(t *testing.T) {
	w := start(t)
	w.setProbe("h100", &v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeNvidiaSMI, Image: "cuda", Timeout: &metav1.Duration{Duration: time.Hour}})
	gpus := func(n int) (list string) {
		for i := range n {
			list += fmt.Sprintf("GPU %d: NVIDIA H100 80GB HBM3 (UUID: GPU-%d)\n", i, i)
		}
		return list
	}
	t.Run("as promised", func(t *testing.T) {
		m := w.join(t, "node-a", true)
		m.allowPods()
		m.reconcile()
		pod := m.probe("to be scheduled", func(p *corev1.Pod) bool { return p.Spec.NodeName == m.name })
		if q := pod.Spec.Containers[0].Resources.Limits[gpu]; q.Value() != 8 || pod.OwnerReferences[0].UID != m.node().UID {
			t.Errorf("the pod asks for %s and belongs to %+v", q.String(), pod.OwnerReferences)
		}
		m.reconcile()
		m.expect("while the pod runs", true, false, v1alpha1.ReasonChecksWaiting)
		m.end(pod, corev1.PodSucceeded, 0, gpus(8))
		m.reconcile()
		m.after(29 * time.Second)
		m.expect("before it settled", true, false, v1alpha1.ReasonSettling)
		m.gone()
		m.after(time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		if c := m.check("probe/nvidia.com/gpu"); c.Result != v1alpha1.CheckPass {
			t.Errorf("%+v", c)
		}
		m.after(time.Hour)
		m.gone()
	})
	t.Run("one GPU less, and tried again", func(t *testing.T) {
		m := w.join(t, "node-b", true)
		m.allowPods()
		m.reconcile()
		m.end(m.probe("to be scheduled", func(p *corev1.Pod) bool { return p.Spec.NodeName == m.name }), corev1.PodSucceeded, 0, gpus(7))
		m.reconcile()
		m.expect("with a GPU less", true, false, v1alpha1.ReasonChecksFailed)
		m.reconcile()
		m.gone()
		m.after(11 * time.Minute)
		m.probe("to be made again", func(*corev1.Pod) bool { return true })
		w.setProbe("h100", nil)
		m.reconcile()
		m.gone()
		m.after(time.Minute)
		m.expect("without a probe", false, true, v1alpha1.ReasonValidated)
		w.setProbe("h100", &v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeNvidiaSMI, Image: "cuda", Timeout: &metav1.Duration{Duration: time.Hour}})
		m.after(time.Minute)
		m.gone()
		m.expect("admitted before there was a probe", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("with a tenant's pod that kept its devices", func(t *testing.T) {
		m := w.join(t, "node-c", true)
		must(t, w.c.Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "training"}, Spec: corev1.PodSpec{
			NodeName: m.name, Containers: []corev1.Container{{Name: "x", Image: "x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("8")}}}},
		}}))
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		m.gone()
		if c := m.check("probe/not-made"); c.Result != v1alpha1.CheckPass || !strings.Contains(c.Observed, "default/training") {
			t.Errorf("%+v", c)
		}
	})
	t.Run("nothing is left when the Node goes", func(t *testing.T) {
		m := w.join(t, "node-d", true)
		m.reconcile()
		m.probe("to be made", func(*corev1.Pod) bool { return true })
		uid := m.node().UID
		must(t, w.c.Delete(context.Background(), m.node()))
		w.eventually("the garbage collector", func() error {
			err := w.c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "ingot-probe-" + string(uid)}, &corev1.Pod{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.New("the pod of a Node that is gone is there")
		})
	})
}

// TestAProbeClaimsDevicesOfAClass has the real scheduler, which allocates the devices.
func TestAProbeClaimsDevicesOfAClass(t *testing.T) {
	w := start(t)
	w.setProbe("h200-dra", &v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeCommand, Image: "nccl", Command: []string{"/test"}, Timeout: &metav1.Duration{Duration: time.Hour}})
	m := w.joinDRA(t, "node-p")
	m.publish("0", 1, 1, 0, 8)
	m.allowPods()
	m.reconcile()
	pod := m.probe("to be scheduled", func(p *corev1.Pod) bool { return p.Spec.NodeName == m.name })
	var claim resourcev1.ResourceClaim
	must(t, w.c.Get(context.Background(), client.ObjectKeyFromObject(pod), &claim))
	if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 8 {
		t.Errorf("the claim has %+v", claim.Status.Allocation)
	}
	m.end(pod, corev1.PodSucceeded, 0, "bandwidth\n"+`{"checks":[{"name":"nccl","result":"Pass","message":"412 GB/s"}]}`)
	m.reconcile()
	m.gone()
	w.eventually("the claim to go", func() error {
		if err := w.c.Get(context.Background(), client.ObjectKeyFromObject(pod), &claim); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the claim is there: %w", err)
		}
		return nil
	})
	m.reconcile()
	m.after(30 * time.Second)
	m.expect("settled", false, true, v1alpha1.ReasonValidated)
	if c := m.check("probe/gpu.nvidia.com/1-nccl"); c.Observed != "412 GB/s" {
		t.Errorf("%+v", c)
	}
}

// TestNoMoreProbesRunThanMay makes the probes of many nodes at the same time, each of which was decided on before there was one.
func TestNoMoreProbesRunThanMay(t *testing.T) {
	w := start(t)
	access, err := w.r.Tenants.For(w.tenant)
	must(t, err)
	obs := observation{key: w.tenant, tenant: access.Client}
	obs.nodeType.Validation.Probe = &v1alpha1.ProbeSpec{Kind: v1alpha1.ProbeNvidiaSMI, Image: "cuda"}
	var group sync.WaitGroup
	var nodes []observation
	for i := range 3 * probe.MaxPods {
		obs := obs
		obs.node = w.join(t, fmt.Sprintf("node-%d", i), true).node()
		nodes = append(nodes, obs)
	}
	for _, obs := range nodes {
		group.Go(func() {
			p := probing{pod: probePod(obs.node), decision: probe.Decision{Target: probe.Target{Name: string(gpu), Count: 8}}}
			if err := w.r.createProbe(context.Background(), obs, p); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var pods corev1.PodList
	must(t, w.c.List(context.Background(), &pods, client.HasLabels{v1alpha1.LabelProbe}))
	if len(pods.Items) != probe.MaxPods {
		t.Errorf("%d probes run, expected %d", len(pods.Items), probe.MaxPods)
	}
}

func (w *world) setProbe(nodeType string, spec *v1alpha1.ProbeSpec) {
	w.t.Helper()
	w.eventually("the NodeType to be changed", func() error {
		var n v1alpha1.NodeType
		if err := w.c.Get(context.Background(), client.ObjectKey{Name: nodeType}, &n); err != nil {
			return err
		}
		n.Spec.Validation.Probe = spec
		return w.c.Update(context.Background(), &n)
	})
}

// allowPods reports room for pods, as kubelet does.
func (m *machine) allowPods() {
	m.t.Helper()
	m.w.eventually("room for pods", func() error {
		n := m.node()
		n.Status.Capacity[corev1.ResourcePods], n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110"), resource.MustParse("110")
		return m.w.c.Status().Update(context.Background(), n)
	})
}

// probe returns the pod of the node's probe once it is as wanted.
func (m *machine) probe(what string, isWanted func(*corev1.Pod) bool) *corev1.Pod {
	m.t.Helper()
	var pod corev1.Pod
	m.w.eventually("the pod "+what, func() error {
		if err := m.w.c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "ingot-probe-" + string(m.node().UID)}, &pod); err != nil {
			return err
		}
		if !isWanted(&pod) {
			return fmt.Errorf("%+v", pod.Status)
		}
		return nil
	})
	return &pod
}

// end writes the end of the pod's container, as kubelet does.
func (m *machine) end(pod *corev1.Pod, phase corev1.PodPhase, exit int32, message string) {
	m.t.Helper()
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "probe", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message}}}}
	must(m.t, m.w.c.Status().Update(context.Background(), pod))
}

// gone fails if the node has a pod of a probe.
func (m *machine) gone() {
	m.t.Helper()
	if err := m.w.c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "ingot-probe-" + string(m.node().UID)}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		m.t.Errorf("a pod of a probe is left: %v", err)
	}
}
