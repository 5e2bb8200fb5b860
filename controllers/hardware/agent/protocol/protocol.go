package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Paths, relative to the service's base URL.
const (
	PathRegister    = "/agent/v1/register"
	PathConfigDrive = "/agent/v1/config-drive"
	PathProgress    = "/agent/v1/progress"
	PathResult      = "/agent/v1/result"
)

// Kernel arguments that tell the agent where its service is and what proves its right to ask.
const (
	ArgURL   = "ingot.url"
	ArgToken = "ingot.token"
)

// Limits of message bodies and texts, in bytes.
const (
	// MaxRequest bounds what the agent sends; an inventory of a big server is some tens of KiB.
	MaxRequest = 1 << 20
	// MaxDocuments bounds the documents of a config drive together: they must fit 64 MiB with the file system around them.
	MaxDocuments = 60 << 20
	// MaxReply bounds what the service sends: the documents in base64.
	MaxReply = MaxDocuments/3*4 + 1<<20
	// MaxMessage bounds Result.Message.
	MaxMessage = 1024
)

// Registration is the agent's first word.
type Registration struct {
	Inventory hardware.Inventory `json:"inventory"`
}

// Instructions say what the agent is to do.
type Instructions struct {
	// Attempt is for the agent's log only; the token speaks for the attempt.
	Attempt   int64              `json:"attempt"`
	Operation hardware.Operation `json:"operation"`
	// Image and RootDevice are set for Install.
	Image      *Image              `json:"image,omitempty"`
	RootDevice hardware.RootDevice `json:"rootDevice"`
	// Erase is set for Erase.
	Erase hardware.EraseMode `json:"erase,omitempty"`
	// ProgressMillis is how often progress is welcome.
	ProgressMillis int64 `json:"progressMillis"`
	// RemainingMillis is the time left to the attempt. It is no instant, because a server's clock may be years off.
	RemainingMillis int64 `json:"remainingMillis"`
}

// Image is hardware.Image on the wire.
type Image struct {
	URL      string `json:"url"`
	Checksum string `json:"checksum"`
	Format   string `json:"format"`
}

// ConfigDrive is hardware.ConfigDrive on the wire. It holds secrets: never log it.
type ConfigDrive struct {
	UserData    []byte `json:"userData,omitempty"`
	NetworkData []byte `json:"networkData,omitempty"`
	MetaData    []byte `json:"metaData,omitempty"`
}

// String keeps secrets out of anything that is printed.
func (ConfigDrive) String() string { return "config drive" }

// GoString keeps secrets out of %#v.
func (ConfigDrive) GoString() string { return "config drive" }

// Progress says how far the agent is: Step is Registered, Writing, Erasing or Verifying.
type Progress struct {
	Step hardware.Step `json:"step"`
	// DoneBytes and TotalBytes are of the image file as served, or of the disks when erasing; TotalBytes is 0 while unknown.
	DoneBytes  int64 `json:"doneBytes"`
	TotalBytes int64 `json:"totalBytes"`
}

// Result is the agent's last word. An empty Reason means success.
type Result struct {
	Reason  hardware.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Inventory is that of the registration once more: the process that heard it may have ended before it was written.
	Inventory *hardware.Inventory `json:"inventory,omitempty"`
}

// Code says why a request was refused.
type Code string

// Codes of refusals, each with the HTTP status it travels with.
const (
	// TokenInvalid: missing, malformed, or not signed with our key (401).
	TokenInvalid Code = "TokenInvalid"
	// TokenExpired: past its expiry, which is the attempt's deadline (401).
	TokenExpired Code = "TokenExpired"
	// TokenSuperseded: of an earlier attempt, or of an earlier boot within this attempt (409).
	TokenSuperseded Code = "TokenSuperseded"
	// AttemptClosed: the attempt is settled, not opened yet, or past its deadline (403).
	AttemptClosed Code = "AttemptClosed"
	// BadRequest: the message makes no sense, or not at this point (400).
	BadRequest Code = "BadRequest"
	// Unavailable: ask again (503).
	Unavailable Code = "Unavailable"
)

// Status is the HTTP status the code travels with.
func (c Code) Status() int {
	switch c {
	case TokenInvalid, TokenExpired:
		return http.StatusUnauthorized
	case TokenSuperseded:
		return http.StatusConflict
	case AttemptClosed:
		return http.StatusForbidden
	case BadRequest:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}

// Refusal is the body of an answer that is no success, and an error on both sides.
type Refusal struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Refuse makes a *Refusal whose message is formatted as fmt.Sprintf does. It must carry neither token nor user data.
func Refusalf(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first *Refusal in err's chain, and "" when there is none.
func CodeOf(err error) Code {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// errTrailing is returned for bytes behind the JSON document.
var errTrailing = errors.New("more than one JSON document")

// Decode reads exactly one JSON document of at most limit bytes, without unknown fields. Its errors quote no content,
// since the content may be secret.
func Decode(r io.Reader, limit int64, into any) error {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("reading body: %w", err)
	}
	if int64(len(data)) > limit {
		return fmt.Errorf("body is larger than %d bytes", limit)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("decoding the body: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}
