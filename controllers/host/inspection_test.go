package host_test

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

// inspectBy sets the inspector of the NodeProvider.
func (r *rig) inspectBy(inspector v1alpha1.InventorySource) {
	r.t.Helper()
	provider := &v1alpha1.NodeProvider{}
	if err := server.Client.Get(r.t.Context(), client.ObjectKey{Name: r.namespace}, provider); err != nil {
		r.t.Fatal(err)
	}
	provider.Spec.Redfish.Inspect = inspector
	if err := server.Client.Update(r.t.Context(), provider); err != nil {
		r.t.Fatal(err)
	}
}

// registerKnown registers the server with its real credentials.
func (r *rig) registerKnown(s *rack.Server) {
	r.t.Helper()
	r.credentials(s, first(s.Credentials()), second(s.Credentials()))
	r.register(s, nil)
}

func TestTheAgentLooksBeforeAHostIsAvailable(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	r.inspectBy(v1alpha1.SourceAgent)
	s := r.rack.Servers()[0]
	s.SetFaults(rack.Faults{MissingGPUs: 1})
	r.registerKnown(s)
	h, record := r.await(s, "it is available", inState(metal3.StateAvailable))
	w, i := record.Status.Wanted, record.Status.Inventory
	if !w.IsAgentInspection() || w.Number != 2 || i.SystemUUID == "" || i.GPUSource != v1alpha1.SourceAgent {
		t.Errorf("attempt %+v, inventory %+v: expected the agent's, after the BMC's", w, i)
	}
	if s.State().Power != hardware.PowerOff || h.Labels[v1alpha1.LabelGPUCount] != "7" {
		t.Errorf("power %s, labels %v: expected the server off and labelled by what the agent saw", s.State().Power, h.Labels)
	}
	c := meta.FindStatusCondition(record.Status.Conditions, v1alpha1.ConditionAgentUndisputed)
	if c == nil || c.Reason != string(v1alpha1.FindingInventoryDiffers) || !strings.Contains(c.Message, "the BMC reports 8 GPUs") {
		t.Errorf("condition %+v, expected that the BMC counts another GPU", c)
	}

	data := &metal3.HardwareData{}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(h), data); err != nil {
		t.Fatal(err)
	}
	if d := data.Spec.HardwareDetails; d == nil || d.SystemVendor.SerialNumber != i.SerialNumber || len(d.Storage) == 0 || len(data.OwnerReferences) != 1 || data.OwnerReferences[0].UID != h.UID {
		t.Errorf("HardwareData %+v of %+v", d, data.OwnerReferences)
	}
	if h.Labels[v1alpha1.LabelManufacturer] != "Supermicro" || h.Labels[v1alpha1.LabelArchitecture] != "amd64" {
		t.Errorf("labels %v", h.Labels)
	}

	// Another look asks the BMC and the agent again.
	s.SetFaults(rack.Faults{})
	r.edit(s, func(h *metal3.BareMetalHost) { h.Annotations[metal3.InspectAnnotationPrefix] = "" })
	r.await(s, "it was looked at again", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return inState(metal3.StateAvailable)(h, record) && record.Status.Wanted.Number == 4 && h.Labels[v1alpha1.LabelGPUCount] == "8"
	})

	// The rest of its life is as without the look: an installation, and an erase, after which the host is available at once.
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	r.unassign(s)
	_, record = r.await(s, "it is available again", inState(metal3.StateAvailable))
	if w := record.Status.Wanted; w.Number != 6 || w.Operation != string(hardware.OpErase) || s.State().Power != hardware.PowerOff {
		t.Errorf("attempt %+v, power %s: expected the erase as number 6, and nothing after it", w, s.State().Power)
	}
}

func TestAManagerWithoutMetal3sHardwareDataGoesOn(t *testing.T) {
	t.Parallel()
	resource := metal3.GroupVersion.WithResource("hardwaredata").GroupResource()
	for name, refusal := range map[string]error{
		"no such kind": &meta.NoKindMatchError{GroupKind: metal3.GroupVersion.WithKind("HardwareData").GroupKind()}, "no right": apierrors.NewForbidden(resource, "x", nil),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			r.stop()
			r.writes.refusal = refusal
			r.start()
			r.available(r.rack.Servers()[0])
		})
	}
}

func TestAServerWhoseAgentNeverAnswersStaysOffAndOutOfThePool(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	r.inspectBy(v1alpha1.SourceAgent)
	r.stop()
	r.timeouts.InspectAgent = time.Second
	r.start()
	s := r.rack.Servers()[0]
	s.SetFaults(rack.Faults{DeadBootNIC: true})
	r.registerKnown(s)
	h, record := r.await(s, "three attempts have failed", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Failures == 3 && record.Status.Error != nil && strings.Contains(record.Status.Error.Message, v1alpha1.AnnotationRetry) && h.Status.ErrorType != "" && s.State().Power == hardware.PowerOff
	})
	if h.Status.Provisioning.State != metal3.StateInspecting || h.Status.ErrorType != metal3.InspectionError || record.Status.Error.Reason != string(hardware.ReasonNoBootRequest) {
		t.Errorf("state %s, error %+v", h.Status.Provisioning.State, record.Status.Error)
	}

	// The cause is mended while no manager runs, and the next one goes on from the record.
	r.stop()
	s.SetFaults(rack.Faults{})
	r.timeouts.InspectAgent = time.Minute
	r.edit(s, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{v1alpha1.AnnotationRetry: "cable"}
	})
	r.start()
	r.await(s, "it is available", inState(metal3.StateAvailable))
}

func TestAServerThatIsOnIsNotPoweredOffForALook(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	r.inspectBy(v1alpha1.SourceAgent)
	s := r.rack.Servers()[0]
	s.Reset(bmc.ResetOn)
	r.registerKnown(s)
	_, record := r.await(s, "it says why it waits", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool { return record.Status.Error != nil })
	if record.Status.Error.Reason != v1alpha1.ReasonServerIsOn || s.State().Power != hardware.PowerOn || record.Status.Wanted.IsAgentInspection() {
		t.Errorf("error %+v, power %s, attempt %+v", record.Status.Error, s.State().Power, record.Status.Wanted)
	}
	s.Reset(bmc.ResetForceOff)
	r.await(s, "it is available", inState(metal3.StateAvailable))
}

func TestAManagerThatIsRestartedAtAnyStepFinishesTheLook(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	r.inspectBy(v1alpha1.SourceAgent)
	s := r.rack.Servers()[0]
	r.registerKnown(s)
	for _, step := range []hardware.Step{hardware.StepBooting, hardware.StepLoading, hardware.StepRegistered} {
		r.await(s, "the look is at "+string(step)+" or further", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
			progress := record.Status.Progress()
			return record.Status.Wanted.IsAgentInspection() && (!record.Status.Wanted.IsOpen() || progress != nil && progress.Step == string(step) || progress != nil && progress.Step == string(hardware.StepFinishing))
		})
		r.stop()
		r.start()
	}
	_, record := r.await(s, "it is available", inState(metal3.StateAvailable))
	if record.Status.Inventory.SystemUUID == "" || s.State().Power != hardware.PowerOff || record.Status.Wanted.Outcome != v1alpha1.AttemptSucceeded {
		t.Errorf("inventory %+v, power %s, attempt %+v", record.Status.Inventory, s.State().Power, record.Status.Wanted)
	}
}
