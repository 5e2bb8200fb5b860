package redfish

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// readDocument reads a resource, decodes it, and returns its ETags: that of the body and that of the header, which differ on some BMCs.
func (c *conn) readDocument(uri string, into any) (etags []string, err error) {
	raw, header, err := readRaw(c.api, uri)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, err
	}
	var tag struct {
		ETag any `json:"@odata.etag"`
	}
	_ = json.Unmarshal(raw, &tag) // it has been decoded above
	text, _ := tag.ETag.(string)
	return slices.DeleteFunc([]string{text, header.Get("ETag")}, func(etag string) bool { return etag == "" }), nil
}

// patch changes a resource. etags are those with which it was read; there may be none.
//
// When the BMC refuses the ETag, or its absence, the resource is read again, and the current ETag is sent in every form that a BMC is known
// to compare with, then none, and "*" at last. This loses no change of somebody else: the members that are changed here are Ingot's.
func (c *conn) patch(uri string, etags []string, payload any) error {
	_, err := c.patchAccepted(uri, etags, payload)
	return err
}

// patchAccepted does the same and returns how the BMC has accepted the change.
func (c *conn) patchAccepted(uri string, etags []string, payload any) (acceptance, error) {
	first := ""
	if len(etags) > 0 {
		first = etags[0]
	}
	accepted, err := c.patchOnce(uri, first, payload)
	if !isPrecondition(err) {
		return accepted, err
	}
	latest, readErr := c.readDocument(uri, &map[string]any{})
	if readErr != nil {
		return acceptance{}, readErr
	}
	for _, etag := range etagForms(latest, first) {
		if accepted, err = c.patchOnce(uri, etag, payload); !isPrecondition(err) {
			break
		}
	}
	return accepted, err
}

// patchOnce sends one PATCH. An empty ETag is not sent.
func (c *conn) patchOnce(uri, etag string, payload any) (acceptance, error) {
	headers := map[string]string{}
	if etag != "" {
		headers["If-Match"] = etag
	}
	resp, err := c.api.PatchWithHeaders(uri, payload, headers)
	if err != nil {
		return acceptance{}, err
	}
	return acceptanceOf(resp), nil
}

// isPrecondition reports whether the BMC refused a change because of its ETag.
func isPrecondition(err error) bool {
	switch statusOf(err) {
	case http.StatusPreconditionFailed, http.StatusPreconditionRequired:
		return true
	}
	return hasMessage(err, "PreconditionFailed", "PreconditionRequired", "PreconditionHeaderMissing")
}

// etagForms returns the values of If-Match to try, in order. tried is one that was refused while the resource had another ETag or the same.
//
// BMCs hand out weak ETags and compare them as strong ones, add -gzip under compression and compare without it, or hand them out without
// the quotes that they compare with.
func etagForms(etags []string, tried string) []string {
	var forms []string
	add := func(form string) {
		if form != tried && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	for _, etag := range etags {
		add(etag)
	}
	for _, etag := range etags {
		strong := strings.TrimPrefix(etag, "W/")
		add(strong)
		opaque := strings.Trim(strong, `"`)
		plain := strings.TrimSuffix(opaque, "-gzip")
		add(`"` + plain + `"`)
		add(`"` + opaque + `"`)
		add(plain)
	}
	add("")
	add("*")
	return forms
}
