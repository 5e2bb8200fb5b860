package bootca

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// longest is how long an attempt may take.
const longest = 12 * time.Hour

// TestMain makes sixteen keys, more than there are in use at a time, in place of hundreds: each takes half a second.
func TestMain(m *testing.M) {
	var keys []*rsa.PrivateKey
	for range 16 {
		key, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	var mu sync.Mutex
	made := 0
	makeKey = func(io.Reader, int) (*rsa.PrivateKey, error) {
		mu.Lock()
		defer mu.Unlock()
		made++
		return keys[made%len(keys)], nil
	}
	os.Exit(m.Run())
}

// world is what is stored, and what was done.
type world struct {
	Facts
	t       *testing.T
	actions []Action
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, Facts: Facts{Now: start, Names: []string{"10.20.0.2", "boot.hall-1.internal"}, Times: DefaultTimes(longest)}}
	w.settle()
	return w
}

// settle does what is decided until nothing has to be done.
func (w *world) settle() {
	w.t.Helper()
	for range 5 {
		d := Decide(w.Facts)
		if d.Action == Rest {
			return
		}
		if d.Why == "" {
			w.t.Errorf("%s: nobody knows why", d.Action)
		}
		w.actions = append(w.actions, d.Action)
		var err error
		if w.Authorities, w.Served, err = Do(d.Action, w.Facts, rand.Reader); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Fatalf("it never rests: %v", w.actions)
}

// accepts is what an agent with the pins says at the time of what is served.
func accepts(t *testing.T, served Served, pins []string, at time.Time) error {
	t.Helper()
	certificate, err := served.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return pin.Verify(parsed(t, certificate), pins, at)
}

func parsed(t *testing.T, certificate *tls.Certificate) []*x509.Certificate {
	t.Helper()
	var chain []*x509.Certificate
	for _, der := range certificate.Certificate {
		one, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, one)
	}
	return chain
}

func TestForTwentyYearsEveryAgentAcceptsWhatEveryReplicaServes(t *testing.T) {
	w := newWorld(t)
	type commandLine struct {
		made time.Time
		pins []string
	}
	lines := []commandLine{{w.Now, w.Served.Pins()}}
	counts, most := map[Action]int{}, 0
	for w.Now.Before(start.AddDate(20, 0, 0)) {
		late := w.Served // a replica that has not read the Secret again
		step, isQuiet := 6*time.Hour, false
		if phase := w.Now.Sub(start) % w.Times.AuthorityRenew; phase > 30*24*time.Hour && phase < w.Times.AuthorityRenew-10*24*time.Hour {
			step, isQuiet, lines = 30*24*time.Hour, true, nil // nothing but the certificate changes
		}
		w.Now, w.actions = w.Now.Add(step), nil
		w.settle()
		for _, a := range w.actions {
			counts[a]++
		}
		if isQuiet {
			continue
		}
		lines = append(lines, commandLine{w.Now, w.Served.Pins()}, commandLine{w.Now, late.Pins()})
		most = max(most, len(w.Served.Pins()))
		lines = slices.DeleteFunc(lines, func(l commandLine) bool { return w.Now.Sub(l.made) > longest })
		if len(w.actions) == 0 {
			continue
		}
		for _, l := range lines {
			for name, served := range map[string]Served{"a replica": w.Served, "a replica that is behind": late} {
				// The agent's clock is right, or that of its command line.
				for _, at := range []time.Time{w.Now, l.made} {
					if err := accepts(t, served, l.pins, at); err != nil {
						t.Fatalf("%s, after %v: an agent of %s refuses %s: %v", w.Now, w.actions, l.made, name, err)
					}
				}
			}
		}
	}
	if counts[Prepare] != 2 || counts[Promote] != 2 || counts[Forget] != 2 || counts[Replace] != 0 || most != 2 {
		t.Errorf("done: %v, with %d pins", counts, most)
	}
}

func TestACertificateIsRenewedAtTheHalfOfItsDays(t *testing.T) {
	w := newWorld(t)
	issued := 0
	for w.actions = nil; w.Now.Before(start.AddDate(0, 0, 40)); w.actions = nil {
		w.Now = w.Now.Add(6 * time.Hour)
		w.settle()
		issued += len(w.actions)
	}
	if issued != 10 {
		t.Errorf("issued %d times in 40 days", issued)
	}
}

