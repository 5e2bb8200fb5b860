package validation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/probe"
)

// actOnProbe makes or deletes the pod of a probe and its claim.
func (r *Reconciler) actOnProbe(ctx context.Context, obs observation, m *v1alpha1.Machine, p probing) error {
	if !p.isNeeded || p.decision.Action == probe.Keep {
		return nil
	}
	act := r.createProbe
	if p.decision.Action == probe.Delete {
		act = deleteProbe
	}
	if err := act(ctx, obs, p); err != nil {
		return fmt.Errorf("%s the pod or the claim %s of the probe of Machine %s: %w", p.decision.Action, p.pod, m.Name, err)
	}
	return nil
}

// deleteProbe deletes the claim too where there may be one: the pod's target is not known once its probe is removed from the NodeType. The claim goes first. Without it: the pod
// is deleted, the request for the claim fails, and the next reconcile finds no pod that would tell of a claim.
func deleteProbe(ctx context.Context, obs observation, p probing) error {
	pod, claim := newProbe(obs.node, p, nil)
	if len(obs.expectation.Slices) > 0 && obs.served {
		if err := obs.tenant.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return client.IgnoreNotFound(obs.tenant.Delete(ctx, pod, client.GracePeriodSeconds(0)))
}

// createProbe makes the pod before the claim that it waits for, for the same reason. It counts the tenant's probes again, one Machine at a time. Without it: a NodePool
// of forty nodes joins, all of them are judged at once, none sees the pod of another, and forty images are pulled at once.
func (r *Reconciler) createProbe(ctx context.Context, obs observation, p probing) error {
	turn, _ := r.probeTurns.LoadOrStore(obs.key, &sync.Mutex{})
	turn.(*sync.Mutex).Lock()
	defer turn.(*sync.Mutex).Unlock()
	others, err := countProbes(ctx, obs, p.pod.Namespace)
	if err != nil || others >= probe.MaxPods {
		return err
	}
	pod, claim := newProbe(obs.node, p, obs.nodeType.Validation.Probe)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1alpha1.AnnotationProbeMadeAt, r.Clock.Now().UTC().Format(time.RFC3339Nano))
	if err := obs.tenant.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if !p.decision.Target.IsClass {
		return nil
	}
	if err := obs.tenant.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// newProbe returns the pod of a probe and the claim that it uses where the target is a DeviceClass. Both belong to the Node object, so that the garbage collector
// deletes them with it whatever becomes of the manager.
func newProbe(node *corev1.Node, p probing, spec *v1alpha1.ProbeSpec) (*corev1.Pod, *resourcev1.ResourceClaim) {
	target := p.decision.Target
	meta := metav1.ObjectMeta{
		Namespace: p.pod.Namespace, Name: p.pod.Name, Labels: map[string]string{v1alpha1.LabelProbe: string(node.UID)},
		Annotations:     map[string]string{v1alpha1.AnnotationProbeTarget: target.Name, v1alpha1.AnnotationProbeBoot: node.Status.NodeInfo.BootID},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
	}
	pod, claim := &corev1.Pod{ObjectMeta: meta}, &resourcev1.ResourceClaim{ObjectMeta: *meta.DeepCopy()}
	if spec == nil {
		return pod, claim
	}
	container := probeContainer(*spec)
	if target.IsClass {
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "device", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: target.Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: target.Count,
		}}}
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &claim.Name}}
	} else {
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceName(target.Name): *resource.NewQuantity(target.Count, resource.DecimalSI)}
	}
	pod.Spec.Containers = []corev1.Container{container}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.AutomountServiceAccountToken, pod.Spec.EnableServiceLinks = ptr.To(false), ptr.To(false)
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(0))
	pod.Spec.ActiveDeadlineSeconds = ptr.To(max(1, int64(probe.Timeout(*spec).Seconds())))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65534)), RunAsGroup: ptr.To(int64(65534)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	// The gate, and the NodeType's own taints.
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	// Not by nodeName: the scheduler gives the devices of a claim.
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}}}},
	}}}
	return pod, claim
}

// probeContainer returns the container. Its end is read from the message that it leaves, which the Node's kubelet writes into the pod's status, so that no call to
// the node is needed. A container that fails without a message leaves the end of its log.
func probeContainer(spec v1alpha1.ProbeSpec) corev1.Container {
	return corev1.Container{
		Name: "probe", Image: spec.Image, Command: probeCommand(spec), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), RunAsNonRoot: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

const (
	// listScript shortens the lines, so that those of 56 MIG instances fit into the message.
	listScript = `list=$(nvidia-smi -L) || { echo "$list"; exit 1; }; echo "$list" | cut -c1-60 >` + corev1.TerminationMessagePathDefault
	// diagScript starts DCGM's engine on its loopback and asks it. dcgmi ends with another code than 0 for a test that fails, of which its report says more.
	diagScript = `cd /tmp && nv-hostengine --pid /tmp/nv-hostengine.pid -f /tmp/nv-hostengine.log >&2 || { cat /tmp/nv-hostengine.log; exit 1; }
for i in 1 2 3 4 5 6 7 8 9 10; do dcgmi discovery -l >/dev/null 2>&1 && break; sleep 1; done
` + reportScript
	// reportScript leaves the report that the command writes. A command that ends without one has failed.
	reportScript = `report=$("$@"); code=$?
case $report in *{*}*) printf %s "$report" | ` + probe.PackCommand + ` >` + corev1.TerminationMessagePathDefault + ` && exit 0;; esac
echo "$report"; [ "$code" != 0 ] || code=1; exit "$code"`
)

// probeCommand returns what the container runs.
func probeCommand(spec v1alpha1.ProbeSpec) []string {
	script := func(text string, arguments ...string) []string {
		return append([]string{"/bin/sh", "-c", text, "probe"}, arguments...)
	}
	switch spec.Kind {
	case v1alpha1.ProbeCommand:
		return spec.Command
	case v1alpha1.ProbeDCGMDiag:
		return script(diagScript, "dcgmi", "diag", "-r", fmt.Sprint(spec.Level), "-j")
	case v1alpha1.ProbeHealthValidation:
		if len(spec.Command) > 0 {
			return script(reportScript, spec.Command...)
		}
		return script(reportScript, "health-validation")
	default:
		return script(listScript)
	}
}
