package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
	"github.com/ingot-dev/ingot/test/management"
)

// setErase gives the NodeProvider the policy.
func (r *metal3Rig) setErase(policy v1alpha1.ErasePolicy) {
	r.t.Helper()
	provider := &v1alpha1.NodeProvider{}
	if err := server.Client.Get(r.t.Context(), types.NamespacedName{Name: r.namespace}, provider); err != nil {
		r.t.Fatal(err)
	}
	provider.Spec.Erase = &policy
	if err := server.Client.Update(r.t.Context(), provider); err != nil {
		r.t.Fatal(err)
	}
}

// hostEvents returns what the events about the host say for that reason.
func (r *metal3Rig) hostEvents(name, reason string) []string {
	r.t.Helper()
	events, notes := &eventsv1.EventList{}, []string(nil)
	if err := server.Client.List(r.t.Context(), events, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Regarding.Kind == "BareMetalHost" && e.Regarding.Name == name && e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// awaitHostEvent waits for an event about the host.
func (r *metal3Rig) awaitHostEvent(name, reason, says string) {
	r.t.Helper()
	management.Eventually(r.t, "an event about the host says "+reason, func() bool {
		return slices.ContainsFunc(r.hostEvents(name, reason), func(note string) bool { return strings.Contains(note, says) })
	})
}

// TestTheEraseOfTheProviderIsPassedOnAndWrittenDown releases a host that is not cleaned. A mode that somebody sets later proves nothing.
func TestTheEraseOfTheProviderIsPassedOnAndWrittenDown(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseNone, AllowMetadataBetweenTenants: true, AllowForgeableEraseBetweenTenants: true})
	r.ready()
	r.release()
	h := r.bareHost("server-00")
	if got := r.servers["server-00"].History(); got[len(got)-1] != "clean disabled" || h.Annotations[v1alpha1.AnnotationLastErase] != "None" {
		t.Errorf("the disk went through %v, and the host says that its last erase was %q", got, h.Annotations[v1alpha1.AnnotationLastErase])
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"other/other"}},"spec":{"automatedCleaningMode":"metadata"}}`, placement.AnnotationLastTenant)
	if err := server.Client.Patch(t.Context(), h, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	r.addMachine(r.namespace)
	management.Eventually(t, "the host is passed over", func() bool {
		return strings.Contains(r.condition(r.namespace, v1alpha1.ConditionClaimed).Message, "1 not erased since another tenant")
	})
}

// TestAHostOfWhichNobodyKnowsHowItWasCleanedIsReturnedWithAWarning has a person remove what was written down.
func TestAHostOfWhichNobodyKnowsHowItWasCleanedIsReturnedWithAWarning(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.ready()
	r.deleteMachine()
	management.Eventually(t, "the host is to be powered off", func() bool { return !r.bareHost("server-00").Spec.Online })
	for r.bareHost("server-00").Spec.Image != nil {
		r.look("server-00")
	}
	r.annotate("server-00", v1alpha1.AnnotationLastErase, nil)
	r.release()
	r.awaitHostEvent("server-00", v1alpha1.ReasonEraseNotProven, "nothing says that it was erased")
}

// TestAHostOnWhichNothingWasRequestedIsAsItWas deletes a Machine that waits for a Secret of its node. The tenant before has the host still, with its erase.
func TestAHostOnWhichNothingWasRequestedIsAsItWas(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata, AllowMetadataBetweenTenants: true, AllowForgeableEraseBetweenTenants: true})
	r.annotate("server-00", placement.AnnotationLastTenant, "other/other")
	r.annotate("server-00", v1alpha1.AnnotationLastErase, "Metadata")
	r.start()
	server.Create(t, &v1alpha1.Machine{ObjectMeta: r.meta(r.namespace), Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: r.namespace}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Revision: r.addRevision(2, "1.37.0", licensed),
	}})
	r.untilPhase(v1alpha1.MachineProvisioning)
	r.release()
	if a := r.bareHost("server-00").Annotations; a[placement.AnnotationLastTenant] != "other/other" || a[v1alpha1.AnnotationLastErase] != "Metadata" {
		t.Errorf("the host is returned with the annotations %v", a)
	}
}

// TestAnInstallationThatFailsIsCleanedAsThePolicySays has one that asks for no erase. It is passed on with the claim.
func TestAnInstallationThatFailsIsCleanedAsThePolicySays(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseNone})
	r.failInstallation()
	if got := r.servers["server-00"].History(); len(got) == 0 || got[len(got)-1] != "clean disabled" {
		t.Errorf("the disk went through %v", got)
	}
	r.release()
	if h := r.bareHost("server-00"); h.Spec.AutomatedCleaningMode != metal3.CleaningModeMetadata || h.Annotations[v1alpha1.AnnotationLastErase] != "None" {
		t.Errorf("the host is returned with the cleaning mode %s and the last erase %q", h.Spec.AutomatedCleaningMode, h.Annotations[v1alpha1.AnnotationLastErase])
	}
}

// TestAHostWhoseRollFailedIsNoOtherTenants rolls without an erase, has the next installation fail as often as it is tried, and releases the host, on which
// nothing is installed any more that its operator would clean. An operator without conditions has no limit of tries.
func TestAHostWhoseRollFailedIsNoOtherTenants(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata, AllowMetadataBetweenTenants: true, AllowForgeableEraseBetweenTenants: true})
	next := r.addRevision(2, "1.37.0")
	r.ready()
	r.servers["server-00"].Fail(baremetaloperator.Deploying, -1)
	r.want(r.namespace, next)
	r.until("the operator has given up", func() bool {
		h := r.bareHost("server-00")
		return h.Status.Provisioning.State == metal3.StateAvailable && h.Status.ErrorType == metal3.ProvisioningError && h.Spec.Image != nil
	})
	r.servers["server-00"].Fail(baremetaloperator.Deploying, 0)
	r.release()
	h := r.bareHost("server-00")
	if history := r.servers["server-00"].History(); history[len(history)-1] != "clean disabled" || h.Annotations[v1alpha1.AnnotationLastErase] != "None" || h.Spec.AutomatedCleaningMode != metal3.CleaningModeMetadata {
		t.Errorf("the disk went through %v, the host says that its last erase was %q, and its cleaning mode is %s", history, h.Annotations[v1alpha1.AnnotationLastErase], h.Spec.AutomatedCleaningMode)
	}
	r.awaitHostEvent("server-00", v1alpha1.ReasonEraseNotProven, "was returned without an erase")
	r.annotate("server-00", placement.AnnotationLastTenant, "other/other")
	r.addMachine(r.namespace)
	management.Eventually(t, "the host is passed over", func() bool {
		return strings.Contains(r.condition(r.namespace, v1alpha1.ConditionClaimed).Message, "1 not erased since another tenant")
	})
}

// TestTheCleaningModeComesBackAlthoughTheManagerEndsInTheRoll ends it when the image is removed, and when the next one is asked for. The managers after it
// know what the objects say.
func TestTheCleaningModeComesBackAlthoughTheManagerEndsInTheRoll(t *testing.T) {
	r := newMetal3Rig(t, true)
	next := r.addRevision(2, "1.37.0")
	r.ready()
	r.want(r.namespace, next)
	r.until("the image is removed", func() bool { return r.bareHost("server-00").Spec.Image == nil })
	r.stop()
	if h := r.bareHost("server-00"); h.Spec.AutomatedCleaningMode != metal3.CleaningModeDisabled || h.Annotations[v1alpha1.AnnotationCleaningMode] != "metadata" {
		t.Errorf("in the roll the host has the cleaning mode %s and the annotations %v", h.Spec.AutomatedCleaningMode, h.Annotations)
	}
	r.start()
	r.until("the next image is asked for", func() bool { return r.bareHost("server-00").Spec.Image != nil })
	r.stop()
	r.until("the next image is installed", func() bool { return r.bareHost("server-00").Status.Provisioning.State == metal3.StateProvisioned })
	if mode := r.bareHost("server-00").Spec.AutomatedCleaningMode; mode != metal3.CleaningModeDisabled {
		t.Fatalf("nobody has seen the end of the installation, and the host has the cleaning mode %s", mode)
	}
	r.start()
	r.join()
	r.until("the host has its cleaning mode again", func() bool {
		h := r.bareHost("server-00")
		return h.Spec.AutomatedCleaningMode == metal3.CleaningModeMetadata && h.Annotations[v1alpha1.AnnotationCleaningMode] == ""
	})
	r.release()
	if got := r.servers["server-00"].History(); got[len(got)-1] != "clean metadata" {
		t.Errorf("the disk went through %v", got)
	}
}

// TestARollErasesWhereTheProviderSaysSo cleans in the roll, and a release after it.
func TestARollErasesWhereTheProviderSaysSo(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata, OnRoll: v1alpha1.EraseMetadata})
	next := r.addRevision(2, "1.37.0")
	r.ready()
	r.want(r.namespace, next)
	r.untilPhase(v1alpha1.MachineDraining)
	r.join()
	r.until("the host that has a node again says no more of its last erase", func() bool {
		return r.bareHost("server-00").Annotations[v1alpha1.AnnotationLastErase] == ""
	})
	if got := r.servers["server-00"].History(); len(got) != 3 || got[1] != "clean metadata" {
		t.Errorf("the disk went through %v", got)
	}
}

// TestAHostWhoseOwnModeIsDisabledIsNotCleaned has a policy that asks for an erase.
func TestAHostWhoseOwnModeIsDisabledIsNotCleaned(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseMetadata, OnRoll: v1alpha1.EraseMetadata, AllowMetadataBetweenTenants: true, AllowForgeableEraseBetweenTenants: true})
	r.editBareHost("server-00", func(h *metal3.BareMetalHost) { h.Spec.AutomatedCleaningMode = metal3.CleaningModeDisabled })
	r.ready()
	r.release()
	h := r.bareHost("server-00")
	if got := r.servers["server-00"].History(); got[len(got)-1] != "clean disabled" || h.Annotations[v1alpha1.AnnotationLastErase] != "None" || h.Spec.AutomatedCleaningMode != metal3.CleaningModeDisabled {
		t.Errorf("the disk went through %v, the host says that its last erase was %q, and its own mode is %s", got, h.Annotations[v1alpha1.AnnotationLastErase], h.Spec.AutomatedCleaningMode)
	}
	r.awaitHostEvent("server-00", v1alpha1.ReasonEraseNotProven, "was returned without an erase")
}

// TestAHostWhoseMachineIsGoneIsErasedByThePolicyToo has nobody but the host's namespace to find the policy by. Its
// server is off before its image is removed.
func TestAHostWhoseMachineIsGoneIsErasedByThePolicyToo(t *testing.T) {
	r := newMetal3Rig(t, true)
	r.setErase(v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseNone})
	r.ready()
	m := r.machine(r.namespace)
	r.abandon(m)
	management.Eventually(t, "the Machine is gone", func() bool { return r.machine(r.namespace).UID == "" })
	if r.bareHost("server-00").Spec.Image == nil {
		t.Fatal("the Machine has released the host itself")
	}
	r.annotate("server-00", v1alpha1.AnnotationRelease, string(m.UID))
	r.until("the host is freed", func() bool { return r.bareHost("server-00").Spec.ConsumerRef == nil })
	h := r.bareHost("server-00")
	if got := r.servers["server-00"].History(); got[len(got)-1] != "clean disabled" || h.Annotations[v1alpha1.AnnotationLastErase] != "None" || h.Spec.AutomatedCleaningMode != metal3.CleaningModeMetadata {
		t.Errorf("the disk went through %v, the host says that its last erase was %q, and its mode is %s", got, h.Annotations[v1alpha1.AnnotationLastErase], h.Spec.AutomatedCleaningMode)
	}
}

// TestACleaningThatASiteEnablesInARollIsDisabledAgain applies a site's manifest when the image is removed for the next one, where no policy refuses it.
func TestACleaningThatASiteEnablesInARollIsDisabledAgain(t *testing.T) {
	r := newMetal3Rig(t, true)
	next := r.addRevision(2, "1.37.0")
	r.ready()
	r.want(r.namespace, next)
	r.until("the image is removed", func() bool { return r.bareHost("server-00").Spec.Image == nil })
	r.editBareHost("server-00", func(h *metal3.BareMetalHost) { h.Spec.AutomatedCleaningMode = metal3.CleaningModeMetadata })
	management.Eventually(t, "the cleaning is disabled again", func() bool {
		return r.bareHost("server-00").Spec.AutomatedCleaningMode == metal3.CleaningModeDisabled
	})
	r.awaitHostEvent("server-00", v1alpha1.ReasonCleaningChanged, "its disks may have been cleaned")
	r.join()
	if got := r.servers["server-00"].History(); len(got) < 2 || got[1] != "clean disabled" {
		t.Errorf("the disk went through %v", got)
	}
	r.until("the host has its cleaning mode again", func() bool {
		return r.bareHost("server-00").Spec.AutomatedCleaningMode == metal3.CleaningModeMetadata
	})
}
