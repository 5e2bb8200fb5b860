package lifecycle

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// served returns the facts of a Machine in the phase whose host a baremetal-operator serves.
func served(t *testing.T, phase v1alpha1.MachinePhase) Facts {
	t.Helper()
	f := factsIn(t, phase)
	f.Provider.HasRecords, f.Host.Record = false, nil
	return f
}

func TestTheErrorsOfABaremetalOperatorHaveReasons(t *testing.T) {
	for _, c := range []struct {
		change func(*Host)
		reason string
		says   string
	}{
		{func(h *Host) { h.Error, h.ErrorCount = string(metal3.RegistrationError), 3 }, v1alpha1.ReasonBMCUnreachable, "refuses the credentials (3 times)"},
		{func(h *Host) { h.Online, h.Error, h.ErrorCount = true, string(metal3.PowerManagementError), 1 }, v1alpha1.ReasonBMCConflict, "does not change the power ("},
		{func(h *Host) { h.Error, h.ImageURL = string(metal3.ProvisioningError), "http://images/a.raw" }, "InstallerFailed", "could not install or clean it"},
		{func(h *Host) { h.Error = string(metal3.ProvisionedRegistrationError) }, v1alpha1.ReasonBMCUnreachable, "cannot register the running server again"},
		{func(h *Host) { h.Error = string(metal3.InspectionError) }, v1alpha1.ReasonHostError, "its inspection failed"},
		{func(h *Host) { h.Error = string(metal3.PreparationError) }, v1alpha1.ReasonHostError, "RAID or firmware could not be prepared"},
		{func(h *Host) { h.Error = string(metal3.ServicingError) }, v1alpha1.ReasonHostError, "its servicing failed"},
		{func(h *Host) { h.Error = string(metal3.DetachError) }, v1alpha1.ReasonHostError, "could not detach it"},
		{func(h *Host) { h.Error = "an error of a later release" }, v1alpha1.ReasonHostError, "an error of a later release"},
		{func(h *Host) { h.OperationalStatus = metal3.OperationalStatusDelayed }, v1alpha1.ReasonHostDelayed, "PROVISIONING_LIMIT"},
		{func(h *Host) { h.OperationalStatus = metal3.OperationalStatusServicing }, v1alpha1.ReasonHostServicing, "firmware"},
		{func(h *Host) { h.Deleting = true }, v1alpha1.ReasonHostDeleting, "create the BareMetalHost again"},
	} {
		f := served(t, v1alpha1.MachineProvisioning)
		c.change(f.Host)
		ready := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionReady)
		if ready.Reason != c.reason || !strings.Contains(ready.Message, c.says) {
			t.Errorf("%+v: %s: %s", *f.Host, ready.Reason, ready.Message)
		}
	}
}

// TestThePowerOfAServedHostCountsOnlyWhenItIsNewer has one case for each thing that makes a status old.
func TestThePowerOfAServedHostCountsOnlyWhenItIsNewer(t *testing.T) {
	generation := func(n int64) *int64 { return &n }
	withoutConditions := func(h *Host) { h.ObservedGeneration, h.Manageable = nil, nil }
	for _, c := range []struct {
		name   string
		change func(*Host)
		want   bool
	}{
		{"the operator has seen the server off since the request", func(*Host) {}, true},
		{"no condition has observed the request", func(h *Host) { h.ObservedGeneration = generation(6) }, false},
		{"the conditions have observed the request in a look that only registered the host again", func(h *Host) { h.RebootRequested = true }, false},
		{"somebody else has set online to false", func(h *Host) { h.PowerOffRequested = false }, false},
		{"the operator installs the host, and does not look at its power", func(h *Host) { h.State = metal3.StateProvisioning }, false},
		{"the operator does not know the power", func(h *Host) { h.Manageable = ptr.To(false) }, false},
		{"the operator has the condition no more, and had seen the server on when it was asked", func(h *Host) { h.Manageable, h.PowerOffOfRunning = nil, true }, true},
		{"the operator has no condition about the power", func(h *Host) { h.Manageable = nil }, false},
		{"the operator cannot reach the BMC", func(h *Host) { h.Error = string(metal3.RegistrationError) }, false},
		{"the operator has the host wait", func(h *Host) { h.OperationalStatus = metal3.OperationalStatusDelayed }, false},
		{"the host is paused", func(h *Host) { h.Paused = true }, false},
		{"an error of the installation does not keep the operator from looking", func(h *Host) { h.Error = string(metal3.ProvisioningError) }, true},
		{"without conditions, the request was not sent", func(h *Host) { withoutConditions(h); h.PowerOffRequested = false }, false},
		{"without conditions, the status said off already when it was asked", withoutConditions, false},
		{"without conditions, the status said on when it was asked", func(h *Host) { withoutConditions(h); h.PowerOffOfRunning = true }, true},
		{"without conditions, that is so although a person asks for a reboot", func(h *Host) {
			withoutConditions(h)
			h.PowerOffOfRunning, h.PowerOffRequested, h.RebootRequested = true, false, true
		}, true},
		{"without conditions, the operator has removed the image", func(h *Host) { withoutConditions(h); h.State, h.InstalledURL = metal3.StateAvailable, "" }, true},
		{"the server is on", func(h *Host) { h.PoweredOn = true }, false},
	} {
		f := served(t, v1alpha1.MachineDraining)
		f.Host.Online, f.Host.PoweredOn, f.Host.State, f.Host.Generation, f.Host.ObservedGeneration = false, false, metal3.StateProvisioned, 7, generation(7)
		f.Host.PowerOffRequested, f.Host.Manageable = true, ptr.To(true)
		c.change(f.Host)
		if got := f.isPoweredOff(); got != c.want {
			t.Errorf("%s: the power-off counts as confirmed: %t", c.name, got)
		}
	}
}

