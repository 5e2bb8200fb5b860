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
	// errMalformed is wrapped when the response of a BMC cannot be used.
	errMalformed = errors.New("the BMC's answer makes no sense")
	// errClosed is returned by calls after Close.
	errClosed = errors.New("the Redfish client is closed")
	// errCredentialsRefused is returned for credentials that are not tried again yet.
	errCredentialsRefused = errors.New("the BMC refused these credentials a moment ago; they are not tried again yet, lest the account be locked out. " +
		"Correct the BMC's Secret")
)

// maxMessage is the maximum length of a text from a BMC, in characters.
const maxMessage = 400

// messageKinds are the kinds for MessageKeys of the Base registry (DSP8011) that say more than the HTTP status.
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

// classifyError returns the *hardware.Error for a failed call. Its text contains neither the credentials of the endpoint nor the token.
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
	// The errors of the context stay in the chain, so that a caller can distinguish its own cancellation from a BMC that does not respond.
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return hardware.Errorf(kind, op, endpoint.Address, "%s (%w)", text, known)
		}
	}
	return hardware.Errorf(kind, op, endpoint.Address, "%s", text)
}

// describeError returns the kind and the text of an error.
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
	// Any other error is from a decoder: JSON that is invalid or has unexpected types.
	return hardware.Invalid, "the BMC's answer cannot be read: " + err.Error()
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

// retryTime returns the text for a Retry-After header, which contains seconds or a date (RFC 9110 10.2.3).
func retryTime(retryAfter string) string {
	if seconds, err := strconv.ParseUint(retryAfter, 10, 31); err == nil {
		return fmt.Sprintf("in %d s", seconds)
	}
	return fmt.Sprintf("at %.40q", retryAfter)
}

// describeResponse returns the kind and the text of a response that is not a success.
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

// registryMessages returns the messages of a refusal and the kind for their MessageKeys, "" when there is none.
func registryMessages(answer *schemas.Error) (kind hardware.Kind, messages []string) {
	if len(answer.ExtendedInfos) == 0 {
		// gofish puts a body that is not a Redfish error, such as an HTML page, into Message. It is left out.
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

// messageKey returns the last part of "Base.1.8.PropertyUnknown". Registry and version may be missing.
func messageKey(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// statusOf returns the HTTP status of a refused request in the chain of err, or 0.
func statusOf(err error) int {
	var answer *schemas.Error
	if errors.As(err, &answer) {
		return answer.HTTPReturnedStatusCode
	}
	return 0
}

// redact returns the text without secrets, in one line and of limited length, so that it can be put into a status.
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

// encodedForms returns the forms in which a BMC may repeat a secret: unchanged, and as encoded in a URL or in JSON.
func encodedForms(secret string) []string {
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(fmt.Sprintf("%q", secret), `"`)}
	if quoted, err := json.Marshal(secret); err == nil {
		all = append(all, strings.Trim(string(quoted), `"`))
	}
	return all
}

// hasMessage reports whether the refusal of the BMC contains the message key.
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

// isResourceError reports whether the failure concerns only this resource. After any other failure every further request would fail too.
func isResourceError(err error) bool {
	kind, _ := describeError(err, nil)
	status := statusOf(err)
	lost := kind == hardware.Unauthorized && status != http.StatusForbidden || kind == hardware.Unreachable && status == 0
	return !lost && !errors.Is(err, errTooMany)
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
