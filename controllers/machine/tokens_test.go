package machine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

func TestTheTenantIsAskedWhereverSomethingCouldFollow(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := metav1.NewMicroTime(now)
	for _, c := range []struct {
		sentence string
		change   func(*lifecycle.Facts, *lifecycle.Token)
		isCached bool
	}{
		{"an installation under way with its token in the Secret", func(*lifecycle.Facts, *lifecycle.Token) {}, true},
		{"a Node that is awaited", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Machine.Status.Phase = v1alpha1.MachineJoining }, true},
		{"a Node that has joined", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Machine.Status.Phase = v1alpha1.MachineValidating }, false},
		{"a Machine that is released", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Machine.Deleting = true }, false},
		{"a token that ends before Joining may", func(_ *lifecycle.Facts, token *lifecycle.Token) { token.Expires = now.Add(time.Hour + 19*time.Minute) }, false},
		{"a wait for the Node past its deadline", func(f *lifecycle.Facts, _ *lifecycle.Token) {
			f.Machine.Status.Phase, f.Machine.Status.Deadline = v1alpha1.MachineJoining, &at
		}, false},
		{"an installation that failed", func(f *lifecycle.Facts, _ *lifecycle.Token) {
			f.Host.Record.Status.Wanted.Outcome = v1alpha1.AttemptFailed
		}, false},
		{"a Secret with another token", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Secret.TokenID = "b" }, false},
		{"a Secret of another attempt", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Secret.Attempt = 2 }, false},
		{"a Secret of the installation before", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Secret.HostAttempt = 6 }, false},
		{"no Secret", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Secret.Found = false }, false},
		{"a token that was read long ago", func(f *lifecycle.Facts, _ *lifecycle.Token) { f.Now = now.Add(tokenMemory) }, false},
	} {
		f := lifecycle.Facts{Clock: watched.Clock{Now: now}, Timeouts: lifecycle.DefaultTimeouts(), Provider: lifecycle.Provider{HasRecords: true}}
		f.Machine.UID, f.Machine.Status.Phase, f.Machine.Status.Attempt = "u", v1alpha1.MachineProvisioning, 1
		f.Machine.Status.Deadline = &metav1.MicroTime{Time: now.Add(time.Hour)}
		f.Host = &lifecycle.Host{Consumer: lifecycle.ConsumerMine, Record: &lifecycle.HostRecord{Status: v1alpha1.HostRecordStatus{
			Wanted:  &v1alpha1.WantedAttempt{Number: 7, Operation: "Install", MachineUID: "u", MachineAttempt: 1, Deadline: metav1.NewMicroTime(now.Add(time.Hour))},
			Attempt: &v1alpha1.HostAttempt{Number: 7, State: "Running", ConfigDriveAwaitedAt: &at},
		}}}
		f.Secret = lifecycle.Secret{Found: true, Attempt: 1, HostAttempt: 7, TokenID: "a"}
		token := lifecycle.Token{ID: "a", Expires: now.Add(2 * time.Hour)}
		c.change(&f, &token)
		var cache tokenCache
		if _, isCached := cache.get(f); isCached {
			t.Errorf("%s: nothing was seen, and yet it is cached", c.sentence)
		}
		cache.add(f.Machine.UID, &token, now)
		got, isKnown := cache.get(f)
		if isCached := isKnown && f.IsTokenSettled(*got); isCached != c.isCached || isKnown && *got != token {
			t.Errorf("%s: cached is %v", c.sentence, isCached)
		}
	}
}

func TestThatThereWasNoTokenIsRememberedUnlessTheMachineIsDeleted(t *testing.T) {
	now := time.Unix(0, 0)
	for _, c := range []struct {
		sentence string
		change   func(*lifecycle.Facts)
		isKnown  bool
	}{
		{"a moment ago", func(*lifecycle.Facts) {}, true},
		{"long ago", func(f *lifecycle.Facts) { f.Now = now.Add(tokenMemory) }, false},
		{"before it was deleted", func(f *lifecycle.Facts) { f.Machine.Deleting = true }, false},
	} {
		f := lifecycle.Facts{Clock: watched.Clock{Now: now}, Machine: lifecycle.Machine{UID: "u"}}
		var cache tokenCache
		cache.add("u", nil, now)
		c.change(&f)
		if token, isKnown := cache.get(f); token != nil || isKnown != c.isKnown {
			t.Errorf("none %s: %v, known %v", c.sentence, token, isKnown)
		}
		cache.forget("u")
		if _, isKnown := cache.get(f); isKnown {
			t.Errorf("none %s: known after it was forgotten", c.sentence)
		}
	}
}
