package agent_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
	"github.com/ingot-dev/ingot/controllers/plan/bootca"
)

// newAuthority returns an authority and a certificate that were made at the time.
func newAuthority(t *testing.T, at time.Time) bootca.Served {
	t.Helper()
	f := bootca.Facts{Now: at, Times: bootca.DefaultTimes(time.Hour)}
	for _, action := range []bootca.Action{bootca.Replace, bootca.Serve} {
		var err error
		if f.Authorities, f.Served, err = bootca.Do(action, f, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	return f.Served
}

// newSecureRig returns a rig with an inspection.
func newSecureRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, make([]byte, 1<<20), "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) { s.Work = netboot.Work{Operation: hardware.OpInspect} })
	return r
}

// secureService is a boot service's HTTPS.
type secureService struct {
	// served is what it serves now, requests how often it was asked.
	served   atomic.Pointer[bootca.Served]
	requests atomic.Int64
}

// secure serves the rig's boot service by HTTPS too, and has its pins on the command lines.
func (r *rig) secure(t *testing.T, served bootca.Served) *secureService {
	t.Helper()
	s := &secureService{}
	s.served.Store(&served)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.served.Load().TLS() }})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.requests.Add(1)
		r.handler.ServeHTTP(w, q)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	r.settings.SecureURL, r.pins = "https://"+listener.Addr().String(), served.Pins()
	return s
}

// line boots the server and returns the command line of its agent.
func (r *rig) line() cmdline.Arguments {
	r.t.Helper()
	for text := range strings.Lines(r.document()) {
		if strings.HasPrefix(text, "kernel ") {
			line, err := cmdline.Parse(text)
			if err != nil {
				r.t.Fatal(err)
			}
			return line
		}
	}
	r.t.Fatal("no boot document")
	return cmdline.Arguments{}
}

func (r *rig) configOf(line cmdline.Arguments, disks ...agent.Disk) agent.Config {
	config := r.config(line.Token, disks...)
	config.URL, config.Pins = line.URL, line.Pins
	return config
}

func TestAnAgentAsksByHTTPSWithThePinOfItsCommandLine(t *testing.T) {
	r := newSecureRig(t)
	secure := r.secure(t, newAuthority(t, time.Now()))
	line := r.line()
	// As after a boot with an image of its own. A boot document that is served makes it the channel Network.
	r.change(func(s *netboot.Session) { s.Channel = hardware.ChannelVirtualMedia })
	if !strings.HasPrefix(line.URL, "https://") || len(line.Pins) != 1 || !strings.HasPrefix(line.Pins[0], "sha256:") {
		t.Fatalf("the command line: %s %v", line.URL, line.Pins)
	}
	if next, err := agent.Run(t.Context(), r.configOf(line)); err != nil || next != agent.PowerOff {
		t.Fatalf("%s, %v: %s", next, err, r.log)
	}
	if got := r.session().Channel; got != hardware.ChannelVirtualMedia {
		t.Errorf("an agent that has spoken by HTTPS has made it the channel %s", got)
	}
	if secure.requests.Load() < 2 || r.session().Step != hardware.StepFinishing {
		t.Errorf("step %s, %d requests by HTTPS", r.session().Step, secure.requests.Load())
	}
}

func TestAnAgentRefusesABootServiceThatIsNotThePinnedOne(t *testing.T) {
	own := newAuthority(t, time.Now())
	for name, c := range map[string]struct {
		served bootca.Served
		want   string
	}{
		"another authority":          {newAuthority(t, time.Now()), "seen: one of the authority sha256:"},
		"a certificate that is over": {newAuthority(t, time.Now().AddDate(0, 0, -9)), "the clock of this machine says"},
	} {
		r := newSecureRig(t)
		secure := r.secure(t, c.served)
		if name == "another authority" {
			r.pins = own.Pins()
		}
		line := r.line()
		config := r.configOf(line)
		config.Clock = &toldClock{onSleep: func() {}}
		next, err := agent.Run(t.Context(), config)
		var refused *pin.RefusedError
		if next != agent.PowerOff || !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), line.Pins[0]) {
			t.Errorf("%s: %s, %v", name, next, err)
		}
		if secure.requests.Load() != 0 || strings.Contains(r.log.String(), line.Token) {
			t.Errorf("%s: %d requests; log: %s", name, secure.requests.Load(), r.log)
		}
	}
}

func TestAnAgentGoesOnAfterANeighbourHasAnswered(t *testing.T) {
	r := newSecureRig(t)
	own, neighbour := newAuthority(t, time.Now()), newAuthority(t, time.Now())
	secure := r.secure(t, own)
	line := r.line()
	secure.served.Store(&neighbour)
	config := r.configOf(line)
	config.Clock = &toldClock{onSleep: func() { secure.served.Store(&own) }}
	if next, err := agent.Run(t.Context(), config); err != nil || next != agent.PowerOff {
		t.Errorf("%s, %v: %s", next, err, r.log)
	}
}

// toldClock passes a minute or less at once.
type toldClock struct {
	fastClock
	onSleep func()
	passed  atomic.Int64
}

func (c *toldClock) Now() time.Time { return time.Now().Add(time.Duration(c.passed.Load())) }

func (c *toldClock) Sleep(ctx context.Context, d time.Duration) error {
	c.onSleep()
	if d <= time.Minute {
		c.passed.Add(int64(d))
	}
	return c.fastClock.Sleep(ctx, d)
}
