package ironic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// kindReasons are the reasons of failed calls, by their kind: what fails is Ironic, not the BMC.
var kindReasons = map[hardware.Kind]hardware.Reason{
	hardware.Unreachable: hardware.ReasonInstallerUnreachable, hardware.Unauthorized: hardware.ReasonInstallerUnauthorized, hardware.Busy: hardware.ReasonInstallerBusy,
	hardware.NotFound: hardware.ReasonInstallerNotFound, hardware.Conflict: hardware.ReasonInstallerConflict, hardware.Unsupported: hardware.ReasonInstallerUnsupported,
	hardware.Invalid: hardware.ReasonInstallerInvalid,
}

// named returns the error of a call of the port with the reason of its kind, where it has none of its own. Of an error with a reason the cause alone is shown,
// so the cause says which request failed.
func named(err error) error {
	var failed *hardware.Error
	if !errors.As(err, &failed) || failed.Reason != "" {
		return err
	}
	copied := *failed
	copied.Op, copied.Target = "use Ironic", ""
	copied.Reason, copied.Err = kindReasons[failed.Kind], errors.New(failed.Error())
	return &copied
}

// limitText is in Ironic's refusal of what is above its limits of concurrent deployments and cleanings.
const limitText = "concurrent action limit"

// protectedText is in Ironic's refusal to undeploy, rebuild or delete a node that people have protected.
const protectedText = "is protected and cannot be"

// maxFault is how much of what Ironic says is repeated in an error.
const maxFault = 300

// asError returns the failure of a request as an *hardware.Error with what Ironic says.
func asError(err error, op, target string) error {
	if err == nil {
		return nil
	}
	if hardware.KindOf(err) != "" {
		return err
	}
	// Gophercloud logs in again by itself. The error of a login that fails does not unwrap.
	var login *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &login) && login.ErrReauth != nil {
		return asError(login.ErrReauth, opKeystone, target)
	}
	var response gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &response) {
		// Also what is no response of Ironic: a broken connection, a TLS failure, a time-out. The URL, whose query is long, would leave no room for the cause.
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = request.Err
		}
		return &hardware.Error{Kind: hardware.Unreachable, Op: op, Target: target, Err: errors.New(shorten(err.Error()))}
	}
	fault := faultOf(response.Body)
	failed := hardware.Errorf(kindOf(response.Actual, fault), op, target, "the answer is %d: %s%s", response.Actual, shorten(fault), loginAdvice(op, response.Actual, fault))
	switch text := strings.ToLower(fault); {
	case strings.Contains(text, limitText):
		failed.Reason = hardware.ReasonInstallerFull
	case strings.Contains(text, protectedText):
		failed.Err = fmt.Errorf("%w: when that may be done: baremetal node unset --protected NODE", failed.Err)
	}
	return failed
}

// asSecretError is asError for a request whose body has these secrets. Ironic repeats a field that it refuses, quoted by Python, so that the secrets in it cannot
// be taken out: an explanation that may repeat one is left out as a whole.
func asSecretError(err error, op, target string, secrets ...string) error {
	var response gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &response) {
		return asError(err, op, target)
	}
	fault := faultOf(response.Body)
	if !slices.ContainsFunc(secrets, func(secret string) bool { return hasPartOf(fault, secret) }) {
		return asError(err, op, target)
	}
	return hardware.Errorf(kindOf(response.Actual, fault), op, target,
		"the answer is %d; its explanation may repeat a secret: look into the log of Ironic's API%s", response.Actual, loginAdvice(op, response.Actual, fault))
}

// loginAdvice says after a refusal that follows from who asks what a person can do; empty: it is no such refusal.
func loginAdvice(op string, status int, fault string) string {
	switch {
	case kindOf(status, fault) != hardware.Unauthorized:
		return ""
	case op == opKeystone:
		return "; Keystone knows no such application credential, or it has ended: make a new one, and write it into the Secret of the NodeProvider's spec.ironic.credentialsSecretRef"
	case status == http.StatusUnauthorized:
		return "; Ironic takes no such login: correct the Secret of the NodeProvider's spec.ironic.credentialsSecretRef, which is read again within half a minute"
	case fault == unexplained:
		return "; what refuses it is Ironic's policy or a proxy before Ironic: see the log of Ironic's API for which"
	default:
		return "; Ironic knows the login, and its policy refuses this: have an administrator of Ironic give it the role for that, or make its project the owner of the node (baremetal node set --owner PROJECT NODE)"
	}
}

// minRun is the length of a run of letters and digits in a secret from which on its occurrence in a text is no accident.
const minRun = 6

// hasPartOf reports whether the text may have the secret or a part of it, whatever quotes its other characters.
func hasPartOf(text, secret string) bool {
	if secret == "" {
		return false
	}
	runs := strings.FieldsFunc(secret, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(runs) == 1 && runs[0] == secret {
		return strings.Contains(text, secret)
	}
	isLong := func(run string) bool { return len(run) >= minRun }
	if !slices.ContainsFunc(runs, isLong) {
		return true // nothing of it can be recognized
	}
	return slices.ContainsFunc(runs, func(run string) bool { return isLong(run) && strings.Contains(text, run) })
}

// kindOf classifies a response by its status, and where that is ambiguous by what Ironic says. Checked against Ironic 21.4:
// a limit of concurrent actions is a 500, an unknown conductor a 400 or 404 ("No valid host"), and a wrong state a 400.
func kindOf(status int, fault string) hardware.Kind {
	text := strings.ToLower(fault)
	for _, passing := range []string{
		"is locked by host", limitText, "no valid host", "no conductor service", "no free conductor worker", "is currently reserved",
	} {
		if strings.Contains(text, passing) {
			return hardware.Busy
		}
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden && isOfLogin(text):
		return hardware.Unauthorized
	case status == http.StatusNotFound:
		return hardware.NotFound
	case status == http.StatusNotAcceptable:
		return hardware.Unsupported
	case status == http.StatusConflict, status == http.StatusForbidden, strings.Contains(text, "while it is in state"), strings.Contains(text, "is in progress"):
		return hardware.Conflict
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return hardware.Busy
	case status >= http.StatusInternalServerError:
		return hardware.Unreachable
	default:
		return hardware.Invalid
	}
}

// isOfLogin reports whether a refusal with 403 follows from who asks: Ironic's policy says so, or something before Ironic, which explains nothing that Ironic would. Ironic answers
// with the same status to what it does for nobody, as to rebuild a node that is protected. Without it: that counts as wrong credentials, which nobody can correct, and
// every call logs in again.
func isOfLogin(text string) bool {
	for _, policy := range []string{"access was denied", "not authorized", "operation not permitted", unexplained} {
		if strings.Contains(text, policy) {
			return true
		}
	}
	return false
}

// unexplained takes the place of what Ironic says where the body has nothing of it.
const unexplained = "without an explanation"

// faultOf returns what Ironic says in the body of a refusal: {"error_message": {"faultstring": ...}}, whose inner object older versions send as a string.
func faultOf(body []byte) string {
	var outer struct {
		Message json.RawMessage `json:"error_message"`
	}
	var inner struct {
		Fault string `json:"faultstring"`
	}
	if json.Unmarshal(body, &outer) != nil || len(outer.Message) == 0 {
		return unexplained
	}
	var text string
	if json.Unmarshal(outer.Message, &text) == nil {
		outer.Message = json.RawMessage(text)
	}
	if json.Unmarshal(outer.Message, &inner) != nil || inner.Fault == "" {
		return unexplained
	}
	return inner.Fault
}

// shorten returns the text, or its beginning, on one line.
func shorten(text string) string { return input.Line(text, maxFault) }
