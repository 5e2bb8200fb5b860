package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// isNotServed reports whether the error says that the API server does not serve the kind yet.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || runtime.IsNotRegisteredError(err)
}

// orderMachines creates a Machine that is pinned to the first server, and scales the pools to the other servers.
func (d *demo) orderMachines(ctx context.Context) error {
	first := d.fleet.firstPool()
	d.screen.Step("ordering: one Machine pinned to %s, the others from %d pools", d.pinnedHost(), len(d.fleet.pools))
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: pinnedMachine},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: first.Spec.NodeTypeRef, TenantClusterRef: first.Spec.TenantClusterRef, HostName: d.pinnedHost()},
	}
	if err := d.env.ManagementClient.Create(ctx, machine); err != nil {
		return fmt.Errorf("order the pinned Machine: %w", err)
	}
	if err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		m := s.Machine(pinnedMachine)
		return m != nil && m.Status.HostRef != nil, nil
	}); err != nil {
		return err
	}
	m := d.observed.Machine(pinnedMachine)
	if m == nil || m.Status.HostRef == nil || m.Status.HostRef.Name != d.pinnedHost() {
		d.assert(false, observation.UnmetChecks(m), "the pinned Machine has its server")
		return nil
	}
	for i, pool := range d.fleet.pools {
		replicas, err := d.fleet.matchingHosts(pool, d.observed.Hosts)
		if err != nil {
			return err
		}
		if i == 0 {
			replicas-- // the pinned Machine's
		}
		d.screen.Note("%s: %d x %s for tenant %s", pool.Name, replicas, pool.Spec.NodeTypeRef.Name, pool.Spec.TenantClusterRef.Name)
		if err := d.scalePool(ctx, pool, replicas); err != nil {
			return err
		}
	}
	return nil
}

// patch applies a merge patch to an object.
func (d *demo) patch(ctx context.Context, o client.Object, merge string) error {
	if err := d.env.ManagementClient.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		return fmt.Errorf("change %s %s: %w", step.Kind(o), o.GetName(), err)
	}
	return nil
}

// trainingPod is the name of the tenant's pod.
const trainingPod = "training"

// createTrainingPod creates a pod that asks for one GPU.
func (d *demo) createTrainingPod(ctx context.Context) error {
	one := corev1.ResourceList{corev1.ResourceName(d.fleet.resourceName()): resource.MustParse("1")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: trainingPod},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "train", Image: "registry.example.com/research/train:v3", Resources: corev1.ResourceRequirements{Limits: one},
		}}},
	}
	if err := d.env.TenantClient.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the tenant's pod: %w", err)
	}
	return nil
}

// awaitAdmission waits until the Machine of every healthy server is Ready or has failed.
func (d *demo) awaitAdmission(ctx context.Context) error {
	d.screen.Step("power on, network boot, install, join, validate")
	waited := ""
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		reason, err := d.gatedPodMessage(ctx)
		if err != nil {
			return false, err
		}
		waited = cmp.Or(waited, reason)
		ready, settled := d.countHealthy(s)
		return ready == d.options.servers()-1 || settled, nil
	})
	if err != nil {
		return err
	}
	ready, _ := d.countHealthy(d.observed)
	d.assert(ready == d.options.servers()-1, d.describeUnhealthy(), "%d of %d healthy servers went from powered off to admitted node", ready, d.options.servers()-1)
	if ready == d.options.servers()-1 {
		if d.writes, err = environment.CountWrites(d.env.AuditLog("management"), d.env.ManagerUser()); err != nil {
			return err
		}
		d.assert(waited != "", cmp.Or(waited, "no node was seen to advertise GPUs behind the gate"), "the tenant's pod waited behind the gate")
	}
	return nil
}

// countHealthy counts the Ready Machines on healthy servers. It returns settled when every Machine on them is Ready or has failed.
func (d *demo) countHealthy(s observation.Observation) (ready int, settled bool) {
	done := 0
	for _, server := range d.env.Rack.Servers() {
		if server.Name() == d.defectiveServer().Name() {
			continue
		}
		m := s.MachineOn(server.Name())
		if observation.IsReady(m) {
			ready++
			done++
		} else if hasFailed(m) {
			done++
		}
	}
	return ready, done == d.options.servers()-1
}

// hasFailed reports whether the validation of a Machine has failed.
func hasFailed(m *v1alpha1.Machine) bool {
	if m == nil {
		return false
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValidated)
	return m.Status.Verdict != nil && m.Status.Verdict.Result == v1alpha1.CheckFail || c != nil && c.Reason == v1alpha1.ReasonValidationTimedOut
}

// describeUnhealthy describes the Machines on healthy servers that are not Ready.
func (d *demo) describeUnhealthy() string {
	var all []string
	for _, server := range d.env.Rack.Servers() {
		if m := d.observed.MachineOn(server.Name()); server.Name() != d.defectiveServer().Name() && !observation.IsReady(m) {
			if m == nil {
				all = append(all, server.Name()+" has no Machine")
			} else {
				all = append(all, observation.UnmetChecks(m))
			}
		}
	}
	return joinLines(all)
}

