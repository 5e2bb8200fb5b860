package certificate

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"
)

// Times are the periods in the lifetime of a certificate.
type Times struct {
	// Life is how long a certificate is valid.
	Life time.Duration
	// Renew is the age of a certificate at which the next one is issued. It is less than Life.
	Renew time.Duration
	// Spread is how long API servers get to observe a changed ValidatingWebhookConfiguration.
	Spread time.Duration
}

// DefaultTimes returns times that leave a month in which the cause of a failing renewal can be removed.
func DefaultTimes() Times {
	return Times{Life: 90 * 24 * time.Hour, Renew: 60 * 24 * time.Hour, Spread: 5 * time.Minute}
}

// Stored is the content of the Secret.
type Stored struct {
	// Serving is the certificate that is served. Next, if it is not empty, is served once API servers trust it.
	Serving, Next Pair
	// Trusted are the trusted authorities, in PEM.
	Trusted []byte
}

// Facts are what Decide decides by.
type Facts struct {
	// Now is the time.
	Now time.Time
	// Names are the host names under which API servers call the webhook.
	Names []string
	// Stored is the content of the Secret. It is empty if the Secret does not exist.
	Stored Stored
	// Injected is the caBundle of each webhook of the configuration, which API servers trust.
	Injected [][]byte
	// Since is when the configuration was first observed with the authorities of Stored.Trusted.
	Since time.Time
	// Times are the periods of the certificate.
	Times Times
}

// Action is the next step of a rotation.
type Action int

// The actions, in the order of a rotation.
const (
	// Rest does nothing.
	Rest Action = iota
	// Replace issues a certificate and serves it at once, because there is none that can be served.
	Replace
	// Prepare issues the next certificate and trusts its authority.
	Prepare
	// Inject writes the trusted authorities into the configuration.
	Inject
	// Promote serves the next certificate.
	Promote
	// Forget removes authorities that have expired.
	Forget
)

// String returns the name of the action in logs and in the metric.
func (a Action) String() string {
	return [...]string{"rest", "replace", "prepare", "inject", "promote", "forget"}[a]
}

// Decision is an action and its reason.
type Decision struct {
	// Action is what to do.
	Action Action
	// Why is the reason for the log. It is empty for Rest.
	Why string
}

// Decide returns the next action.
func Decide(f Facts) Decision {
	serving, why := servingCertificate(f)
	if why != "" {
		return Decision{Replace, why}
	}
	next, err := f.Stored.Next.leafFor(f.Names)
	pending := err == nil && isTrusted(f.Stored.Trusted, next) && next.NotAfter.After(serving.NotAfter)
	if !pending && !f.Now.Before(serving.NotBefore.Add(skew+f.Times.Renew)) {
		return Decision{Prepare, "the certificate ends at " + serving.NotAfter.UTC().Format(time.RFC3339)}
	}
	if kept := mergedBundle(f.Stored.Trusted, f.Now); !bytes.Equal(kept, f.Stored.Trusted) {
		return Decision{Forget, "an authority has ended, or is there twice"}
	}
	if !f.isInjected() {
		return Decision{Inject, "API servers do not trust what is trusted here"}
	}
	if pending && !f.Now.Before(f.Since.Add(f.Times.Spread)) {
		return Decision{Promote, "API servers trust the next certificate"}
	}
	return Decision{}
}

// servingCertificate returns the certificate that is served, or the reason why it cannot be served.
func servingCertificate(f Facts) (*x509.Certificate, string) {
	serving, err := f.Stored.Serving.leafFor(f.Names)
	switch {
	case err != nil:
		return nil, err.Error()
	case f.Now.After(serving.NotAfter):
		return nil, "the certificate has ended"
	case f.Now.Before(serving.NotBefore):
		return nil, "the certificate is of the future: was the clock set back?"
	case !isTrusted(f.Stored.Trusted, serving):
		return nil, "no trusted authority has signed the certificate"
	}
	return serving, ""
}

// isInjected tells whether the configuration has the trusted authorities for each webhook.
func (f Facts) isInjected() bool {
	return !slices.ContainsFunc(f.Injected, func(bundle []byte) bool { return !bytes.Equal(bundle, f.Stored.Trusted) })
}
