package v1alpha1

import (
	"slices"
	"testing"
)

func TestAKeyOfSeveralObjectsIsAuthorizedOnce(t *testing.T) {
	first := []string{"a", "b"}
	if got := AuthorizedKeys(first[:1:2], []string{"b", "a", "c", "c"}); !slices.Equal(got, []string{"a", "b", "c"}) || first[1] != "b" {
		t.Errorf("got %q, and the list that was given is %q", got, first)
	}
	if got := AuthorizedKeys(nil, []string{}); got != nil {
		t.Errorf("no keys are %#v, expected nil", got)
	}
}
