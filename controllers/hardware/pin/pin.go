package pin

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// prefix begins a pin. It names the hash, as in RFC 7469, whose pins are over the same bytes.
const prefix = "sha256:"

// form is the form of a pin.
var form = regexp.MustCompile("^" + prefix + "[0-9a-f]{64}$")

// Of returns the pin of a certificate: the digest of its subject's public key. A certificate that is renewed with the same key keeps it.
func Of(certificate *x509.Certificate) string {
	digest := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return prefix + hex.EncodeToString(digest[:])
}

// Check returns an error for a text that is no pin.
func Check(text string) error {
	if !form.MatchString(text) {
		return fmt.Errorf("%q: expected %s and 64 hexadecimal digits", text, prefix)
	}
	return nil
}

// RefusedError is the error of a server whose certificate is not accepted. Its text is for the console of a server.
type RefusedError struct {
	// Seen says what is wrong with the certificate. Expected are the pins.
	Seen     string
	Expected []string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the certificate is not accepted: expected one of the authority %s, seen: %s", strings.Join(e.Expected, " or "), e.Seen)
}

// ClientConfig returns the TLS settings of a client that accepts certificates of the pinned authorities and no other ones. now returns the time.
func ClientConfig(pins []string, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// VerifyConnection does it instead, also when a session is resumed. It does not compare the name.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return Verify(state.PeerCertificates, pins, now())
		},
	}
}

// Verify returns a *RefusedError unless one of the pinned authorities, which is in the chain, has signed the first certificate of the chain.
func Verify(chain []*x509.Certificate, pins []string, now time.Time) error {
	if len(chain) == 0 {
		return &RefusedError{Seen: "no certificate", Expected: pins}
	}
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	var seen []string
	isPinned := false
	for _, authority := range chain[1:] {
		if of := Of(authority); authority.IsCA && slices.Contains(pins, of) {
			options.Roots.AddCert(authority)
			isPinned = true
		} else {
			seen = append(seen, of)
		}
	}
	if !isPinned {
		return &RefusedError{Seen: describeOthers(chain[0], seen), Expected: pins}
	}
	if _, err := chain[0].Verify(options); err != nil {
		return &RefusedError{Seen: describe(chain[0], err, now), Expected: pins}
	}
	return nil
}

// describeOthers says which authorities the chain of a certificate has.
func describeOthers(certificate *x509.Certificate, authorities []string) string {
	if len(authorities) == 0 {
		return "a certificate without an authority, its own key is " + Of(certificate)
	}
	return "one of the authority " + strings.Join(authorities, " and ")
}

// describe says what is wrong with a certificate whose authority is a pinned one.
func describe(certificate *x509.Certificate, err error, now time.Time) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		if invalid.Cert != nil {
			certificate = invalid.Cert
		}
		return fmt.Sprintf("one that is valid from %s to %s, and the clock of this machine says %s", inUTC(certificate.NotBefore), inUTC(certificate.NotAfter), inUTC(now))
	}
	return err.Error()
}

func inUTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }
