package bmc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// stopTimeout bounds the wait for requests that are being answered.
const stopTimeout = 5 * time.Second

// Machine is the server that the BMC manages. Its methods return at once.
type Machine interface {
	// Power returns the power state that the BMC's sensors report.
	Power() hardware.PowerState
	// Reset requests a change of power.
	Reset(Reset)
}

// Options configure a BMC. Machine, Authority, Username and Password are required.
type Options struct {
	// Name is the server's, for the certificate.
	Name string
	// Address is where the BMC listens; empty: a free port on 127.0.0.1.
	Address            string
	Machine            Machine
	Hardware           hardware.Inventory
	Authority          *Authority
	Username, Password string
	Personality        Personality
	// Wrap, if set, returns the handler that gets the BMC's requests in place of the BMC's own.
	Wrap func(http.Handler) http.Handler
	// Now returns the time; nil: time.Now.
	Now func() time.Time
	// Log gets resets and messages of the HTTP server; nil: nothing is logged.
	Log *slog.Logger
}

// BMC is a simulated management controller. Start makes it listen.
type BMC struct {
	options  Options
	server   *http.Server
	stopping chan struct{}
	// listening is done when the listener is closed.
	listening sync.WaitGroup
	// reads counts the GETs that came in.
	reads atomic.Int64
	// handshakes counts the TLS connections.
	handshakes atomic.Int64
	// writes counts the authorized requests that are no GET and concern no session.
	writes atomic.Int64

	mu       sync.Mutex
	address  string
	faults   Faults
	loaded   map[string]bool
	password string
	sessions map[string]openSession // by token
	// sessionsMade numbers the sessions.
	sessionsMade int
	// boot is the override that the system shows, future the one that its settings object shows until the server boots.
	boot, future bootOverride
	// order is the boot order in effect, futureOrder that of the next boot.
	order, futureOrder []string
	// former is the override before the last change, which is shown by as many reads as formerReads says.
	former      bootOverride
	formerReads int
	// bootedURI is the URI that the last boot loads its program from.
	bootedURI string
	// certificates are those for HTTPS boot, in PEM; empty: one that was deleted.
	certificates []string
	// settling is how many requests to power on are still refused.
	settling int
	// devices are those for virtual media, task is the insertion that goes on, and bootedImage the URL of the image that the last boot loads.
	devices     []*mediaDevice
	task        *mediaTask
	bootedImage string
	tree        tree
	// boots counts the boots of the server, unloadedReads the reads since the last one that found Boot empty.
	boots, unloadedReads int
	// rush counts the requests since rushBegan. The BMC is frozen when there were too many.
	rush      int
	rushBegan time.Time
	frozen    bool
}

// New makes a BMC that does not listen yet.
func New(options Options) *BMC {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	b := &BMC{
		options: options, stopping: make(chan struct{}), loaded: map[string]bool{}, password: options.Password,
		sessions: map[string]openSession{}, boot: newOverride(options.Personality.Boot), future: newOverride(options.Personality.Boot),
	}
	b.order, b.futureOrder = newOrder(options.Personality.Boot.Order), newOrder(options.Personality.Boot.Order)
	b.devices = newDevices(options.Personality.Media)
	b.tree = buildTree(options.Hardware, options.Personality)
	return b
}

// Start listens and serves until Stop.
func (b *BMC) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", b.options.Address)
	if err != nil {
		return fmt.Errorf("the BMC of %s: %w", b.options.Name, err)
	}
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return errors.Join(fmt.Errorf("the BMC of %s: %w", b.options.Name, err), listener.Close())
	}
	certificate, err := b.options.Authority.issue(b.options.Name+" BMC", []net.IP{net.ParseIP(host)}, b.options.Now())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	b.mu.Lock()
	b.address = listener.Addr().String()
	b.mu.Unlock()
	var handler http.Handler = http.HandlerFunc(b.serve)
	if b.options.Personality.Wire.ByteOrderMark {
		handler = withByteOrderMark(handler)
	}
	if b.options.Wrap != nil {
		handler = b.options.Wrap(handler)
	}
	b.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 5 * time.Minute,
		TLSConfig: b.tlsConfig(certificate),
		ErrorLog:  log.New(logWriter{b.options.Log}, "", 0),
	}
	b.listening.Go(func() {
		if err := b.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			b.options.Log.Error("the BMC stopped listening", "server", b.options.Name, "error", err)
		}
	})
	return nil
}

// tlsConfig returns the versions that the BMC speaks.
func (b *BMC) tlsConfig(certificate tls.Certificate) *tls.Config {
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, VerifyConnection: b.countHandshake}
	if old, isOld := map[TLSRule]uint16{TLS10: tls.VersionTLS10, TLS11: tls.VersionTLS11}[b.options.Personality.Wire.TLS]; isOld {
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, old
	}
	return config
}

// Stop closes every connection and returns when no request is left. The BMC must have been started.
func (b *BMC) Stop() error {
	close(b.stopping)
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := b.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, b.server.Close())
	}
	b.listening.Wait()
	if err != nil {
		return fmt.Errorf("stopping the BMC of %s: %w", b.options.Name, err)
	}
	return nil
}

// Address returns the URL of the service, scheme and host only.
func (b *BMC) Address() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return "https://" + b.address
}

// Endpoint returns how to reach the BMC, with its credentials and the certificate of its authority.
func (b *BMC) Endpoint() hardware.Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	return hardware.Endpoint{
		Address: "https://" + b.address, Username: b.options.Username, Password: b.password, CABundle: b.options.Authority.PEM(),
	}
}

// SetPassword changes the account's password. Sessions stay open, as Redfish permits.
func (b *BMC) SetPassword(password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.password = password
}

// Reads returns how many GETs have come in, including those that were refused or never answered.
func (b *BMC) Reads() int64 { return b.reads.Load() }

// Writes returns how many requests wanted to change something of the server: its power, its boot, its media.
func (b *BMC) Writes() int64 { return b.writes.Load() }

// Handshakes returns how many TLS connections clients have opened, including those that they ended themselves.
func (b *BMC) Handshakes() int64 { return b.handshakes.Load() }

func (b *BMC) countHandshake(tls.ConnectionState) error {
	b.handshakes.Add(1)
	return nil
}

// Sessions returns how many sessions are open.
func (b *BMC) Sessions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions)
}

// Tokens returns the tokens of the open sessions.
func (b *BMC) Tokens() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.sessions))
}

// EndSessions ends all sessions without notice, as a restart of the BMC does.
func (b *BMC) EndSessions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.sessions)
}

// Paths returns the paths of all resources.
func (b *BMC) Paths() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.tree))
}

// Document returns a resource as it is served now, and whether there is one at the path.
func (b *BMC) Document(path string) (document []byte, found bool) {
	power := b.options.Machine.Power()
	b.mu.Lock()
	defer b.mu.Unlock()
	resource, found := b.resource(path, power)
	if !found {
		return nil, false
	}
	document, err := json.Marshal(resource)
	return document, err == nil
}

// Remove removes the resources at and below a path.
func (b *BMC) Remove(prefix string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.tree, func(path string, _ map[string]any) bool { return strings.HasPrefix(path, prefix) })
}

// logWriter logs the messages of net/http at a level at which refused handshakes do not disturb.
type logWriter struct{ log *slog.Logger }

// Write implements io.Writer.
func (w logWriter) Write(text []byte) (int, error) {
	w.log.Debug("BMC", "said", string(text))
	return len(text), nil
}
