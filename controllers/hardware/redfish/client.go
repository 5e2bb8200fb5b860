package redfish

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Options configure a Client. The zero value is usable.
type Options struct {
	// Timeout bounds every single request, connection and TLS handshake included; 0: 30 s, since BMCs are slow.
	Timeout time.Duration
	// IdleTimeout is how long an unused session is kept; 0: 5 minutes. BMCs allow few sessions (often 8 to 16) at a time.
	IdleTimeout time.Duration
	// CredentialBackoff is how long refused credentials are not tried again, so that a wrong Secret does not lock the account
	// out; changed credentials are tried at once; 0: 30 s.
	CredentialBackoff time.Duration
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// Log receives what no caller sees: failed logouts, inventory members left empty; nil: discarded.
	Log *slog.Logger
}

// Client implements hardware.BMCs. It is safe for concurrent use.
type Client struct {
	options Options

	mu       sync.Mutex
	closed   bool
	sessions map[sessionKey]*session
	// gates let one request at a time pass to each address, whatever session it belongs to.
	gates   map[string]chan struct{}
	refused map[sessionKey]time.Time
}

var _ hardware.BMCOpener = (*Client)(nil)

// sessionKey is a digest over address, credentials and trust; it is never stored or printed.
type sessionKey [sha256.Size]byte

// New returns a Client without sessions.
func New(options Options) *Client {
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	if options.IdleTimeout <= 0 {
		options.IdleTimeout = 5 * time.Minute
	}
	if options.CredentialBackoff <= 0 {
		options.CredentialBackoff = 30 * time.Second
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{
		options:  options,
		sessions: map[sessionKey]*session{},
		gates:    map[string]chan struct{}{},
		refused:  map[sessionKey]time.Time{},
	}
}

// OpenBMC returns the BMC at the endpoint without contacting it: the first call logs in. A malformed endpoint is Invalid.
func (c *Client) OpenBMC(_ context.Context, endpoint hardware.Endpoint) (hardware.BMC, error) {
	const op = "open BMC"
	address, err := url.Parse(endpoint.Address)
	if err != nil || !bare(address) {
		// The address is not printed: a malformed one may hold credentials.
		return nil, hardware.Errorf(hardware.Invalid, op, "", "the BMC's address must be scheme and host only, as in https://10.0.0.7")
	}
	endpoint.Address = address.Scheme + "://" + address.Host
	if address.Scheme != "https" && (address.Scheme != "http" || !endpoint.InsecureSkipVerify) {
		return nil, hardware.Errorf(hardware.Invalid, op, endpoint.Address,
			"the BMC's address must be https; plain http needs certificate verification to be turned off explicitly")
	}
	if endpoint.SystemPath != "" && !strings.HasPrefix(endpoint.SystemPath, "/") {
		return nil, hardware.Errorf(hardware.Invalid, op, endpoint.Address, "the system's path %q must begin with /", endpoint.SystemPath)
	}
	endpoint.SystemPath = strings.TrimRight(endpoint.SystemPath, "/")
	if endpoint.Username == "" || endpoint.Password == "" {
		return nil, hardware.Errorf(hardware.Unauthorized, op, endpoint.Address, "the BMC's Secret lacks username or password")
	}
	if len(endpoint.CABundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(endpoint.CABundle) {
		return nil, hardware.Errorf(hardware.Invalid, op, endpoint.Address, "the CA bundle holds no PEM certificate")
	}
	return &bmc{client: c, endpoint: endpoint, key: keyOf(endpoint)}, nil
}

// bare tells whether the address is scheme and host only.
func bare(address *url.URL) bool {
	return address.Host != "" && address.User == nil && strings.Trim(address.Path, "/") == "" && address.RawQuery == "" && address.Fragment == ""
}

// Start ends idle sessions now and then until the context is done, and all of them after that.
func (c *Client) Start(ctx context.Context) error {
	ticker := time.NewTicker(c.options.IdleTimeout / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.EndIdleSessions(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.Timeout)
			defer cancel()
			return c.Close(last)
		}
	}
}

// EndIdleSessions logs out the sessions that nobody used for the idle time-out. Start calls it.
func (c *Client) EndIdleSessions(ctx context.Context) {
	limit := c.options.Clock().Add(-c.options.IdleTimeout)
	for _, s := range c.take(func(_ sessionKey, s *session) bool { return s.inFlight == 0 && !s.usedAt.After(limit) }) {
		c.logoutQuietly(ctx, s)
	}
}

// Close logs out every session; calls after it are Invalid. The error names the BMCs where a session remains until
// it expires there.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		left []string
	)
	for _, s := range c.take(func(sessionKey, *session) bool { return true }) {
		wg.Go(func() {
			if err := s.logout(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, s.address)
			}
		})
	}
	wg.Wait()
	if len(left) > 0 {
		return hardware.Errorf(hardware.Unreachable, "end sessions", strings.Join(left, ", "), "logout failed; the sessions expire there")
	}
	return nil
}

// take removes the sessions that fit from the pool and returns them.
func (c *Client) take(fits func(sessionKey, *session) bool) []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	var taken []*session
	for key, s := range c.sessions {
		if fits(key, s) {
			delete(c.sessions, key)
			taken = append(taken, s)
		}
	}
	return taken
}

func (c *Client) logoutQuietly(ctx context.Context, s *session) {
	if err := s.logout(ctx); err != nil {
		c.options.Log.Info("BMC session not ended; it expires there", "bmc", s.address, "error", err.Error())
	}
}

// gate returns the turnstile of the address. The caller holds c.mu.
func (c *Client) gate(address string) chan struct{} {
	gate, ok := c.gates[address]
	if !ok {
		gate = make(chan struct{}, 1)
		c.gates[address] = gate
	}
	return gate
}

func keyOf(e hardware.Endpoint) sessionKey {
	h := sha256.New()
	for _, part := range []string{e.Address, e.Username, e.Password, string(e.CABundle), fmt.Sprint(e.InsecureSkipVerify)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return sessionKey(h.Sum(nil))
}
