package bootcertificate_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/controllers/hardware/pin"
	"github.com/ingot-dev/ingot/controllers/host/bootcertificate"
	"github.com/ingot-dev/ingot/controllers/plan/bootca"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

// longest is how long an attempt may take.
const longest = 12 * time.Hour

// site is the boot service's HTTPS in two replicas, with a clock that the test sets.
type site struct {
	t      *testing.T
	keeper *bootcertificate.Keeper
	// down makes reads of Secrets by the replicas fail.
	down     bool
	replicas []*bootcertificate.Source
	urls     []string
	log      bytes.Buffer

	// mu is held for reading while an agent asks, so that no time passes meanwhile.
	mu  sync.RWMutex
	now time.Time
	// lines are the pins of the command lines of attempts that may be running, by when they were made.
	lines map[time.Time][]string
}

// lossyReader is the API server as the replicas see it.
type lossyReader struct {
	client.Reader
	down *bool
}

func (r *lossyReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if *r.down {
		return errors.New("the API server does not answer")
	}
	return r.Reader.Get(ctx, key, into, options...)
}

func (s *site) clock() time.Time { return s.now }

func newSite(t *testing.T) *site {
	namespace := server.Namespace(t)
	s := &site{t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), lines: map[time.Time][]string{}}
	logger := slog.New(slog.NewTextHandler(&s.log, nil))
	reader := &lossyReader{Reader: server.Client, down: &s.down}
	served := client.ObjectKey{Namespace: namespace, Name: "ingot-boot-certificate"}
	s.keeper = &bootcertificate.Keeper{
		Reader: server.Client, Writer: server.Client, Authorities: client.ObjectKey{Namespace: namespace, Name: "ingot-boot-authority"}, Served: served,
		Names: func(context.Context) ([]string, error) { return []string{"127.0.0.1"}, nil }, Clock: s.clock, Random: rand.Reader, Times: bootca.DefaultTimes(longest), Log: logger,
	}
	for range 2 {
		source := &bootcertificate.Source{Reader: reader, Served: served, Clock: s.clock, Log: logger}
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: source.GetCertificate})
		if err != nil {
			t.Fatal(err)
		}
		replica := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }), ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelInfo)}
		go func() { _ = replica.Serve(listener) }()
		t.Cleanup(func() { _ = replica.Close() })
		s.replicas, s.urls = append(s.replicas, source), append(s.urls, "https://"+listener.Addr().String())
	}
	return s
}

