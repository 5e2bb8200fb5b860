package validation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/probe"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
)

// probing is the probe of one node: what was read, and what was decided.
type probing struct {
	// isNeeded is true if the node has a probe, or its verdict says that it had one.
	isNeeded bool
	// pod names the node's pod and its claim.
	pod      types.NamespacedName
	decision probe.Decision
}

// observeProbe reads the node's pod and, if the first may be made, what is on the node and in the cluster. judged is the decision without the probe.
func (r *Reconciler) observeProbe(ctx context.Context, obs observation, in verdict.Input, judged verdict.Decision) (probing, error) {
	spec, previous := obs.nodeType.Validation.Probe, verdict.PreviousOf(in)
	hasChecks := in.Previous != nil && slices.ContainsFunc(in.Previous.Checks, func(c v1alpha1.Check) bool { return strings.HasPrefix(c.Name, probe.Prefix) })
	if spec == nil && !hasChecks {
		return probing{}, nil
	}
	out := probing{isNeeded: true, pod: probePod(obs.node)}
	facts := probe.Input{
		Clock: in.Clock, Spec: spec, Expectation: in.Expectation, BootID: in.Node.Status.NodeInfo.BootID, Previous: previous,
		IsReady: judged.Verdict.Result == v1alpha1.CheckPass && verdict.HasGate(in.Node, in.Gate) && !judged.Verdict.Admitted,
	}
	if err := readProbeFacts(ctx, obs, out.pod, &facts); apierrors.IsForbidden(err) {
		out.decision = probe.Denied(previous, err.Error())
		return out, nil
	} else if err != nil {
		return probing{}, err
	}
	out.decision = probe.Decide(facts)
	return out, nil
}

// readProbeFacts reads what of the tenant's cluster the decision about the probe depends on.
func readProbeFacts(ctx context.Context, obs observation, key types.NamespacedName, facts *probe.Input) (err error) {
	// An admitted node has no pod: while there is one its verdict waits.
	if facts.Previous == nil || !facts.Previous.Admitted {
		if facts.Run, err = readProbe(ctx, obs.tenant, key); err != nil {
			return err
		}
	}
	if facts.IsReady && facts.Spec != nil && facts.Run == nil {
		if facts.Holders, err = readHolders(ctx, obs); err != nil {
			return err
		}
		facts.Others, err = countProbes(ctx, obs, key.Namespace)
	}
	return err
}

// probePod names the pod of the Node's probe. A Node object has one pod at a time, and the next Node object of the name has another. The namespace is in every cluster,
// and it is no setting: the pod of before a change would stay.
func probePod(node *corev1.Node) types.NamespacedName {
	return types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "ingot-probe-" + string(node.UID)}
}

// readProbe returns the pod; nil: there is none.
func readProbe(ctx context.Context, c client.Client, key types.NamespacedName) (*probe.Run, error) {
	var pod corev1.Pod
	err := c.Get(ctx, key, &pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pod %s of the probe: %w", key, err)
	}
	out := &probe.Run{
		Target: pod.Annotations[v1alpha1.AnnotationProbeTarget], BootID: pod.Annotations[v1alpha1.AnnotationProbeBoot], Phase: pod.Status.Phase,
		Created: madeAt(&pod), IsDeleted: pod.DeletionTimestamp != nil, Message: pod.Status.Message, Waiting: waitingText(&pod),
	}
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil {
			out.Message, out.ExitCode = ended.Message, ended.ExitCode
		}
	}
	return out, nil
}

// madeAt returns when the pod was made: the tenant's cluster has another clock.
func madeAt(pod *corev1.Pod) time.Time {
	at, err := time.Parse(time.RFC3339Nano, pod.Annotations[v1alpha1.AnnotationProbeMadeAt])
	if err != nil {
		return pod.CreationTimestamp.Time
	}
	return at
}

// waitingText says why the pod does not run.
func waitingText(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if w := pod.Status.ContainerStatuses[i].State.Waiting; w != nil {
			return w.Reason + " " + w.Message
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + " " + c.Message
		}
	}
	return ""
}

// maxPods is how many pods of a node are read: more than a kubelet runs.
const maxPods = 500

// readHolders returns the pods that hold devices of the node: those that were there before it booted again.
func readHolders(ctx context.Context, obs observation) ([]string, error) {
	var pods corev1.PodList
	if err := obs.tenant.List(ctx, &pods, client.MatchingFields{"spec.nodeName": obs.node.Name}, client.Limit(maxPods)); err != nil {
		return nil, fmt.Errorf("list the pods of Node %s: %w", obs.node.Name, err)
	}
	var out []string
	for i := range pods.Items {
		p := &pods.Items[i]
		isOver := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if _, isProbe := p.Labels[v1alpha1.LabelProbe]; !isOver && !isProbe && hasDevice(p, obs.expectation) {
			out = append(out, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// hasDevice reports whether the pod has a promised extended resource, or any claim.
func hasDevice(p *corev1.Pod, e v1alpha1.NodeExpectation) bool {
	if len(p.Spec.ResourceClaims) > 0 && len(e.Slices) > 0 {
		return true
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, r := range e.Resources {
			if q, ok := c.Resources.Limits[r.Name]; ok && strings.Contains(string(r.Name), "/") && !q.IsZero() {
				return true
			}
		}
	}
	return false
}

// countProbes returns how many probes there are on other nodes.
func countProbes(ctx context.Context, obs observation, namespace string) (int, error) {
	var pods corev1.PodList
	if err := obs.tenant.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelProbe}, client.Limit(probe.MaxPods+1)); err != nil {
		return 0, fmt.Errorf("list the probes of TenantCluster %s: %w", obs.key, err)
	}
	return len(pods.Items), nil
}
