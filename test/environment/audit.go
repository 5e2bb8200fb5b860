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

// Total returns the number of writes to all resources.
func (w Writes) Total() int {
	n := 0
	for _, count := range w {
		n += count
	}
	return n
}

// Request is a request that an API server has answered.
type Request struct {
	// At is when the API server received it.
	At time.Time
	// Resource, Subresource (empty for none) and Verb are those of the request.
	Resource, Subresource, Verb string
	// Namespace and Name are those of the object. Name is empty in a list, and Namespace for objects without one.
	Namespace, Name string
	// Code is the HTTP status of the answer.
	Code int
}

// String returns the verb and the object.
func (r Request) String() string {
	return strings.TrimSpace(strings.Join([]string{r.Verb, strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/"), strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")}, " "))
}

// IsMutating reports whether the verb is one that changes objects.
func (r Request) IsMutating() bool { return slices.Contains(mutatingVerbs, r.Verb) }

// auditEvent has the fields of an audit.k8s.io/v1 Event that ReadRequests needs.
type auditEvent struct {
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// mutatingVerbs are the verbs that change objects.
var mutatingVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// maxAuditLine is the greatest length of a line of an audit log, which holds the body of a request.
const maxAuditLine = 8 << 20

// CountWrites counts the mutating requests of a user in the audit log of an API server. Reviews, such as a SelfSubjectAccessReview,
// are created and therefore count too: they cost the server as much.
func CountWrites(path, user string) (Writes, error) {
	out := Writes{}
	return out, ReadRequests(path, user, func(r Request) {
		if r.IsMutating() {
			out[r.Resource]++
		}
	})
}

// ReadRequests calls each with every request of a user in the audit log of an API server: those in the rotated files, and then those in
// the file that is being written.
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
		// Most lines are those of other users and need not be parsed.
		if !bytes.Contains(lines.Bytes(), []byte(user)) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line that is being written now
		}
		if e.Stage == "ResponseComplete" && e.User.Username == user {
			o := e.ObjectRef
			each(Request{At: e.Received, Resource: o.Resource, Subresource: o.Subresource, Verb: e.Verb, Namespace: o.Namespace, Name: o.Name, Code: e.ResponseStatus.Code})
		}
	}
	return errors.Join(lines.Err(), f.Close())
}
