package redfish

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// maxHold is the longest time for which a BMC is left alone because it asked for it.
	maxHold = 5 * time.Minute
	// lockoutPause is how long a BMC is left alone that has locked the account. NVIDIA's and Supermicro's lock it for 30 seconds, and a
	// further login begins them again.
	lockoutPause = 30 * time.Second
)

// maxPlainText is the length of a text that is not JSON from which only the beginning is kept.
const maxPlainText = 200

// refusal is an answer of a BMC that is not a success.
type refusal struct {
	method, path string
	status       int
	messages     []message
	// text is the body where it is plain text.
	text string
	// retryAfter is the header of this name.
	retryAfter string
	// notBefore is the time before which the BMC asks not to be tried again; zero when it does not ask.
	notBefore time.Time
}

// message is a message from a Redfish message registry, or an error object with a code and a text only.
type message struct {
	ID       string   `json:"MessageId"`
	Text     string   `json:"Message"`
	Args     looseArg `json:"MessageArgs"`
	Severity string   `json:"Severity"`
	// NewSeverity is the member that has replaced Severity since Message v1.1.
	NewSeverity string `json:"MessageSeverity"`
	Resolution  string `json:"Resolution"`
	Code        string `json:"code"`
	ErrorText   string `json:"message"`
}

// looseArg are the arguments of a message. Some BMCs send numbers, or one text in place of a list.
type looseArg []string

// UnmarshalJSON implements json.Unmarshaler. It never fails, because a malformed argument must not hide the message.
func (a *looseArg) UnmarshalJSON(raw []byte) error {
	*a = nil
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, item := range list {
		if text := strings.Trim(string(item), `"`); text != "null" {
			*a = append(*a, text)
		}
	}
	return nil
}

// newRefusal returns the refusal in an answer, or nil when the answer is a success. now is the time of the answer.
//
// An answer with status 200 that holds an error and no resource is a refusal too: iDRAC answers so where a licence is missing.
func newRefusal(req *http.Request, resp *http.Response, body []byte, now time.Time) *refusal {
	r := &refusal{method: req.Method, path: req.URL.Path, status: resp.StatusCode, retryAfter: resp.Header.Get("Retry-After")}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		// AMI and others send the messages without an error object around them.
		if !bytes.Contains(body, []byte(`"error"`)) && !bytes.Contains(body, []byte(`"@Message.ExtendedInfo"`)) {
			return nil
		}
		var isResource bool
		if r.messages, isResource = parseMessages(body); isResource || !slices.ContainsFunc(r.messages, message.isFailure) {
			return nil
		}
	default:
		r.messages, _ = parseMessages(body)
		if len(r.messages) == 0 {
			r.text = plainText(body)
		}
		// All sessions in use is no reason to leave the BMC alone: it answers whoever has a session or sends the credentials, and what frees one must reach it.
		if r.kind() != hardware.SessionsExhausted {
			r.notBefore = retryTime(r, now)
		}
	}
	return r
}

