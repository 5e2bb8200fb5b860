package inventory

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestTakeOverKeepsWhatTheAttemptHasSeen: until the attempt ends, the kept inventory is that of the look before.
func TestTakeOverKeepsWhatTheAttemptHasSeen(t *testing.T) {
	old, added := v1alpha1.DiskInventory{SerialNumber: "S1", SizeBytes: 1}, v1alpha1.DiskInventory{SerialNumber: "S2", SizeBytes: 1}
	status := func() *v1alpha1.HostRecordStatus {
		return &v1alpha1.HostRecordStatus{
			Inventory: &v1alpha1.HostInventory{SystemUUID: "before", Disks: []v1alpha1.DiskInventory{old}},
			Disks:     []v1alpha1.KnownDisk{{DiskInventory: old}, {DiskInventory: added, Gone: &v1alpha1.DiskGone{By: "a person"}}},
			Wanted:    &v1alpha1.WantedAttempt{Number: 2, Operation: "Install"},
			Attempt:   &v1alpha1.HostAttempt{Number: 2, Inventory: &v1alpha1.HostInventory{SystemUUID: "now", Disks: []v1alpha1.DiskInventory{added}}},
		}
	}
	s := status()
	if TakeOver(s); s.Inventory.SystemUUID != "now" || len(s.Disks) != 2 || s.Disks[1].Gone != nil {
		t.Errorf("by an agent: %+v, %+v", s.Inventory, s.Disks)
	}
	s = status()
	if Update(s, *HardwareInventory(s.Attempt.Inventory), false); s.Inventory.SystemUUID != "now" || s.Disks[1].Gone == nil {
		t.Errorf("by a BMC, which may tell of a disk that was taken out: %+v", s.Disks)
	}
	// An agent that finds what is kept proves that its disks are there.
	s = status()
	s.Disks[0].Gone, s.Attempt.Inventory = &v1alpha1.DiskGone{By: "a person"}, nil
	if TakeOver(s); s.Inventory.SystemUUID != "before" || s.Disks[0].Gone != nil {
		t.Errorf("the same again: %+v, %+v", s.Inventory, s.Disks)
	}
	// That of an attempt that is over, or of another one, is not taken.
	for name, change := range map[string]func(*v1alpha1.HostRecordStatus){
		"over":    func(s *v1alpha1.HostRecordStatus) { s.Wanted.Outcome = v1alpha1.AttemptFailed },
		"another": func(s *v1alpha1.HostRecordStatus) { s.Wanted.Number = 3 },
	} {
		s := status()
		if change(s); s.Seen().SystemUUID != "before" {
			t.Errorf("%s: %+v", name, s.Seen())
		}
	}
}

// TestADiskOfAnEarlierBootOfTheAttemptIsKnown: it may not answer after the next one.
func TestADiskOfAnEarlierBootOfTheAttemptIsKnown(t *testing.T) {
	a, b := v1alpha1.DiskInventory{SerialNumber: "S1", SizeBytes: 1}, v1alpha1.DiskInventory{SerialNumber: "S2", SizeBytes: 1}
	both, one := &v1alpha1.HostInventory{Disks: []v1alpha1.DiskInventory{a, b}}, &v1alpha1.HostInventory{Disks: []v1alpha1.DiskInventory{a}}
	status := &v1alpha1.HostRecordStatus{
		Wanted: &v1alpha1.WantedAttempt{Number: 2, Operation: "Erase"}, Attempt: &v1alpha1.HostAttempt{Number: 2, Inventory: both}, Inventory: one.DeepCopy(),
	}
	earlier := EarlierDisks(status, one)
	if len(earlier) != 1 || earlier[0] != b {
		t.Fatalf("after the second boot: %+v", earlier)
	}
	status.Attempt.Inventory, status.Attempt.EarlierDisks = one, earlier
	if again := EarlierDisks(status, one); len(again) != 1 {
		t.Errorf("at a later report: %+v", again)
	}
	if back := EarlierDisks(status, both); len(back) != 0 {
		t.Errorf("when it answers again: %+v", back)
	}
	if disks := DisksToErase(status); disks == nil || len(disks.Expected) != 2 {
		t.Errorf("to be erased: %+v", disks)
	}
	if TakeOver(status); len(status.Disks) != 2 {
		t.Errorf("known after the attempt: %+v", status.Disks)
	}
}
