package redfish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

var (
	// errMalformed is wrapped when the response of a BMC cannot be used.
	errMalformed = errors.New("the BMC's answer makes no sense")
	// errClosed is returned by calls after Close.
	errClosed = errors.New("the Redfish client is closed")
	// errNotKnown is returned when a session is ended that the BMC says it does not know.
	errNotKnown = errors.New("the BMC does not know the session")
	// errCredentialsRefused is returned for credentials that are not tried again yet.
	errCredentialsRefused = errors.New("the BMC refused these credentials a moment ago; they are not tried again yet, lest the account be locked out. " +
		"Correct the BMC's Secret")
)

// maxMessage is the maximum length of a text from a BMC, in characters.
const maxMessage = 400

// messageKinds are the kinds for MessageKeys that say more than the HTTP status: of the Base registry (DSP8011), then of vendors.
var messageKinds = map[string]hardware.Kind{
	"ServiceTemporarilyUnavailable":  hardware.Busy,
	"ServiceInUnknownState":          hardware.Busy,
	"ServiceShuttingDown":            hardware.Busy,
	"ResourceInStandby":              hardware.Busy,
	"ResourceInUse":                  hardware.Busy,
	"SessionLimitExceeded":           hardware.SessionsExhausted,
	"OperationTimeout":               hardware.Busy,
	"CreateLimitReachedForResource":  hardware.Busy,
	"InsufficientPrivilege":          hardware.Unauthorized,
	"NoValidSession":                 hardware.Unauthorized,
	"AccessDenied":                   hardware.Unauthorized,
	"ResourceAtUriUnauthorized":      hardware.Unauthorized,
	"AuthenticationTokenRequired":    hardware.Unauthorized,
	"PasswordChangeRequired":         hardware.Unauthorized,
	"ActionNotSupported":             hardware.Unsupported,
	"ActionParameterNotSupported":    hardware.Unsupported,
	"ActionParameterValueNotInList":  hardware.Unsupported,
	"PropertyNotWritable":            hardware.Unsupported,
	"PropertyUnknown":                hardware.Unsupported,
	"PropertyValueNotInList":         hardware.Unsupported,
	"OperationNotAllowed":            hardware.Conflict,
	"InvalidOperationForSystemState": hardware.Conflict,
	"ActionParameterValueConflict":   hardware.Conflict,
	"PreconditionFailed":             hardware.Conflict,
	"PreconditionRequired":           hardware.Conflict,

	// AMI: the host is in its self-test or in its setup; a change belongs to the settings object; a change needs an ETag.
	"ServiceTemporarilyUnavailableDueToHostBooting": hardware.Busy,
	"OperationSupportedInFutureStateURI":            hardware.Unsupported,
	"PreconditionHeaderMissing":                     hardware.Conflict,
	// HPE: a change of settings during the self-test; a member that cannot be written.
	"UnableToModifyDuringSystemPOST": hardware.Busy,
	"UnsupportedOperation":           hardware.Unsupported,
	// A licence is missing: HPE, Supermicro, Dell, and the Base registry.
	"LicenseKeyRequired":  hardware.Unsupported,
	"OemLicenseNotPassed": hardware.Unsupported,
	"LIC501":              hardware.Unsupported,
	"LicenseRequired":     hardware.Unsupported,
	// Dell: not ready yet (two), all sessions in use, already in that power state.
	"SYS518":  hardware.Busy,
	"SWC0700": hardware.Busy,
	"RAC0218": hardware.SessionsExhausted,
	"PSU501":  hardware.Conflict,
}

// classifyError returns the *hardware.Error for a failed call. Its text contains neither the credentials of the endpoint, nor the token, nor the
// secret of the call. now is by the client's clock; zero: how long the BMC asks to wait is left out.
func classifyError(op string, endpoint hardware.Endpoint, err error, state *callState, token string, now time.Time) error {
	var typed *hardware.Error
	if errors.As(err, &typed) {
		if typed.Err != nil {
			typed.Err = errors.New(redact(typed.Err.Error(), endpoint, token, state.secretOf()))
		}
		return typed
	}
	kind, text := describeError(err, state)
	text = redact(text, endpoint, token, state.secretOf())
	if at := notBeforeOf(err); !at.IsZero() && !now.IsZero() {
		return &hardware.Error{Kind: kind, Op: op, Target: endpoint.Address, RetryAfter: at.Sub(now), Err: errors.New(text)}
	}
	// The errors of the context stay in the chain, so that a caller can distinguish its own cancellation from a BMC that does not respond.
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return hardware.Errorf(kind, op, endpoint.Address, "%s (%w)", text, known)
		}
	}
	return hardware.Errorf(kind, op, endpoint.Address, "%s", text)
}

