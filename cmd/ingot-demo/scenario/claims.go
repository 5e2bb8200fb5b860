package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
)

// ownClass returns the DeviceClass of a tenant of the samples.
func ownClass(tenant string) string {
	if tenant == legal {
		return legal + "-a100"
	}
	return research + "-mig-1g"
}

// claimOf returns the spec of a claim of some devices of the first of the classes that has them.
func claimOf(devices int64, classes ...string) resourcev1.ResourceClaimSpec {
	request := resourcev1.DeviceRequest{Name: "gpu"}
	if len(classes) == 1 {
		request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: classes[0], Count: devices}
	} else {
		for i, class := range classes {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprintf("choice-%d", i), DeviceClassName: class, Count: devices})
		}
	}
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}}
}

func claim(tenant, name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}, Spec: spec}
}

// podOf returns a pod of a tenant.
func podOf(tenant, name string, change func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "train", Image: "registry.example.com/research/train:v3"}}},
	}
	change(&pod.Spec)
	return pod
}

// usesTemplate has the pod get a claim of the template "gpu".
func usesTemplate(s *corev1.PodSpec) {
	template := "gpu"
	s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
}

// runTenants asserts that a pod of each tenant runs with a device of its class, on an admitted node.
func (d *demo) runTenants(ctx context.Context) error {
	d.screen.Step("each tenant runs a pod with a claim of its class")
	tenants := []string{legal, research}
	for _, tenant := range tenants {
		user, err := d.as(tenant)
		if err != nil {
			return err
		}
		template := &resourcev1.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimOf(1, ownClass(tenant))},
		}
		for _, o := range []client.Object{template, podOf(tenant, trainingPod, usesTemplate)} {
			if err := user.Create(ctx, o); err != nil {
				return fmt.Errorf("create %s of tenant %s: %w", describe(o), tenant, err)
			}
		}
	}
	for _, tenant := range tenants {
		pod, err := d.awaitRunning(ctx, tenant, trainingPod)
		if err != nil {
			return err
		}
		m := d.observed.Machine(pod.Spec.NodeName)
		passed := pod.Status.Phase == corev1.PodRunning && observation.IsReady(m)
		nodeType := ""
		if m != nil {
			nodeType = m.Spec.NodeTypeRef.Name
		}
		d.assert(passed, unless(passed, fmt.Sprintf("pod %s is %s on node %q: %+v", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.Status.Conditions)),
			"%s runs with a device of %s, on admitted node %s of NodeType %s", tenant, ownClass(tenant), pod.Spec.NodeName, nodeType)
	}
	return d.showClaims(ctx)
}

// awaitRunning waits until a pod runs.
func (d *demo) awaitRunning(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := d.waitUntil(ctx, func(observation.Observation) (bool, error) {
		err := d.env.TenantClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
	return pod, err
}

// showClaims shows who holds what.
func (d *demo) showClaims(ctx context.Context) error {
	cluster := d.fleet.tenants[0]
	return d.showTable(ctx, claimColumns, "claims", cluster.Name, "-n", cluster.Namespace, "--shared-kubeconfig", d.env.Tenant.KubeconfigPath())
}

// attempt is something that a tenant is not entitled to.
type attempt struct {
	what   string
	object client.Object
	// says is a part of the shared cluster's refusal.
	says string
}

// refuseTenant asserts that the shared cluster refuses what a tenant is not entitled to.
func (d *demo) refuseTenant(ctx context.Context) error {
	d.screen.Step("%s guesses names: the shared cluster itself refuses", research)
	theirs := ownClass(legal)
	return d.refuse(ctx, research,
		attempt{"a claim of " + legal + "'s class", claim(research, "guessed", claimOf(1, theirs)), "may name only these DeviceClasses"},
		attempt{"a claim with that class as a second choice", claim(research, "hidden", claimOf(1, ownClass(research), theirs)), "may name only these DeviceClasses"},
		attempt{"a claim of the vendor's class", claim(research, "vendor", claimOf(1, "gpu.nvidia.com")), "may name only these DeviceClasses"},
		attempt{"a pod that asks for nvidia.com/gpu", podOf(research, "plugin", func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		}), "may ask only for these of the resources"},
		attempt{"a pod that tolerates the gate of nodes that are not admitted", podOf(research, "through", func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: d.fleet.gateKey(), Operator: corev1.TolerationOpExists}}
		}), "may not tolerate the gate"},
	)
}

// refuse asserts that each attempt of a tenant's user is refused, and that nothing of it stays.
func (d *demo) refuse(ctx context.Context, tenant string, attempts ...attempt) error {
	user, err := d.as(tenant)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		err := user.Create(ctx, a.object)
		if err != nil {
			d.screen.Note("%s", err)
		}
		passed := err != nil && strings.Contains(err.Error(), a.says)
		d.assert(passed, unless(passed, fmt.Sprintf("%s: %v, expected a refusal with %q", describe(a.object), err, a.says)), "%s is refused", a.what)
	}
	return nil
}

