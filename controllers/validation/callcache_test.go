package validation

import (
	"context"
	"testing"
	"time"
)

func TestAnAnswerToAReconcileThatWasEndedIsNotKept(t *testing.T) {
	var cache callCache[string, string]
	now := time.Now()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx         context.Context
		reads, want string
	}{{ended, "the call was ended", "the call was ended"}, {t.Context(), "a class", "a class"}, {t.Context(), "another", "a class"}} {
		if got := cache.get(c.ctx, "k", now, func() string { return c.reads }); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
