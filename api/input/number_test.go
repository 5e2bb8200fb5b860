package input

import (
	"math"
	"testing"
)

func TestACountDoesNotWrap(t *testing.T) {
	for n, want := range map[int]int32{-1: 0, 0: 0, 192: 192, math.MaxInt32 + 2: math.MaxInt32, math.MinInt64: 0} {
		if got := Count(n); got != want {
			t.Errorf("%d: %d", n, got)
		}
	}
}
