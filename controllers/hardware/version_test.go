package hardware

import "testing"

func TestVersionsOfFirmwareAreCompared(t *testing.T) {
	const incomparable = 9
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"2.21.1", "2.21.1", 0}, {"2.9", "2.10", -1}, {"2.21", "2.21.1", -1}, {"2.021", "2.21", 0}, {"3.5", "3.5a", -1}, {"3.5B", "3.5a", 1},
		{"U54 v2.10 (05/17/2023)", "U54 v2.9", 1}, {"v2.10", "2.10", 0}, {"2.10", "v2.9", 1}, {"U54 v2.10", "2.10", incomparable},
		{"28.39.1002 (MT_0000000838)", "28.39.1002", 1}, {"28.38.900", "28.39.1002", -1}, {"28.39.1002", "28.39.900", 1},
		{"GDC7502Q", "GDC7302Q", 1}, {"GDC5A02Q", "GDC5902Q", 1}, {"E2MU200", "e2mu110", 1}, {"2CV1C033", "2CV10131", 1},
		{"iLO 6 v1.58", "iLO 6 v1.60", -1}, {"7.10.50.00", "7.10.50.05", -1}, {"99999999999999999999999", "100000000000000000000000", -1},
		{"1.a", "1.10", incomparable}, {"", "1", -1}, {"rc", "1", incomparable}, {"1-2", "1.2", 0},
	} {
		for _, isSwapped := range []bool{false, true} {
			a, b, want := c.a, c.b, c.want
			if isSwapped {
				a, b = b, a
				if want != incomparable {
					want = -want
				}
			}
			order, isComparable := compareVersions(a, b)
			if !isComparable {
				order = incomparable
			}
			if order != want {
				t.Errorf("%q and %q: %d, expected %d", a, b, order, want)
			}
		}
	}
}

// FuzzVersions proves that the order of two versions does not depend on which is named first.
func FuzzVersions(f *testing.F) {
	for _, pair := range [][2]string{{"2.21.1", "2.9"}, {"U54 v2.10", "U54 v2.9"}, {"GDC5A02Q", "GDC5902Q"}, {"28.39.1002 (MT_1)", "vv1"}, {"", "\xff"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		order, isComparable := compareVersions(a, b)
		back, isComparableBack := compareVersions(b, a)
		if order != -back || isComparable != isComparableBack {
			t.Errorf("%q and %q: %d %t, the other way round %d %t", a, b, order, isComparable, back, isComparableBack)
		}
		if order, isComparable := compareVersions(a, a); order != 0 || !isComparable {
			t.Errorf("%q and itself: %d %t", a, order, isComparable)
		}
	})
}
