package fleet

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
)

func TestStrangersSayWhatToDo(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	all := []strangers.Stranger{
		{MAC: "52:54:00:00:00:0a", FirstSeen: now.Add(-time.Hour), LastSeen: now.Add(-time.Minute), Asked: []string{"DHCP", "boot document"}, Architecture: "EFI x86-64", Vendor: "PXEClient", Interface: "eth1", From: "relay 10.30.0.1"},
		{MAC: "52:54:00:00:00:0b", FirstSeen: now, LastSeen: now, Asked: []string{"DHCP"}},
	}
	host := metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "paris", Name: "b"}, Spec: metal3.BareMetalHostSpec{BootMACAddress: "52:54:00:00:00:0B"}}
	table := strangerTable(StrangerRows(all, "ingot-boot", []metal3.BareMetalHost{host}), now)
	for i, want := range []string{
		"52:54:00:00:00:0a|60m|60s|DHCP, boot document|EFI x86-64 PXEClient|eth1 relay 10.30.0.1|ingot-boot|to install it: a BareMetalHost with spec.bootMACAddress 52:54:00:00:00:0a; else turn off its network boot",
		"52:54:00:00:00:0b|0s|0s|DHCP|-|-|ingot-boot|BareMetalHost paris/b has this address: is its server at another site, or was it registered since?",
	} {
		if got := strings.Join(table[i+1], "|"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
