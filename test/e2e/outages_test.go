package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/rack"
)

// killManager kills the manager while it installs on hosts that came back and releases another, and starts it again.
func (p *pipeline) killManager(ctx context.Context, t *testing.T) {
	servers := []string{"gone-installing", "gone-joining", "gone-validating"}
	p.env.Rack.Server(servers[0]).SetFaults(stalledWrites)
	for _, server := range servers {
		if err := p.order(ctx, "again-"+server, server); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.fleet.await(ctx, waitTimeout, "again-"+servers[0], servers[0], "writing", isWriting); err != nil {
		t.Fatal(err)
	}
	released := "loss-loading"
	if err := p.env.ManagementClient.Delete(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: released}}); err != nil {
		t.Fatal(err)
	}
	if err := p.env.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.env.StartManager(ctx, 1); err != nil {
		t.Fatal(err)
	}
	p.env.Rack.Server(servers[0]).SetFaults(rack.Faults{})
	var all sync.WaitGroup
	for _, server := range servers {
		all.Go(func() {
			v, err := p.fleet.await(ctx, waitTimeout, "again-"+server, server, "Machine Ready after the manager was killed", observation.isReady)
			if err != nil {
				t.Error(err)
				return
			}
			if began, succeeded := p.fleet.attempts(v.machine); succeeded != 1 || v.machine.Status.Attempt != 1 {
				t.Errorf("%s was installed %d times in %d attempts of its host, Machine attempt %d", server, succeeded, began, v.machine.Status.Attempt)
			}
		})
	}
	if _, err := p.fleet.await(ctx, waitTimeout, released, released, "host back after the manager was killed", func(v observation) bool { return v.isBack() && v.node == nil }); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// tenantAway stops the tenant's control plane while Machines are Ready there.
func (p *pipeline) tenantAway(ctx context.Context, t *testing.T) {
	names := []string{"bmc-slow", "power-on-late", "reboots", "node-deleted"}
	installing := "loss-loading" // it came back before
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "training"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "train", Image: "registry.example.com/train:v3",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpus: resource.MustParse("8")}},
		}}},
	}
	if err := p.env.TenantClient.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	running := func() error {
		var now corev1.Pod
		if err := p.env.TenantClient.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
			return err
		}
		if now.UID != pod.UID || now.DeletionTimestamp != nil || now.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s on %q is %s, deleted %v, same %v", now.Name, now.Spec.NodeName, now.Status.Phase, now.DeletionTimestamp, now.UID == pod.UID)
		}
		return nil
	}
	if err := within(ctx, waitTimeout, running, func(error) bool { return true }); err != nil {
		t.Fatal(err)
	}
	before := map[string]observation{}
	for _, name := range names {
		v, err := p.fleet.await(ctx, waitTimeout, name, name, "Ready before the tenant goes", observation.isReady)
		if err != nil {
			t.Fatal(err)
		}
		before[name] = v
	}
	p.env.Rack.Server(installing).SetFaults(stalledWrites)
	if err := p.order(ctx, "meanwhile", installing); err != nil {
		t.Fatal(err)
	}
	if _, err := p.fleet.await(ctx, waitTimeout, "meanwhile", installing, "writing", isWriting); err != nil {
		t.Fatal(err)
	}
	p.fleet.forgetGates()
	if err := p.env.Tenant.Stop(); err != nil {
		t.Fatal(err)
	}
	p.env.Rack.Server(installing).SetFaults(rack.Faults{})
	for _, name := range names {
		v, err := p.fleet.await(ctx, waitTimeout, name, name, "Validated=Unknown while the tenant is away", func(v observation) bool {
			return v.condition(v1alpha1.ConditionValidated).Status == metav1.ConditionUnknown
		})
		if err != nil {
			t.Error(err)
		} else if v.phase() != v1alpha1.MachineReady || !v.host.Status.PoweredOn || v.machine.DeletionTimestamp != nil {
			t.Errorf("%s did not stay as it was: %s", name, v)
		}
	}
	if _, err := p.fleet.await(ctx, waitTimeout, "meanwhile", installing, "the installation's end while the tenant is away", func(v observation) bool {
		return v.phase() == v1alpha1.MachineJoining && v.is(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForTenant)
	}); err != nil {
		t.Error(err)
	}
	if err := p.restartTenant(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		v, err := p.fleet.await(ctx, waitTimeout, name, name, "Ready and Validated again when the tenant is back", func(v observation) bool {
			return v.isReady() && v.condition(v1alpha1.ConditionValidated).Status == metav1.ConditionTrue
		})
		if err != nil {
			t.Error(err)
			continue
		}
		was := before[name]
		if v.node.UID != was.node.UID || p.fleet.wasGated(v.node) || v.machine.Status.Verdict.BootID != was.machine.Status.Verdict.BootID {
			t.Errorf("%s was disturbed: Node %s was %s, gated %v", name, v.node.UID, was.node.UID, p.fleet.wasGated(v.node))
		}
	}
	if err := running(); err != nil {
		t.Error(err)
	}
	if _, err := p.fleet.await(ctx, waitTimeout, "meanwhile", installing, "Ready after the tenant came back", observation.isReady); err != nil {
		t.Error(err)
	}
}
