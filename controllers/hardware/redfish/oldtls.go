package redfish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
)

// oldTLSTexts are in the errors of crypto/tls, which has no types for them, when a server refuses a client that is too new for it (RFC 8446 6.2): by one of
// two alerts, or by an answer in its own version.
var oldTLSTexts = []string{"protocol version not supported", "handshake failure", "unsupported protocol version"}

// oldTLSError is returned for a BMC that speaks no version of TLS that is safe.
type oldTLSError struct {
	// version is what it speaks, as in "TLS 1.1".
	version string
	cause   error
}

// Error says what to do.
func (e *oldTLSError) Error() string {
	return fmt.Sprintf("the BMC speaks %s and no later version, expected TLS 1.2 or 1.3: credentials are not sent over it. Enable TLS 1.2 among the BMC's network or web server settings, "+
		"or update its firmware (%v)", e.version, e.cause)
}

// Unwrap returns what the handshake failed with.
func (e *oldTLSError) Unwrap() error { return e.cause }

// explainHandshake returns an *oldTLSError for a handshake that failed because the BMC is too old, and any other error as it is. To know the version it
// shakes hands once more and closes the connection: nothing is sent over it.
func (w *transport) explainHandshake(ctx context.Context, err error) error {
	if w.scheme != "https" || !canBeOldTLS(err) {
		return err
	}
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11, CipherSuites: allCipherSuites(),
		InsecureSkipVerify: true, // nothing is sent
	}}
	connection, dialErr := dialer.DialContext(ctx, "tcp", w.host)
	if dialErr != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	secured, isTLS := connection.(*tls.Conn)
	if !isTLS {
		return err
	}
	return &oldTLSError{version: tls.VersionName(secured.ConnectionState().Version), cause: err}
}

// canBeOldTLS reports whether a handshake may have failed because the server speaks old versions only: some send an alert or answer with their version, and
// some end the connection.
func canBeOldTLS(err error) bool {
	isNamed := slices.ContainsFunc(oldTLSTexts, func(text string) bool { return strings.Contains(err.Error(), text) })
	return isNamed || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// allCipherSuites returns those that old servers have, too.
func allCipherSuites() []uint16 {
	var all []uint16
	for _, suites := range [][]*tls.CipherSuite{tls.CipherSuites(), tls.InsecureCipherSuites()} {
		for _, suite := range suites {
			all = append(all, suite.ID)
		}
	}
	return all
}
