package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// crawl reads the resources of one inventory. Every failure of a resource that exists fails the whole crawl, because an inventory without it would
// look complete. Example: the collection of drives is still being loaded and answers 503. Without this rule the server has no disk, until
// somebody asks for another inspection.
type crawl struct {
	*conn
	// isOff is true when the BMC reports that the server is off.
	isOff bool
	// isAlone is true when the BMC manages this server only, so that all its chassis are those of the server.
	isAlone bool
	// expand is the query for the members of a collection; empty where the BMC has none, or where its answer could not be used.
	expand string
	// boards are chassis that are boards of GPUs.
	boards []string
	// elsewhere are members of resources that may lead to devices outside the resources of PCI devices.
	elsewhere []json.RawMessage
	// missing is how many more members collections count than they list, by their paths.
	missing map[string]int
	// waited is how long the crawl has waited for resources that the BMC loads.
	waited time.Duration
	// inventory is the result.
	inventory hardware.Inventory
}

// expandQuery is what a BMC supports of $expand (DSP0266 7.3): NoLinks is ".", which leaves out the resources under Links, ExpandAll is "*".
type expandQuery struct {
	ExpandAll bool
	NoLinks   bool
	Levels    bool
}

// newCrawl returns a crawl of the server's resources.
func newCrawl(c *conn, s *system) (*crawl, error) {
	w := &crawl{conn: c, isOff: powerState(s.PowerState) == hardware.PowerOff}
	if len(c.login.root.ProtocolFeaturesSupported) == 0 {
		return w, nil
	}
	var features struct{ ExpandQuery expandQuery }
	if err := c.decode(schemas.DefaultServiceRoot, c.login.root.ProtocolFeaturesSupported, &features); err != nil {
		return nil, err
	}
	switch {
	case features.ExpandQuery.NoLinks:
		w.expand = "?$expand=."
	case features.ExpandQuery.ExpandAll:
		w.expand = "?$expand=*"
	}
	if w.expand != "" && features.ExpandQuery.Levels {
		w.expand += "($levels=1)"
	}
	return w, nil
}

// Limits of the waits for resources that a BMC loads when they are requested first: of one, and of all in a crawl.
const (
	maxWait  = 10 * time.Second
	maxWaits = 2 * time.Minute
)

// repeatWhileLoading makes the request again when the BMC asks for that within a short time. Without it: a BMC loads each of thirty collections when
// it is requested first, every read of the inventory ends at the next one, and the pauses between the reads last longer than the inspection may.
func (w *crawl) repeatWhileLoading(request func() error) error {
	for {
		err := request()
		at := notBeforeOf(err)
		wait := at.Sub(w.bmc.client.options.Clock())
		if err == nil || at.IsZero() || w.bmc.client.options.Sleep == nil || wait > maxWait || w.waited+wait > maxWaits {
			return err
		}
		wait = max(wait, time.Millisecond)
		w.waited += wait
		if sleepErr := w.bmc.client.options.Sleep(w.ctx, wait); sleepErr != nil {
			return err
		}
	}
}

// sleep waits for the duration, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// members returns the members of a collection, and keeps how many it counts and does not list. Without that: a BMC lists four of its eight GPUs, and the
// server counts as one with four.
func (w *crawl) members(uri string) (uris []string, err error) {
	var found collection
	err = w.repeatWhileLoading(func() (err error) { found, err = w.readCollection(uri); return err })
	if found.missing > 0 {
		if w.missing == nil {
			w.missing = map[string]int{}
		}
		w.missing[uri] = found.missing
	}
	return found.members, err
}

// fetch returns the text of a resource, and nil when the BMC has no such resource.
func (w *crawl) fetch(uri string) ([]byte, error) {
	var raw []byte
	err := w.repeatWhileLoading(func() (err error) { raw, _, err = readRaw(w.api, uri); return err })
	if isMissing(err) {
		w.bmc.client.options.Log.Debug("BMC resource does not exist", "bmc", w.bmc.endpoint.Address, "path", uri, "status", statusOf(err))
		return nil, nil
	}
	return raw, err
}

// readResource reads a resource and decodes the members that T has. It returns nil when there is no link to it, or no such resource.
func readResource[T any](w *crawl, uri string) (*T, error) {
	if !strings.HasPrefix(uri, "/") {
		return nil, nil
	}
	raw, err := w.fetch(uri)
	if err != nil || raw == nil {
		return nil, err
	}
	out := new(T)
	return out, w.decode(uri, raw, out)
}

