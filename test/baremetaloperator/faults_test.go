package baremetaloperator_test

import (
	"slices"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

func (s *site) annotate(key, value string) {
	s.t.Helper()
	s.edit(func(h *metal3.BareMetalHost) { metav1.SetMetaDataAnnotation(&h.ObjectMeta, key, value) })
}

func (s *site) isAnnotated(key string) bool {
	_, isSet := s.host().Annotations[key]
	return isSet
}

// TestErrorsAreRetriedAfterATimeThatDoubles reads the time from the results of the looks.
func TestErrorsAreRetriedAfterATimeThatDoubles(t *testing.T) {
	s := newSite(t, true)
	s.server.Fail(baremetaloperator.Preparing, -1)
	s.untilState(metal3.StatePreparing)
	for i, want := range []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 512} {
		s.until("there is another error", func() bool { return s.host().Status.ErrorCount > i })
		if waits := s.due.Sub(s.now); waits != time.Duration(want)*minute {
			t.Errorf("after %d errors the operator looks again after %s", s.host().Status.ErrorCount, waits)
		}
	}
	if h := s.host(); h.Status.ErrorType != metal3.PreparationError || h.Status.OperationalStatus != metal3.OperationalStatusError {
		t.Errorf("the host has %s", s.describe())
	}
	s.server.Fail(baremetaloperator.Preparing, 0)
	s.untilState(metal3.StateAvailable)
	if h := s.host(); h.Status.ErrorType != "" || h.Status.ErrorCount != 0 {
		t.Errorf("the prepared host has %s", s.describe())
	}
}

func TestOnlyChangesThatAreNotTheOperatorsLeadToALook(t *testing.T) {
	before := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{"a": "1"}}}
	for what, c := range map[string]struct {
		change func(*metal3.BareMetalHost)
		want   bool
	}{
		"the status":  {func(h *metal3.BareMetalHost) { h.Status.ErrorCount, h.ResourceVersion = 1, "2" }, false},
		"a label":     {func(h *metal3.BareMetalHost) { h.Labels = map[string]string{"a": "1"} }, false},
		"the spec":    {func(h *metal3.BareMetalHost) { h.Generation = 2 }, true},
		"annotations": {func(h *metal3.BareMetalHost) { h.Annotations = nil }, true},
		"finalizers":  {func(h *metal3.BareMetalHost) { h.Finalizers = []string{"a"} }, true},
	} {
		after := before.DeepCopy()
		c.change(after)
		if got := baremetaloperator.Changes().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
			t.Errorf("a change of %s leads to a look: %t", what, got)
		}
	}
}

func TestPowerThatTheBMCDoesNotKnowStaysAsItWas(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioned)
	s.server.HidePower(true)
	s.server.Switch(false)
	s.step()
	if h := s.host(); !h.Status.PoweredOn || h.Status.ErrorType != "" {
		t.Errorf("the BMC does not know the power, and the host has %s", s.describe())
	}
	s.server.HidePower(false)
	s.step()
	if s.host().Status.PoweredOn {
		t.Error("the host is on while its server is off")
	}
}

// TestAServerThatMustNotBePoweredOffIsRebootedOnce for an annotation that asks for it.
func TestAServerThatMustNotBePoweredOffIsRebootedOnce(t *testing.T) {
	s := newSite(t, true, func(h *metal3.BareMetalHost) { h.Spec.DisablePowerOff, h.Spec.Online = true, true })
	s.reach(metal3.StateProvisioned)
	s.annotate(metal3.RebootAnnotationPrefix, "")
	s.settle()
	if log := s.server.Log(); log[len(log)-1] != "reboot" || s.isAnnotated(metal3.RebootAnnotationPrefix) || !s.host().Status.PoweredOn {
		t.Errorf("the server went through %v; annotations %v", log, s.host().Annotations)
	}
}

func TestADetachmentThatFailsIsAnError(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioned)
	s.server.Fail(baremetaloperator.Detaching, 1)
	s.annotate(metal3.DetachedAnnotation, "")
	s.step()
	if h := s.host(); h.Status.ErrorType != metal3.DetachError || h.Status.ErrorCount != 1 {
		t.Errorf("the host has %s", s.describe())
	}
	s.until("the host is detached", func() bool { return s.host().Status.OperationalStatus == metal3.OperationalStatusDetached })
	if h := s.host(); h.Status.ErrorType != "" {
		t.Errorf("the detached host has %s", s.describe())
	}
	if c := s.condition("Ready"); c.Status != metav1.ConditionFalse || c.Reason != "Detached" {
		t.Errorf("Ready of a detached host is %+v", c)
	}
	s.edit(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.DetachedAnnotation) })
	s.settle()
	if h := s.host(); h.Status.OperationalStatus != metal3.OperationalStatusOK || !s.server.IsRunning() {
		t.Errorf("the host that was detached has %s", s.describe())
	}
}

