package tenantaccess

import (
	"strings"
	"testing"
)

func TestWhatATenantWroteIsPrintable(t *testing.T) {
	for text, want := range map[string]string{
		`claim "gpu" is 'refused'`: `claim "gpu" is 'refused'`,
		"a\x1b[31mb\nc":            `a\x1b[31mb\nc`,
		`\n is no new line`:        `\\n is no new line`,
		`\"`:                       `\\"`,
		"größer":                   `gr\u00f6\u00dfer`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := PrintableTo(strings.Repeat("a", 2000), 1024); len(got) != 1024 {
		t.Errorf("%d bytes", len(got))
	}
}
