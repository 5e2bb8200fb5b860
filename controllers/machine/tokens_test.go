package machine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

func TestTheTenantIsAskedWhereverSomethingCouldFollow(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		sentence string
		change   func(*v1alpha1.Machine, *lifecycle.Secret, *lifecycle.Token)
		isCached bool
	}{
		{"an installation under way with its token in the Secret", func(*v1alpha1.Machine, *lifecycle.Secret, *lifecycle.Token) {}, true},
		{"a Node that is awaited", func(m *v1alpha1.Machine, _ *lifecycle.Secret, _ *lifecycle.Token) {
			m.Status.Phase = v1alpha1.MachineJoining
		}, true},
		{"a Node that has joined", func(m *v1alpha1.Machine, _ *lifecycle.Secret, _ *lifecycle.Token) {
			m.Status.Phase = v1alpha1.MachineValidating
		}, false},
		{"a Machine that is released", func(m *v1alpha1.Machine, _ *lifecycle.Secret, _ *lifecycle.Token) {
			m.DeletionTimestamp = &metav1.Time{Time: now}
		}, false},
		{"a token near its end", func(_ *v1alpha1.Machine, _ *lifecycle.Secret, token *lifecycle.Token) {
			token.Expires = now.Add(5 * time.Minute)
		}, false},
		{"a phase past its deadline", func(m *v1alpha1.Machine, _ *lifecycle.Secret, _ *lifecycle.Token) {
			m.Status.Deadline = &metav1.MicroTime{Time: now}
		}, false},
		{"a Secret with another token", func(_ *v1alpha1.Machine, s *lifecycle.Secret, _ *lifecycle.Token) { s.TokenID = "b" }, false},
		{"a Secret of another attempt", func(_ *v1alpha1.Machine, s *lifecycle.Secret, _ *lifecycle.Token) { s.Attempt = 2 }, false},
		{"no Secret", func(_ *v1alpha1.Machine, s *lifecycle.Secret, _ *lifecycle.Token) { s.Found = false }, false},
	} {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		m.Status.Phase, m.Status.Attempt, m.Status.Deadline = v1alpha1.MachineProvisioning, 1, &metav1.MicroTime{Time: now.Add(time.Hour)}
		secret := lifecycle.Secret{Found: true, Attempt: 1, TokenID: "a"}
		token := lifecycle.Token{ID: "a", Expires: now.Add(15 * time.Minute)}
		c.change(m, &secret, &token)
		var cache tokenCache
		if _, isCached := cache.get(m, secret, 5*time.Minute, now); isCached {
			t.Errorf("%s: nothing was seen, and yet it is cached", c.sentence)
		}
		cache.add(m.UID, token)
		if got, isCached := cache.get(m, secret, 5*time.Minute, now); isCached != c.isCached || isCached && got != token {
			t.Errorf("%s: cached is %v", c.sentence, isCached)
		}
	}
}