func TestWhatCannotBeUsedIsReplacedAtOnce(t *testing.T) {
	other := newWorld(t)
	for name, c := range map[string]struct {
		change func(*world)
		want   []Action
	}{
		"nothing is wrong":                 {func(*world) {}, nil},
		"a name is new":                    {func(w *world) { w.Names = append(w.Names, "10.30.0.2") }, []Action{Serve}},
		"a name is gone":                   {func(w *world) { w.Names = w.Names[:1] }, nil},
		"the certificate's key is damaged": {func(w *world) { w.Served.Leaf.Key = []byte("x") }, []Action{Serve}},
		"the certificate is another's":     {func(w *world) { w.Served = other.Served }, []Action{Serve}},
		"its Secret is deleted":            {func(w *world) { w.Served = Served{} }, []Action{Serve}},
		"the trusted ones are damaged":     {func(w *world) { w.Served.Trusted = []byte("x") }, []Action{Serve}},
		"the clock went back a little":     {func(w *world) { w.Now = w.Now.Add(-time.Minute) }, []Action{Serve}},
		"the authority's key is damaged":   {func(w *world) { w.Authorities.Signing.Key = []byte("x") }, []Action{Replace, Serve}},
		"the authority is none": {func(w *world) {
			w.Authorities.Signing = Pair{Certificate: w.Served.Leaf.Certificate, Key: w.Served.Leaf.Key}
		}, []Action{Replace, Serve}},
		"the Secrets are deleted":        {func(w *world) { w.Authorities, w.Served = Authorities{}, Served{} }, []Action{Replace, Serve}},
		"the manager was away for years": {func(w *world) { w.Now = w.Now.AddDate(11, 0, 0) }, []Action{Replace, Serve}},
	} {
		w := newWorld(t)
		before := w.Served.Pins()
		w.actions = nil
		c.change(w)
		w.settle()
		if !slices.Equal(w.actions, c.want) {
			t.Errorf("%s: done %v, want %v", name, w.actions, c.want)
		}
		if err := accepts(t, w.Served, w.Served.Pins(), w.Now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if isKept := slices.Equal(before, w.Served.Pins()); isKept == slices.Contains(c.want, Replace) {
			t.Errorf("%s: the pins were %v and are %v", name, before, w.Served.Pins())
		}
	}
}

func TestTheSecretOfTheBootServiceHasNoKeyThatSigns(t *testing.T) {
	w := newWorld(t)
	w.Now = w.Now.Add(w.Times.AuthorityRenew)
	w.settle()
	if len(w.Authorities.Next.Key) == 0 || len(w.Served.Pins()) != 2 {
		t.Fatalf("done: %v", w.actions)
	}
	all := slices.Concat(w.Served.Leaf.Certificate, w.Served.Leaf.Key, w.Served.Trusted)
	for _, key := range [][]byte{w.Authorities.Signing.Key, w.Authorities.Next.Key} {
		if bytes.Contains(all, bytes.TrimSpace(key)) {
			t.Error("the boot service could sign")
		}
	}
	if strings.Count(string(all), "PRIVATE KEY") != 2 {
		t.Error("it has more than its own key")
	}
}

func TestAnAgentRefusesWhatIsNotSignedByAPinnedAuthority(t *testing.T) {
	w, neighbour := newWorld(t), newWorld(t)
	pins := w.Served.Pins()
	certificate, err := w.Served.TLS()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := neighbour.Served.TLS()
	if err != nil {
		t.Fatal(err)
	}
	own, others := parsed(t, certificate), parsed(t, foreign)
	for name, c := range map[string]struct {
		chain []*x509.Certificate
		pins  []string
		at    time.Time
		want  string
	}{
		"what is served":                      {own, pins, w.Now, ""},
		"one pin of two":                      {own, append(neighbour.Served.Pins(), pins...), w.Now, ""},
		"a clock that is behind":              {own, pins, w.Now.Add(-20 * time.Hour), ""},
		"another authority":                   {others, pins, w.Now, "one of the authority " + neighbour.Served.Pins()[0]},
		"a certificate beside our authority":  {[]*x509.Certificate{others[0], own[1]}, pins, w.Now, "unknown authority"},
		"a chain without its authority":       {own[:1], pins, w.Now, "without an authority"},
		"the authority alone":                 {own[1:], pins, w.Now, "without an authority"},
		"its own certificate as an authority": {[]*x509.Certificate{own[0], own[0]}, []string{pin.Of(own[0])}, w.Now, "one of the authority"},
		"no certificate":                      {nil, pins, w.Now, "no certificate"},
		"no pin":                              {own, nil, w.Now, "one of the authority"},
		"a pin that is spoilt":                {own, []string{"sha256:"}, w.Now, "one of the authority"},
		"one that has ended":                  {own, pins, w.Now.Add(9 * 24 * time.Hour), "valid from 2029-12-31T00:00:00Z to 2030-01-09T00:00:00Z, and the clock of this machine says 2030-01-10T00:00:00Z"},
		"a clock of another century":          {own, pins, time.Unix(0, 0), "the clock of this machine says 1970-01-01T00:00:00Z"},
	} {
		err := pin.Verify(c.chain, c.pins, c.at)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
