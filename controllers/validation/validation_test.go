package validation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestTheGateOfRealNodes(t *testing.T) {
	w := start(t)
	t.Run("is lifted only on a pass that settled, and comes back on a reboot and when a GPU is lost", func(t *testing.T) {
		m := w.join(t, "node-a", true)
		m.report("boot-1", "0")
		m.reconcile()
		m.expect("without GPUs", true, false, v1alpha1.ReasonResourcesMissing)
		m.report("boot-1", "8")
		m.reconcile()
		m.expect("with its GPUs", true, false, v1alpha1.ReasonSettling)
		m.after(29 * time.Second)
		m.expect("before it settled", true, false, v1alpha1.ReasonSettling)
		m.after(time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		m.report("boot-2", "8")
		m.reconcile()
		m.expect("rebooted", true, false, v1alpha1.ReasonSettling)
		if !w.heard(v1alpha1.ReasonNodeRebooted) {
			t.Error("no event tells of the reboot")
		}
		m.after(30 * time.Second)
		m.expect("settled again", false, true, v1alpha1.ReasonValidated)
		m.report("boot-2", "7")
		m.reconcile()
		m.expect("a GPU lost", true, false, v1alpha1.ReasonResourcesMissing)
	})
	t.Run("is put on a node that came without it", func(t *testing.T) {
		m := w.join(t, "node-b", false)
		m.reconcile()
		m.expect("first seen", true, false, v1alpha1.ReasonSettling)
		if !w.heard(v1alpha1.ReasonGateMissed) {
			t.Error("no event tells that the gate was missed")
		}
		m.after(30 * time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("leaves other taints alone", func(t *testing.T) {
		m := w.join(t, "node-c", true)
		w.eventually("the team's taint to be placed", func() error {
			node := m.node()
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule})
			return w.c.Update(context.Background(), node)
		})
		m.reconcile()
		m.after(30 * time.Second)
		if !slices.ContainsFunc(m.node().Spec.Taints, func(t corev1.Taint) bool { return t.Key == "team" && t.Value == "x" }) {
			t.Errorf("the team's taint is gone: %v", m.node().Spec.Taints)
		}
	})
	t.Run("is not touched on a Node of another installation", func(t *testing.T) {
		m := w.join(t, "node-d", false)
		taken := m.get()
		taken.Status.Attempt = 2
		must(t, w.c.Status().Update(context.Background(), taken))
		m.reconcile()
		c := meta.FindStatusCondition(m.get().Status.Conditions, v1alpha1.ConditionValidated)
		if c == nil || c.Reason != v1alpha1.ReasonNodeConflict || m.gated() {
			t.Errorf("condition %+v, taints %v", c, m.node().Spec.Taints)
		}
	})
	t.Run("is forgotten with the Node, and earned again by the next one", func(t *testing.T) {
		m := w.join(t, "node-i", true)
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		first := m.node()
		must(t, w.c.Delete(context.Background(), first))
		next := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: corev1.NodeSpec{ProviderID: first.Spec.ProviderID}}
		w.eventually("the name to be free", func() error { return w.c.Create(context.Background(), next) })
		m.report("boot-1", "8")
		m.reconcile()
		m.expect("another Node object without the gate", true, false, v1alpha1.ReasonSettling)
		must(t, w.c.Delete(context.Background(), next))
		w.eventually("the verdict to be forgotten", func() error {
			if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "research", Name: m.name}}); err != nil {
				return err
			}
			if v := m.get().Status.Verdict; v != nil {
				return fmt.Errorf("the verdict is %+v", v)
			}
			return nil
		})
	})
	t.Run("says on the Node why it is there and where to look", func(t *testing.T) {
		m := w.join(t, "node-y", true)
		m.reconcile()
		m.says("a node that passes is not written for it", "", "")
		m.report("boot-1", "7")
		m.reconcile()
		m.says("a node that waits", v1alpha1.ReasonResourcesMissing, "expected 8, observed 7")
		m.report("boot-1", "9")
		m.reconcile()
		m.says("a node that fails", v1alpha1.ReasonChecksFailed, "expected 8, observed 9")
		m.report("boot-1", "8")
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("settled", false, true, v1alpha1.ReasonValidated)
		if said, is := m.node().Annotations[v1alpha1.AnnotationGate]; is {
			t.Errorf("an admitted node says %q", said)
		}
		m.report("boot-2", "8")
		m.reconcile()
		m.says("a node that has booted again", v1alpha1.ReasonNodeRebooted, "booted again")
		if told := m.told(); !slices.Equal(told, []string{v1alpha1.ReasonChecksFailed, v1alpha1.ReasonNodeRebooted, v1alpha1.ReasonResourcesMissing}) {
			t.Errorf("events on the Node: %v", told)
		}
	})
	t.Run("costs no write while nothing changes", func(t *testing.T) {
		m := w.join(t, "node-e", true)
		m.report("boot-1", "7")
		m.reconcile()
		before := m.get().ResourceVersion
		for range 5 {
			m.after(time.Minute)
		}
		if after := m.get().ResourceVersion; after != before {
			t.Errorf("the Machine went from version %s to %s", before, after)
		}
	})
	t.Run("keeps off a plugin that does not tolerate it, and the verdict names it", func(t *testing.T) {
		ctx := context.Background()
		set := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-device-plugin-daemonset"}}
		m := w.join(t, "node-f", true)
		m.report("boot-1", "0")
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		m.reconcile()
		if hint := m.hint(); strings.Contains(hint, "DaemonSets") {
			t.Errorf("the sample tolerates the gate, and the hint is %q", hint)
		}
		w.eventually("the DaemonSet to be changed", func() error {
			if err := w.c.Get(ctx, client.ObjectKeyFromObject(&set), &set); err != nil {
				return err
			}
			set.Spec.Template.Spec.Tolerations = set.Spec.Template.Spec.Tolerations[:1]
			return w.c.Update(ctx, &set)
		})
		m.after(time.Minute)
		if hint := m.hint(); !strings.Contains(hint, "kube-system/nvidia-device-plugin-daemonset") {
			t.Errorf("hint %q does not name the DaemonSet", hint)
		}
	})
	t.Run("is not touched while it is not known what was promised", func(t *testing.T) {
		for name, change := range map[string]struct {
			rendering, reason string
		}{
			"node-j": {"", v1alpha1.ReasonOlderShape},
			"node-k": {"h100-1-lost", v1alpha1.ReasonWaitingForNodeType},
		} {
			m := w.join(t, name, true)
			m.reconcile()
			m.after(30 * time.Second)
			m.expect("settled", false, true, v1alpha1.ReasonValidated)
			changed := m.get()
			changed.Status.Rendering = change.rendering
			must(t, w.c.Status().Update(context.Background(), changed))
			m.report("boot-1", "7")
			m.reconcile()
			c := meta.FindStatusCondition(m.get().Status.Conditions, v1alpha1.ConditionValidated)
			if c.Status != metav1.ConditionUnknown || c.Reason != change.reason || m.gated() {
				t.Errorf("%s: condition %+v, gate %v", name, c, m.gated())
			}
			m.report("boot-2", "8")
			m.reconcile()
			if !m.gated() {
				t.Errorf("%s: it booted again, nobody can judge it, and its gate is off", name)
			}
		}
	})
	t.Run("follows what the NodeType declares now", func(t *testing.T) {
		ctx := context.Background()
		var nodeType v1alpha1.NodeType
		must(t, w.c.Get(ctx, client.ObjectKey{Name: "h100"}, &nodeType))
		declared := nodeType.DeepCopy().Spec.Resources
		m := w.join(t, "node-l", true)
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("as declared", false, true, v1alpha1.ReasonValidated)
		nodeType.Spec.Resources[corev1.ResourceCPU] = resource.MustParse("1")
		must(t, w.c.Update(ctx, &nodeType))
		m.reconcile()
		m.expect("with another number of CPUs declared", true, false, v1alpha1.ReasonChecksFailed)
		nodeType.Spec.Resources = declared
		must(t, w.c.Update(ctx, &nodeType))
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("declared as before", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("stays while kubelet does not reserve what it was installed with", func(t *testing.T) {
		m := w.join(t, "node-m", true)
		m.withSettings(`{"kubeReserved":{"memory":"8Gi"}}`)
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("all is left to pods", true, false, v1alpha1.ReasonChecksFailed)
		if c := meta.FindStatusCondition(m.get().Status.Conditions, v1alpha1.ConditionValidated); !strings.Contains(c.Message, "allocatable/memory: ") || !strings.Contains(c.Message, "spec.kubelet.kubeReserved.memory") {
			t.Errorf("the message is %q", c.Message)
		}
		w.eventually("the node's status to be written", func() error {
			node := m.node()
			node.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("700Gi")
			return w.c.Status().Update(context.Background(), node)
		})
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("8Gi and the defaults are kept", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("is lifted at the join by Observe, which only reports", func(t *testing.T) {
		ctx := context.Background()
		var nodeType v1alpha1.NodeType
		must(t, w.c.Get(ctx, client.ObjectKey{Name: "h100"}, &nodeType))
		nodeType.Spec.Validation.OnFailure = v1alpha1.OnFailureObserve
		must(t, w.c.Update(ctx, &nodeType))
		m := w.join(t, "node-g", true)
		m.report("boot-1", "7")
		m.reconcile()
		m.expect("with a GPU missing", false, false, v1alpha1.ReasonObserveOnly)
		m.report("boot-1", "8")
		m.reconcile()
		m.after(30 * time.Second)
		m.expect("complete", false, true, v1alpha1.ReasonValidated)
	})
	t.Run("is not touched while the tenant is unknown", func(t *testing.T) {
		m := w.join(t, "node-h", false)
		w.r.Tenants.Remove(w.tenant)
		if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "research", Name: m.name}}); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(m.get().Status.Conditions, v1alpha1.ConditionValidated)
		if c == nil || c.Status != metav1.ConditionUnknown || m.gated() {
			t.Errorf("condition %+v, taints %v", c, m.node().Spec.Taints)
		}
	})
}

func (m *machine) hint() string {
	for _, c := range m.get().Status.Verdict.Checks {
		if c.Name == "resource/nvidia.com/gpu" {
			return c.Hint
		}
	}
	return ""
}
