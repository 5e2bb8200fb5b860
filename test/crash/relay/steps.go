package relay

import (
	"fmt"
	"strings"
	"sync"
)

// Moment is when the manager is killed, relative to a request.
type Moment string

// Moments at which the manager can be killed.
const (
	// Before means that the manager is killed before the request is forwarded: it never takes effect.
	Before Moment = "before"
	// After means that the manager is killed after the request took effect and before the answer reaches it.
	After Moment = "after"
)

// Request is a counted request.
type Request struct {
	// Number counts from 1 since the last Begin or Arm.
	Number int
	// Target is the name of the Proxy.
	Target       string
	Method, Path string
	// Body is the body of the request. It may hold secrets.
	Body []byte
	// Status is the status of the answer; 0 means that there was no answer, or that it is not known yet.
	Status int
}

// String describes the request without secrets.
func (r Request) String() string {
	text := fmt.Sprintf("%s %s %s", r.Target, r.Method, shorten(r.Path))
	if what := describeBody(r.Body); what != "" {
		text += " " + what
	}
	if r.Status >= 300 {
		text += fmt.Sprintf(" -> %d", r.Status)
	}
	return text
}

// Kind describes the request without the parts that differ from run to run: the object's name and the status.
func (r Request) Kind() string {
	return strings.TrimSpace(r.Target + " " + r.Method + " " + kindOf(r.Path) + " " + describeBody(r.Body))
}

// Steps numbers the requests of all its Proxies. The zero value counts from 1 and kills nothing.
type Steps struct {
	mu       sync.Mutex
	requests []Request
	at       int
	when     Moment
	kill     func()
}

// Begin restarts the count and disarms the kill.
func (s *Steps) Begin() { s.Arm(0, Before, nil) }

// Arm restarts the count. At request n kill is called once; it returns when the manager has ended.
func (s *Steps) Arm(n int, when Moment, kill func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.at, s.when, s.kill = nil, n, when, kill
}

// Requests returns the requests since the last Begin or Arm, in the order of their arrival.
func (s *Steps) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// add numbers and records a request. It returns a kill function when this is the request at which the manager is killed,
// and nil otherwise.
func (s *Steps) add(r Request) (index *Request, when Moment, kill func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Number = len(s.requests) + 1
	s.requests = append(s.requests, r)
	if s.kill != nil && r.Number == s.at {
		kill, s.kill = s.kill, nil
	}
	return &r, s.when, kill
}

// setStatus records a request's status, unless the count was restarted in the meantime.
func (s *Steps) setStatus(r *Request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := r.Number - 1; i < len(s.requests) && s.requests[i].Path == r.Path && s.requests[i].Method == r.Method {
		s.requests[i].Status = status
	}
}
