package hardware

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Kind classifies the failure of a hardware call by what the caller can do about it.
type Kind string

// The kinds of failure. A caller retries after Unreachable, Busy and SessionsExhausted, and observes again after NotFound and Conflict. A person must
// act on Unauthorized, Invalid and Unsupported. After Ignored the caller goes on retrying, and a person must look at the server.
const (
	// Unreachable means no response, a broken connection, a TLS failure, or a 5xx status without details.
	Unreachable Kind = "Unreachable"
	// Unauthorized means that the credentials were refused.
	Unauthorized Kind = "Unauthorized"
	// Busy means that the server asks the client to try later (429, 503 while a job runs, a resource that is not loaded yet).
	Busy Kind = "Busy"
	// SessionsExhausted means that every session that the BMC allows is in use, by whomever, and that it serves nobody without one. It ends when one does.
	SessionsExhausted Kind = "SessionsExhausted"
	// NotFound means that the system, the attempt or the resource does not exist.
	NotFound Kind = "NotFound"
	// Invalid means that the request or the response is malformed (broken JSON, a missing field, a malformed address).
	Invalid Kind = "Invalid"
	// Unsupported means that this hardware or firmware cannot do what was requested.
	Unsupported Kind = "Unsupported"
	// Conflict means that the state changed between observation and action, or that the host is at another attempt.
	Conflict Kind = "Conflict"
	// Ignored means that the hardware accepted the request and that it had no effect within the time-out. Error.Reason says which request.
	Ignored Kind = "Ignored"
)

// Error is the failure of one hardware call. Its text never contains a credential or a token.
type Error struct {
	// Kind says what the caller can do about the failure.
	Kind Kind
	// Reason is set with the kind Ignored (ReasonPowerOnIgnored, ReasonPowerOffIgnored) and where the cause is not the BMC. Then the text
	// of Err alone says what is wrong.
	Reason Reason
	// Op is the operation that failed, in the imperative: "set boot override", "open session".
	Op string
	// Target is the address of the BMC or the name of the host.
	Target string
	// RetryAfter is set where the server named how long it asks not to be tried again. A call before that fails at once. It is a duration, because whoever reads
	// the error may have another clock.
	RetryAfter time.Duration
	// Err is the cause; it may be nil.
	Err error
}

// Error returns the failure as text, such as "set boot override on https://10.0.0.7: Busy: cause".
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

// Errorf returns an *Error whose cause is formatted as by fmt.Errorf.
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

// RetryAfterOf returns for how long the first *Error in err's chain asks not to be tried again; 0: it does not ask.
func RetryAfterOf(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// numbers are the parts of a message that differ between two answers to the same request: times, identifiers and counts.
var numbers = regexp.MustCompile(`[0-9a-fA-F-]*[0-9][0-9a-fA-F:.-]*`)

// IsSameText reports whether two messages differ in nothing but numbers and identifiers, as those of two requests that fail for the same reason do.
func IsSameText(a, b string) bool {
	return numbers.ReplaceAllString(a, "#") == numbers.ReplaceAllString(b, "#")
}
