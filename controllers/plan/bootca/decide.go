package bootca

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"
)

// Name is a name that every certificate of the boot service has.
const Name = "ingot-boot-service"

// Times are the periods of authority and certificate.
type Times struct {
	// AuthorityLife is how long an authority is valid, AuthorityRenew the age at which the next one is made.
	AuthorityLife, AuthorityRenew time.Duration
	// Overlap is longer than any attempt.
	Overlap time.Duration
	// Life is how long a certificate is valid, and Renew the age at which the next one is issued.
	Life, Renew time.Duration
	// Skew is how long before its issue a certificate is valid. It is longer than any attempt.
	Skew time.Duration
}

// DefaultTimes returns times for attempts that last no longer than longest.
func DefaultTimes(longest time.Duration) Times {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	return Times{
		AuthorityLife: 10 * year, AuthorityRenew: 9 * year, Overlap: max(7*day, 2*longest),
		Life: 8 * day, Renew: 4 * day, Skew: max(day, 2*longest),
	}
}

// Pair is a certificate and its private key, in PEM. The key is secret.
type Pair struct {
	Certificate, Key []byte
}

// Authorities is the content of the Secret of the authorities, which the boot service does not need.
type Authorities struct {
	// Signing signs certificates. Next, if it is not empty, signs them when Times.Overlap has passed since it was made.
	Signing, Next Pair
	// Former is the certificate of the authority that signed before, in PEM; empty: there is none. It is trusted until FormerUntil.
	Former      []byte
	FormerUntil time.Time
}

// Served is the content of the Secret of the boot service.
type Served struct {
	// Leaf is what is served. Its certificate is followed by that of its authority.
	Leaf Pair
	// Trusted are the authorities whose pins command lines have, in PEM.
	Trusted []byte
}

// Facts are what Decide decides by.
type Facts struct {
	// Now is the time.
	Now time.Time
	// Names are the host names and IP addresses under which servers ask.
	Names []string
	// Authorities and Served are what is stored; empty where it is not.
	Authorities Authorities
	Served      Served
	// Times are the periods.
	Times Times
}

// Action is the next step.
type Action string

// The actions. Each changes one Secret.
const (
	// Rest does nothing.
	Rest Action = "rest"
	// Replace makes an authority that signs at once, because there is none that can.
	Replace Action = "replace the authority"
	// Prepare makes the next authority.
	Prepare Action = "make the next authority"
	// Promote lets the next authority sign.
	Promote Action = "sign with the next authority"
	// Forget removes the former authority.
	Forget Action = "forget the former authority"
	// Serve issues a certificate, or changes which authorities are trusted.
	Serve Action = "issue a certificate"
)

// Decision is an action and its reason.
type Decision struct {
	// Action is what to do.
	Action Action
	// Why is the reason for the log. It is empty for Rest.
	Why string
}

// Decide returns the next action. What is stored about the authorities is decided first, because the certificate follows from it.
func Decide(f Facts) Decision {
	signing, why := usableAuthority(f.Authorities.Signing, f.Now)
	if why != "" {
		return Decision{Replace, why}
	}
	next, noNext := usableAuthority(f.Authorities.Next, f.Now)
	switch issued := issuedAt(signing, f.Times); {
	case noNext == "" && !f.Now.Before(issuedAt(next, f.Times).Add(f.Times.Overlap)):
		return Decision{Promote, "no attempt is left that knows the former authority alone"}
	case noNext != "" && !f.Now.Before(issued.Add(f.Times.AuthorityRenew)):
		return Decision{Prepare, "the authority ends at " + signing.NotAfter.UTC().Format(time.RFC3339)}
	case len(f.Authorities.Former) > 0 && !f.Now.Before(f.Authorities.FormerUntil):
		return Decision{Forget, "no attempt is left that began before the change"}
	}
	if why := f.leafProblem(signing); why != "" {
		return Decision{Serve, why}
	}
	if !bytes.Equal(f.Served.Trusted, f.Authorities.trusted()) {
		return Decision{Serve, "the trusted authorities have changed"}
	}
	return Decision{Action: Rest}
}

// usableAuthority returns the authority, or why it cannot sign. One of the future is used: the clock was set back, and its key is as good as before.
func usableAuthority(pair Pair, now time.Time) (*x509.Certificate, string) {
	if len(pair.Certificate) == 0 && len(pair.Key) == 0 {
		return nil, "there is no authority"
	}
	authority, err := pair.parse()
	switch {
	case err != nil:
		return nil, "the authority cannot be used: " + err.Error()
	case !authority.IsCA:
		return nil, "the authority cannot be used: it is none"
	case now.After(authority.NotAfter):
		return nil, "the authority has ended"
	}
	return authority, ""
}

// issuedAt returns when a certificate was issued.
func issuedAt(certificate *x509.Certificate, times Times) time.Time {
	return certificate.NotBefore.Add(times.Skew)
}

// leafProblem returns why another certificate must be issued; "" when none must.
func (f Facts) leafProblem(signing *x509.Certificate) string {
	leaf, err := f.Served.Leaf.parse()
	switch {
	case len(f.Served.Leaf.Certificate) == 0:
		return "there is no certificate"
	case err != nil:
		return err.Error()
	case leaf.CheckSignatureFrom(signing) != nil:
		return "another authority has signed the certificate"
	case f.Now.Before(issuedAt(leaf, f.Times)):
		return "the certificate is of the future: was the clock set back?"
	case !f.Now.Before(issuedAt(leaf, f.Times).Add(f.Times.Renew)):
		return "the certificate ends at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	for _, name := range withName(f.Names) {
		if leaf.VerifyHostname(name) != nil {
			return "the certificate lacks the name " + name
		}
	}
	return ""
}

// withName returns the names with Name, each once.
func withName(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(append([]string{Name}, names...))))
}

// trusted returns the authorities whose pins command lines have, in PEM.
func (a Authorities) trusted() []byte {
	return slices.Concat(a.Signing.Certificate, a.Next.Certificate, a.Former)
}
