package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reservedNetworks are those whose addresses are not public: what answers there is known only from inside.
var reservedNetworks = parsePrefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	// Of IPv6 only 2000::/3 is public, without what is kept for protocols, for documents and for tunnels of IPv4.
	"::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// translated are the addresses by which IPv6 networks reach IPv4 addresses, their last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

func parsePrefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// canReach tells whether a tenant's kubeconfig may lead to an address: it is public, or the operator allows its network.
func canReach(address netip.Addr, allowed []netip.Prefix) bool {
	// An address with a zone is in no prefix.
	address = address.Unmap().WithZone("")
	if translated.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	contains := func(p netip.Prefix) bool { return p.Contains(address) }
	return address.IsValid() && (slices.ContainsFunc(allowed, contains) || !slices.ContainsFunc(reservedNetworks, contains))
}

// errNotAllowed is for the manager's log.
var errNotAllowed = errors.New("the address is not public, and tenants.privateNetworks of the manager's configuration has no network with it")

// newDialer returns what connects to the server of a kubeconfig. It looks at each address that a name has led to, before the first packet.
func newDialer(server string, allowed []netip.Prefix, proxyOf func(*http.Request) (*url.URL, error), timeout time.Duration) (*net.Dialer, error) {
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	target, err := url.Parse(server)
	if err != nil {
		return nil, invalid("cluster.server is no URL")
	}
	proxy, err := proxyOf(&http.Request{URL: target})
	if err != nil {
		return nil, fmt.Errorf("the proxy of the manager's environment: %w", err)
	}
	if proxy != nil {
		// What is dialled is the operator's proxy, and the proxy decides what a name leads to.
		if address, err := netip.ParseAddr(target.Hostname()); err != nil || canReach(address, allowed) {
			return dialer, nil
		}
	}
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		if parsed, err := netip.ParseAddrPort(address); err != nil || proxy != nil || !canReach(parsed.Addr(), allowed) {
			return errNotAllowed
		}
		return nil
	}
	return dialer, nil
}

// unreachedError says that no API server which the kubeconfig's authority vouches for has answered. The text is one for all causes, and for a server
// that was not asked yet. Otherwise whoever may write a kubeconfig learns by the texts, and by when they change, which ports of which addresses answer.
type unreachedError struct {
	server string
	// isLate is true if a deadline has passed.
	isLate bool
	cause  error
}

// Error says who must do what.
func (e *unreachedError) Error() string {
	return fmt.Sprintf("no Kubernetes API server that the kubeconfig's authority vouches for answers at %s: check the server and certificate-authority-data of the "+
		"kubeconfig; its address must be public or in tenants.privateNetworks of the manager's configuration; the manager's log says what failed", e.server)
}

// Unwrap returns the cause, which is for decisions and for the manager's log. What was ended by a deadline is also errNoResponse.
func (e *unreachedError) Unwrap() []error {
	if e.isLate {
		return []error{errNoResponse, e.cause}
	}
	return []error{e.cause}
}

func isUnreached(err error) bool {
	var unreached *unreachedError
	return errors.As(err, &unreached)
}

// describe returns an error that says what was being done. An unreachedError says it all.
func describe(doing string, err error) error {
	if unreached := (*unreachedError)(nil); errors.As(err, &unreached) {
		return unreached
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// lateError returns the error of a request that was ended by a deadline.
func lateError(err error, limit time.Duration) error {
	if unreached := (*unreachedError)(nil); errors.As(err, &unreached) {
		return &unreachedError{server: unreached.server, cause: unreached.cause, isLate: true}
	}
	return fmt.Errorf("%w (%s)", errNoResponse, limit)
}

// unreached returns the error for the tenant's readers and writes the cause into the log, once a minute.
func (s *clientSet) unreached(cause error) *unreachedError {
	s.causes.Do(func() { s.log.Info("No API server answers", "server", s.config.Host, "problem", cause.Error()) })
	return &unreachedError{server: s.config.Host, cause: cause}
}

// RoundTrip implements http.RoundTripper. It hides why there was no verified connection.
func (s *clientSet) RoundTrip(request *http.Request) (*http.Response, error) {
	var isVerified atomic.Bool
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { isVerified.Store(true) }})
	response, err := s.transport.RoundTrip(request.WithContext(ctx))
	if err == nil || isVerified.Load() || errors.Is(context.Cause(request.Context()), errTakenBack) || s.ctx.Err() != nil {
		return response, err
	}
	hidden := s.unreached(err)
	var timeout net.Error
	hidden.isLate = errors.As(err, &timeout) && timeout.Timeout()
	return nil, hidden
}

// checkAnswer hides an answer to GET /version that no API server gives: the editor of a kubeconfig chooses the authority, and by one that everybody trusts
// the verified server may be any.
func (s *clientSet) checkAnswer(err error) error {
	if err == nil || isCrowded(err) || tooLarge(err) != nil || IsAnswer(err) && !apierrors.IsUnexpectedServerError(err) {
		return err
	}
	return s.unreached(err)
}
