package v1alpha1

import (
	"strings"
	"testing"
)

func TestTruncateKeepsWholeCharactersWithinTheLimit(t *testing.T) {
	const limit = 80
	fits := strings.Repeat("a", limit)
	for text, want := range map[string]string{
		fits:                            fits,
		fits + "a":                      fits[:limit-3] + "...",
		fits[:limit-2] + "é":            fits[:limit-2] + "é",
		fits[:limit-4] + "é" + "abcdef": fits[:limit-4] + "...",
	} {
		if got := Truncate(text, limit); got != want {
			t.Errorf("Truncate(%q) = %q, want %q", text, got, want)
		}
	}
	if got := Truncate("abcd", 2); got != "..." {
		t.Errorf("a limit below the ellipsis gives %q", got)
	}
}
