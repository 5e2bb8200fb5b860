package relay

import (
	"fmt"
	"strings"
	"sync"
)

// Moment is when the manager dies.
type Moment string

// The two sides of a request.
const (
	// Before the request is forwarded: it never takes effect.
	Before Moment = "before"
	// After it took effect, and before its answer reaches the manager.
	After Moment = "after"
)

// Request is one that changes something.
type Request struct {
	// Number counts from 1 since the last Begin.
	Number int
	// Target is the Front's name.
	Target       string
	Method, Path string
	// Body as it was sent. It may hold secrets.
	Body []byte
	// Status is the answer's; 0: there was none, or it is not known yet.
	Status int
}

// String tells what the request is for, and holds no secret.
func (r Request) String() string {
	text := fmt.Sprintf("%s %s %s", r.Target, r.Method, shorten(r.Path))
	if what := gist(r.Body); what != "" {
		text += " " + what
	}
	if r.Status >= 300 {
		text += fmt.Sprintf(" -> %d", r.Status)
	}
	return text
}

// Kind is String without what differs from run to run: the object's name and the status.
func (r Request) Kind() string {
	return strings.TrimSpace(r.Target + " " + r.Method + " " + kindOf(r.Path) + " " + gist(r.Body))
}

// Steps numbers the requests of all Fronts. The zero value counts from 1 and kills nobody.
type Steps struct {
	mu   sync.Mutex
	seen []Request
	at   int
	when Moment
	kill func()
}

// Begin counts from 1 again, and kills nobody.
func (s *Steps) Begin() { s.Arm(0, Before, nil) }

// Arm counts from 1 again. At request n, once, kill is called; it returns when the manager is gone.
func (s *Steps) Arm(n int, when Moment, kill func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.at, s.when, s.kill = nil, n, when, kill
}

// Seen are the requests since the last Begin or Arm, in their order of arrival.
func (s *Steps) Seen() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// next numbers a request. kill is not nil for the one at which the manager dies.
func (s *Steps) next(r Request) (index *Request, when Moment, kill func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Number = len(s.seen) + 1
	s.seen = append(s.seen, r)
	if s.kill != nil && r.Number == s.at {
		kill, s.kill = s.kill, nil
	}
	return &r, s.when, kill
}

// answered notes a request's status, unless the count began anew meanwhile.
func (s *Steps) answered(r *Request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := r.Number - 1; i < len(s.seen) && s.seen[i].Path == r.Path && s.seen[i].Method == r.Method {
		s.seen[i].Status = status
	}
}
