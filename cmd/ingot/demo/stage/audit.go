package stage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// auditEvent is the part of an audit.k8s.io/v1 Event that says who did what.
type auditEvent struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource string `json:"resource"`
	} `json:"objectRef"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
}

// maxAuditLine bounds one line of an audit log, which holds a request's body.
const maxAuditLine = 8 << 20

// CountWrites counts the mutating requests of a user that an API server has answered, by its audit log. Questions that are
// asked by a create, such as whether one may do something, count too: they cost the server as much.
func CountWrites(path, user string) (Writes, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	out := Writes{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line that is being written now
		}
		switch e.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			if e.Stage == "ResponseComplete" && e.User.Username == user {
				out[e.ObjectRef.Resource]++
			}
		}
	}
	return out, errors.Join(lines.Err(), f.Close())
}