// readLinked reads the resources behind the links, each once.
func readLinked[T any](w *crawl, uris []string) ([]T, error) {
	var out []T
	for _, uri := range distinctLinks(uris) {
		item, err := readResource[T](w, uri)
		if err != nil {
			return nil, err
		}
		if item != nil {
			out = append(out, *item)
		}
	}
	return out, nil
}

// readMembers reads the members of a collection: with the collection where the BMC can do that, otherwise one after the other.
func readMembers[T any](w *crawl, collection string) ([]T, error) {
	if !strings.HasPrefix(collection, "/") {
		return nil, nil
	}
	if w.expand != "" {
		if items, isUsable := decodeExpanded[T](w, w.fetchExpanded(collection)); isUsable {
			return items, nil
		}
	}
	uris, err := w.members(collection)
	if err != nil {
		if isMissing(err) {
			return nil, nil
		}
		return nil, err
	}
	w.stopExpanding(collection)
	return readLinked[T](w, uris)
}

// fetchExpanded returns the resource with the resources that it links to in place of the links. It is nil when that fails: a BMC that supports
// $expand may refuse it without a licence, or take longer than the time-out of a request.
func (w *crawl) fetchExpanded(uri string) []byte {
	raw, err := w.fetch(uri + w.expand)
	if err != nil {
		w.bmc.client.options.Log.Info("BMC refused $expand; its resources are read one by one", "bmc", w.bmc.endpoint.Address, "path", uri,
			"error", redact(err.Error(), w.bmc.endpoint, w.login.transport.token))
		return nil
	}
	return raw
}

// stopExpanding makes the crawl read all further resources one by one. It is called when a resource exists and could not be read with $expand: a
// BMC that does not know the query may answer it with 501, which for the resource itself would mean that there is none.
func (w *crawl) stopExpanding(uri string) {
	if w.expand == "" {
		return
	}
	w.expand = ""
	w.bmc.client.options.Log.Debug("BMC's answer to $expand cannot be used", "bmc", w.bmc.endpoint.Address, "path", uri)
}

// decodeExpanded decodes the members of an expanded collection. They can be used only when the text is one JSON object without an error, and every
// member has its Id and some member that T has. An unlicensed iDRAC puts an error before the collection, and a DGX leaves out what is needed.
func decodeExpanded[T any](w *crawl, raw []byte) (items []T, isUsable bool) {
	var page struct {
		URI     string          `json:"@odata.id"`
		Error   json.RawMessage `json:"error"`
		Members []json.RawMessage
		Count   *number `json:"Members@odata.count"`
		Next    string  `json:"Members@odata.nextLink"`
	}
	if err := json.Unmarshal(raw, &page); err != nil || len(page.Error) > 0 || page.URI == "" || page.Next != "" {
		return nil, false
	}
	if page.Count != nil && *page.Count > number(len(page.Members)) {
		return nil, false
	}
	seen := map[string]bool{}
	for _, text := range page.Members {
		item, uri := decodeWhole[T](w, text)
		if item == nil {
			return nil, false
		}
		if key := strings.TrimRight(uri, "/"); !seen[key] {
			seen[key] = true
			items = append(items, *item)
		}
	}
	return items, true
}

// decodeWhole decodes a resource within another one. It returns nil when only a link to the resource is there, or a part of it.
func decodeWhole[T any](w *crawl, text []byte) (item *T, uri string) {
	var identity struct {
		URI string `json:"@odata.id"`
		ID  string `json:"Id"`
	}
	if json.Unmarshal(text, &identity) != nil || identity.URI == "" || identity.ID == "" {
		return nil, ""
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil || object["error"] != nil || object["@Message.ExtendedInfo"] != nil {
		return nil, ""
	}
	fields := reflect.TypeFor[T]()
	for i := range fields.NumField() {
		if name := memberName(fields.Field(i)); name != "Id" && name != "Name" && object[name] != nil {
			item = new(T)
			if w.decode(identity.URI, text, item) != nil {
				return nil, ""
			}
			return item, identity.URI
		}
	}
	return nil, ""
}

// distinctLinks returns the links without repetitions and without those that lead nowhere.
func distinctLinks(uris []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, uri := range uris {
		if key := strings.TrimRight(uri, "/"); strings.HasPrefix(uri, "/") && !seen[key] {
			seen[key] = true
			out = append(out, uri)
		}
	}
	return out
}

// deadlineError returns the error of a crawl that its context has ended.
func deadlineError(ctx context.Context, op, address string, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return &hardware.Error{Kind: hardware.Unreachable, Op: op, Target: address,
		Err: fmt.Errorf("the inventory was not complete at the deadline of the attempt: the BMC answers slowly (%w): %w", context.DeadlineExceeded, err)}
}
