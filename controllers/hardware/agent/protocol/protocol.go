package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Paths, relative to the base URL of the boot service.
const (
	PathChallenge   = "/agent/v1/challenge"
	PathRegister    = "/agent/v1/register"
	PathDisks       = "/agent/v1/disks"
	PathConfigDrive = "/agent/v1/config-drive"
	PathProgress    = "/agent/v1/progress"
	PathResult      = "/agent/v1/result"
	PathLog         = "/agent/v1/log"
)

// HeaderKey is the header of every request with the key of the agent, as KeyBytes bytes in hexadecimal digits.
const HeaderKey = "Ingot-Agent-Key"

// KeyBytes is the length of the key of an agent.
const KeyBytes = 32

// Limits of message bodies and texts, in bytes.
const (
	// MaxRequest is the maximum body of a request. The inventory of a big server has some tens of KiB.
	MaxRequest = 1 << 20
	// maxDocuments is the maximum total size of the documents of a config drive. With the file system they must fit into 64 MiB.
	maxDocuments = 60 << 20
	// MaxReply is the maximum body of a response: the documents in base64.
	MaxReply = maxDocuments/3*4 + 1<<20
	// MaxLog is how much of an agent's log is kept, and MaxLogChunk the maximum length of LogChunk.Text.
	MaxLog, MaxLogChunk = 64 << 10, 32 << 10
	// MaxMessage is the maximum length of Result.Message.
	MaxMessage = 1024
)

// Registration is the first request of the agent.
type Registration struct {
	Inventory hardware.Inventory `json:"inventory"`
	// TPM is that of the server. Agents of earlier versions say nothing of it.
	TPM *TPM `json:"tpm,omitempty"`
}

// TPM is what an agent says of its server's TPM 2.0.
type TPM struct {
	// Key is its endorsement key, a SubjectPublicKeyInfo in DER with the parameters of a default template (package tpm).
	Key []byte `json:"key,omitempty"`
	// Certificate is that of the key in DER, where there is one.
	Certificate []byte `json:"certificate,omitempty"`
	// Name is that of the object in the TPM that the key of the agent is bound to.
	Name []byte `json:"name,omitempty"`
	// IsAbsent says that the server has none. The others are absent then.
	IsAbsent bool `json:"isAbsent,omitempty"`
	// Error says why the TPM proves nothing. The others are absent then.
	Error string `json:"error,omitempty"`
}

// Challenge is the response to a TPM: the agent's key of KeyBytes bytes, sealed for that TPM.
type Challenge struct {
	Credential []byte `json:"credential"`
	Secret     []byte `json:"secret"`
}

// String returns a fixed text: on a server with that TPM it is as good as the key.
func (Challenge) String() string { return "challenge" }

// Instructions are the response to a Registration: the operation that the agent carries out. They have nothing that tells the host's server from another one,
// such as serial numbers: whoever passes for its agent must not learn here what it then reports.
type Instructions struct {
	// Attempt is for the log of the agent only. The token identifies the attempt.
	Attempt   int64              `json:"attempt"`
	Operation hardware.Operation `json:"operation"`
	// Image is set for Install.
	Image *Image `json:"image,omitempty"`
	// Erase is set for Erase.
	Erase hardware.EraseMode `json:"erase,omitempty"`
	// CABundle has certificates in PEM that image servers are trusted by, beside those of the ramdisk.
	CABundle string `json:"caBundle,omitempty"`
	// ProgressMillis is the interval at which the agent reports its progress, in milliseconds.
	ProgressMillis int64 `json:"progressMillis"`
	// RemainingMillis is the time until the deadline of the attempt, in milliseconds. It is a duration, because the clock of a server
	// may be wrong by years.
	RemainingMillis int64 `json:"remainingMillis"`
}

// Disks are what the agent has found of the disks of its server, before it changes one.
type Disks struct {
	// Disks can be written.
	Disks []hardware.Disk `json:"disks,omitempty"`
	// Unusable are disks that cannot be written, and controllers that hide their disks.
	Unusable []hardware.UnusableDisk `json:"unusable,omitempty"`
}

// DiskDecision is the response to Disks where the operation may go on.
type DiskDecision struct {
	// RootDisk is the index in Disks.Disks of the one that the image is written to, for Install.
	RootDisk int `json:"rootDisk"`
	// Note says why it is that one, and is what the agent's Result says.
	Note string `json:"note,omitempty"`
}

// Image is the JSON form of hardware.Image.
type Image struct {
	URL      string `json:"url"`
	Checksum string `json:"checksum"`
	Format   string `json:"format"`
}

// ConfigDrive is the JSON form of hardware.ConfigDrive. It holds secrets: never log it.
type ConfigDrive struct {
	UserData    []byte `json:"userData,omitempty"`
	NetworkData []byte `json:"networkData,omitempty"`
	MetaData    []byte `json:"metaData,omitempty"`
}

