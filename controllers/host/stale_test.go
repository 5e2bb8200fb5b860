package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// behind is a client whose cache lags.
type behind struct {
	client.Client
	stale func(client.ObjectKey, client.Object) bool
	// hasNoRecords has a list of HostRecords show none yet.
	hasNoRecords bool
}

func (b behind) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if _, isRecords := into.(*v1alpha1.HostRecordList); isRecords && b.hasNoRecords {
		return nil
	}
	return b.Client.List(ctx, into, options...)
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if b.stale != nil && b.stale(key, into) {
		return nil
	}
	return b.Client.Get(ctx, key, into, options...)
}

// successor starts a controller after another one, whose cache shows these. It returns when that was looked at several times: each
// look ends before the next one begins.
func (r *rig) successor(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) {
	r.t.Helper()
	var looks atomic.Int32
	r.stop()
	r.stale = func(key client.ObjectKey, into client.Object) bool {
		switch into := into.(type) {
		case *metal3.BareMetalHost:
			looks.Add(1)
			h.DeepCopyInto(into)
			return true
		case *v1alpha1.HostRecord:
			if record != nil {
				record.DeepCopyInto(into)
			}
			return record != nil
		}
		return false
	}
	r.start()
	eventually(r.t, "a controller has looked at the host as it was", func() bool { return looks.Load() > 4 })
}

func TestAServerThatWasFencedStaysOffWhateverACacheShows(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	before, _ := r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	fenced := r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false }).Generation
	r.await(s, "power-off is confirmed", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Power.State == string(hardware.PowerOff) && record.Status.Power.ObservedGeneration >= fenced
	})
	// On this the Node is deleted. The next leader's cache has not seen that the power-off was asked for.
	r.successor(before, nil)
	if _, record, err := r.get(s); err != nil || s.State().Power != hardware.PowerOff || record.Status.Power.State != string(hardware.PowerOff) {
		t.Errorf("the server is %s, its record says %+v, %v: a machine whose Node may be gone was powered on", s.State().Power, record.Status.Power, err)
	}
}

func TestAServerThatWasGivenToOthersIsNotPoweredOffForThePast(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	h, record := r.await(s, "it runs", func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool {
		return inState(metal3.StateProvisioned)(h, nil) && s.State().Power == hardware.PowerOn
	})
	// A server that was asked to power off long ago, and asked again since: nothing of that is worth a write.
	h.Spec.Online, h.ResourceVersion = false, "1"
	record.ResourceVersion = "1"
	record.Status.Power = &v1alpha1.HostPower{
		State: string(hardware.PowerTurningOff), ObservedGeneration: h.Generation, ObservedAt: metav1.NewMicroTime(time.Now().Add(-time.Second)),
	}
	r.successor(h, record)
	if s.State().Power != hardware.PowerOn {
		t.Errorf("the server is %s: it was switched off on an old record", s.State().Power)
	}
}
