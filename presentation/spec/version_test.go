package spec

import "testing"

func TestDriverVersionsAreComparedNumberByNumber(t *testing.T) {
	for _, tt := range []struct {
		version, minimum string
		older, ok        bool
	}{
		{"525.85.11", "525.85.12", true, true},
		{"525.85.12", "525.85.12", false, true},
		{"525.105.17", "525.85.12", false, true},
		{"550", "550.90.07", true, true},
		{"550.90.7", "550.90.07", false, true},
		{"570.133.20-0ubuntu1", "570.133.20", false, true},
		{"580.126.09+ds", "580.126.20", true, true},
		{"latest", "525.85.12", false, false},
		{"", "525.85.12", false, false},
		{"525..12", "525.85.12", false, false},
		{"99999999999999999999.1", "525.85.12", false, false},
	} {
		if older, ok := IsOlderVersion(tt.version, tt.minimum); older != tt.older || ok != tt.ok {
			t.Errorf("IsOlderVersion(%q, %q) = %v, %v; want %v, %v", tt.version, tt.minimum, older, ok, tt.older, tt.ok)
		}
	}
}

func TestVersionsAreWrittenSemantically(t *testing.T) {
	for version, want := range map[string]string{"550.163.01": "550.163.1", "580.126.20": "580.126.20", "535.54": "535.54.0", "565": "565.0.0", "570.133.20-0ubuntu1": "570.133.20", "1.2.3.4": "", "latest": "", "": ""} {
		if got, ok := SemanticVersion(version); got != want || ok != (want != "") {
			t.Errorf("SemanticVersion(%q) = %q, %v; want %q", version, got, ok, want)
		}
	}
}