// String returns a fixed text, so that printing a ConfigDrive shows no secret.
func (ConfigDrive) String() string { return "config drive" }

// GoString does the same for the verb %#v.
func (ConfigDrive) GoString() string { return "config drive" }

// Progress is the progress of the agent. Step is Registered, Writing, Erasing or Verifying.
type Progress struct {
	Step hardware.Step `json:"step"`
	// DoneBytes and TotalBytes count bytes of the image as served, or of the disks for an erase. TotalBytes is 0 while unknown.
	DoneBytes  int64 `json:"doneBytes"`
	TotalBytes int64 `json:"totalBytes"`
}

// Result is the last request of the agent. An empty Reason means success; Message then says what a person should know.
type Result struct {
	Reason  hardware.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// RootDisk is the disk that the image was written to. It is set for a successful Install.
	RootDisk *hardware.Disk `json:"rootDisk,omitempty"`
	// Evidence is what was done to each disk. It is set for Erase, whether it succeeded or failed.
	Evidence []hardware.DiskEvidence `json:"evidence,omitempty"`
}

// LogChunk is a part of the agent's log.
type LogChunk struct {
	// Offset is the number of bytes of the log before Text, and Oldest the first that the agent still has.
	Offset int64 `json:"offset"`
	Oldest int64 `json:"oldest"`
	// Text is printable, with tabs and ends of lines.
	Text string `json:"text"`
}

// LogReceipt is the answer to a LogChunk.
type LogReceipt struct {
	// Next is the offset that the boot service wants next. It is before the end of the chunk where another replica has received what came before.
	Next int64 `json:"next"`
}

// Code is the reason for which a request was refused.
type Code string

// Codes of refusals, each with its HTTP status.
const (
	// TokenInvalid means that the token is missing, malformed, or not signed with the key of the boot service (401).
	TokenInvalid Code = "TokenInvalid"
	// TokenExpired means that the token has expired, which it does at the deadline of the attempt (401).
	TokenExpired Code = "TokenExpired"
	// TokenSuperseded means that the token is from an earlier attempt, or from an earlier boot within this attempt (409).
	TokenSuperseded Code = "TokenSuperseded"
	// KeyInvalid means that the key of the agent is missing or malformed, or is not the one that was sealed for its server's TPM (401).
	KeyInvalid Code = "KeyInvalid"
	// NotRegistered means that no agent has registered with the token yet (409).
	NotRegistered Code = "NotRegistered"
	// AnotherAgent means that an agent with another key has registered with the token (409).
	AnotherAgent Code = "AnotherAgent"
	// WrongServer means that the server lacks the NIC that the host boots from (403).
	WrongServer Code = "WrongServer"
	// ServerDiffers means that the server differs from the known hardware of the host, and that the NodeProvider has strictIdentity, or that its TPM differs (403).
	ServerDiffers Code = "ServerDiffers"
	// DisksRefused means that nothing may be done to the disks of the server, so that the attempt has failed (403).
	DisksRefused Code = "DisksRefused"
	// AttemptClosed means that the attempt has ended, that the host has not been powered on for it, or that its deadline has passed (403).
	AttemptClosed Code = "AttemptClosed"
	// BadRequest means that the message is invalid, or not allowed in this state (400).
	BadRequest Code = "BadRequest"
	// NotYet means that what was asked for is not made yet, and that the agent asks again until the deadline of its attempt (503).
	NotYet Code = "NotYet"
	// Unavailable means that the request can be repeated later (503).
	Unavailable Code = "Unavailable"
)

// Status returns the HTTP status of the code.
func (c Code) Status() int {
	switch c {
	case TokenInvalid, TokenExpired, KeyInvalid:
		return http.StatusUnauthorized
	case TokenSuperseded, NotRegistered, AnotherAgent:
		return http.StatusConflict
	case AttemptClosed, WrongServer, ServerDiffers, DisksRefused:
		return http.StatusForbidden
	case BadRequest:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}

// Refusal is the body of a response that is not a success. It implements error on both sides.
type Refusal struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Error returns code and message.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Refusalf returns a *Refusal whose message is formatted as by fmt.Sprintf. The message must contain neither token nor user data.
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

// maxDepth and maxElements are those of a message. The inventory of a big server has some thousand elements.
const maxDepth, maxElements = 16, 32768

// errTrailing is returned for bytes after the JSON document.
var errTrailing = errors.New("more than one JSON document")

// Decode reads exactly one JSON document of at most limit bytes without unknown fields. Its errors do not quote the content, because
// that may be secret.
func Decode(r io.Reader, limit int64, into any) error {
	data, err := input.ReadAll(r, limit)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	if err := input.CheckJSON(data, input.Bounds{Bytes: limit, Depth: maxDepth, Elements: maxElements}); err != nil {
		return fmt.Errorf("reading the body: %w", err)
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
