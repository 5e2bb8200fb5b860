package hardware

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

func TestAWorldWideNameIsEqualInEveryNotation(t *testing.T) {
	for _, same := range [][]string{
		{"eui.0025385B71B02A33", "0x0025385b71b02a33", "0025385b71b02a33", "wwn-0x0025385b71b02a33", "nvme-eui.0025385b71b02a33", "00-25-38-5B-71-B0-2A-33"},
		{"naa.5000c500a1b2c3d4", "0x5000C500A1B2C3D4", " 5000c500a1b2c3d4 ", "wwn-0x5000c500a1b2c3d4"},
		{"uuid.6C0C4E4A-4F9B-4D4D-8C5A-1A2B3C4D5E6F", "6c0c4e4a4f9b4d4d8c5a1a2b3c4d5e6f", "urn:uuid:6c0c4e4a-4f9b-4d4d-8c5a-1a2b3c4d5e6f"},
	} {
		for _, text := range same {
			if NormalWWN(text) != NormalWWN(same[0]) || !(Disk{WWN: text}).IsNamed(same[0]) {
				t.Errorf("%q and %q differ: %q, %q", text, same[0], NormalWWN(text), NormalWWN(same[0]))
			}
		}
	}
	for _, nothing := range []string{"", "eui.0000000000000000", "0x"} {
		if NormalWWN(nothing) != "" {
			t.Errorf("%q: %q", nothing, NormalWWN(nothing))
		}
	}
	if NormalWWN("eui.1") == NormalWWN("eui.2") {
		t.Error("two names are equal")
	}
}

func TestPlaceholdersAreNoIdentity(t *testing.T) {
	for _, serial := range []string{"", "  ", "N/A", "none", "0000", "Not Available"} {
		if (Disk{SerialNumber: serial}).HasIdentity() || (Disk{SerialNumber: serial}).IsNamed("N/A") && serial != "N/A" {
			t.Errorf("%q counts as a serial number", serial)
		}
	}
	if !(Disk{SerialNumber: " S64F 1"}).IsNamed("s64f1") {
		t.Error("spaces and case count")
	}
}

func TestAKnownDiskIsAbsentWhenNoPresentDiskStandsForIt(t *testing.T) {
	s1, s2 := Disk{SerialNumber: "S1", SizeBytes: 10}, Disk{SerialNumber: "S2", SizeBytes: 10}
	one, two := Disk{SerialNumber: "S", WWN: "eui.1", SizeBytes: 4}, Disk{SerialNumber: "S", WWN: "eui.2", SizeBytes: 6}
	for _, c := range []struct {
		name                 string
		known, present, want []Disk
	}{
		{"all there, in another order", []Disk{s1, s2}, []Disk{s2, s1}, nil},
		{"one missing", []Disk{s1, s2}, []Disk{s1}, []Disk{s2}},
		{"a replaced one", []Disk{s1}, []Disk{s2}, []Disk{s1}},
		{"a namespace was deleted", []Disk{one, two}, []Disk{two}, []Disk{one}},
		{"a namespace was deleted, the BMC knows the drive by its serial number", []Disk{{SerialNumber: "S", SizeBytes: 10}}, []Disk{two}, nil},
		{"the BMC and the agent name it differently", []Disk{{SerialNumber: " s1", WWN: "0x1"}}, []Disk{{SerialNumber: "S1", WWN: "eui.2", SizeBytes: 9}}, nil},
		{"no identity, the same path and size", []Disk{{Name: "/dev/vda", SizeBytes: 5}}, []Disk{{Name: "/dev/vda", SizeBytes: 5}}, nil},
		{"no identity, another size", []Disk{{Name: "/dev/vda", SizeBytes: 5}}, []Disk{{Name: "/dev/vda", SizeBytes: 6}}, []Disk{{Name: "/dev/vda", SizeBytes: 5}}},
	} {
		if got := AbsentDisks(c.known, c.present); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestDisksAreMatchedAsByComparingEachWithEach compares with the definition: of all pairs that agree best, the first.
func TestDisksAreMatchedAsByComparingEachWithEach(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	disks := func() []Disk {
		out := make([]Disk, random.IntN(8))
		for i := range out {
			out[i] = Disk{
				Name: pick("", "/dev/sda", "/dev/sdb"), SerialNumber: pick("", "", "S1", "s1 ", "S2", "none"), WWN: pick("", "", "eui.1", "0x1", "eui.2"),
				SizeBytes: int64(1 + random.IntN(2)),
			}
		}
		return out
	}
	for range 20_000 {
		known, present := disks(), disks()
		want, isUsed := slices.Repeat([]int{-1}, len(known)), make([]bool, len(present))
		for quality := 3; quality > 0; quality-- {
			for i := range known {
				for j := range present {
					if want[i] < 0 && !isUsed[j] && similarity(known[i], present[j]) == quality {
						want[i], isUsed[j] = j, true
					}
				}
			}
		}
		if got := MatchDisks(known, present); !slices.Equal(got, want) {
			t.Fatalf("known %+v\npresent %+v: %v, want %v", known, present, got, want)
		}
	}
}

// TestManyDisksAreMatchedInTheTimeOfTheirNumber ends soon: each compared with each takes hours.
func TestManyDisksAreMatchedInTheTimeOfTheirNumber(t *testing.T) {
	disks := func(prefix string) []Disk {
		out := make([]Disk, 200_000)
		for i := range out {
			out[i] = Disk{Name: "/dev/sda", SizeBytes: 1, SerialNumber: prefix + strconv.Itoa(i)}
		}
		return out
	}
	known := disks("A")
	if absent := AbsentDisks(known, disks("B")); len(absent) != len(known) {
		t.Errorf("%d of %d disks are absent", len(absent), len(known))
	}
}
