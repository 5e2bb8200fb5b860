package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

func reboots(ctx context.Context, s *faultCase) error {
	before, err := s.ready(ctx)
	if err != nil {
		return err
	}
	s.server.Reset(bmc.ResetForceRestart)
	// The gate may be lifted again when this runs. The watcher of the invariants checks that the gate was there.
	if _, err := s.await(ctx, "the Machine validated anew after a reboot", func(v observation) bool {
		return v.entered(v1alpha1.MachineValidating) > before.entered(v1alpha1.MachineValidating)
	}); err != nil {
		return err
	}
	after, err := s.ready(ctx)
	if err != nil {
		return err
	}
	was, is := before.machine.Status.Verdict, after.machine.Status.Verdict
	if is.BootID == was.BootID || is.BootID != after.node.Status.NodeInfo.BootID || after.node.UID != before.node.UID {
		return fmt.Errorf("the verdict speaks of boot %s, the Node is at %s, the boot before was %s", is.BootID, after.node.Status.NodeInfo.BootID, was.BootID)
	}
	return nil
}

func nodeDeleted(ctx context.Context, s *faultCase) error {
	before, err := s.ready(ctx)
	if err != nil {
		return err
	}
	if err := s.env.TenantClient.Delete(ctx, before.node); err != nil {
		return err
	}
	if _, err := s.await(ctx, "Ready=False with reason NodeLost", func(v observation) bool { return v.is(v1alpha1.ConditionReady, v1alpha1.ReasonNodeLost) }); err != nil {
		return err
	}
	s.server.Reset(bmc.ResetForceRestart) // kubelet registers when it starts
	if _, err := s.await(ctx, "the new Node behind its gate", func(v observation) bool {
		return v.node != nil && v.node.UID != before.node.UID && isGated(v.node)
	}); err != nil {
		return err
	}
	after, err := s.ready(ctx)
	if err == nil && (after.machine.Status.NodeRef == nil || after.machine.Status.NodeRef.UID != after.node.UID || after.machine.Status.Attempt != 1) {
		return fmt.Errorf("the Machine is not bound to its new Node: %s", after)
	}
	return err
}

// gpuLost: first the vendor's plugin is driven away for a while, then a GPU is lost for good.
func gpuLost(ctx context.Context, s *faultCase) error {
	v, err := s.ready(ctx)
	if err != nil {
		return err
	}
	gateBack := func(v observation) bool { return v.phase() == v1alpha1.MachineValidating && isGated(v.node) }
	upkeep := corev1.Taint{Key: "example.com/upkeep", Effect: corev1.TaintEffectNoExecute}
	if err := s.taint(ctx, v.node.Name, upkeep, true); err != nil {
		return err
	}
	if _, err := s.await(ctx, "the gate back without a device plugin", gateBack); err != nil {
		return err
	}
	if err := s.taint(ctx, v.node.Name, upkeep, false); err != nil {
		return err
	}
	if _, err := s.ready(ctx); err != nil {
		return err
	}
	s.server.SetFaults(rack.Faults{MissingGPUs: 1})
	s.server.Reset(bmc.ResetForceRestart)
	_, err = s.await(ctx, "the check of 7 of 8 GPUs fails behind the gate", func(v observation) bool {
		c := v.check("resource/" + gpus)
		return gateBack(v) && c.Result == v1alpha1.CheckFail && c.Observed == "7" && c.Expected == "8"
	})
	return err
}

// workedOn has a technician power the server off and on again: at first by its BareMetalHost, which is refused with the way to do it, then by
// the Machine.
func workedOn(ctx context.Context, s *faultCase) error {
	before, err := s.ready(ctx)
	if err != nil {
		return err
	}
	err = s.env.ManagementClient.Patch(ctx, before.host, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"online":false}}`)))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ingot drain -n "+before.machine.Namespace+" "+s.name+" --power-off") {
		return fmt.Errorf("the server was powered off under its pods, or nobody is told how to do it: %v", err)
	}
	if err := s.setPowerOff(ctx, before.machine, true); err != nil {
		return err
	}
	if _, err := s.await(ctx, "the server off, and its Node cordoned", func(v observation) bool {
		return v.is(v1alpha1.ConditionReady, v1alpha1.ReasonPoweredOff) && v.machine.Status.Deadline == nil && v.node.Spec.Unschedulable && s.server.Power() == hardware.PowerOff
	}); err != nil {
		return err
	}
	if err := s.setPowerOff(ctx, before.machine, false); err != nil {
		return err
	}
	after, err := s.await(ctx, "the server on, and its Node uncordoned", func(v observation) bool { return v.isReady() && !v.node.Spec.Unschedulable })
	if err != nil {
		return err
	}
	if after.node.UID != before.node.UID || after.machine.Status.Verdict.BootID == before.machine.Status.Verdict.BootID || after.machine.Status.Attempt != 1 {
		return fmt.Errorf("the Node was %s, the boot %s: %s", before.node.UID, before.machine.Status.Verdict.BootID, after)
	}
	return nil
}

func (s *faultCase) setPowerOff(ctx context.Context, m *v1alpha1.Machine, off bool) error {
	return s.env.ManagementClient.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"powerOff":%t}}`, off)))
}

// taint is what the tenant's people do to a Node.
func (s *faultCase) taint(ctx context.Context, name string, taint corev1.Taint, on bool) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var node corev1.Node
		if err := s.env.TenantClient.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key })
		if on {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
		return s.env.TenantClient.Update(ctx, &node)
	})
}

// entered counts how often the Machine has entered a phase.
func (v observation) entered(phase v1alpha1.MachinePhase) int {
	n := 0
	if v.machine != nil {
		for _, e := range v.machine.Status.Timeline {
			if e.Phase == phase {
				n++
			}
		}
	}
	return n
}

func (v observation) check(name string) v1alpha1.Check {
	if v.machine != nil && v.machine.Status.Verdict != nil {
		for _, c := range v.machine.Status.Verdict.Checks {
			if c.Name == name {
				return c
			}
		}
	}
	return v1alpha1.Check{}
}
