package bmc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// maxBody bounds a request.
const maxBody = 64 << 10

func (b *BMC) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		b.reads.Add(1)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client is gone, or sends nonsense
	}
	if b.countRequest(); b.isFrozen() {
		b.answerWithFault(w, r, answerNever)
		return
	}
	if fault := b.nextAnswer(r); fault != answerProperly {
		b.answerWithFault(w, r, fault)
		return
	}
	if location, status := b.options.Personality.redirection(r.Method, r.URL.Path); status != 0 {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
		return
	}
	path := strings.TrimRight(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodGet && (path == "/redfish" || path == pathRoot):
		b.get(w, r, path)
	case r.Method == http.MethodPost && b.isLogin(path):
		b.logIn(w, body)
	case !b.isAuthorized(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="BMC"`)
		b.refuse(w, http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
	default:
		b.route(w, r, path, body)
	}
}

func (b *BMC) route(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	if r.Method != http.MethodGet && !strings.HasPrefix(path, pathSessions) {
		b.writes.Add(1)
	}
	switch r.Method + " " + path {
	case "PATCH " + PathSystem, "PATCH " + b.options.Personality.pathSettings():
		b.patchBoot(w, r, path, body)
	case "POST " + pathReset:
		b.reset(w, r, body)
	case "POST " + pathSessions:
		b.refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+pathSessions+" was not found.")
	case "POST " + pathHGX + actionReset:
		// Resetting the baseboard does not reset the server: the request is accepted, and the server's power stays as it is.
		w.WriteHeader(http.StatusNoContent)
	default:
		b.routeOther(w, r, path, body)
	}
}

// routeOther answers reads, and changes of members of collections.
func (b *BMC) routeOther(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	switch {
	case r.Method == http.MethodGet && b.getMonitor(w, path):
	case r.Method == http.MethodGet:
		b.get(w, r, path)
	case b.changeMedia(w, r, path, body):
	case r.Method == http.MethodDelete && strings.HasPrefix(path, pathSessions+"/"):
		b.logOut(w, path)
	case strings.HasPrefix(path, pathCertificates):
		b.changeCertificates(w, r, path, body)
	default:
		b.refuse(w, http.StatusMethodNotAllowed, "ActionNotSupported", "The action is not supported by the resource.")
	}
}

// isLogin reports whether a POST to the path is a login, which needs no authorization.
func (b *BMC) isLogin(path string) bool {
	return b.options.Personality.Login.Sessions != SessionsAbsent && (path == pathSessions || path == pathSessions+"/Members")
}

// redirection returns where a request for the path is redirected to, and with which status; 0: it is not redirected.
func (p Personality) redirection(method, path string) (location string, status int) {
	named := pathSystems + "/" + p.Wire.SystemByName
	switch {
	case p.Login.Redirect != 0 && method == http.MethodPost && path == pathSessions:
		return path + "/", p.Login.Redirect
	case p.Wire.SlashLinks && !strings.HasSuffix(path, "/") && path != pathRoot:
		return path + "/", http.StatusPermanentRedirect
	case p.Wire.SystemByName != "" && strings.HasPrefix(path, named):
		return PathSystem + strings.TrimPrefix(path, named), http.StatusTemporaryRedirect
	}
	return "", 0
}

// overridePath is the path of the resource at which the override is changed.
func (b *BMC) overridePath() string {
	if b.options.Personality.Boot.Settings.canTakeOverride() {
		return b.options.Personality.pathSettings()
	}
	return PathSystem
}

// isAuthorized accepts the token of a session, and Basic authentication, which Redfish demands as well.
func (b *BMC) isAuthorized(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		_, open := b.sessions[token]
		return open
	}
	username, password, ok := r.BasicAuth()
	return ok && !b.options.Personality.Login.NoBasic && !b.faults.NoBasic && b.isAccount(username, password)
}

func (b *BMC) isAccount(username, password string) bool {
	return username == b.options.Username && subtle.ConstantTimeCompare([]byte(password), []byte(b.password)) == 1
}

func (b *BMC) get(w http.ResponseWriter, r *http.Request, path string) {
	power := b.options.Machine.Power()
	b.mu.Lock()
	defer b.mu.Unlock()
	document, found := b.resource(path, power)
	if !found {
		b.refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
		return
	}
	if path == PathSystem {
		b.unloadedReads++
	}
	if path == b.overridePath() {
		b.formerReads = max(0, b.formerReads-1)
		if etag := b.servedETag(b.etag()); etag != "" {
			w.Header().Set("ETag", etag)
		}
	}
	if r.URL.Query().Has("$expand") && b.options.Personality.Resources.canExpand() {
		switch b.options.Personality.Resources.Expand.Form {
		case ExpandAfterError:
			b.refuse(w, http.StatusOK, "LicenseRequired", "The license for this operation is missing.")
		case ExpandRefused:
			b.refuse(w, http.StatusNotImplemented, "QueryNotSupported", "Querying is not supported by the implementation.")
			return
		}
		document = b.expanded(document)
	}
	if b.options.Personality.Wire.SlashLinks {
		write(w, http.StatusOK, withSlashes(document))
		return
	}
	write(w, http.StatusOK, document)
}

func randomText() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails, see crypto/rand
	return hex.EncodeToString(raw)
}