// TestAServerThatSeemsToBeOffIsAskedOffOnlyWhereThatCanBeShown has a status that says off. Without conditions it may be an old one, and the BMC dark.
func TestAServerThatSeemsToBeOffIsAskedOffOnlyWhereThatCanBeShown(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Host)
		asks   bool
		says   string
	}{
		{"its operator writes whether it knows the power", func(h *Host) { h.Manageable = ptr.To(true) }, true, "is being powered off"},
		{"its operator does not know the power now", func(h *Host) { h.Manageable = ptr.To(false) }, true, "is being powered off"},
		{"its operator writes no conditions", func(*Host) {}, false, "powered off when it has been seen on"},
		{"its operator writes no conditions and is told to leave it off", func(h *Host) { h.Online = false }, false, "set spec.online of its BareMetalHost to true"},
		{"its operator has seen it on", func(h *Host) { h.PoweredOn = true }, true, "is being powered off"},
		{"nothing is installed on it", func(h *Host) { h.State, h.InstalledURL = metal3.StateAvailable, "" }, true, "is being powered off"},
	} {
		f := served(t, v1alpha1.MachineDraining)
		f.Node = Node{}
		f.Machine.Status.PowerOffRequestedAt = &metav1.MicroTime{Time: f.Now}
		f.Host.Online, f.Host.PoweredOn, f.Host.State, f.Host.InstalledURL = true, false, metal3.StateProvisioned, f.Host.ImageURL
		c.change(f.Host)
		d := Plan(f)
		ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if asks := d.Action != nil && d.Action.Kind == PowerOff; asks != c.asks || ready.Reason != v1alpha1.ReasonPoweringOff || !strings.Contains(ready.Message, c.says) {
			t.Errorf("%s: action %v, %s: %s", c.name, d.Action, ready.Reason, ready.Message)
		}
	}
}

// TestARollWaitsForNoInstallationThatNeverEnds has an image that cannot be installed, and a revision that mends it.
func TestARollWaitsForNoInstallationThatNeverEnds(t *testing.T) {
	const none = ActionKind("")
	for _, c := range []struct {
		name   string
		change func(*Host)
		want   ActionKind
		reason string
	}{
		{"it is being written, and may end in this moment", func(h *Host) { h.State = metal3.StateProvisioning }, none, v1alpha1.ReasonPoweringOff},
		{"it has failed, and is tried again", func(h *Host) {
			h.State, h.Error = metal3.StateProvisioning, string(metal3.ProvisioningError)
		}, Deprovision, "InstallerFailed"},
		{"it was given up", func(h *Host) { h.State, h.Error = metal3.StateAvailable, string(metal3.ProvisioningError) }, PowerOff, v1alpha1.ReasonPoweringOff},
		{"its image is removed already", func(h *Host) { h.State, h.ImageURL, h.Online = metal3.StateDeprovisioning, "", false }, none, v1alpha1.ReasonPoweringOff},
		{"a person has paused the host", func(h *Host) { h.State, h.Paused = metal3.StateAvailable, true }, none, v1alpha1.ReasonHostPaused},
		{"a person has detached the host", func(h *Host) { h.State, h.Detached = metal3.StateAvailable, true }, none, v1alpha1.ReasonHostDetached},
		{"a system may run", func(h *Host) { h.State, h.Detached = metal3.StateDeprovisioning, false }, none, v1alpha1.ReasonPoweringOff},
	} {
		f := served(t, v1alpha1.MachineDraining)
		f.Node = Node{}
		f.Machine.Status.PowerOffRequestedAt = &metav1.MicroTime{Time: f.Now}
		f.Host.Online, f.Host.PoweredOn, f.Host.InstalledURL = true, false, ""
		c.change(f.Host)
		d := Plan(f)
		kind := none
		if d.Action != nil {
			kind = d.Action.Kind
		}
		if ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady); kind != c.want || ready.Reason != c.reason {
			t.Errorf("%s: %s, %s: %s", c.name, kind, ready.Reason, ready.Message)
		}
	}
}

