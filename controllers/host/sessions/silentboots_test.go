package sessions_test

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// wantNext declares the next attempt, as the host controller does.
func (r *rig) wantNext() {
	r.t.Helper()
	record := &v1alpha1.HostRecord{}
	if err := server.Client.Get(r.t.Context(), client.ObjectKeyFromObject(r.record), record); err != nil {
		r.t.Fatal(err)
	}
	before := record.DeepCopy()
	record.Status.Wanted.Number++
	if err := server.Client.Status().Patch(r.t.Context(), record, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// TestTheNextAttemptGoesOnWithTheSilentBootsOfAFailedOne has each attempt end in a state after silent boots, which another process reads for the next.
func TestTheNextAttemptGoesOnWithTheSilentBootsOfAFailedOne(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		ended  hardware.AttemptState
		silent netboot.SilentBoots
		next   netboot.SilentBoots
	}{
		{hardware.AttemptFailed, netboot.SilentBoots{Way: hardware.BootPinned, Boots: 1}, netboot.SilentBoots{Way: hardware.BootPinned, Boots: 1}},
		{hardware.AttemptFailed, netboot.SilentBoots{Way: hardware.BootMedia, Boots: 2}, netboot.SilentBoots{Way: hardware.BootMedia, Boots: 2}},
		// After a success the first way is the first again.
		{hardware.AttemptSucceeded, netboot.SilentBoots{Way: hardware.BootMedia, Boots: 2}, netboot.SilentBoots{}},
		{hardware.AttemptFailed, netboot.SilentBoots{Way: hardware.BootNetwork, Boots: 2}, netboot.SilentBoots{Way: hardware.BootNetwork, Boots: 2}},
		// An attempt in which an agent came up ends the row too.
		{hardware.AttemptFailed, netboot.SilentBoots{}, netboot.SilentBoots{}},
	} {
		_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
			s.State, s.SilentBoots, s.Step = c.ended, c.silent, hardware.StepBooting
			return nil
		})
		expect(t, err, "")
		other := newStore(t, r.host.Namespace)
		kept, err := other.ByUID(t.Context(), r.uid())
		expect(t, err, "")
		if kept.SilentBoots != c.silent {
			t.Errorf("of the attempt that %s %+v is kept, expected %+v", c.ended, kept.SilentBoots, c.silent)
		}
		r.wantNext()
		next, err := other.ByUID(t.Context(), r.uid())
		expect(t, err, "")
		if next.Number != kept.Number+1 || next.State != hardware.AttemptRunning || next.SilentBoots != c.next {
			t.Errorf("after an attempt that %s with %+v the next, %d, begins with %+v, expected %+v", c.ended, c.silent, next.Number, next.SilentBoots, c.next)
		}
	}
}

// TestTheNextAttemptGoesOnWithAMissingPart has the next attempt begin with the finding that is about the hardware, and with none that is about the attempt.
func TestTheNextAttemptGoesOnWithAMissingPart(t *testing.T) {
	r := newRig(t)
	_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
		s.State, s.Step = hardware.AttemptSucceeded, hardware.StepFinishing
		s.Findings.InventoryDiffers = netboot.Finding{Count: 1, At: time.Unix(1e9, 0), Message: "7 GPUs"}
		s.Findings.AnotherAgent = netboot.Finding{Count: 2, At: time.Unix(1e9, 0), Message: "another"}
		return nil
	})
	expect(t, err, "")
	r.wantNext()
	next, err := newStore(t, r.host.Namespace).ByUID(t.Context(), r.uid())
	expect(t, err, "")
	if f := next.Findings; f.InventoryDiffers.Count != 1 || f.InventoryDiffers.Message != "7 GPUs" || f.AnotherAgent.Count != 0 {
		t.Errorf("attempt %d begins with %+v", next.Number, f)
	}
}

// TestABootOrderIsKeptUntilItIsPutBack has attempts go on with the boot order that an earlier one has changed, however that ended.
func TestABootOrderIsKeptUntilItIsPutBack(t *testing.T) {
	r := newRig(t)
	order := []string{"Boot0000", "Boot0002"}
	for _, c := range []struct {
		ended hardware.AttemptState
		order []string
	}{{hardware.AttemptFailed, order}, {hardware.AttemptSucceeded, order}, {hardware.AttemptSucceeded, nil}} {
		_, err := r.store.Update(t.Context(), r.uid(), func(s *netboot.Session) error {
			s.State, s.BootOrder = c.ended, c.order
			return nil
		})
		expect(t, err, "")
		for range 2 {
			kept, err := newStore(t, r.host.Namespace).ByUID(t.Context(), r.uid())
			expect(t, err, "")
			if !slices.Equal(kept.BootOrder, c.order) {
				t.Errorf("of attempt %d, which %s, %v is kept, expected %v", kept.Number, c.ended, kept.BootOrder, c.order)
			}
			r.wantNext()
		}
	}
}
