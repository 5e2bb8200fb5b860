package bmc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
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
	if b.misbehave(w, r) {
		return
	}
	path := strings.TrimRight(r.URL.Path, "/")
	if r.Method == http.MethodGet && (path == "/redfish" || path == pathRoot) {
		b.get(w, path)
		return
	}
	if r.Method == http.MethodPost && (path == pathSessions || path == pathSessions+"/Members") {
		b.login(w, body)
		return
	}
	if !b.authorized(r) {
		refuse(w, http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
		return
	}
	b.route(w, r, path, body)
}

func (b *BMC) route(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	switch {
	case r.Method == http.MethodGet:
		b.get(w, path)
	case r.Method == http.MethodDelete && strings.HasPrefix(path, pathSessions+"/"):
		b.logout(w, path)
	case r.Method == http.MethodPatch && path == PathSystem:
		b.patchSystem(w, r, body)
	case r.Method == http.MethodPost && path == pathReset:
		b.reset(w, body)
	case r.Method == http.MethodPost && path == pathHGX+"/Actions/ComputerSystem.Reset":
		// The baseboard's reset is not the server's: it is accepted, and the server's power stays as it is.
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusMethodNotAllowed, "ActionNotSupported", "The action is not supported by the resource.")
	}
}

// authorized takes a session's token, or Basic authentication, which Redfish demands as well.
func (b *BMC) authorized(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		return b.sessions[token] != ""
	}
	username, password, ok := r.BasicAuth()
	return ok && b.knows(username, password)
}

func (b *BMC) knows(username, password string) bool {
	return username == b.options.Username && subtle.ConstantTimeCompare([]byte(password), []byte(b.password)) == 1
}

func (b *BMC) login(w http.ResponseWriter, body []byte) {
	var credentials struct{ UserName, Password string }
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case json.Unmarshal(body, &credentials) != nil || !b.knows(credentials.UserName, credentials.Password):
		refuse(w, http.StatusUnauthorized, "AccessDenied", "While attempting to establish a connection, the service denied access.")
		return
	case len(b.sessions) >= maxSessions:
		refuse(w, http.StatusServiceUnavailable, "SessionLimitExceeded", "The session establishment failed due to the number of simultaneous sessions exceeding the limit of the implementation.")
		return
	}
	b.made++
	token, path := randomText(), fmt.Sprintf("%s/%d", pathSessions, b.made)
	b.sessions[token] = path
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", path)
	write(w, http.StatusCreated, map[string]any{
		"@odata.id": path, "@odata.type": "#Session.v1_7_0.Session", "Id": fmt.Sprint(b.made), "Name": "Session", "UserName": credentials.UserName,
	})
}

func (b *BMC) logout(w http.ResponseWriter, path string) {
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
	document, ok := b.tree[path]
	switch {
	case path == "/redfish":
		document = map[string]any{"v1": "/redfish/v1/"}
	case path == PathSystem:
		document = b.system(document, power)
		w.Header().Set("ETag", b.etag())
	case !ok:
		refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
		return
	}
	write(w, http.StatusOK, document)
}

func (b *BMC) etag() string { return fmt.Sprintf(`"%d"`, b.boot.tag) }

// system adds what changes to the server's ComputerSystem.
func (b *BMC) system(static map[string]any, power hardware.PowerState) map[string]any {
	boot := map[string]any{
		"BootSourceOverrideEnabled": b.boot.enabled, "BootSourceOverrideTarget": b.boot.target, "BootSourceOverrideMode": b.boot.mode,
		"BootSourceOverrideTarget@Redfish.AllowableValues": bootTargets,
	}
	if b.faults.NoBootMode {
		delete(boot, "BootSourceOverrideMode")
	}
	if b.faults.NullBootTarget {
		boot["BootSourceOverrideTarget"] = nil
	}
	document := map[string]any{"PowerState": power, "Boot": boot}
	for name, value := range static {
		document[name] = value
	}
	return document
}

var bootTargets = []string{"None", "Pxe", "Hdd", "UefiHttp"}

func (b *BMC) patchSystem(w http.ResponseWriter, r *http.Request, body []byte) {
	var change struct {
		Boot *struct {
			Enabled string  `json:"BootSourceOverrideEnabled"`
			Target  string  `json:"BootSourceOverrideTarget"`
			Mode    *string `json:"BootSourceOverrideMode"`
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if match := r.Header.Get("If-Match"); match != "" && match != "*" && match != b.etag() {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
		return
	}
	switch err := json.Unmarshal(body, &change); {
	case err != nil:
		refuse(w, http.StatusBadRequest, "MalformedJSON", "The request body submitted was malformed JSON.")
	case change.Boot == nil:
		refuse(w, http.StatusBadRequest, "PropertyMissing", "The property Boot is a required property and must be included in the request.")
	case change.Boot.Mode != nil && b.faults.NoBootMode:
		refuse(w, http.StatusBadRequest, "PropertyUnknown", "The property BootSourceOverrideMode is not in the list of valid properties for the resource.")
	case !slices.Contains(bootTargets, change.Boot.Target) || !slices.Contains([]string{"Once", "Continuous", "Disabled"}, change.Boot.Enabled):
		refuse(w, http.StatusBadRequest, "PropertyValueNotInList", "The value for a property is not in the list of acceptable values.")
	default:
		b.boot.tag++
		if !b.faults.NullBootTarget {
			b.boot.enabled, b.boot.target = change.Boot.Enabled, change.Boot.Target
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func (b *BMC) reset(w http.ResponseWriter, body []byte) {
	var request struct{ ResetType Reset }
	if json.Unmarshal(body, &request) != nil || !slices.Contains(resets, request.ResetType) {
		refuse(w, http.StatusBadRequest, "ActionParameterNotSupported", "The parameter ResetType for the action ComputerSystem.Reset is not supported.")
		return
	}
	off := b.options.Machine.Power() == hardware.PowerOff
	b.mu.Lock()
	ignored := off && use(&b.faults.SilentPowerOn) || !off && request.ResetType == ResetForceOff && use(&b.faults.SilentPowerOff)
	b.mu.Unlock()
	b.options.Log.Info("reset", "server", b.options.Name, "type", string(request.ResetType), "ignored", ignored)
	if !ignored {
		b.options.Machine.Reset(request.ResetType)
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuse writes a Redfish error with a message of the Base registry (DSP8011).
func refuse(w http.ResponseWriter, status int, key, message string) {
	write(w, status, map[string]any{"error": map[string]any{
		"code": "Base.1.18.GeneralError", "message": "See ExtendedInfo.",
		"@Message.ExtendedInfo": []any{map[string]any{"MessageId": "Base.1.18." + key, "Message": message, "Severity": "Critical"}},
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
