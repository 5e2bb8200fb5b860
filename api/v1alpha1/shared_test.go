package v1alpha1

import (
	"slices"
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

func TestAKeyOfSeveralObjectsIsAuthorizedOnce(t *testing.T) {
	first := []string{"a", "b"}
	if got := AuthorizedKeys(first[:1:2], []string{"b", "a", "c", "c"}); !slices.Equal(got, []string{"a", "b", "c"}) || first[1] != "b" {
		t.Errorf("got %q, and the list that was given is %q", got, first)
	}
	if got := AuthorizedKeys(nil, []string{}); got != nil {
		t.Errorf("no keys are %#v, expected nil", got)
	}
}
