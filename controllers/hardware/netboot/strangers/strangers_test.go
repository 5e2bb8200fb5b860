package strangers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func isNobody(string) bool { return false }

func TestAStrangerIsOneEntryHoweverItAsks(t *testing.T) {
	var l List
	l.Note(Sighting{MAC: "52:54:00:00:00:01", Asked: AskedDHCP, Vendor: "PXEClient\x1b[2J" + strings.Repeat("x", 300), Architecture: "EFI x86-64", From: "10.30.0.1", Interface: "eth1"}, noon)
	l.Note(Sighting{MAC: "52:54:00:00:00:01", Asked: AskedBootDocument}, noon.Add(time.Minute))
	all, isChanged := l.Changed()
	if !isChanged || len(all) != 1 {
		t.Fatalf("%v %v", all, isChanged)
	}
	s := all[0]
	if !s.FirstSeen.Equal(noon) || !s.LastSeen.Equal(noon.Add(time.Minute)) || !slices.Equal(s.Asked, []string{AskedDHCP, AskedBootDocument}) {
		t.Errorf("%+v", s)
	}
	if len(s.Vendor) != maxText || !strings.HasPrefix(s.Vendor, "PXEClient?[2J") || s.Architecture != "EFI x86-64" || s.From != "10.30.0.1" || s.Interface != "eth1" {
		t.Errorf("%+v", s)
	}
	if _, isChanged := l.Changed(); isChanged {
		t.Error("nothing was noted since, and it says so")
	}
}

func TestAFloodOfAddressesIsBounded(t *testing.T) {
	var l List
	for i := range 20000 {
		mac := fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>16, i>>8&255, i&255)
		l.Note(Sighting{MAC: mac, Asked: AskedDHCP, Vendor: strings.Repeat("v", 255), Architecture: strings.Repeat("a", 255), From: strings.Repeat("f", 255), Interface: "eth1"}, noon.Add(time.Duration(i)*time.Second))
	}
	// A server that goes on asking stays in the list.
	l.Note(Sighting{MAC: "52:54:00:00:00:01", Asked: AskedDHCP}, noon.Add(6*time.Hour))
	all, _ := l.Changed()
	if len(all) != Max {
		t.Errorf("%d strangers are remembered", len(all))
	}
	stored := Merge(nil, all, isNobody, noon.Add(6*time.Hour))
	again := Merge(stored, all, isNobody, noon.Add(6*time.Hour))
	text, err := json.Marshal(again)
	if err != nil || len(again) != Max || again[0].MAC != "52:54:00:00:00:01" {
		t.Errorf("%d are stored, the first is %s: %v", len(again), again[0].MAC, err)
	}
	if len(text) > 256<<10 {
		t.Errorf("the list has %d bytes; a ConfigMap has at most 1 MiB", len(text))
	}
}

func TestAServerThatHasAHostIsNoStrangerAnyMore(t *testing.T) {
	all := []Stranger{{MAC: "52:54:00:00:00:01", LastSeen: noon}, {MAC: "52:54:00:00:00:02", LastSeen: noon.Add(-MaxAge)}, {MAC: "52:54:00:00:00:03", LastSeen: noon}}
	got := Merge(all, nil, func(mac string) bool { return mac == "52:54:00:00:00:03" }, noon)
	if len(got) != 1 || got[0].MAC != "52:54:00:00:00:01" {
		t.Errorf("%+v", got)
	}
}