// step lets time pass, and the keeper take its actions. observe is called after each.
func (s *site) step(passes time.Duration, observe func()) []bootca.Action {
	s.t.Helper()
	s.mu.Lock()
	s.now = s.now.Add(passes)
	for made := range s.lines {
		if s.now.Sub(made) > longest {
			delete(s.lines, made)
		}
	}
	s.mu.Unlock()
	var done []bootca.Action
	for range 5 {
		decided, err := s.keeper.Step(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		observe()
		if decided.Action == bootca.Rest {
			return done
		}
		done = append(done, decided.Action)
	}
	s.t.Fatalf("it never rests: %v", done)
	return nil
}

// powerOn makes a command line at one of the replicas.
func (s *site) powerOn(replica int) {
	pins, err := s.replicas[replica].Pins(s.t.Context())
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[s.now.Add(time.Duration(replica))] = pins
}

// ask has one agent for each command line ask each replica, on a connection of its own.
func (s *site) ask(ctx context.Context) (asked int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for made, pins := range s.lines {
		for _, url := range s.urls {
			if err := s.askOne(ctx, url, pins); err != nil {
				return asked, fmt.Errorf("%s: an agent with the command line of %s: %w", s.now, made, err)
			}
			asked++
		}
	}
	return asked, nil
}

func (s *site) askOne(ctx context.Context, url string, pins []string) error {
	agent := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: pin.ClientConfig(pins, s.clock)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := agent.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestAuthorityAndCertificateChangeWithoutAFailedRequest(t *testing.T) {
	s := newSite(t)
	if _, err := s.replicas[0].Pins(t.Context()); err == nil || !strings.Contains(err.Error(), "the replica that leads makes it") {
		t.Errorf("before there is a certificate: %v", err)
	}
	if done := s.step(0, func() {}); !slices.Equal(done, []bootca.Action{bootca.Replace, bootca.Serve}) {
		t.Fatalf("at first: %v", done)
	}
	s.powerOn(0)
	first := s.lines[s.now]
	// Agents ask all the time.
	ctx, stop := context.WithCancel(t.Context())
	var agents sync.WaitGroup
	rounds := make(chan int)
	agents.Go(func() {
		for ctx.Err() == nil {
			asked, err := s.ask(context.WithoutCancel(ctx))
			if err != nil {
				t.Error(err)
			}
			select {
			case rounds <- asked:
			case <-ctx.Done():
			}
		}
	})
	var done []bootca.Action
	most, total := 0, 0
	for s.step(s.keeper.Times.AuthorityRenew-24*time.Hour, func() {}); s.now.Before(time.Date(2039, 1, 16, 0, 0, 0, 0, time.UTC)); {
		done = append(done, s.step(8*time.Hour, func() {
			for replica := range s.replicas {
				s.powerOn(replica)
			}
			<-rounds // it may have begun before
			total += <-rounds
		})...)
		most = max(most, len(s.lines[s.now]))
	}
	stop()
	agents.Wait()
	done = slices.DeleteFunc(done, func(a bootca.Action) bool { return a == bootca.Serve })
	if want := []bootca.Action{bootca.Prepare, bootca.Promote, bootca.Forget}; !slices.Equal(done, want) || most != 2 || total == 0 {
		t.Errorf("done %v, want %v; at most %d pins; %d requests", done, want, most, total)
	}
	var refused *pin.RefusedError
	if err := s.askOne(t.Context(), s.urls[0], first); !errors.As(err, &refused) {
		t.Errorf("the pin of nine years ago: %v", err)
	}
	s.checkNoKey()
}

// checkNoKey fails the test if a key is in the log.
func (s *site) checkNoKey() {
	s.t.Helper()
	for _, name := range []client.ObjectKey{s.keeper.Authorities, s.keeper.Served} {
		var secret corev1.Secret
		if err := server.Client.Get(s.t.Context(), name, &secret); err != nil {
			s.t.Fatal(err)
		}
		for field, value := range secret.Data {
			if strings.HasSuffix(field, ".key") && (strings.Contains(s.log.String(), string(value)) || strings.Contains(s.log.String(), base64.StdEncoding.EncodeToString(value))) {
				s.t.Errorf("the log has the key %s of %s", field, name)
			}
		}
	}
	if strings.Contains(s.log.String(), "PRIVATE") {
		s.t.Error("the log has a key")
	}
}

func TestADeletedSecretIsMadeAgainAndTheOldPinIsRefused(t *testing.T) {
	s := newSite(t)
	s.step(0, func() {})
	s.powerOn(0)
	old := s.lines[s.now]
	for _, name := range []client.ObjectKey{s.keeper.Authorities, s.keeper.Served} {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = name.Namespace, name.Name
		if err := server.Client.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	s.step(time.Minute, func() {})
	var refused *pin.RefusedError
	if err := s.askOne(t.Context(), s.urls[0], old); !errors.As(err, &refused) || !strings.Contains(err.Error(), old[0]) {
		t.Errorf("the old pin: %v", err)
	}
	clear(s.lines)
	s.powerOn(0)
	if _, err := s.ask(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWithoutTheAPIServerTheLastCertificateIsServed(t *testing.T) {
	s := newSite(t)
	s.step(0, func() {})
	s.powerOn(0)
	if _, err := s.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.down = true
	s.mu.Lock()
	s.now = s.now.Add(3 * time.Hour)
	s.mu.Unlock()
	if _, err := s.ask(t.Context()); err != nil || !strings.Contains(s.log.String(), "the last one is served") {
		t.Errorf("%v; log: %s", err, s.log.String())
	}
	// It has ended before the API server answers again, and agents say so.
	s.mu.Lock()
	s.now = s.now.Add(9 * 24 * time.Hour)
	s.mu.Unlock()
	if _, err := s.ask(t.Context()); err == nil || !strings.Contains(err.Error(), "the clock of this machine says 2030-01-10T03:00:00Z") {
		t.Errorf("a certificate that has ended: %v", err)
	}
	// What speaks no TLS, or is of another installation, is refused too.
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	go func() { _ = http.Serve(plain, http.NotFoundHandler()) }()
	if err := s.askOne(t.Context(), "https://"+plain.Addr().String(), s.lines[s.now]); err == nil {
		t.Error("HTTP is taken for HTTPS")
	}
}
