package machine_test

import (
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
	"github.com/ingot-dev/ingot/test/management"
)

// setDark makes the BMC of the server answer nobody, or answer again. The service behind the operator then does not know the power, and says so where it
// has words for it.
func (r *metal3Rig) setDark(name string, is bool) {
	r.servers[name].HidePower(is)
	r.servers[name].SetPowerFailure(is)
}

// TestAnUnknownPowerConfirmsNoPowerOff has a server that stopped by itself and runs again when its BMC goes dark. The status says off, as it was seen last,
// and the operator does what it does with a server that is off.
func TestAnUnknownPowerConfirmsNoPowerOff(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		r.ready()
		s := r.servers["server-00"]
		s.Switch(false)
		r.until("the operator has seen the server off", func() bool { return !r.bareHost("server-00").Status.PoweredOn })
		s.Switch(true)
		r.setDark("server-00", true)
		r.deleteMachine()
		r.awaitPowerOff()
		for range 5 {
			r.look("server-00")
			r.poke(r.namespace)
		}
		management.Eventually(t, "the Machine still waits for the power-off", func() bool {
			c := r.condition(r.namespace, v1alpha1.ConditionReady)
			return c.Reason == v1alpha1.ReasonPoweringOff || c.Reason == v1alpha1.ReasonBMCConflict
		})
		if h := r.bareHost("server-00"); h.Spec.Image == nil || !s.IsRunning() {
			t.Error("the host is deprovisioned while its server runs")
		}
		if err := server.Client.Get(t.Context(), client.ObjectKey{Name: r.namespace}, &corev1.Node{}); err != nil {
			t.Errorf("the Node of a server that runs: %v", err)
		}
		r.setDark("server-00", false)
		r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
	})
}

// TestAMachineJoinsWhenItsOperatorHasSeenTheServerOn has a host that is provisioned, and whose status says off still.
func TestAMachineJoinsWhenItsOperatorHasSeenTheServerOn(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		r.provisionUnseen()
		r.setDark("server-00", true)
		for range 5 {
			r.look("server-00")
			r.poke(r.namespace)
		}
		management.Eventually(t, "the Machine has seen the host", func() bool {
			message := r.condition(r.namespace, v1alpha1.ConditionProvisioned).Message
			return strings.Contains(message, "is installed by its baremetal-operator") || strings.Contains(message, "its BMC does not change the power")
		})
		if phase := r.phase(); phase != v1alpha1.MachineProvisioning {
			t.Errorf("the operator has not seen the server on, and the Machine is %s", phase)
		}
		r.setDark("server-00", false)
		r.join()
	})
}

// TestAHostThatIsNeverPoweredOffIsNotAskedToBe has spec.disablePowerOff set on a host in use. The operator would reboot the server in place of the power-off.
func TestAHostThatIsNeverPoweredOffIsNotAskedToBe(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.ready()
	r.editBareHost("server-00", func(h *metal3.BareMetalHost) { h.Spec.DisablePowerOff = true })
	r.deleteMachine()
	r.until("the Machine says what keeps its server on", func() bool {
		c := r.condition(r.namespace, v1alpha1.ConditionReady)
		return c.Reason == v1alpha1.ReasonPowerOffDisabled && strings.Contains(c.Message, "an administrator of the host removes that field")
	})
	for range 3 {
		r.look("server-00")
		r.poke(r.namespace)
	}
	if h, log := r.bareHost("server-00"), r.servers["server-00"].Log(); !h.Spec.Online || h.Spec.Image == nil || slices.Contains(log, "reboot") {
		t.Errorf("online %t, image %v; what was done with the server: %v", h.Spec.Online, h.Spec.Image, log)
	}
	r.editBareHost("server-00", func(h *metal3.BareMetalHost) { h.Spec.DisablePowerOff = false })
	r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
}

// TestAReleaseGoesOnWhenItsHostIsAskedToBeOn applies a manifest with online true when the image is removed.
func TestAReleaseGoesOnWhenItsHostIsAskedToBeOn(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		r.ready()
		r.deleteMachine()
		r.until("the host has no image", func() bool { return r.bareHost("server-00").Spec.Image == nil })
		r.editBareHost("server-00", func(h *metal3.BareMetalHost) { h.Spec.Online = true })
		r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
		if h := r.bareHost("server-00"); h.Spec.Online || h.Status.PoweredOn || h.Annotations[v1alpha1.AnnotationLastErase] != "Metadata" {
			t.Errorf("the host is returned with online %t, powered on %t, last erase %q", h.Spec.Online, h.Status.PoweredOn, h.Annotations[v1alpha1.AnnotationLastErase])
		}
	})
}

// TestAHostThatWasGivenUpIsReturnedWhenItsOperatorHasSeenThat has the operator stopped while the Machine is deleted. The next Machine asks for the same image,
// and the count of failed installations ends only when the operator has seen the host without one.
func TestAHostThatWasGivenUpIsReturnedWhenItsOperatorHasSeenThat(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.failInstallation()
	r.deleteMachine()
	management.Eventually(t, "the Machine waits for the operator", func() bool {
		return strings.Contains(r.condition(r.namespace, v1alpha1.ConditionReady).Message, "has not yet seen that no image is asked for")
	})
	r.poke(r.namespace)
	if h := r.bareHost("server-00"); h.Spec.ConsumerRef == nil || h.Spec.Image != nil {
		t.Errorf("the operator is stopped, and the host is %v's, with image %v", h.Spec.ConsumerRef, h.Spec.Image)
	}
	r.until("the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
	r.addMachine(r.namespace)
	r.join()
}

// TestAHostThatItsOperatorHasWaitSaysSo has no room for another installation at first, and then a change of the firmware that takes its time.
func TestAHostThatItsOperatorHasWaitSaysSo(t *testing.T) {
	forEachRelease(t, func(t *testing.T, r *metal3Rig) {
		next, mayInstall := r.addRevision(2, "1.37.0"), false
		r.options.Capacity = func(types.NamespacedName) bool { return mayInstall }
		r.operator = baremetaloperator.New(r.options)
		r.start()
		r.addMachine(r.namespace)
		r.until("the Machine says that its host is delayed", func() bool {
			c := r.condition(r.namespace, v1alpha1.ConditionReady)
			return c.Reason == v1alpha1.ReasonHostDelayed && strings.Contains(c.Message, "PROVISIONING_LIMIT")
		})
		mayInstall = true
		r.join()

		s := r.servers["server-00"]
		s.RequestServicing()
		s.Delay(baremetaloperator.Servicing, -1)
		s.Switch(false)
		r.until("the operator changes the firmware", func() bool {
			return r.bareHost("server-00").Status.OperationalStatus == metal3.OperationalStatusServicing
		})
		r.want(r.namespace, next)
		r.until("the roll waits for that", func() bool {
			return r.condition(r.namespace, v1alpha1.ConditionUpToDate).Reason == v1alpha1.ReasonHostServicing
		})
		if h := r.bareHost("server-00"); !h.Spec.Online {
			t.Error("the host is to be off while its firmware is changed")
		}
		s.Delay(baremetaloperator.Servicing, 0)
		r.untilPhase(v1alpha1.MachineDraining)
		r.join()
	})
}