// parseMessages returns the messages in a body, and whether the body is a resource. BMCs send @Message.ExtendedInfo as an array or as one
// object, within the member error or beside it, and some put only a code and a text into error.
func parseMessages(body []byte) (messages []message, isResource bool) {
	var document map[string]json.RawMessage
	// The decoder reads the first value only: some BMCs send an error and a resource in one body.
	if json.NewDecoder(bytes.NewReader(body)).Decode(&document) != nil {
		return nil, false
	}
	_, isResource = document["@odata.id"]
	for _, name := range []string{"@Message.ExtendedInfo", "Messages"} {
		messages = append(messages, parseInfo(document[name])...)
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(document["error"], &outer) != nil {
		return append(messages, parseInfo(document["error"])...), isResource
	}
	inner := parseInfo(outer["@Message.ExtendedInfo"])
	if len(inner) == 0 {
		inner = parseInfo(document["error"])
	}
	return append(messages, inner...), isResource
}

// maxMessages is how many messages of a refusal are read.
const maxMessages = 16

// parseInfo returns the messages of one @Message.ExtendedInfo, or of an error object with a code and a text.
func parseInfo(raw json.RawMessage) []message {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var messages []message
	for _, item := range list[:min(len(list), maxMessages)] {
		var m message
		if _, err := decodeMembers(item, &m); err != nil && json.Unmarshal(item, &m.Text) != nil {
			continue
		}
		m.ID, m.Text = cmp.Or(m.ID, m.Code), cmp.Or(m.Text, m.ErrorText)
		if m.ID != "" || m.Text != "" {
			messages = append(messages, m)
		}
	}
	return messages
}

// plainText returns the body where it is plain text, and "" for a page of HTML, which says nothing about the request.
func plainText(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if strings.ContainsAny(text, "<{[") || text == "null" {
		return ""
	}
	if runes := []rune(text); len(runes) > maxPlainText {
		return string(runes[:maxPlainText]) + "..."
	}
	return text
}

// retryTime returns the time before which the BMC asks not to be tried again: from the header Retry-After, which has seconds or a date
// (RFC 9110 10.2.3), from the argument of ServiceTemporarilyUnavailable, which has seconds, or because the account is locked. It is at most
// maxHold from now.
func retryTime(r *refusal, now time.Time) time.Time {
	if r.status < http.StatusBadRequest {
		return time.Time{}
	}
	at := parseRetryAfter(r.retryAfter, now)
	for _, m := range r.messages {
		if at.IsZero() && m.key() == "ServiceTemporarilyUnavailable" && len(m.Args) > 0 {
			at = parseRetryAfter(m.Args[0], now)
		}
	}
	if at.IsZero() && slices.ContainsFunc(r.messages, message.isLockout) {
		at = now.Add(lockoutPause)
	}
	if limit := now.Add(maxHold); at.After(limit) {
		return limit
	}
	return at
}

// parseRetryAfter returns the time that seconds or an HTTP date mean; zero when the text is neither.
func parseRetryAfter(text string, now time.Time) time.Time {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil {
		return now.Add(time.Duration(min(seconds, uint64(maxHold/time.Second))) * time.Second)
	}
	if date, err := http.ParseTime(text); err == nil {
		return date
	}
	return time.Time{}
}

// key returns the MessageKey: "PropertyUnknown" of "Base.1.8.PropertyUnknown". Registry and version may be missing.
func (m message) key() string { return m.ID[strings.LastIndexByte(m.ID, '.')+1:] }

// isFailure reports whether a message in an answer with status 200 says that the request failed. Many BMCs confirm a change with an
// error object that holds the message Success.
func (m message) isFailure() bool {
	if _, known := messageKinds[m.key()]; known {
		return true
	}
	severity := cmp.Or(m.NewSeverity, m.Severity)
	return severity == "Critical" || severity == "Warning"
}

// String returns the words of the vendor: the text with its arguments, otherwise id and arguments.
func (m message) String() string {
	text := m.Text
	for i, arg := range m.Args {
		text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1), arg)
	}
	switch {
	case text != "" && m.ID != "":
		return text + " (" + m.ID + ")"
	case text != "":
		return text
	case len(m.Args) > 0:
		return m.ID + " [" + strings.Join(m.Args, ", ") + "]"
	case m.Resolution != "":
		return m.ID + ": " + m.Resolution
	}
	return m.ID
}

// Error returns the request, the status and the words of the BMC.
func (r *refusal) Error() string {
	text := fmt.Sprintf("%s %s: HTTP %d %s", r.method, r.path, r.status, http.StatusText(r.status))
	words := []string{}
	for _, m := range r.messages {
		words = append(words, m.String())
	}
	if r.text != "" {
		words = append(words, r.text)
	}
	if len(words) > 0 {
		text += ": " + strings.Join(words, " ")
	}
	if r.status >= http.StatusBadRequest && r.retryAfter != "" {
		text += " (Retry-After: " + r.retryAfter + ")"
	}
	if !r.notBefore.IsZero() {
		text += "; no request is sent before " + r.notBefore.UTC().Format("15:04:05Z")
	}
	return text
}

