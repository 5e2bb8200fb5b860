package machine_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// setPowerOff sets or clears spec.powerOff.
func (r *rig) setPowerOff(name string, off bool) {
	r.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"powerOff":%t}}`, off)
	if err := server.Client.Patch(r.t.Context(), r.machine(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		r.t.Fatal(err)
	}
}

// awaitReason waits until Ready is False with the reason.
func (r *rig) awaitReason(reason string) *v1alpha1.Machine {
	r.t.Helper()
	management.Eventually(r.t, "Ready is False: "+reason, func() bool { return r.condition(r.namespace, v1alpha1.ConditionReady).Reason == reason })
	return r.machine(r.namespace)
}

// powerOff sets spec.powerOff and plays the host until the server is off.
func (r *rig) powerOff() *v1alpha1.Machine {
	r.t.Helper()
	r.setPowerOff(r.namespace, true)
	management.Eventually(r.t, "the host is requested to power off", func() bool { h, _ := r.host("server-00"); return !h.Spec.Online })
	if n := r.node(r.namespace); !n.Spec.Unschedulable {
		r.t.Error("the host was requested to power off before its Node was cordoned")
	}
	r.awaitReason(v1alpha1.ReasonPoweringOff)
	r.play("server-00")
	return r.awaitReason(v1alpha1.ReasonPoweredOff)
}

func TestAMachineIsPoweredOffForWorkOnItsHardwareAndPoweredOnAgain(t *testing.T) {
	r, _ := readyRig(t)
	before := r.node(r.namespace)
	m := r.powerOff()
	if s := m.Status; s.Phase != v1alpha1.MachineDraining || s.Deadline != nil || s.Attempt != 1 || s.PowerOff == nil || s.PowerOff.ConfirmedAt == nil || s.PowerOff.BootID != "boot-1" {
		t.Errorf("the Machine is %s, deadline %v, attempt %d, power-off %+v", s.Phase, s.Deadline, s.Attempt, s.PowerOff)
	}
	if message := r.condition(r.namespace, v1alpha1.ConditionReady).Message; !strings.Contains(message, "ingot drain -n "+r.namespace+" "+r.namespace+" --undo") {
		t.Errorf("the message does not say how to power it on: %s", message)
	}
	if n := r.node(r.namespace); n.UID != before.UID || !n.Spec.Unschedulable {
		t.Errorf("Node %s was %s, cordoned %t", n.UID, before.UID, n.Spec.Unschedulable)
	}
	r.setPowerOff(r.namespace, false)
	management.Eventually(t, "the host is requested to power on", func() bool { h, _ := r.host("server-00"); return h.Spec.Online })
	r.play("server-00")
	// The Node object still shows the boot before, and the verdict about it passes.
	r.poke(r.namespace)
	management.Eventually(t, "the Machine waits for the new boot", func() bool {
		return strings.Contains(r.condition(r.namespace, v1alpha1.ConditionReady).Message, "has not reported since its server was powered on again")
	})
	if n := r.node(r.namespace); !n.Spec.Unschedulable || r.machine(r.namespace).Status.Phase != v1alpha1.MachineValidating {
		t.Errorf("the Machine is %s, its Node cordoned: %t", r.machine(r.namespace).Status.Phase, n.Spec.Unschedulable)
	}
	booted := r.node(r.namespace)
	booted.Status.NodeInfo.BootID = "boot-2"
	if err := server.Client.Status().Patch(t.Context(), booted, client.Merge); err != nil {
		t.Fatal(err)
	}
	r.judge(r.namespace, v1alpha1.Verdict{Result: v1alpha1.CheckPass, Admitted: true, NodeUID: before.UID, BootID: "boot-2", Revision: m.Status.Revision, Rendering: m.Status.Rendering})
	management.Eventually(t, "the Machine is Ready and its Node takes pods", func() bool {
		now := r.machine(r.namespace)
		return now.Status.Phase == v1alpha1.MachineReady && now.Status.PowerOff == nil && !r.node(r.namespace).Spec.Unschedulable
	})
	if _, record := r.host("server-00"); record.Spec.Attempt != 1 || record.Status.Installed == nil {
		t.Errorf("the disk was touched: %+v", record.Status)
	}
}

func TestARollWaitsWhileAMachineIsPoweredOffAndThenNeedsNoPowerOn(t *testing.T) {
	r, next := readyRig(t)
	r.powerOff()
	r.want(r.namespace, next)
	management.Eventually(t, "UpToDate gives the reason", func() bool {
		return r.condition(r.namespace, v1alpha1.ConditionUpToDate).Reason == v1alpha1.ReasonPoweredOff
	})
	if r.node(r.namespace); r.machine(r.namespace).Status.PowerOffRequestedAt != nil {
		t.Error("the roll has begun")
	}
	r.setPowerOff(r.namespace, false)
	r.play("server-00")
	management.Eventually(t, "the Node is deleted", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKey{Name: r.namespace}, &corev1.Node{}))
	})
	if _, record := r.awaitInstallation(2); record.Spec.Revision != next {
		t.Errorf("revision %s is installed", record.Spec.Revision)
	}
}

func TestAMachineThatIsPoweredOffCanBeDeleted(t *testing.T) {
	r, _ := readyRig(t)
	m := r.powerOff()
	if err := server.Client.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the host is returned", func() bool {
		r.play("server-00")
		h, _ := r.host("server-00")
		return h.Spec.ConsumerRef == nil && r.machine(r.namespace).UID == ""
	})
}

func TestAMachineSaysThatItsServerIsOff(t *testing.T) {
	r, _ := readyRig(t)
	m := r.machine(r.namespace)
	_, record := r.host("server-00")
	// The BMC reports Off, and the host controller powers the server on.
	change := fmt.Sprintf(`{"status":{"power":{"state":"PoweringOn","observedGeneration":%d,"observedAt":"2099-01-02T03:04:05.000000Z"}}}`, record.Status.Power.ObservedGeneration)
	if err := server.Client.Status().Patch(t.Context(), record, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		t.Fatal(err)
	}
	r.judge(r.namespace, v1alpha1.Verdict{Result: v1alpha1.CheckWait, NodeUID: m.Status.NodeRef.UID, BootID: "boot-1", Revision: m.Status.Revision, Rendering: m.Status.Rendering,
		Checks: []v1alpha1.Check{{Name: "node/ready", Result: v1alpha1.CheckWait, Expected: "True", Observed: "Unknown"}}})
	r.awaitReason(v1alpha1.ReasonServerOff)
	if message := r.condition(r.namespace, v1alpha1.ConditionReady).Message; !strings.Contains(message, "is off: its BMC says so since 2099-01-02T03:04:05Z; it is being powered on") {
		t.Error(message)
	}
}
