package hardware

import (
	"errors"
	"fmt"
)

// Kind classifies a failure of a hardware call by what its caller can do about it.
type Kind string

// The kinds of failure. A caller retries Unreachable and Busy, asks a person for Unauthorized, Invalid and Unsupported,
// re-observes after NotFound and Conflict, and goes on asking after Ignored while a person looks.
const (
	// Unreachable: no answer, a broken connection, a TLS failure, or a 5xx that says nothing more.
	Unreachable Kind = "Unreachable"
	// Unauthorized: the credentials were refused.
	Unauthorized Kind = "Unauthorized"
	// Busy: the other side asks to come back later (429, 503 with a job running, a lazily loaded resource).
	Busy Kind = "Busy"
	// NotFound: the system, attempt or resource does not exist there.
	NotFound Kind = "NotFound"
	// Invalid: the answer, or the request, makes no sense (nonsense JSON, a missing member, a malformed address).
	Invalid Kind = "Invalid"
	// Unsupported: this hardware or firmware cannot do what was asked.
	Unsupported Kind = "Unsupported"
	// Conflict: the state changed between looking and acting, or another attempt is in charge.
	Conflict Kind = "Conflict"
	// Ignored: the hardware accepted what was asked, and its time is over without an effect. Error.Reason says which.
	Ignored Kind = "Ignored"
)

// Error is the failure of one hardware call. Its text never carries a credential or a token.
type Error struct {
	// Kind is what the caller can do about it.
	Kind Kind
	// Reason is set with the kind Ignored: ReasonPowerOnIgnored, ReasonPowerOffIgnored.
	Reason Reason
	// Op is what was tried, in the imperative: "set boot override", "open session".
	Op string
	// Target is the BMC address or the host's name.
	Target string
	// Err is the cause; may be nil.
	Err error
}

// Error implements error: "set boot override on https://10.0.0.7: Busy: cause".
func (e *Error) Error() string {
	text := e.Op
	if e.Target != "" {
		text += " on " + e.Target
	}
	text += ": " + string(e.Kind)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an *Error whose cause is formatted as fmt.Errorf does.
func Errorf(kind Kind, op, target, format string, args ...any) *Error {
	return &Error{Kind: kind, Op: op, Target: target, Err: fmt.Errorf(format, args...)}
}

// KindOf returns the kind of the first *Error in err's chain, and "" when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// ReasonOf returns the reason of the first *Error in err's chain, and "" when it has none.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}