// exceedQuota asserts that a claim over the quota is refused, that a pod with a template waits for it, and that this is reported.
func (d *demo) exceedQuota(ctx context.Context) error {
	d.screen.Step("%s asks for more than its two slices", research)
	if err := d.refuse(ctx, research, attempt{"a claim over the quota", claim(research, "many", claimOf(3, ownClass(research))), "exceeded quota"}); err != nil {
		return err
	}
	user, err := d.as(research)
	if err != nil {
		return err
	}
	if err := user.Create(ctx, podOf(research, "second", usesTemplate)); err != nil {
		return fmt.Errorf("create the second pod: %w", err)
	}
	second, err := d.awaitRunning(ctx, research, "second")
	if err != nil {
		return err
	}
	runs := second.Status.Phase == corev1.PodRunning
	d.assert(runs, unless(runs, fmt.Sprintf("it is %s", second.Status.Phase)), "a second pod of its template runs: that is the quota")
	if err := user.Create(ctx, podOf(research, "third", usesTemplate)); err != nil {
		return fmt.Errorf("create the third pod: %w", err)
	}
	wait, err := d.awaitWait(ctx, v1alpha1.WaitQuotaExceeded)
	if err != nil {
		return err
	}
	if wait != nil {
		d.screen.Note("%s waits: %s", wait.Longest, wait.Message)
	}
	d.assert(wait != nil, unless(wait != nil, "no wait for the quota is in the status of Entitlement "+research), "the third waits, and the Entitlement says why")
	line, err := d.metric(ctx, "ingot_waiting{", string(v1alpha1.WaitQuotaExceeded))
	if err != nil {
		return err
	}
	isShown := strings.HasSuffix(line, " 1")
	d.assert(isShown, unless(isShown, "the metric is "+line), "the metric shows it: %s", line)
	return d.showEntitlements(ctx)
}

// awaitWait waits until the Entitlement of research says that something waits for the reason; nil: it does not.
func (d *demo) awaitWait(ctx context.Context, reason v1alpha1.WaitReason) (found *v1alpha1.DeviceWait, err error) {
	err = d.waitUntil(ctx, func(observation.Observation) (bool, error) {
		var e v1alpha1.Entitlement
		if err := d.env.ManagementClient.Get(ctx, client.ObjectKey{Namespace: d.fleet.firstPool().Namespace, Name: research}, &e); err != nil {
			return false, fmt.Errorf("read Entitlement %s: %w", research, err)
		}
		for i := range e.Status.Waits {
			if e.Status.Waits[i].Reason == reason {
				found = &e.Status.Waits[i]
			}
		}
		return found != nil, nil
	})
	return found, err
}

// maxMetrics is the most that is read of the manager's metrics, in bytes.
const maxMetrics = 16 << 20

// metric returns the first line of the manager's metrics that has all parts, or "".
func (d *demo) metric(ctx context.Context, parts ...string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.metricsURL, nil)
	if err != nil {
		return "", fmt.Errorf("read the manager's metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("read the manager's metrics: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMetrics))
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return "", fmt.Errorf("read the manager's metrics: %w", err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		isIt := true
		for _, part := range parts {
			isIt = isIt && strings.Contains(line, part)
		}
		if isIt {
			return line, nil
		}
	}
	return "", nil
}

// takeClassAway takes the only class of research away, and asserts that its pods run on and that no new claim gets in.
func (d *demo) takeClassAway(ctx context.Context) error {
	d.screen.Step("the platform takes the class away from %s", research)
	e := &v1alpha1.Entitlement{ObjectMeta: metav1.ObjectMeta{Namespace: d.fleet.firstPool().Namespace, Name: research}}
	if err := d.patch(ctx, e, `{"spec":{"classes":[]}}`); err != nil {
		return err
	}
	user, err := d.as(research)
	if err != nil {
		return err
	}
	var refusal error
	err = d.waitUntil(ctx, func(observation.Observation) (bool, error) {
		refusal = user.Create(ctx, claim(research, "late", claimOf(1, ownClass(research))), client.DryRunAll)
		return refusal != nil && strings.Contains(refusal.Error(), "may name only these DeviceClasses"), nil
	})
	if err != nil {
		return err
	}
	if refusal != nil {
		d.screen.Note("%s", refusal)
	}
	d.assert(refusal != nil, unless(refusal != nil, "a claim of the class that was taken away gets in"), "no new claim of it gets in")
	pod, err := d.awaitRunning(ctx, research, trainingPod)
	if err != nil {
		return err
	}
	held := false
	for _, s := range pod.Status.ResourceClaimStatuses {
		var c resourcev1.ResourceClaim
		if s.ResourceClaimName == nil {
			continue
		}
		if err := d.env.TenantClient.Get(ctx, client.ObjectKey{Namespace: research, Name: *s.ResourceClaimName}, &c); err != nil {
			return fmt.Errorf("read claim %s: %w", *s.ResourceClaimName, err)
		}
		held = c.Status.Allocation != nil
	}
	goesOn := pod.Status.Phase == corev1.PodRunning && held
	d.assert(goesOn, unless(goesOn, fmt.Sprintf("pod %s is %s, and its claim has devices: %v", pod.Name, pod.Status.Phase, held)), "what runs keeps its devices")
	if err := d.showClaims(ctx); err != nil {
		return err
	}
	return d.showEntitlements(ctx)
}
