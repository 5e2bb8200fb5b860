package probe

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// PackCommand is the part of a shell command that packs a report for a pod's message, which has room for 4096 bytes: the report of eight GPUs has ten times as many,
// most of them the same.
const PackCommand = "gzip -9 | base64 | tr -d '\\n'"

// maxReport is how much of a report is unpacked, in bytes.
const maxReport = 1 << 20

var errNoReport = errors.New("the pod left no report")

// unpack returns the report in a message that PackCommand made.
func unpack(message string) ([]byte, error) {
	message = strings.TrimSpace(message)
	if message == "" {
		return nil, errNoReport
	}
	packed, err := base64.StdEncoding.DecodeString(message)
	if err != nil {
		return nil, fmt.Errorf("the message is no packed report: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the report: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxReport+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the report does not fit into a pod's message of 4096 bytes")
	case err != nil:
		return nil, fmt.Errorf("unpack the report: %w", err)
	case len(text) > maxReport:
		return nil, fmt.Errorf("the report is larger than %d bytes", maxReport)
	}
	return text, nil
}

// unpackObject reads the JSON object in a packed report. Words around it are no part of it: programs of NVIDIA write warnings there.
func unpackObject(message string, into any) error {
	text, err := unpack(message)
	if err != nil {
		return err
	}
	from, to := bytes.IndexByte(text, '{'), bytes.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return fmt.Errorf("the report is no JSON object: %s", tail(string(text)))
	}
	if err := json.Unmarshal(text[from:to+1], into); err != nil {
		return fmt.Errorf("the report is no JSON object that is known: %w", err)
	}
	return nil
}
