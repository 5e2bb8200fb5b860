package bmc

import (
	"encoding/json"
	"net/http"
	"strings"
)

// refuse writes an error in the form of the BMC, with a message of the Base registry (DSP8011), or of the vendor whose registry the key
// names.
func (b *BMC) refuse(w http.ResponseWriter, status int, key, message string, args ...string) {
	id := key
	if !strings.Contains(key, ".") {
		id = "Base.1.18." + key
	}
	info := map[string]any{"MessageId": id, "Message": message, "Severity": "Critical"}
	if len(args) > 0 {
		info["MessageArgs"] = args
	}
	switch b.options.Personality.Wire.Errors {
	case ErrorObject:
		write(w, status, errorDocument("Base.1.18.GeneralError", info))
	case ErrorTopLevel:
		write(w, status, map[string]any{"@Message.ExtendedInfo": []any{info}})
	case ErrorNoMessage:
		delete(info, "Message")
		delete(info, "Severity")
		write(w, status, errorDocument("iLO.0.10.ExtendedInfo", []any{info}))
	case ErrorPlainText:
		writeText(w, status, message)
	default:
		write(w, status, errorDocument("Base.1.18.GeneralError", []any{info}))
	}
}

func errorDocument(code string, infos any) map[string]any {
	return map[string]any{"error": map[string]any{"code": code, "message": "See ExtendedInfo.", "@Message.ExtendedInfo": infos}}
}

// refuseAs refuses with the status and the message of a rule.
func (b *BMC) refuseAs(w http.ResponseWriter, refusal Refusal, message string) {
	b.refuse(w, refusal.Status, refusal.Message, message)
}

func write(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OData-Version", "4.0")
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_ = json.NewEncoder(w).Encode(document)
}

// writeText writes plain text that is labelled JSON, as some services do.
func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// withByteOrderMark returns a handler whose bodies begin with UTF-8's byte-order mark.
func withByteOrderMark(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(&markedWriter{ResponseWriter: w}, r) })
}

// markedWriter begins a body with UTF-8's byte-order mark.
type markedWriter struct {
	http.ResponseWriter
	isMarked bool
}

// Write implements io.Writer.
func (w *markedWriter) Write(text []byte) (int, error) {
	if !w.isMarked {
		w.isMarked = true
		if _, err := w.ResponseWriter.Write([]byte("\xef\xbb\xbf")); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(text)
}

// withSlashes returns the document with a slash at the end of every link.
func withSlashes(document any) any {
	raw, err := json.Marshal(document)
	if err != nil {
		return document
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return document
	}
	return addSlashes("", value)
}

func addSlashes(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for member, inner := range v {
			v[member] = addSlashes(member, inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = addSlashes("", inner)
		}
	case string:
		if isLink := name == "@odata.id" || name == "target" || name == "@Redfish.ActionInfo"; isLink && !strings.HasSuffix(v, "/") {
			return v + "/"
		}
	}
	return value
}
