package environment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Writes are the mutating requests of one user, by resource.
type Writes map[string]int

// Total of them.
func (w Writes) Total() int {
	n := 0
	for _, count := range w {
		n += count
	}
	return n
}

// Request is one that an API server has answered.
type Request struct {
	// At is when it came in.
	At time.Time
	// Resource, Subresource (empty for none) and Verb are the kind of request.
	Resource, Subresource, Verb string
	// Code is the answer's HTTP status.
	Code int
}

// Mutates says whether the request may change something.
func (r Request) Mutates() bool { return slices.Contains(mutating, r.Verb) }

// auditEvent is the part of an audit.k8s.io/v1 Event that says who did what.
type auditEvent struct {
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// mutating are the verbs that change something.
var mutating = []string{"create", "update", "patch", "delete", "deletecollection"}

// maxAuditLine bounds one line of an audit log, which holds a request's body.
const maxAuditLine = 8 << 20

// CountWrites counts the mutating requests of a user that an API server has answered, by its audit log. Questions that are
// asked by a create, such as whether one may do something, count too: they cost the server as much.
func CountWrites(path, user string) (Writes, error) {
	out := Writes{}
	return out, ReadRequests(path, user, func(r Request) {
		if r.Mutates() {
			out[r.Resource]++
		}
	})
}

// ReadRequests hands every request of a user over that an API server has answered, by its audit log: the file that is being
// written, and those that the server has put aside when they had grown large.
func ReadRequests(path, user string, each func(Request)) error {
	older, err := filepath.Glob(strings.TrimSuffix(path, ".log") + "-*.log")
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	slices.Sort(older) // their names end with a time
	for _, file := range append(older, path) {
		if err := readAuditLog(file, user, each); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
	}
	return nil
}

func readAuditLog(file, user string, each func(Request)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		// Most lines are other users': they need not be understood.
		if !bytes.Contains(lines.Bytes(), []byte(user)) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line that is being written now
		}
		if e.Stage == "ResponseComplete" && e.User.Username == user {
			each(Request{At: e.Received, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource, Verb: e.Verb, Code: e.ResponseStatus.Code})
		}
	}
	return errors.Join(lines.Err(), f.Close())
}
