package bmc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxSessions is what BMCs allow at a time.
	maxSessions = 16
	// maxBody bounds a request.
	maxBody = 64 << 10
)

func (b *BMC) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		b.reads.Add(1)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client is gone, or sends nonsense
	}
	if fault := b.nextAnswer(r); fault != answerProperly {
		b.answerWithFault(w, r, fault)
		return
	}
	path := strings.TrimRight(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodGet && (path == "/redfish" || path == pathRoot):
		b.get(w, path)
	case r.Method == http.MethodPost && (path == pathSessions || path == pathSessions+"/Members"):
		b.logIn(w, body)
	case !b.isAuthorized(r):
		refuse(w, http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
	default:
		b.route(w, r, path, body)
	}
}

func (b *BMC) route(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	media := b.options.Personality.mediaPath()
	switch r.Method + " " + path {
	case "PATCH " + PathSystem:
		b.patchSystem(w, r, body)
	case "POST " + pathReset:
		b.reset(w, body)
	case "POST " + pathHGX + actionReset:
		// Resetting the baseboard does not reset the server: the request is accepted, and the server's power stays as it is.
		w.WriteHeader(http.StatusNoContent)
	case "POST " + media + actionInsert:
		b.insertMedia(w, body)
	case "POST " + media + actionEject:
		b.ejectMedia(w)
	default:
		switch {
		case r.Method == http.MethodGet:
			b.get(w, path)
		case r.Method == http.MethodDelete && strings.HasPrefix(path, pathSessions+"/"):
			b.logOut(w, path)
		default:
			refuse(w, http.StatusMethodNotAllowed, "ActionNotSupported", "The action is not supported by the resource.")
		}
	}
}

// isAuthorized accepts the token of a session, and Basic authentication, which Redfish demands as well.
func (b *BMC) isAuthorized(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		return b.sessions[token] != ""
	}
	username, password, ok := r.BasicAuth()
	return ok && b.isAccount(username, password)
}

func (b *BMC) isAccount(username, password string) bool {
	return username == b.options.Username && subtle.ConstantTimeCompare([]byte(password), []byte(b.password)) == 1
}

func (b *BMC) logIn(w http.ResponseWriter, body []byte) {
	var credentials struct{ UserName, Password string }
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case json.Unmarshal(body, &credentials) != nil || !b.isAccount(credentials.UserName, credentials.Password):
		// Some BMCs return what they were sent. A client must not pass it on in its error.
		refuse(w, http.StatusUnauthorized, "AccessDenied", "Login of "+credentials.UserName+" with "+credentials.Password+" was denied.")
		return
	case len(b.sessions) >= maxSessions:
		refuse(w, http.StatusServiceUnavailable, "SessionLimitExceeded", "The session establishment failed due to the number of simultaneous sessions exceeding the limit of the implementation.")
		return
	}
	b.sessionsMade++
	token, path := randomText(), fmt.Sprintf("%s/%d", pathSessions, b.sessionsMade)
	b.sessions[token] = path
	w.Header().Set("X-Auth-Token", token)
	if !b.options.Personality.NoSessionLocation {
		w.Header().Set("Location", path)
	}
	write(w, http.StatusCreated, map[string]any{
		"@odata.id": path, "@odata.type": "#Session.v1_7_0.Session", "Id": fmt.Sprint(b.sessionsMade), "Name": "Session", "UserName": credentials.UserName,
	})
}

func (b *BMC) logOut(w http.ResponseWriter, path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for token, owned := range b.sessions {
		if owned == path {
			delete(b.sessions, token)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
}

func (b *BMC) get(w http.ResponseWriter, path string) {
	power := b.options.Machine.Power()
	b.mu.Lock()
	defer b.mu.Unlock()
	document, found := b.resource(path, power)
	if !found {
		refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
		return
	}
	if path == PathSystem {
		switch b.options.Personality.ETag {
		case ETagOptional, ETagRequired:
			w.Header().Set("ETag", b.etag())
		case ETagWeak:
			w.Header().Set("ETag", "W/"+b.etag())
		}
	}
	write(w, http.StatusOK, document)
}

// refuse writes a Redfish error with a message of the Base registry (DSP8011), or of the vendor whose registry the key names.
func refuse(w http.ResponseWriter, status int, key, message string) {
	id := key
	if !strings.Contains(key, ".") {
		id = "Base.1.18." + key
	}
	write(w, status, map[string]any{"error": map[string]any{
		"code": "Base.1.18.GeneralError", "message": "See ExtendedInfo.",
		"@Message.ExtendedInfo": []any{map[string]any{"MessageId": id, "Message": message, "Severity": "Critical"}},
	}})
}

func write(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OData-Version", "4.0")
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_ = json.NewEncoder(w).Encode(document)
}

func randomText() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails, see crypto/rand
	return hex.EncodeToString(raw)
}