func TestAnInstallationThatIsGivenUpSaysWhatToDo(t *testing.T) {
	f := served(t, v1alpha1.MachineProvisioning)
	f.Host.State, f.Host.Error, f.Host.Online, f.Host.ImageURL, f.Host.InstalledURL = metal3.StateAvailable, string(metal3.ProvisioningError), true, imageA.URL, ""
	if _, message := (scope{Facts: f}).hostProblem(); !strings.Contains(message, "tries it no more") || !strings.Contains(message, "delete this Machine") {
		t.Error(message)
	}
	f.Host.State = metal3.StateProvisioning
	if _, message := (scope{Facts: f}).hostProblem(); message == "" || strings.Contains(message, "tries it no more") {
		t.Error(message)
	}
}

func TestAnErrorOfThePowerCountsWhileThePowerIsToChange(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Host)
		want   bool
	}{
		{"the server is on, as it is to be", func(*Host) {}, false},
		{"it is off, as it is to be", func(h *Host) { h.State, h.Online, h.PoweredOn = metal3.StateAvailable, false, false }, false},
		{"it is to be off", func(h *Host) { h.Online = false }, true},
		{"it is to be on", func(h *Host) { h.PoweredOn = false }, true},
		{"it is to be rebooted", func(h *Host) { h.RebootRequested = true }, true},
		{"nobody looks at the power", func(h *Host) { h.State = metal3.StateDeprovisioning }, true},
	} {
		f := served(t, v1alpha1.MachineReady)
		f.Host.State, f.Host.Online, f.Host.PoweredOn, f.Host.Error = metal3.StateProvisioned, true, true, string(metal3.PowerManagementError)
		c.change(f.Host)
		if got := f.hostError() != ""; got != c.want {
			t.Errorf("%s: the error counts: %t", c.name, got)
		}
	}
}

// TestAPowerOffThatWasNeverConfirmedEndsWithAServerThatIsOn has spec.powerOff cleared before the operator has looked at the host.
func TestAPowerOffThatWasNeverConfirmedEndsWithAServerThatIsOn(t *testing.T) {
	for observed, want := range map[int64]bool{6: false, 7: true} {
		f := served(t, v1alpha1.MachineValidating)
		f.Machine.Status.PowerOff = &v1alpha1.MachinePowerOff{RequestedAt: metav1.NewMicroTime(f.Now)}
		f.Host.State, f.Host.Online, f.Host.PoweredOn, f.Host.Generation, f.Host.ObservedGeneration = metal3.StateProvisioned, true, true, 7, &observed
		f.Now = f.phaseStart().Add(kubeletSilence)
		if got := f.isBootAfterPowerOff(); got != want {
			t.Errorf("generation %d of 7 is observed: a verdict counts: %t", observed, got)
		}
	}
}

// TestANodeThatRegistersWhileItsServedHostIsGivenBackIsDeleted has a Machine that was deleted while its server booted for the first time.
func TestANodeThatRegistersWhileItsServedHostIsGivenBackIsDeleted(t *testing.T) {
	f := served(t, v1alpha1.MachineReleasing)
	f.Host.State, f.Host.ImageURL, f.Host.InstalledURL, f.Host.Online, f.Host.PoweredOn, f.Node = metal3.StateAvailable, "", "", false, false, ownNode(&f)
	if d := Plan(f); d.Action == nil || d.Action.Kind != DeleteNode {
		t.Errorf("%+v", d.Action)
	}
}

