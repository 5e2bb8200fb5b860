package layout

import "testing"

func TestNamesOfProfilesAreReadAndWrittenAsDriversDo(t *testing.T) {
	for in, want := range map[string]ProfileName{
		"1g.10gb":        {Compute: 1, Slices: 1, GiB: 10},
		"7g.141gb":       {Compute: 7, Slices: 7, GiB: 141},
		"1g.10gb+me":     {Compute: 1, Slices: 1, GiB: 10, Attributes: []string{"me"}},
		"1g.24gb+me.all": {Compute: 1, Slices: 1, GiB: 24, Attributes: []string{"me.all"}},
		"2g.48gb+gfx,me": {Compute: 2, Slices: 2, GiB: 48, Attributes: []string{"gfx", "me"}},
		"1g.24gb-me":     {Compute: 1, Slices: 1, GiB: 24, Excluded: "me"},
		"1c.2g.20gb":     {Compute: 1, Slices: 2, GiB: 20},
		"2c.4g.40gb+me":  {Compute: 2, Slices: 4, GiB: 40, Attributes: []string{"me"}},
	} {
		got, err := ParseProfileName(in)
		if err != nil || got.String() != in || got.Compute != want.Compute || got.Slices != want.Slices || got.GiB != want.GiB ||
			len(got.Attributes) != len(want.Attributes) || got.Excluded != want.Excluded {
			t.Errorf("%s is read as %+v (%v), written as %s", in, got, err, got)
		}
	}
	if n, err := ParseProfileName("2c.2g.20gb"); err != nil || n.String() != "2g.20gb" || !n.IsGPUInstance() {
		t.Errorf("a compute instance of the whole GPU instance is %s, %v", n, err)
	}
}

func TestWhatIsNoNameOfAProfileIsRefused(t *testing.T) {
	for _, s := range []string{
		"", "1g", "10gb", "1g.10", "g.10gb", "1g.gb", "01g.10gb", "1g.010gb", "-1g.10gb", "+1g.10gb", "1g.10GB", " 1g.10gb", "1g.10gb ", "1g.10gb+", "1g.10gb+xx", "1g.10gb+me,me",
		"3c.2g.20gb", "1c.1c.1g.10gb", "1g.10gb-gfx", "1g.10gb-me+gfx", "1g.10gb+gfx-me", "0g.10gb", "1g.10000gb", "mig-1g.10gb", "nvidia.com/mig-1g.10gb", "１g.10gb",
	} {
		if n, err := ParseProfileName(s); err == nil {
			t.Errorf("%q is read as %s", s, n)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"1g.10gb", "1g.10gb+me", "1c.2g.20gb", "1g.24gb-me", "1g.24gb+gfx,me.all", "7g.141gb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseProfileName(s)
		if err != nil {
			return
		}
		again, err := ParseProfileName(n.String())
		if err != nil || again.String() != n.String() || len(n.String()) > len(s) {
			t.Errorf("%q is %s, and that is %s: %v", s, n, again, err)
		}
	})
}
