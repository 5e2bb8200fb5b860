package bmc

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// maxSessions is what BMCs allow at a time.
const maxSessions = 16

// openSession is a session at the BMC.
type openSession struct{ path, userName, context string }

func (s openSession) document() map[string]any {
	document := map[string]any{
		"@odata.id": s.path, "@odata.type": "#Session.v1_7_0.Session", "Id": path.Base(s.path), "Name": "Session", "UserName": s.userName,
	}
	if s.context != "" {
		document["Context"] = s.context
	}
	return document
}

// sessionDocument returns the collection of sessions, or one of them.
func (b *BMC) sessionDocument(at string) (document map[string]any, found bool) {
	if b.options.Personality.Login.Sessions == SessionsAbsent || at != pathSessions && !strings.HasPrefix(at, pathSessions+"/") {
		return nil, false
	}
	members := []any{}
	open := slices.SortedFunc(maps.Values(b.sessions), func(a, b openSession) int { return strings.Compare(a.path, b.path) })
	for _, s := range open {
		if s.path == at {
			return s.document(), true
		}
		members = append(members, ref(s.path))
	}
	return map[string]any{
		"@odata.id": at, "@odata.type": "#SessionCollection.SessionCollection", "Name": "Sessions", "Members": members, "Members@odata.count": len(members),
	}, at == pathSessions
}

func (r LoginRules) maxSessions() int {
	if r.MaxSessions > 0 {
		return r.MaxSessions
	}
	return maxSessions
}

func (r LoginRules) limitRefusal() Refusal {
	if r.LimitRefusal.Status != 0 {
		return r.LimitRefusal
	}
	return Refusal{Status: http.StatusServiceUnavailable, Message: "SessionLimitExceeded"}
}

func (r LoginRules) contextRefusal() Refusal {
	if r.ContextRefusal.Status != 0 {
		return r.ContextRefusal
	}
	return Refusal{Status: http.StatusBadRequest, Message: "PropertyUnknown"}
}

func (b *BMC) logIn(w http.ResponseWriter, body []byte) {
	var credentials struct{ UserName, Password, Context string }
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.options.Personality.Login.Sessions == SessionsRefused:
		b.refuse(w, http.StatusMethodNotAllowed, "OperationNotAllowed", "The HTTP method is not allowed on this resource.")
		return
	case b.options.Personality.Login.Sessions == SessionsDisabled:
		b.refuse(w, http.StatusForbidden, "ServiceDisabled", "The operation failed because the service at /redfish/v1/SessionService is disabled.")
		return
	case json.Unmarshal(body, &credentials) != nil || !b.isAccount(credentials.UserName, credentials.Password):
		// Some BMCs return what they were sent. A client must not pass it on in its error.
		b.refuse(w, http.StatusUnauthorized, "AccessDenied", "Login of "+credentials.UserName+" with "+credentials.Password+" was denied.")
		return
	case credentials.Context != "" && b.options.Personality.Login.Context == ContextRefused:
		b.refuseAs(w, b.options.Personality.Login.contextRefusal(), "The property Context is not in the list of valid properties for the resource.")
		return
	case len(b.sessions) >= b.options.Personality.Login.maxSessions():
		if after := b.options.Personality.Login.LimitRetryAfter; after != "" {
			w.Header().Set("Retry-After", after)
		}
		b.refuseAs(w, b.options.Personality.Login.limitRefusal(), "The session establishment failed due to the number of simultaneous sessions exceeding the limit of the implementation.")
		return
	}
	b.sessionsMade++
	token, path := randomText(), fmt.Sprintf("%s/%d", pathSessions, b.sessionsMade)
	session := openSession{path: path, userName: credentials.UserName, context: credentials.Context}
	if b.options.Personality.Login.Context == ContextDropped {
		session.context = ""
	}
	b.sessions[token] = session
	w.Header().Set("X-Auth-Token", token)
	if !b.options.Personality.Login.NoLocation {
		w.Header().Set("Location", path)
	}
	write(w, http.StatusCreated, session.document())
}

func (b *BMC) logOut(w http.ResponseWriter, path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for token, session := range b.sessions {
		if session.path == path {
			delete(b.sessions, token)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	b.refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
}
