package inventory

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func disk(serial, wwn string, size int64) v1alpha1.DiskInventory {
	return v1alpha1.DiskInventory{SerialNumber: serial, WWN: wwn, SizeBytes: size}
}

func TestADiskThatWasOnceFoundStaysKnown(t *testing.T) {
	known := RememberDisks(nil, []v1alpha1.DiskInventory{disk("S1", "", 10), disk("S2", "eui.2", 10), {Name: "/dev/vda", SizeBytes: 5}, disk("S2", "0x2", 10)}, false)
	if len(known) != 2 {
		t.Fatalf("%+v, expected the two disks with an identity, and a second path to one of them left out", known)
	}
	known = RememberDisks(known, []v1alpha1.DiskInventory{{Name: "/dev/nvme0n1", SerialNumber: "s1", SizeBytes: 10}, disk("S3", "", 10)}, true)
	if len(known) != 3 || known[0].Name != "/dev/nvme0n1" || known[1].SerialNumber != "S2" {
		t.Fatalf("%+v", known)
	}
	declared, marked := DeclareGone(known, []string{"eui.2", "S2", "S9"}, v1alpha1.DiskGone{By: "me", At: metav1.NowMicro()})
	if len(declared) != 4 || len(marked) != 2 || known[1].Gone != nil {
		t.Fatalf("%+v, marked %+v, before %+v", declared, marked, known)
	}
	expected := DisksToErase(&v1alpha1.HostRecordStatus{Disks: declared})
	if len(expected.Expected) != 2 || len(expected.Gone) != 2 || expected.Gone[0] != "S2" {
		t.Errorf("%+v", expected)
	}
	// The BMC may go on reporting a disk that is gone. An agent that finds it proves that it is back.
	if again := RememberDisks(declared, []v1alpha1.DiskInventory{disk("S2", "", 10)}, false); again[1].Gone == nil {
		t.Error("a report of the BMC brought a disk back")
	}
	if again := RememberDisks(declared, []v1alpha1.DiskInventory{disk("S2", "", 10)}, true); again[1].Gone != nil {
		t.Error("a disk that an agent found is still gone")
	}
}

func TestAPathDeclaresNoDiskGoneThatHasAnIdentity(t *testing.T) {
	bySerial, byWWN := disk("S1", "", 10), disk("", "eui.2", 10)
	bySerial.Name, byWWN.Name = "/dev/sdb", "/dev/sdc"
	declared, marked := DeclareGone([]v1alpha1.KnownDisk{{DiskInventory: bySerial}, {DiskInventory: byWWN}, {DiskInventory: v1alpha1.DiskInventory{Name: "/dev/sdd", SizeBytes: 10}}},
		[]string{"/dev/sdb", "/dev/sdc", "/dev/sdd"}, v1alpha1.DiskGone{By: "me"})
	if len(declared) != 5 || declared[0].Gone != nil || declared[1].Gone != nil || declared[2].Gone == nil || len(marked) != 3 {
		t.Errorf("%+v, marked %+v", declared, marked)
	}
}

func TestTheListOfKnownDisksIsBounded(t *testing.T) {
	var found []v1alpha1.DiskInventory
	for i := range 2 * v1alpha1.MaxDisks {
		found = append(found, disk("", hardware.NormalWWN("1"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))), 1))
	}
	if got := RememberDisks(nil, found, true); len(got) != v1alpha1.MaxDisks {
		t.Errorf("%d disks", len(got))
	}
}

func TestARecordWithAnInventoryAloneHasItsDisks(t *testing.T) {
	status := &v1alpha1.HostRecordStatus{Inventory: &v1alpha1.HostInventory{Disks: []v1alpha1.DiskInventory{disk("S1", "", 10)}}}
	if got := DisksToErase(status); got == nil || len(got.Expected) != 1 {
		t.Errorf("%+v", got)
	}
	if got := DisksToErase(&v1alpha1.HostRecordStatus{}); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestARecordWithAnInventoryAloneForgetsNoDisk(t *testing.T) {
	status := &v1alpha1.HostRecordStatus{Inventory: &v1alpha1.HostInventory{Disks: []v1alpha1.DiskInventory{disk("S1", "", 10), disk("S2", "", 10)}}}
	Update(status, hardware.Inventory{Disks: []hardware.Disk{hardware.Disk(disk("S1", "", 10))}}, true)
	if got := DisksToErase(status); len(status.Inventory.Disks) != 1 || got == nil || len(got.Expected) != 2 || got.Expected[1].SerialNumber != "S2" {
		t.Errorf("inventory %+v, to erase %+v", status.Inventory.Disks, got)
	}
}

func TestADiskIsMissingWhenTheAgentThatLookedLastDidNotFindIt(t *testing.T) {
	status := &v1alpha1.HostRecordStatus{
		Disks: []v1alpha1.KnownDisk{
			{DiskInventory: disk("S1", "", 10)}, {DiskInventory: disk("S2", "", 10)}, {DiskInventory: disk("S3", "", 10), Gone: &v1alpha1.DiskGone{By: "me"}},
		},
		Inventory: &v1alpha1.HostInventory{GPUSource: v1alpha1.SourceAgent, Disks: []v1alpha1.DiskInventory{disk("S1", "", 10)}},
	}
	if got := MissingDisks(status); len(got) != 1 || got[0].SerialNumber != "S2" {
		t.Errorf("%+v", got)
	}
	status.Inventory.GPUSource = v1alpha1.SourceBMC
	if got := MissingDisks(status); len(got) != 0 {
		t.Errorf("by the BMC: %+v", got)
	}
	if got := MissingDisks(&v1alpha1.HostRecordStatus{}); len(got) != 0 {
		t.Errorf("of an empty record: %+v", got)
	}
}