// describeError returns the kind and the text of an error. state may be nil.
func describeError(err error, state *callState) (hardware.Kind, string) {
	var held *heldError
	switch {
	case errors.As(err, &held):
		return hardware.Busy, held.Error()
	case asSlotsError(err) != nil:
		return hardware.SessionsExhausted, asSlotsError(err).Error()
	case refusalOf(err) != nil:
		return refusalOf(err).kind(), refusalOf(err).Error()
	case errors.Is(err, errCredentialsRefused):
		return hardware.Unauthorized, err.Error()
	case errors.Is(err, errMalformed), errors.Is(err, errClosed), errors.Is(err, errForeignHost), errors.Is(err, errTooMany),
		errors.Is(err, errTooLarge), errors.Is(err, errRedirects), errors.Is(err, errEmpty):
		return hardware.Invalid, state.lastRequest() + unwrapURL(err).Error()
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		return hardware.Unreachable, state.lastRequest() + describeTransport(transport.Err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return hardware.Unreachable, state.lastRequest() + "no answer in time"
	}
	// Any other error is from a decoder: JSON that is invalid or has unexpected types.
	return hardware.Invalid, state.lastRequest() + "the BMC's answer cannot be read: " + err.Error()
}

// notBeforeOf returns the time before which the BMC asks not to be tried again; zero when it does not ask.
func notBeforeOf(err error) time.Time {
	var held *heldError
	if errors.As(err, &held) {
		return held.until
	}
	if r := refusalOf(err); r != nil {
		return r.notBefore
	}
	return time.Time{}
}

// unwrapURL removes the URL that net/http adds to an error, because hardware.Error already contains the target.
func unwrapURL(err error) error {
	var transport *url.Error
	if errors.As(err, &transport) {
		return transport.Err
	}
	return err
}

// describeTransport returns the text of an error of net/http.
func describeTransport(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		old      *oldTLSError
	)
	switch {
	case errors.As(err, &old):
		return old.Error()
	case errors.As(err, &unknown):
		return "the BMC's certificate is signed by an authority that is not trusted: add it to the provider's CA bundle, or turn verification off there"
	case errors.As(err, &hostname), errors.As(err, &invalid), errors.As(err, &verify):
		return "the BMC's certificate is not valid for this address: " + err.Error()
	case errors.As(err, &record):
		return "the BMC does not speak TLS on this port: " + err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return err.Error()
}

// statusKind returns the kind for an HTTP status.
func statusKind(status int) hardware.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return hardware.Unauthorized
	case http.StatusNotFound, http.StatusGone:
		return hardware.NotFound
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return hardware.Unsupported
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired:
		return hardware.Conflict
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusLocked:
		return hardware.Busy
	case http.StatusRequestTimeout:
		return hardware.Unreachable
	}
	if status >= http.StatusInternalServerError {
		return hardware.Unreachable
	}
	return hardware.Invalid
}

// redact returns the text without secrets, in one line and of limited length, so that it can be put into a status.
func redact(text string, endpoint hardware.Endpoint, secrets ...string) string {
	secrets = append([]string{endpoint.Password}, secrets...)
	if len(endpoint.Username) > 2 { // shorter ones occur in any word
		secrets = append(secrets, endpoint.Username)
	}
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		for _, form := range encodedForms(secret) {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	return input.Line(text, maxMessage)
}

// encodedForms returns the forms in which a BMC may repeat a secret: unchanged, and as encoded in a URL or in JSON.
func encodedForms(secret string) []string {
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(fmt.Sprintf("%q", secret), `"`)}
	if quoted, err := json.Marshal(secret); err == nil {
		all = append(all, strings.Trim(string(quoted), `"`))
	}
	return all
}

// isResourceError reports whether the failure concerns only this resource. After any other failure every further request would fail too.
func isResourceError(err error) bool {
	kind, _ := describeError(err, nil)
	status := statusOf(err)
	lost := kind == hardware.Unauthorized && status != http.StatusForbidden || kind == hardware.Unreachable && status == 0
	var held *heldError
	return !lost && !errors.Is(err, errTooMany) && !errors.As(err, &held)
}

// recoverPanic runs work and returns a panic as an error. A malformed response may cause a panic in the parser.
func recoverPanic(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errMalformed, r)
		}
	}()
	return work()
}
