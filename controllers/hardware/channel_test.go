package hardware

import (
	"os"
	"strings"
	"testing"
)

func TestAChannelIsAsStrongAsItsWeakestPart(t *testing.T) {
	for _, c := range []struct {
		way                     BootSource
		isVerified, isEncrypted bool
		byHTTPS, byHTTP         Channel
	}{
		{BootNetwork, true, true, ChannelNetwork, ChannelNetwork},
		{"", true, true, ChannelNetwork, ChannelNetwork},
		{BootMedia, true, true, ChannelVirtualMedia, ChannelVirtualMediaHTTP},
		{BootMedia, false, true, ChannelUnverifiedBMC, ChannelUnverifiedBMC},
		{BootPinned, true, true, ChannelPinnedHTTPS, ChannelPinnedHTTP},
		{BootPinned, true, false, ChannelPinnedHTTP, ChannelPinnedHTTP},
		{BootPinned, false, true, ChannelUnverifiedBMC, ChannelUnverifiedBMC},
	} {
		got := ChannelOf(c.way, c.isVerified, c.isEncrypted)
		if got != c.byHTTPS || got.ByHTTP() != c.byHTTP {
			t.Errorf("%q, verified %t, encrypted %t: %s, by HTTP %s", c.way, c.isVerified, c.isEncrypted, got, got.ByHTTP())
		}
	}
	for boot, want := range map[string]Channel{"redfish-virtual-media": ChannelIronicVirtualMedia, "ilo-virtual-media": ChannelIronicVirtualMedia, "ipxe": ChannelIronicNetwork, "redfish-https": ChannelIronicNetwork, "": ChannelIronicNetwork} {
		if got := ChannelOfIronic(boot, true); got != want {
			t.Errorf("%s: %s", boot, got)
		}
		if got := ChannelOfIronic(boot, false); IsProof(got, "") {
			t.Errorf("%s by a BMC whose certificate is not verified: %s", boot, got)
		}
	}
}

func TestNoChannelIsAProofAgainstEverybody(t *testing.T) {
	isProof := map[Channel]bool{
		ChannelVirtualMedia: true, ChannelVirtualMediaHTTP: true, ChannelPinnedHTTPS: true, ChannelPinnedHTTP: true, ChannelIronicVirtualMedia: true,
		ChannelUnverifiedBMC: false, ChannelIronicNetwork: false, ChannelNetwork: false, "": false, "Quantum": false,
	}
	for c, want := range isProof {
		if IsProof(c, "") != want || c.IsProofAgainst(FormerSystem) {
			t.Errorf("%q: proof %t, against what was installed %t", c, IsProof(c, ""), c.IsProofAgainst(FormerSystem))
		}
	}
	for p, want := range map[TPMProof]bool{TPMListed: true, TPMKnown: true, TPMFirstUse: false, TPMUnlisted: false, TPMDiffers: false, TPMNone: false, TPMFailed: false, "": false, "Quantum": false} {
		if IsProof(ChannelNetwork, p) != want || p.IsProofAgainst(InPath) || p.IsProofAgainst(BMCNeighbour) || p.IsProofAgainst(FormerSystem) {
			t.Errorf("a TPM that is %q, by the network: proof %t", p, IsProof(ChannelNetwork, p))
		}
	}
	const ofTPM = 1
	if rows := strings.Count(ChannelTable(), "\n") - 2 - ofTPM; rows != len(isProof)-2 {
		t.Errorf("the table has %d channels:\n%s", rows, ChannelTable())
	}
}

func TestTheDocumentsHaveTheTableOfTheChannels(t *testing.T) {
	text, err := os.ReadFile("../../.github/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := ChannelTable(); !strings.Contains(string(text), table) {
		t.Errorf(".github/SECURITY.md does not have this table:\n%s", table)
	}
}
