package bmc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// stopGrace bounds the wait for requests that are being answered.
const stopGrace = 5 * time.Second

// Reset is a Redfish reset type.
type Reset string

// Reset types that a BMC offers.
const (
	ResetOn               Reset = "On"
	ResetForceOff         Reset = "ForceOff"
	ResetGracefulShutdown Reset = "GracefulShutdown"
	ResetGracefulRestart  Reset = "GracefulRestart"
	ResetForceRestart     Reset = "ForceRestart"
	ResetPushPowerButton  Reset = "PushPowerButton"
)

// resets are offered, in this order.
var resets = []Reset{ResetOn, ResetForceOff, ResetGracefulShutdown, ResetGracefulRestart, ResetForceRestart, ResetPushPowerButton}

// Machine is the server that the BMC manages. Its methods return at once.
type Machine interface {
	// Power is the power state as the BMC's sensors see it.
	Power() hardware.PowerState
	// Reset asks for a change of power.
	Reset(Reset)
}

// Options configure a BMC. Machine, Authority, Username and Password are required.
type Options struct {
	// Name is the server's, for the certificate.
	Name string
	// Address is where it listens; empty: a free port on 127.0.0.1.
	Address            string
	Machine            Machine
	Hardware           hardware.Inventory
	Authority          *Authority
	Username, Password string
	// HGXBaseboard: a second, physical ComputerSystem HGX_Baseboard_0, and the NVIDIA devices in chassis of their own.
	HGXBaseboard bool
	// Now tells the time; nil: time.Now.
	Now func() time.Time
	// Log gets power changes and refusals; nil: nothing.
	Log *slog.Logger
}

// BMC is a management controller. Start makes it listen.
type BMC struct {
	options  Options
	server   *http.Server
	stopping chan struct{}
	// listening is done when the listener is closed.
	listening sync.WaitGroup
	// reads counts the GETs that came in.
	reads atomic.Int64

	mu       sync.Mutex
	address  string
	faults   Faults
	loaded   map[string]bool
	password string
	sessions map[string]string // token to path
	made     int
	boot     override
	tree     map[string]map[string]any
}

// override is the boot source override.
type override struct {
	enabled, target, mode string
	tag                   int
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
		sessions: map[string]string{}, boot: override{enabled: "Disabled", target: "None", mode: "UEFI"},
	}
	b.tree = buildTree(options.Hardware, options.HGXBaseboard)
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
	b.server = &http.Server{
		Handler: http.HandlerFunc(b.serve), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 5 * time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(logWriter{b.options.Log}, "", 0),
	}
	b.listening.Go(func() {
		if err := b.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			b.options.Log.Error("the BMC stopped listening", "server", b.options.Name, "error", err)
		}
	})
	return nil
}

// Stop closes every connection and returns when no request is left. It is for a BMC that was started.
func (b *BMC) Stop() error {
	close(b.stopping)
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
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

// Address is the service's URL, scheme and host only.
func (b *BMC) Address() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return "https://" + b.address
}

// SetPassword changes the account's password; sessions stay, as Redfish leaves open.
func (b *BMC) SetPassword(password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.password = password
}

// Reads is how many GETs have come in, those that were refused or never answered among them.
func (b *BMC) Reads() int64 { return b.reads.Load() }

// Sessions is how many sessions are open.
func (b *BMC) Sessions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions)
}

// TakeBoot returns what the boot override asks for and uses it up when it holds once; empty: the firmware's own boot order.
func (b *BMC) TakeBoot() hardware.BootSource {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.boot.enabled == "Disabled" {
		return ""
	}
	target := b.boot.target
	if b.boot.enabled == "Once" {
		b.boot.enabled, b.boot.target = "Disabled", "None"
		b.boot.tag++
	}
	switch target {
	case "Pxe", "UefiHttp":
		return hardware.BootNetwork
	case "Hdd":
		return hardware.BootDisk
	}
	return ""
}

// logWriter passes what net/http says on, at a level where refused handshakes do not disturb.
type logWriter struct{ log *slog.Logger }

// Write implements io.Writer.
func (w logWriter) Write(text []byte) (int, error) {
	w.log.Debug("BMC", "said", string(text))
	return len(text), nil
}
