package cmdline

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWhatTheBootServiceWritesIsWhatTheAgentReads(t *testing.T) {
	for name, want := range map[string]Arguments{
		"least": {URL: "http://10.0.0.2:8090", Token: "a.b"},
		"all": {
			URL: "https://[2001:db8::1]:8443", Token: "a-_.b", Pins: []string{"sha256:" + strings.Repeat("0a", 32), "sha256:" + strings.Repeat("0b", 32)}, Host: "metal/gpu-1", Attempt: 7, Time: time.Unix(1795000000, 0), Deadline: time.Unix(1795003600, 0),
			Network: Network{
				MAC: "0c:42:a1:00:00:01", Bond: &Bond{Mode: "802.3ad", MACs: []string{"0c:42:a1:00:00:01", "0c:42:a1:00:00:02"}}, VLAN: 120,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.20.0.5/24"), netip.MustParsePrefix("2001:db8::5/64")},
				Gateways:  []netip.Addr{netip.MustParseAddr("10.20.0.1"), netip.MustParseAddr("fe80::1")},
				DNS:       []netip.Addr{netip.MustParseAddr("10.20.0.2")},
			},
		},
		"ports of the boot NIC's card": {URL: "http://a", Token: "a.b", Network: Network{MAC: "0c:42:a1:00:00:01", Bond: &Bond{Mode: "active-backup"}}},
	} {
		got, err := Parse("initrd=initrd " + strings.Join(want.Words(), " ") + " console=ttyS0,115200 quiet\n")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got.Network, err)
		}
	}
}

func TestTheLastOfARepeatedArgumentCounts(t *testing.T) {
	got, err := Parse("ingot.url=http://a:1 quiet ingot.token=A.B= ingot.url=http://b:2 ingot.urls=x ingot ingot.url\n")
	if err != nil || got.URL != "http://b:2" || got.Token != "A.B=" {
		t.Errorf("%q %q %v", got.URL, got.Token, err)
	}
}

// An argument that cannot be used must not take the others with it: the agent still has to say so to the boot service, for which it needs URL and token.
func TestAnArgumentThatCannotBeUsedIsNamedAndTheOthersAreRead(t *testing.T) {
	for _, bad := range []string{
		"ingot.mac=0c:42", "ingot.mac=00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01", "ingot.vlan=4095", "ingot.vlan=0", "ingot.vlan=x",
		"ingot.bond=balance-rr,0c:42:a1:00:00:01", "ingot.bond=802.3ad,x", "ingot.bond=802.3ad", "ingot.address=10.0.0.1", "ingot.gateway=10.0.0.1",
		"ingot.gateway=fe80::1%eth0", "ingot.dns=x", "ingot.time=-1", "ingot.time=99999999999999", "ingot.host=x", "ingot.attempt=x",
		"ingot.dns=" + strings.Repeat("10.0.0.1,", maxValues+1),
	} {
		got, err := Parse("ingot.url=http://a " + bad + " ingot.token=T")
		name, _, _ := strings.Cut(bad, "=")
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(name, "ingot.")) || got.URL != "http://a" || got.Token != "T" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Without it: the agent would trust every authority of the ramdisk, because the one that it was told is spoilt.
func TestAPinThatCannotBeUsedStaysSoThatNothingElseIsTrusted(t *testing.T) {
	for _, bad := range []string{"", "sha256:", "sha256:0A", "md5:" + strings.Repeat("0", 64), strings.Repeat("0", 64)} {
		if got, err := Parse("ingot.url=https://a ingot.token=T ingot.ca=" + bad); err == nil || len(got.Pins) != 1 || got.Token != "T" {
			t.Errorf("%q: %q, %v", bad, got.Pins, err)
		}
	}
}

func TestArgumentsAreNeverPrintedWithTheirToken(t *testing.T) {
	a := Arguments{URL: "http://a", Token: "very-secret"}
	if text := fmt.Sprintf("%v %+v %#v %s", a, a, a, a); strings.Contains(text, "secret") {
		t.Error(text)
	}
	if _, err := Parse("ingot.token=very-secret ingot.mac=x"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("ingot.url=http://a ingot.token=T ingot.mac=0c:42:a1:00:00:01 ingot.bond=802.3ad ingot.vlan=5 ingot.address=10.0.0.2/24 ingot.gateway=10.0.0.1 ingot.time=5")
	f.Add("ingot.bond=active-backup,0c:42:a1:00:00:01, ingot.dns=::1,,1.1.1.1 ingot.host=a/b ingot.attempt=3")
	f.Fuzz(func(t *testing.T, line string) {
		first, err := Parse(line)
		if err != nil {
			return
		}
		words := first.Words()
		if slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w, " \n") }) {
			t.Fatalf("%q", words)
		}
		second, err := Parse(strings.Join(words, " "))
		if err != nil || !reflect.DeepEqual(second.Words(), words) {
			t.Fatalf("%q became %q: %v", words, second.Words(), err)
		}
	})
}
