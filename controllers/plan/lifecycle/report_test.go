package lifecycle

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestWhatACheckWaitsForIsSaidAsNumbersOrInWords(t *testing.T) {
	for _, tt := range []struct{ observed, expected, want string }{
		{"7", "8", "7 of 8"},
		{"1Gi", "2Gi", "1Gi of 2Gi"},
		{"", "complete", "nothing seen, expected complete"},
		{"gpu-0: 570.124.6", "570.172.8 or 570.172.08", "gpu-0: 570.124.6, expected 570.172.8 or 570.172.08"},
	} {
		if got := observedOfExpected(v1alpha1.Check{Observed: tt.observed, Expected: tt.expected}); got != tt.want {
			t.Errorf("%q and %q: %s, want %s", tt.observed, tt.expected, got, tt.want)
		}
	}
}