// TestAHostThatIsNeverPoweredOffIsAskedForNothing has spec.disablePowerOff set while a Machine has the host.
func TestAHostThatIsNeverPoweredOffIsAskedForNothing(t *testing.T) {
	for phase, change := range map[v1alpha1.MachinePhase]func(*Facts){
		v1alpha1.MachineDraining:  func(*Facts) {},
		v1alpha1.MachineReleasing: func(f *Facts) { f.Machine.Deleting = true },
	} {
		f := served(t, phase)
		change(&f)
		f.Machine.Status.PowerOffRequestedAt = &metav1.MicroTime{Time: f.Now}
		f.Node, f.Token, f.Host.Online, f.Host.PoweredOn, f.Host.State = Node{}, nil, true, true, metal3.StateProvisioned
		if d := Plan(f); d.Action == nil || d.Action.Kind != PowerOff {
			t.Errorf("%s: a host that may be powered off: %v", phase, d.Action)
		}
		f.Host.NeverPoweredOff = true
		d := Plan(f)
		ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if d.Action != nil || ready.Reason != v1alpha1.ReasonPowerOffDisabled || !strings.Contains(ready.Message, "an administrator of the host removes that field") || d.RequeueAfter == 0 {
			t.Errorf("%s: action %v, %s: %s", phase, d.Action, ready.Reason, ready.Message)
		}
	}
}

// TestNoNodeIsDrainedForARollOfAHostThatIsNeverPoweredOff says in the condition UpToDate why.
func TestNoNodeIsDrainedForARollOfAHostThatIsNeverPoweredOff(t *testing.T) {
	for _, isForbidden := range []bool{false, true} {
		f := served(t, v1alpha1.MachineReady)
		f.Node, f.Host.NeverPoweredOff = ownNode(&f), isForbidden
		f.Machine.Spec.Revision, f.NextRevision = "rev-2", revisionOf("rev-2")
		d := Plan(f)
		upToDate := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionUpToDate)
		if isDrained := d.Status.Phase == v1alpha1.MachineDraining; isDrained == isForbidden || isForbidden && upToDate.Reason != v1alpha1.ReasonPowerOffDisabled {
			t.Errorf("spec.disablePowerOff: %t; the Machine is %s: %v", isForbidden, d.Status.Phase, upToDate)
		}
	}
}

// TestAHostIsReturnedWhenItsOperatorHasSeenItWithoutAnImage has a Machine that is deleted, and a host that is available.
func TestAHostIsReturnedWhenItsOperatorHasSeenItWithoutAnImage(t *testing.T) {
	const none = ActionKind("")
	for _, c := range []struct {
		name   string
		change func(*Host)
		want   ActionKind
		says   string
	}{
		{"the operator has looked since", func(*Host) {}, ReturnHost, ""},
		{"the operator does not say what it has seen", func(h *Host) { h.ObservedGeneration = nil }, ReturnHost, ""},
		{"the operator is stopped", func(h *Host) { h.Generation++ }, none, "has not yet seen that no image is asked for"},
		{"somebody has asked for it to be on, and it is", func(h *Host) { h.Online, h.PoweredOn = true, true }, PowerOff, "is being powered off"},
		{"somebody has asked for it to be on, and the operator has not seen that", func(h *Host) { h.Online = true }, PowerOff, "is being powered off"},
		{"the operator has not seen that it is to be off again", func(h *Host) { h.PowerOffRequested, h.RebootRequested = true, true }, none, "is available"},
		{"the operator does not know the power", func(h *Host) { h.Manageable = ptr.To(false) }, none, "is available"},
		{"it is not off yet", func(h *Host) { h.PoweredOn = true }, none, "is available"},
	} {
		f := served(t, v1alpha1.MachineReleasing)
		f.Machine.Deleting, f.Node, f.Secret, f.Token = true, Node{}, Secret{}, nil
		h := f.Host
		h.State, h.ImageURL, h.InstalledURL, h.Online, h.PoweredOn = metal3.StateAvailable, "", "", false, false
		observed := h.Generation
		h.ObservedGeneration = &observed
		c.change(h)
		d := Plan(f)
		kind := none
		if d.Action != nil {
			kind = d.Action.Kind
		}
		if ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady); kind != c.want || !strings.Contains(ready.Message, c.says) {
			t.Errorf("%s: %s, %s: %s", c.name, kind, ready.Reason, ready.Message)
		}
	}
}

// TestAServedHostHasItsImageOnlyWhenItWasSeenOn has a host that is provisioned.
func TestAServedHostHasItsImageOnlyWhenItWasSeenOn(t *testing.T) {
	f := served(t, v1alpha1.MachineProvisioning)
	h := f.Host
	h.State, h.Online, h.ImageURL, h.InstalledURL = metal3.StateProvisioned, true, f.Revision.Image.URL, f.Revision.Image.URL
	for _, isOn := range []bool{false, true} {
		h.PoweredOn = isOn
		if d := Plan(f); (d.Status.Phase == v1alpha1.MachineJoining) != isOn {
			t.Errorf("the operator has seen the server on: %t; the Machine is %s", isOn, d.Status.Phase)
		}
	}
}