// gatedPodMessage returns the scheduler's message about the tenant's pod while a taint keeps the pod from its node, or "". It creates the pod
// when a node advertises GPUs and has only the gate taint. A pod that is created earlier is not scheduled again at that moment, and
// the demo would not see the message.
func (d *demo) gatedPodMessage(ctx context.Context) (string, error) {
	var nodes corev1.NodeList
	if err := d.env.TenantClient.List(ctx, &nodes); err != nil {
		return "", fmt.Errorf("look at the tenant's nodes: %w", err)
	}
	var pod corev1.Pod
	err := d.env.TenantClient.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: trainingPod}, &pod)
	if apierrors.IsNotFound(err) && slices.ContainsFunc(nodes.Items, d.hasOnlyGateTaint) {
		d.screen.Note("a node advertises its GPUs behind the gate; a tenant's pod asks for one")
		return "", d.createTrainingPod(ctx)
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

// hasOnlyGateTaint reports whether the node advertises GPUs and its only taint is the gate taint.
func (d *demo) hasOnlyGateTaint(n corev1.Node) bool {
	gpus := n.Status.Allocatable[corev1.ResourceName(d.fleet.resourceName())]
	return gpus.Value() > 0 && len(n.Spec.Taints) == 1 && n.Spec.Taints[0].Key == d.fleet.gateKey()
}

// checkOpenGate asserts that the tenant's pod runs on an admitted node.
func (d *demo) checkOpenGate(ctx context.Context) error {
	d.screen.Step("the gate is open: the tenant's pod runs")
	var pod corev1.Pod
	err := d.waitUntil(ctx, func(observation.Observation) (bool, error) {
		err := d.env.TenantClient.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: trainingPod}, &pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
	admitted := observation.IsReady(d.observed.Machine(pod.Spec.NodeName))
	passed, detail := pod.Status.Phase == corev1.PodRunning && admitted, ""
	if !passed {
		detail = fmt.Sprintf("pod %s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
	}
	d.assert(passed, detail, "then it ran, on admitted node %s", pod.Spec.NodeName)
	return err
}

// checkDefectiveServer asserts that the verdict on the server that lost a GPU keeps it out.
func (d *demo) checkDefectiveServer(ctx context.Context) error {
	d.screen.Step("%s came up with 7 of 8 GPUs: the verdict", d.defectiveServer().Name())
	var check v1alpha1.Check
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		m := s.MachineOn(d.defectiveServer().Name())
		if m == nil || m.Status.Verdict == nil {
			return false, nil
		}
		for _, c := range m.Status.Verdict.Checks {
			if c.Name == "resource/"+d.fleet.resourceName() && c.Result == v1alpha1.CheckFail {
				check = c
			}
		}
		return check.Name != "", nil
	})
	m := d.observed.MachineOn(d.defectiveServer().Name())
	passed := check.Name != "" && isGated(m)
	if passed {
		d.screen.Note("verdict on %s: %s %s, expected %s, observed %s", d.defectiveServer().Name(), check.Result, check.Name, check.Expected, check.Observed)
	}
	d.assert(passed, observation.UnmetChecks(m), "the server with a missing GPU is kept out by check resource/%s", d.fleet.resourceName())
	return err
}

// scalePool sets the replicas of a pool.
func (d *demo) scalePool(ctx context.Context, pool *v1alpha1.NodePool, replicas int) error {
	return d.patch(ctx, &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name}},
		fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// refuseImpossibleLayout asserts that a NodeType with a MIG layout that no GPU supports is refused when it is written. It does nothing when the
// samples have no MIG layout.
func (d *demo) refuseImpossibleLayout(ctx context.Context) error {
	var all v1alpha1.NodeTypeList
	if err := d.env.ManagementClient.List(ctx, &all); err != nil {
		return fmt.Errorf("list NodeTypes: %w", err)
	}
	for i := range all.Items {
		if gpu := all.Items[i].Spec.GPU; gpu != nil && gpu.Presentation.MIG != nil && len(gpu.Presentation.MIG.Layout) > 0 {
			return d.refuseVariantOf(ctx, &all.Items[i])
		}
	}
	return nil
}

// refuseVariantOf asserts that a copy of the sample with one more instance of each profile is refused.
func (d *demo) refuseVariantOf(ctx context.Context, sample *v1alpha1.NodeType) error {
	d.screen.Step("writing a NodeType like %s with a layout that no GPU can be cut into", sample.Name)
	impossible := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: sample.Name + "-impossible"}, Spec: *sample.Spec.DeepCopy()}
	// The samples' layouts fill their GPUs: one more of each is too many.
	layout := impossible.Spec.GPU.Presentation.MIG.Layout
	last := layout[len(layout)-1].Profiles
	for profile := range last {
		last[profile]++
	}
	err := d.dryRunCreate(ctx, impossible)
	if err != nil {
		d.screen.Note("%s", err)
	}
	d.assert(apierrors.IsInvalid(err), fmt.Sprint(err), "what no GPU can be cut into is refused when it is written, with what would fit")
	return nil
}

// dryRunCreate creates an object in a dry run. It tries again while the API server has no certificate of the manager's webhook yet.
func (d *demo) dryRunCreate(ctx context.Context, o client.Object) error {
	for deadline := time.Now().Add(d.options.Timeout); ; {
		err := d.env.ManagementClient.Create(ctx, o, client.DryRunAll)
		if !apierrors.IsInternalError(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}
