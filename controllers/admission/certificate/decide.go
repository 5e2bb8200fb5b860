package certificate

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"
)

// Times of a certificate's life.
type Times struct {
	// Life of a certificate.
	Life time.Duration
	// Renew is how long after it was made the next one is made: less than Life.
	Renew time.Duration
	// Spread is how long API servers are given to see a changed ValidatingWebhookConfiguration.
	Spread time.Duration
}

// DefaultTimes leave a month in which a renewal that fails can be mended.
func DefaultTimes() Times {
	return Times{Life: 90 * 24 * time.Hour, Renew: 60 * 24 * time.Hour, Spread: 5 * time.Minute}
}

// Stored is what the Secret holds.
type Stored struct {
	// Serving is what is served; Next, where it is not empty, is served when API servers trust it.
	Serving, Next Pair
	// Trusted are the authorities, in PEM.
	Trusted []byte
}

// Facts are what is decided on.
type Facts struct {
	// Now is the time.
	Now time.Time
	// Names that API servers ask for.
	Names []string
	// Stored is what the Secret holds; zero: there is none.
	Stored Stored
	// Injected is what API servers trust: the caBundle of each webhook of the configuration.
	Injected [][]byte
	// Since is how long the configuration is known to have had them, where they are what Stored trusts.
	Since time.Time
	// Times of the certificate.
	Times Times
}

// Action is what must be done now.
type Action int

// Actions, in the order of a life.
const (
	// Rest: nothing has to be done.
	Rest Action = iota
	// Replace: there is nothing that could be served. Make a certificate and serve it.
	Replace
	// Prepare makes the next certificate and trusts it.
	Prepare
	// Inject writes the trusted authorities into the configuration.
	Inject
	// Promote serves the next certificate.
	Promote
	// Forget removes authorities that have ended.
	Forget
)

// String names the action for the log.
func (a Action) String() string {
	return [...]string{"rest", "replace", "prepare", "inject", "promote", "forget"}[a]
}

// Decision is an action and why.
type Decision struct {
	// Action to take.
	Action Action
	// Why, for the log; empty for Rest.
	Why string
}

// Decide says what has to be done next.
func Decide(f Facts) Decision {
	serving, why := served(f)
	if why != "" {
		return Decision{Replace, why}
	}
	next, err := f.Stored.Next.usable(f.Names)
	pending := err == nil && trusts(f.Stored.Trusted, next) && next.NotAfter.After(serving.NotAfter)
	if !pending && !f.Now.Before(serving.NotBefore.Add(skew+f.Times.Renew)) {
		return Decision{Prepare, "the certificate ends at " + serving.NotAfter.UTC().Format(time.RFC3339)}
	}
	if kept := trusted(f.Stored.Trusted, f.Now); !bytes.Equal(kept, f.Stored.Trusted) {
		return Decision{Forget, "an authority has ended, or is there twice"}
	}
	if !f.injected() {
		return Decision{Inject, "API servers do not trust what is trusted here"}
	}
	if pending && !f.Now.Before(f.Since.Add(f.Times.Spread)) {
		return Decision{Promote, "API servers trust the next certificate"}
	}
	return Decision{}
}

// served is the certificate that is served, or why it cannot be.
func served(f Facts) (*x509.Certificate, string) {
	serving, err := f.Stored.Serving.usable(f.Names)
	switch {
	case err != nil:
		return nil, err.Error()
	case f.Now.After(serving.NotAfter):
		return nil, "the certificate has ended"
	case f.Now.Before(serving.NotBefore):
		return nil, "the certificate is of the future: was the clock set back?"
	case !trusts(f.Stored.Trusted, serving):
		return nil, "no trusted authority has signed the certificate"
	}
	return serving, ""
}

// injected says whether API servers trust for each webhook what is trusted here.
func (f Facts) injected() bool {
	return !slices.ContainsFunc(f.Injected, func(bundle []byte) bool { return !bytes.Equal(bundle, f.Stored.Trusted) })
}
