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
	"strconv"
	"strings"
	"unicode"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

var (
	// ErrNonsense is wrapped by what a BMC's answer makes impossible.
	errMalformed = errors.New("the BMC's answer makes no sense")
	// ErrClosed is for calls after the end.
	errClosed = errors.New("the Redfish client is closed")
	// ErrHeldBack is for credentials that are not tried.
	errCredentialsRefused = errors.New("the BMC refused these credentials a moment ago; they are not tried again yet, lest the account be locked out. " +
		"Correct the BMC's Secret")
)

// maxMessage bounds the text taken from a BMC.
const maxMessage = 400

// messageKinds classifies by the MessageKey of the Base registry (DSP8011) where that says more than the HTTP status.
var messageKinds = map[string]hardware.Kind{
	"ServiceTemporarilyUnavailable":  hardware.Busy,
	"ServiceInUnknownState":          hardware.Busy,
	"ServiceShuttingDown":            hardware.Busy,
	"ResourceInStandby":              hardware.Busy,
	"ResourceInUse":                  hardware.Busy,
	"SessionLimitExceeded":           hardware.Busy,
	"OperationTimeout":               hardware.Busy,
	"CreateLimitReachedForResource":  hardware.Busy,
	"InsufficientPrivilege":          hardware.Unauthorized,
	"NoValidSession":                 hardware.Unauthorized,
	"ActionNotSupported":             hardware.Unsupported,
	"ActionParameterNotSupported":    hardware.Unsupported,
	"ActionParameterValueNotInList":  hardware.Unsupported,
	"PropertyNotWritable":            hardware.Unsupported,
	"PropertyUnknown":                hardware.Unsupported,
	"PropertyValueNotInList":         hardware.Unsupported,
	"OperationNotAllowed":            hardware.Conflict,
	"InvalidOperationForSystemState": hardware.Conflict,
}

// Classify makes the typed error of a failed call. Its text holds neither the endpoint's credentials nor the token.
func classifyError(op string, endpoint hardware.Endpoint, err error, state *callState, token string) error {
	var typed *hardware.Error
	if errors.As(err, &typed) {
		if typed.Err != nil {
			typed.Err = errors.New(redact(typed.Err.Error(), endpoint, token))
		}
		return typed
	}
	kind, text := describeError(err, state)
	text = redact(text, endpoint, token)
	// The context's errors stay in the chain: a caller tells its own cancellation from a BMC's silence by them.
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return hardware.Errorf(kind, op, endpoint.Address, "%s (%w)", text, known)
		}
	}
	return hardware.Errorf(kind, op, endpoint.Address, "%s", text)
}

func describeError(err error, state *callState) (hardware.Kind, string) {
	var answer *schemas.Error
	switch {
	case errors.As(err, &answer) && answer.HTTPReturnedStatusCode != 0:
		return describeResponse(answer, state)
	case errors.Is(err, errCredentialsRefused):
		return hardware.Unauthorized, err.Error()
	case errors.Is(err, errMalformed), errors.Is(err, errClosed), errors.Is(err, errForeignHost), errors.Is(err, errTooMany),
		errors.Is(err, errTooLarge):
		return hardware.Invalid, unwrapURL(err).Error()
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		return hardware.Unreachable, describeTransport(transport.Err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return hardware.Unreachable, "no answer in time"
	}
	// What remains came from a decoder: JSON that does not parse or does not fit.
	return hardware.Invalid, "the BMC's answer cannot be read: " + err.Error()
}

// unwrapURL takes off the URL that net/http puts before an error; the target is named already.
func unwrapURL(err error) error {
	var transport *url.Error
	if errors.As(err, &transport) {
		return transport.Err
	}
	return err
}

func describeTransport(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
	)
	switch {
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

// comeBack words a Retry-After header, which holds seconds or a date (RFC 9110 10.2.3).
func retryTime(retryAfter string) string {
	if seconds, err := strconv.ParseUint(retryAfter, 10, 31); err == nil {
		return fmt.Sprintf("in %d s", seconds)
	}
	return fmt.Sprintf("at %.40q", retryAfter)
}

func describeResponse(answer *schemas.Error, state *callState) (hardware.Kind, string) {
	status := answer.HTTPReturnedStatusCode
	text := fmt.Sprintf("HTTP %d %s", status, http.StatusText(status))
	kind, messages := registryMessages(answer)
	if kind == "" {
		kind = statusKind(status)
	}
	if len(messages) > 0 {
		text += ": " + strings.Join(messages, " ")
	}
	if status >= http.StatusBadRequest && state != nil && state.retryAfter != "" && kind != hardware.Unauthorized {
		return hardware.Busy, text + " (asks to come back " + retryTime(state.retryAfter) + ")"
	}
	return kind, text
}

// registry reads the messages of a refusal, and the kind that they tell, "" when they tell none.
func registryMessages(answer *schemas.Error) (kind hardware.Kind, messages []string) {
	if len(answer.ExtendedInfos) == 0 {
		// gofish puts a body that is no Redfish error into Message: an HTML page, or worse. It is left out.
		if answer.Code != "" && answer.Message != "" {
			messages = append(messages, answer.Message)
		}
		return messageKinds[messageKey(answer.Code)], messages
	}
	for _, info := range answer.ExtendedInfos {
		if k, ok := messageKinds[messageKey(info.MessageID)]; ok {
			kind = k
		}
		if info.Message != "" {
			messages = append(messages, info.Message)
		}
	}
	return kind, messages
}

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

// messageKey is the last part of "Base.1.8.PropertyUnknown" (also without registry and version).
func messageKey(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// Status is the status of a refused request in err's chain, or 0.
func statusOf(err error) int {
	var answer *schemas.Error
	if errors.As(err, &answer) {
		return answer.HTTPReturnedStatusCode
	}
	return 0
}

// scrub makes text from a BMC fit for a status: secrets out, one line, bounded.
func redact(text string, endpoint hardware.Endpoint, token string) string {
	secrets := []string{endpoint.Password, token}
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
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "..."
	}
	return text
}

// forms are the ways in which a BMC may echo a secret: as it is, as a URL holds it, as JSON holds it.
func encodedForms(secret string) []string {
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(fmt.Sprintf("%q", secret), `"`)}
	if quoted, err := json.Marshal(secret); err == nil {
		all = append(all, strings.Trim(string(quoted), `"`))
	}
	return all
}

// Says tells whether the BMC's refusal carries the message key.
func hasMessage(err error, key string) bool {
	var answer *schemas.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, info := range answer.ExtendedInfos {
		if messageKey(info.MessageID) == key {
			return true
		}
	}
	return false
}

// Passing tells whether a failure only means that this resource cannot be had now; any other would befall every further
// request as well.
func isResourceError(err error) bool {
	kind, _ := describeError(err, nil)
	status := statusOf(err)
	lost := kind == hardware.Unauthorized && status != http.StatusForbidden || kind == hardware.Unreachable && status == 0
	return !lost && !errors.Is(err, errTooMany)
}

// Guard turns a panic, which the parser of a BMC's nonsense may cause, into an error.
func recoverPanic(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errMalformed, r)
		}
	}()
	return work()
}
