package osimage

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

// maxRedirects is how many redirects are followed.
const maxRedirects = 10

// errRedirect and errDowngrade are the errors of redirects that are not followed.
var (
	errRedirect  = errors.New("it redirects to an address of the link or of this machine, which is not followed")
	errDowngrade = errors.New("it redirects from https to http, which is not followed for a checksum file: give the digest itself in spec.checksum of another OSImage, or a URL that stays with https")
)

// checkRedirect limits the redirects of an image. One from https to http is followed, as the agent does that installs: the digest decides about the bytes.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("it redirects too often")
	}
	return nil
}

// checkChecksumRedirect refuses redirects of a checksum file from https to http also. Without it: somebody on the way gives another digest, and the
// image that has it is installed.
func checkChecksumRedirect(request *http.Request, via []*http.Request) error {
	if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return errDowngrade
	}
	return checkRedirect(request, via)
}

// guardedTransport sends redirected requests to no link-local and no loopback address, whatever name leads there. Without it: an image server
// redirects to the metadata service of the cloud that the manager runs in, and the manager asks it with its own identity. A name is resolved only
// when the connection is made, so that is where the address is checked.
type guardedTransport struct {
	// first sends requests as they are, redirected those that follow a redirect.
	first, redirected *http.Transport
}

// newGuardedTransport returns the guarded form of a transport; nil means http.DefaultTransport.
func newGuardedTransport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	first, ok := base.(*http.Transport)
	if !ok {
		return base
	}
	redirected := first.Clone()
	// The clone lives for one request, so a connection that it keeps would never be closed.
	redirected.DisableKeepAlives = true
	redirected.DialContext = (&net.Dialer{Control: refuseLocalAddress}).DialContext
	return guardedTransport{first: first, redirected: redirected}
}

// RoundTrip implements http.RoundTripper.
func (g guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Response == nil || isWithinThisMachine(request) {
		return g.first.RoundTrip(request)
	}
	if g.first.Proxy != nil {
		// The proxy may itself be on this machine, and it asks with its own identity.
		if proxy, err := g.first.Proxy(request); err != nil || proxy != nil {
			return g.first.RoundTrip(request)
		}
	}
	return g.redirected.RoundTrip(request)
}

// isWithinThisMachine reports whether the redirect goes from a loopback address to a loopback address, which reaches nothing new.
func isWithinThisMachine(request *http.Request) bool {
	first := request
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	from, fromErr := netip.ParseAddr(first.URL.Hostname())
	to, toErr := netip.ParseAddr(request.URL.Hostname())
	return fromErr == nil && toErr == nil && from.IsLoopback() && to.IsLoopback()
}

// metadataIPv6 is the metadata service of AWS over IPv6, which is no link-local address
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html).
var metadataIPv6 = netip.MustParseAddr("fd00:ec2::254")

// refuseLocalAddress is a net.Dialer's Control: it sees the address that a name was resolved to.
func refuseLocalAddress(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return errRedirect
	}
	ip := parsed.Addr().Unmap().WithZone("")
	if ip.IsLinkLocalUnicast() || ip.IsLoopback() || ip.IsUnspecified() || ip == metadataIPv6 {
		return errRedirect
	}
	return nil
}
