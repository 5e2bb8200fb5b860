package inventory

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// TestTheFirstTPMIsTrustedOnlyWhileNobodyCanHaveLeftAnything: afterwards a neighbour's would be the first as well.
func TestTheFirstTPMIsTrustedOnlyWhileNobodyCanHaveLeftAnything(t *testing.T) {
	seen := hardware.TPM{Key: strings.Repeat("ab", 32)}
	first := &v1alpha1.WantedAttempt{Operation: "Install", FirstInstallation: true}
	install, erase := &v1alpha1.WantedAttempt{Operation: "Install"}, &v1alpha1.WantedAttempt{Operation: "Erase"}
	byBMC, byAgent := &v1alpha1.HostInventory{SerialNumber: "S1"}, &v1alpha1.HostInventory{SerialNumber: "S1", SystemUUID: "4c4c4544"}
	for _, c := range []struct {
		what   string
		status v1alpha1.HostRecordStatus
		want   hardware.TPMProof
	}{
		{"the first inspection", v1alpha1.HostRecordStatus{Inventory: byBMC}, hardware.TPMFirstUse},
		{"the first installation of a host that its BMC has inspected", v1alpha1.HostRecordStatus{LastTenant: "a/b", Wanted: first, Inventory: byBMC}, hardware.TPMFirstUse},
		{"an installation after the record was restored without its status", v1alpha1.HostRecordStatus{LastTenant: "a/b", Wanted: install}, hardware.TPMUnlisted},
		{"an installation after an agent of an earlier version", v1alpha1.HostRecordStatus{LastTenant: "a/b", Wanted: install, Inventory: byAgent}, hardware.TPMUnlisted},
		{"an erase", v1alpha1.HostRecordStatus{LastTenant: "a/b", Wanted: erase, Inventory: byBMC}, hardware.TPMUnlisted},
		{"an inspection of a host that had a tenant", v1alpha1.HostRecordStatus{LastTenant: "a/b", Wanted: &v1alpha1.WantedAttempt{Operation: "Inspect"}}, hardware.TPMUnlisted},
	} {
		if got, isSame := KnownTPM("", &c.status).Judge(seen, hardware.ChannelNetwork); got.Proof != c.want || !isSame {
			t.Errorf("%s, by the network: %s", c.what, got.Proof)
		}
		if got, _ := KnownTPM("", &c.status).Judge(seen, hardware.ChannelVirtualMedia); got.Proof != hardware.TPMFirstUse {
			t.Errorf("%s, by virtual media: %s", c.what, got.Proof)
		}
	}
}

// TestWhatIsListedComesBeforeWhatWasSeen, and what cannot be read is no server's key.
func TestWhatIsListedComesBeforeWhatWasSeen(t *testing.T) {
	a, b := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for _, c := range []struct {
		listed string
		kept   *v1alpha1.HostTPM
		seen   string
		want   hardware.TPMProof
		isSame bool
	}{
		{"", &v1alpha1.HostTPM{Proof: "FirstUse", Key: a}, a, hardware.TPMKnown, true}, {"", &v1alpha1.HostTPM{Proof: "FirstUse", Key: a}, b, hardware.TPMDiffers, false},
		{b, &v1alpha1.HostTPM{Proof: "FirstUse", Key: a}, b, hardware.TPMListed, true}, {b, &v1alpha1.HostTPM{Proof: "FirstUse", Key: a}, a, hardware.TPMDiffers, false},
		{"SHA256:" + strings.ToUpper(a), nil, a, hardware.TPMListed, true}, {"typo", nil, a, hardware.TPMDiffers, false}, {"typo", nil, "", hardware.TPMNone, false},
		{"none", &v1alpha1.HostTPM{Proof: "FirstUse", Key: a}, "", hardware.TPMNone, true}, {"none", nil, a, hardware.TPMDiffers, false},
		{"", &v1alpha1.HostTPM{Proof: "None"}, a, hardware.TPMFirstUse, true}, {"", &v1alpha1.HostTPM{Proof: "None"}, "", hardware.TPMNone, true},
		{a, nil, "", hardware.TPMNone, false},
	} {
		reported := hardware.TPM{Key: c.seen}
		if c.seen == "" {
			reported.Proof = hardware.TPMNone
		}
		got, isSame := KnownTPM(c.listed, &v1alpha1.HostRecordStatus{TPM: c.kept}).Judge(reported, hardware.ChannelVirtualMedia)
		if got.Proof != c.want || isSame != c.isSame {
			t.Errorf("%q listed, %+v kept, %q seen: %s, the server's %t", c.listed, c.kept, c.seen, got.Proof, isSame)
		}
	}
	// The second boot of the attempt in which the key was seen first.
	later := v1alpha1.HostRecordStatus{Wanted: &v1alpha1.WantedAttempt{Number: 3, Operation: "Erase"}, Attempt: &v1alpha1.HostAttempt{Number: 3, TPM: &v1alpha1.HostTPM{Proof: "FirstUse", Key: a}}, LastTenant: "a/b"}
	if got, isSame := KnownTPM("", &later).Judge(hardware.TPM{Key: a}, hardware.ChannelNetwork); got.Proof != hardware.TPMFirstUse || !isSame {
		t.Errorf("the same in the second boot: %s", got.Proof)
	}
	if got, isSame := KnownTPM("", &later).Judge(hardware.TPM{Key: b}, hardware.ChannelNetwork); got.Proof != hardware.TPMDiffers || isSame {
		t.Errorf("another one in the second boot: %s", got.Proof)
	}
	later.Attempt.TPM.Proof = "Unlisted"
	if got, _ := KnownTPM("", &later).Judge(hardware.TPM{Key: b}, hardware.ChannelNetwork); got.Proof != hardware.TPMUnlisted {
		t.Errorf("after one that is not trusted: %s", got.Proof)
	}
	for _, all := range []hardware.TPM{{}, {Proof: hardware.TPMKnown, Key: a, Certificate: "MII"}, {Proof: hardware.TPMFailed, Error: "no"}} {
		if got := HardwareTPM(RecordTPM(all)); got != all {
			t.Errorf("%+v became %+v", all, got)
		}
	}
}