// kindOrder is the order in which the kinds of several messages count. A BMC that is busy says nothing about what it was asked for.
var kindOrder = []hardware.Kind{hardware.Busy, hardware.Unauthorized, hardware.Unsupported, hardware.Conflict}

// kind returns the kind of the refusal.
//
// The credentials are blamed only by an answer that means them. Example: all sessions of a BMC are in use, or the account is locked for
// 30 seconds after failed logins of somebody else. If the Secret were blamed, an administrator would change a Secret that is right.
func (r *refusal) kind() hardware.Kind {
	// A lock-out goes first. Without it: "The maximum number of failed logins is reached: the account is locked, no session is made" counts as full
	// slots, and the sessions are listed with the credentials of the locked account, which begins its lock again.
	if slices.ContainsFunc(r.messages, message.isLockout) {
		return hardware.Busy
	}
	if slices.ContainsFunc(r.messages, func(m message) bool { return messageKinds[m.key()] == hardware.SessionsExhausted }) ||
		r.isLogin() && (slices.ContainsFunc(r.messages, message.isSessionLimit) || isAboutSessionLimit(r.text)) {
		return hardware.SessionsExhausted
	}
	if !r.notBefore.IsZero() {
		return hardware.Busy
	}
	for _, kind := range kindOrder {
		if slices.ContainsFunc(r.messages, func(m message) bool { return messageKinds[m.key()] == kind }) {
			return kind
		}
	}
	hasKnownReason := slices.ContainsFunc(r.messages, func(m message) bool { return m.ID != "" && !strings.HasSuffix(m.ID, "GeneralError") })
	if r.status == http.StatusForbidden && hasKnownReason {
		return hardware.Unsupported // such as a missing licence, or a BMC that is locked against changes
	}
	return statusKind(r.status)
}

// isLogin reports whether a new session was refused.
func (r *refusal) isLogin() bool {
	return r.method == http.MethodPost && strings.HasSuffix(strings.TrimRight(r.path, "/"), "/Sessions")
}

// isSessionLimit reports whether the message, in the answer to a login, says that every session is in use: by the message of the Base registry for
// a full collection, or in words, where a vendor has a message of its own.
func (m message) isSessionLimit() bool {
	return m.key() == "CreateLimitReachedForResource" || isAboutSessionLimit(m.Text)
}

// isAboutSessionLimit reports whether the text says that there are as many sessions as there may be.
func isAboutSessionLimit(text string) bool {
	text = strings.ToLower(text)
	isAboutLimit := strings.Contains(text, "maximum") || strings.Contains(text, "limit") || strings.Contains(text, "too many")
	return isAboutLimit && strings.Contains(text, "session")
}

// isLockout reports whether the message says that logins are refused for a while, whatever the credentials.
func (m message) isLockout() bool {
	key, text := strings.ToLower(m.key()), strings.ToLower(m.Text)
	for _, word := range []string{"accountlocked", "userlocked", "lockedout", "loginattemptdelayed"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	for _, words := range []string{"locked out", "is locked", "been locked", "temporarily locked"} {
		if strings.Contains(text, words) && !strings.Contains(text, " or ") {
			return true
		}
	}
	return false
}

// refusalOf returns the refusal in the chain of err, or nil.
func refusalOf(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// statusOf returns the HTTP status of a refused request in the chain of err, or 0.
func statusOf(err error) int {
	if r := refusalOf(err); r != nil {
		return r.status
	}
	return 0
}

// hasMessage reports whether the refusal of the BMC contains one of the message keys.
func hasMessage(err error, keys ...string) bool {
	r := refusalOf(err)
	return r != nil && slices.ContainsFunc(r.messages, func(m message) bool { return slices.Contains(keys, m.key()) })
}

// isMissing reports whether the BMC answered that it does not have the resource, or not this method there.
func isMissing(err error) bool {
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}
