package conformance

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func (b *BMC) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.requests = append(b.requests, r.Method+" "+r.URL.Path)
	b.inFlight++
	b.most = max(b.most, b.inFlight)
	overlay := b.overlay
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.inFlight--
		b.mu.Unlock()
	}()
	if overlay != nil && overlay(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer(w, r, body)
}

func (b *BMC) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	path := strings.TrimRight(r.URL.Path, "/")
	if r.Method == http.MethodPost && path == sessionsPath {
		b.logIn(w, body)
		return
	}
	own, known := b.sessions[r.Header.Get("X-Auth-Token")]
	if path != "/redfish/v1" && !known {
		refuse(w, http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
		return
	}
	if r.Method == http.MethodGet {
		b.read(w, path)
		return
	}
	switch r.Method + " " + path {
	case "DELETE " + own:
		delete(b.sessions, r.Header.Get("X-Auth-Token"))
		w.WriteHeader(http.StatusNoContent)
	case "PATCH " + SystemPath:
		b.patchSystem(w, r, body)
	case "POST " + resetPath:
		b.reset(w, body)
	case "POST " + b.mediaParent() + mediaPath + insertAction, "POST " + b.mediaParent() + mediaPath + ejectAction:
		b.mediaAction(w, path, body)
	default:
		refuse(w, http.StatusMethodNotAllowed, "ActionNotSupported", "The action is not supported by the resource.")
	}
}

func (b *BMC) logIn(w http.ResponseWriter, body []byte) {
	var credentials struct{ UserName, Password string }
	if json.Unmarshal(body, &credentials) != nil || credentials.UserName != b.username || credentials.Password != b.password {
		// Some BMCs echo what they were sent; no error may carry it on.
		refuse(w, http.StatusUnauthorized, "AccessDenied", "Login of "+credentials.UserName+" with "+credentials.Password+" was denied.")
		return
	}
	token, path := "token-"+randomText(), sessionsPath+"/"+randomText()
	b.sessions[token] = path
	w.Header().Set("X-Auth-Token", token)
	if !b.quirks.NoLocation {
		w.Header().Set("Location", path)
	}
	write(w, http.StatusCreated, map[string]any{"@odata.id": path, "Id": "1", "UserName": credentials.UserName})
}

func (b *BMC) read(w http.ResponseWriter, path string) {
	document, ok := b.document(path)
	if !ok {
		refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
		return
	}
	if path == SystemPath && (b.quirks.ETag || b.quirks.WeakETag) {
		tag := b.etag()
		if b.quirks.WeakETag {
			tag = "W/" + tag
		}
		w.Header().Set("ETag", tag)
	}
	write(w, http.StatusOK, document)
}

func (b *BMC) document(path string) (map[string]any, bool) {
	switch path {
	case SystemPath:
		return b.system(SystemPath), true
	case systemsPath + "/2":
		return b.system(path), b.quirks.SecondSystem
	case b.mediaParent() + mediaPath:
		return b.mediaSlot(), true
	}
	document, ok := b.tree[path]
	return document, ok
}

func (b *BMC) patchSystem(w http.ResponseWriter, r *http.Request, body []byte) {
	if (b.quirks.ETag || b.quirks.WeakETag) && r.Header.Get("If-Match") != b.etag() {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
		return
	}
	var change struct {
		Boot struct {
			Mode    *string `json:"BootSourceOverrideMode"`
			Enabled string  `json:"BootSourceOverrideEnabled"`
			Target  string  `json:"BootSourceOverrideTarget"`
		}
	}
	if err := json.Unmarshal(body, &change); err != nil {
		refuse(w, http.StatusBadRequest, "MalformedJSON", err.Error())
		return
	}
	switch {
	case change.Boot.Mode != nil && b.quirks.NoBootMode:
		refuse(w, http.StatusBadRequest, "PropertyUnknown", "The property BootSourceOverrideMode is not in the list of valid properties for the resource.")
		return
	case change.Boot.Mode != nil && b.quirks.ModeReadOnly:
		refuse(w, http.StatusBadRequest, "PropertyNotWritable", "The property BootSourceOverrideMode is a read only property.")
		return
	case !slices.Contains(b.bootTargets(), change.Boot.Target):
		refuse(w, http.StatusBadRequest, "PropertyValueNotInList", "The value "+change.Boot.Target+" is not in the list of acceptable values.")
		return
	}
	b.tag++
	if !b.quirks.NullBootTarget && !b.quirks.KeepsBootTarget {
		b.enabled, b.target = change.Boot.Enabled, change.Boot.Target
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *BMC) reset(w http.ResponseWriter, body []byte) {
	var request struct{ ResetType string }
	if json.Unmarshal(body, &request) != nil || !slices.Contains(b.resetTypes(), request.ResetType) {
		refuse(w, http.StatusBadRequest, "ActionParameterNotSupported", "The parameter ResetType for the action Reset is not supported.")
		return
	}
	if b.quirks.BusyReset {
		refuse(w, http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in 30 seconds.")
		return
	}
	wanted := map[string]hardware.PowerState{
		"On": hardware.PowerOn, "ForceOn": hardware.PowerOn, "ForceOff": hardware.PowerOff, "GracefulShutdown": hardware.PowerOff,
	}[request.ResetType]
	switch {
	case request.ResetType == "PushPowerButton":
		wanted = hardware.PowerOn
		if b.power == hardware.PowerOn {
			wanted = hardware.PowerOff
		}
	case wanted == "":
		b.setPower(hardware.PowerOff)
		wanted = hardware.PowerOn
	case wanted == b.power && b.quirks.RefuseSame:
		refuse(w, http.StatusConflict, "PSU501", "Server is already powered "+string(wanted)+".")
		return
	}
	ignore := &b.quirks.IgnorePowerOn
	if wanted == hardware.PowerOff {
		ignore = &b.quirks.IgnorePowerOff
	}
	if *ignore != 0 && b.power != wanted {
		*ignore = max(*ignore-1, -1)
	} else {
		b.setPower(wanted)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *BMC) mediaAction(w http.ResponseWriter, path string, body []byte) {
	if strings.HasSuffix(path, "EjectMedia") {
		b.media, b.stale = "", false
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var request struct{ Image string }
	switch {
	case json.Unmarshal(body, &request) != nil || request.Image == "":
		refuse(w, http.StatusBadRequest, "ActionParameterMissing", "The action requires the parameter Image.")
	case b.stale:
		refuse(w, http.StatusInternalServerError, "IDRAC.2.8.VRM0021", "The Virtual Media image server is already connected.")
	case b.media != "":
		refuse(w, http.StatusConflict, "ResourceInUse", "The media is in use.")
	default:
		b.media = request.Image
		w.WriteHeader(http.StatusNoContent)
	}
}

// refuse writes a Redfish error with a message of the Base registry.
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
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // the client is gone when this fails
}