func TestAHostWaitsWhileTheServiceIsFull(t *testing.T) {
	s := newSite(t, true)
	s.isFull = true
	s.until("the host is delayed", func() bool { return s.host().Status.OperationalStatus == metal3.OperationalStatusDelayed })
	if state := s.state(); state != metal3.StateRegistering {
		t.Errorf("a host whose inspection is delayed is %s", state)
	}
	if waits := s.due.Sub(s.now); waits != 2*minute {
		t.Errorf("the operator looks again after %s", waits)
	}
	s.isFull = false
	s.reach(metal3.StateAvailable)
	s.isFull = true
	s.install(imageURL)
	s.until("the host is delayed", func() bool { return s.host().Status.OperationalStatus == metal3.OperationalStatusDelayed })
	if state := s.state(); state != metal3.StateAvailable {
		t.Errorf("a host whose installation is delayed is %s", state)
	}
	s.isFull = false
	s.untilState(metal3.StateProvisioned)
}

func TestAHostIsServicedBeforeItIsPoweredOn(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioned)
	s.edit(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	s.settle()
	s.server.RequestServicing()
	s.server.Fail(baremetaloperator.Servicing, 1)
	s.server.Delay(baremetaloperator.Servicing, 1)
	s.edit(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	s.until("the servicing has failed", func() bool { return s.host().Status.ErrorType == metal3.ServicingError })
	s.until("the host is serviced", func() bool { return s.host().Status.OperationalStatus == metal3.OperationalStatusServicing })
	if c := s.condition("Ready"); c.Reason != "Servicing" {
		t.Errorf("Ready of a host that is serviced is %+v", c)
	}
	s.until("the server runs", s.server.IsRunning)
	s.settle()
	if h := s.host(); h.Status.OperationalStatus != metal3.OperationalStatusOK || !slices.Contains(s.server.Log(), "service") {
		t.Errorf("the serviced host has %s, its server went through %v", s.describe(), s.server.Log())
	}
}

// TestAnInspectionThatIsAskedForReplacesTheHardwareData removes the annotation when it begins.
func TestAnInspectionThatIsAskedForReplacesTheHardwareData(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateAvailable)
	first := &metal3.HardwareData{}
	if err := server.Client.Get(t.Context(), s.key, first); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.Finalizers, []string{baremetaloperator.HardwareFinalizer}) || !metav1.IsControlledBy(first, s.host()) {
		t.Errorf("the HardwareData is %+v", first.ObjectMeta)
	}
	if arch := s.host().Spec.Architecture; arch != "x86_64" {
		t.Errorf("after the inspection the spec has the architecture %q", arch)
	}
	s.server.Delay(baremetaloperator.Inspecting, 3)
	s.annotate(metal3.InspectAnnotationPrefix, "")
	s.until("the annotation is removed", func() bool { return !s.isAnnotated(metal3.InspectAnnotationPrefix) })
	if state := s.state(); state != metal3.StateInspecting {
		t.Errorf("the annotation was removed from a host that is %s", state)
	}
	s.untilState(metal3.StateAvailable)
	second := &metal3.HardwareData{}
	if err := server.Client.Get(t.Context(), s.key, second); err != nil || second.UID == first.UID {
		t.Errorf("the HardwareData has the UID %s as before: %v", second.UID, err)
	}
	s.delete()
	s.until("the host is gone", func() bool { return s.host().UID == "" })
	if err := server.Client.Get(t.Context(), s.key, second); client.IgnoreNotFound(err) != nil || len(second.Finalizers) > 0 && err == nil {
		t.Errorf("the HardwareData of a host that is gone still has the finalizers %v: %v", second.Finalizers, err)
	}
}

// TestARAIDThatIsAskedForIsPrepared changes it on an available host.
func TestARAIDThatIsAskedForIsPrepared(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateAvailable)
	s.edit(func(h *metal3.BareMetalHost) {
		h.Spec.RAID = &metal3.RAIDConfig{HardwareRAIDVolumes: []metal3.HardwareRAIDVolume{{Level: "1"}}}
	})
	s.untilState(metal3.StatePreparing)
	s.untilState(metal3.StateAvailable)
	s.settle()
	if raid := s.host().Status.Provisioning.RAID; raid == nil || raid.HardwareRAIDVolumes[0].Level != "1" {
		t.Errorf("the prepared host has the RAID %+v", raid)
	}
}
