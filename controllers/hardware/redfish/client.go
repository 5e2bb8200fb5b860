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

// Options configure a Client. The zero value is valid.
type Options struct {
	// Timeout is the time-out of every request, including connection and TLS handshake. 0 means 30 s, because BMCs are slow.
	Timeout time.Duration
	// IdleTimeout is how long an unused session is kept. 0 means 5 minutes. BMCs allow few sessions at a time, often 8 to 16.
	IdleTimeout time.Duration
	// CredentialBackoff is how long refused credentials are not tried again, so that a wrong Secret does not lock the account. Changed
	// credentials are tried at once. 0 means 30 s.
	CredentialBackoff time.Duration
	// Owner is the identity of this installation, by which sessions that an earlier process left are known. It is the same after a restart and no
	// other installation has it. Empty: sessions are not marked, and none is ended that this Client has not made.
	Owner string
	// ExclusiveAccount is the administrator's word that nobody else uses the accounts of the BMCs' Secrets. Then every session of the account that
	// this Client has not made was left by an earlier process. For BMCs that do not keep the mark.
	ExclusiveAccount bool
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
	// Sleep waits while the BMC loads a resource of an inventory; it returns early with the error of the context when that ends. nil means a
	// timer, and no waiting where Clock is set.
	Sleep func(context.Context, time.Duration) error
	// Log receives what is not returned: failed logouts and resources that are left out of the inventory. nil means no log.
	Log *slog.Logger
}

// Client implements hardware.BMCOpener. It is safe for concurrent use.
type Client struct {
	options Options

	mu       sync.Mutex
	closed   bool
	sessions map[sessionKey]*session
	// lines are the ways to the addresses, which all sessions there share.
	lines map[string]*line
	// refusedUntil is when refused credentials may be tried again.
	refusedUntil map[sessionKey]time.Time
}

var _ hardware.BMCOpener = (*Client)(nil)

// sessionKey is a digest of the address, the credentials and the TLS settings. It is never stored or printed.
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
	if options.Sleep == nil && options.Clock == nil {
		options.Sleep = sleep
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{
		options:      options,
		sessions:     map[sessionKey]*session{},
		lines:        map[string]*line{},
		refusedUntil: map[sessionKey]time.Time{},
	}
}

// OpenBMC returns the BMC at the endpoint without contacting it: the first call logs in. A malformed endpoint is Invalid.
func (c *Client) OpenBMC(_ context.Context, endpoint hardware.Endpoint) (hardware.BMC, error) {
	const op = "open BMC"
	address, err := url.Parse(endpoint.Address)
	if err != nil || !isBareAddress(address) {
		// The address is not printed, because a malformed one may contain credentials.
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
	if endpoint.Username == "" || endpoint.Password == "" {
		return nil, hardware.Errorf(hardware.Unauthorized, op, endpoint.Address, "the BMC's Secret lacks username or password")
	}
	if len(endpoint.CABundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(endpoint.CABundle) {
		return nil, hardware.Errorf(hardware.Invalid, op, endpoint.Address, "the CA bundle holds no PEM certificate")
	}
	return &bmc{client: c, endpoint: endpoint, key: newSessionKey(endpoint)}, nil
}

// isBareAddress reports whether the address has only a scheme and a host.
func isBareAddress(address *url.URL) bool {
	return address.Host != "" && address.User == nil && strings.Trim(address.Path, "/") == "" && address.RawQuery == "" && address.Fragment == ""
}

// Start ends idle sessions at intervals until the context is done, and then all sessions.
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

// EndIdleSessions logs out the sessions that were not used for the idle time-out. Start calls it.
func (c *Client) EndIdleSessions(ctx context.Context) {
	limit := c.options.Clock().Add(-c.options.IdleTimeout)
	for _, s := range c.removeSessions(func(_ sessionKey, s *session) bool { return s.inFlight == 0 && !s.usedAt.After(limit) }) {
		c.logoutAndLog(ctx, s)
	}
}

// Close logs out all sessions. Later calls fail with Invalid. The error names the BMCs at which a session remains until it expires.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	var (
		wg        sync.WaitGroup
		mu        sync.Mutex
		remaining []string
	)
	for _, s := range c.removeSessions(func(sessionKey, *session) bool { return true }) {
		wg.Go(func() {
			if _, err := s.logout(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				remaining = append(remaining, s.address)
			}
		})
	}
	wg.Wait()
	if len(remaining) > 0 {
		return hardware.Errorf(hardware.Unreachable, "end sessions", strings.Join(remaining, ", "), "logout failed; the sessions expire there")
	}
	return nil
}

// removeSessions removes the sessions that match from the pool and returns them.
func (c *Client) removeSessions(match func(sessionKey, *session) bool) []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	var removed []*session
	for key, s := range c.sessions {
		if match(key, s) {
			delete(c.sessions, key)
			removed = append(removed, s)
		}
	}
	return removed
}

// logoutAndLog logs the session out and logs a failure, because the session expires at the BMC anyway.
func (c *Client) logoutAndLog(ctx context.Context, s *session) {
	if l, err := s.logout(ctx); err != nil {
		c.noteNotEnded(s.address, l, err)
	}
}

// lineTo returns the way to the address.
func (c *Client) lineTo(address string) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.lines[address]
	if !ok {
		l = newLine()
		c.lines[address] = l
	}
	return l
}

// newSessionKey returns the key of the endpoint's session. The length before each part makes the encoding unique.
func newSessionKey(e hardware.Endpoint) sessionKey {
	h := sha256.New()
	for _, part := range []string{e.Address, e.Username, e.Password, string(e.CABundle), fmt.Sprint(e.InsecureSkipVerify)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return sessionKey(h.Sum(nil))
}
