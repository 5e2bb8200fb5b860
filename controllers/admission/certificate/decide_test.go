package certificate

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

var (
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	names = []string{"ingot-webhook.ingot-system.svc", "127.0.0.1"}
)

func issue(t *testing.T, at time.Time) (Pair, []byte) {
	t.Helper()
	pair, authority, err := Issue(names, at, DefaultTimes().Life, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pair, authority
}

// world is what there is, without an API server.
type world struct {
	Facts
	actions []Action
}

// settle does what is decided until nothing has to be done.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for range 10 {
		d := Decide(w.Facts)
		if d.Action == Rest {
			return
		}
		if d.Why == "" {
			t.Errorf("%s: nobody knows why", d.Action)
		}
		w.actions = append(w.actions, d.Action)
		switch d.Action {
		case Replace, Prepare:
			pair, authority := issue(t, w.Now)
			if d.Action == Replace {
				w.Stored.Serving, w.Stored.Next = pair, Pair{}
			} else {
				w.Stored.Next = pair
			}
			w.Stored.Trusted = mergedBundle(w.Stored.Trusted, w.Now, authority)
		case Inject:
			w.Injected, w.Since = [][]byte{w.Stored.Trusted}, w.Now
		case Promote:
			w.Stored.Serving, w.Stored.Next = w.Stored.Next, Pair{}
		case Forget:
			w.Stored.Trusted = mergedBundle(w.Stored.Trusted, w.Now)
		}
	}
	t.Fatalf("it never rests: %v", w.actions)
}

// accepted says whether an API server with that bundle takes that certificate at that time.
func accepted(t *testing.T, bundle []byte, p Pair, at time.Time) bool {
	t.Helper()
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at}); err != nil {
			return false
		}
	}
	return true
}

func TestForYearsEveryAPIServerTakesWhatEveryReplicaServes(t *testing.T) {
	w := &world{Facts: Facts{Now: start, Names: names, Injected: [][]byte{nil}, Times: DefaultTimes()}}
	w.settle(t)
	counts := map[Action]int{}
	for w.Now.Before(start.AddDate(3, 0, 0)) {
		// A replica and an API server that are behind by less than Spread.
		lateServing, lateBundle := w.Stored.Serving, w.Injected[0]
		w.Now = w.Now.Add(3 * time.Minute)
		w.actions = nil
		w.settle(t)
		for _, a := range w.actions {
			counts[a]++
		}
		for _, served := range []Pair{lateServing, w.Stored.Serving} {
			for _, bundle := range [][]byte{lateBundle, w.Injected[0]} {
				if len(w.actions) > 0 && !accepted(t, bundle, served, w.Now) {
					t.Fatalf("%s, after %v: an API server refuses what a replica serves", w.Now, w.actions)
				}
			}
		}
		if len(w.actions) == 0 && w.Stored.Next.Key == nil {
			w.Now = w.Now.Add(6 * time.Hour)
		}
	}
	if n := len(authorities(w.Stored.Trusted)); n > 2 {
		t.Errorf("%d authorities are trusted", n)
	}
	// Every sixty days in three years, after the first.
	if counts[Prepare] != 18 || counts[Promote] != 18 || counts[Forget] < 17 || counts[Replace] != 0 {
		t.Errorf("done: %v", counts)
	}
}

func TestWhatCannotBeServedIsReplacedAtOnce(t *testing.T) {
	good, authority := issue(t, start)
	other, _ := issue(t, start)
	for name, change := range map[string]func(*Facts){
		"there is none":                     func(f *Facts) { f.Stored = Stored{} },
		"the key is of another":             func(f *Facts) { f.Stored.Serving.Key = other.Key },
		"the text is spoilt":                func(f *Facts) { f.Stored.Serving.Certificate = []byte("x") },
		"it has ended":                      func(f *Facts) { f.Now = start.Add(f.Times.Life + time.Second) },
		"the clock went back":               func(f *Facts) { f.Now = start.Add(-48 * time.Hour) },
		"API servers ask for another name":  func(f *Facts) { f.Names = []string{"10.20.0.2"} },
		"nobody trusted has signed it":      func(f *Facts) { f.Stored.Serving = other },
		"what is trusted is no certificate": func(f *Facts) { f.Stored.Trusted = []byte("x") },
	} {
		f := Facts{Now: start, Names: names, Stored: Stored{Serving: good, Trusted: authority}, Injected: [][]byte{authority}, Times: DefaultTimes()}
		if d := Decide(f); d.Action != Rest {
			t.Fatalf("nothing is wrong, and it decides %v", d)
		}
		change(&f)
		if d := Decide(f); d.Action != Replace || d.Why == "" {
			t.Errorf("%s: got %v", name, d)
		}
	}
}

func TestTheNextOneIsNotServedBeforeAPIServersCanHaveSeenIt(t *testing.T) {
	good, first := issue(t, start)
	now := start.Add(DefaultTimes().Renew)
	next, second := issue(t, now)
	both := mergedBundle(first, now, second)
	f := Facts{Now: now, Names: names, Stored: Stored{Serving: good, Next: next, Trusted: both}, Injected: [][]byte{first}, Since: start, Times: DefaultTimes()}
	if d := Decide(f); d.Action != Inject {
		t.Errorf("before they trust it: %v", d)
	}
	f.Injected, f.Since = [][]byte{both, first}, now
	if d := Decide(f); d.Action != Inject {
		t.Errorf("while one webhook does not trust it: %v", d)
	}
	f.Injected, f.Now = [][]byte{both}, now.Add(f.Times.Spread-time.Second)
	if d := Decide(f); d.Action != Rest {
		t.Errorf("a moment after they trust it: %v", d)
	}
	f.Now = now.Add(f.Times.Spread)
	if d := Decide(f); d.Action != Promote {
		t.Errorf("then: %v", d)
	}
	f.Stored.Next.Key = nil
	if d := Decide(f); d.Action != Prepare {
		t.Errorf("a next one without its key: %v", d)
	}
}
