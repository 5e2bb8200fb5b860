// Package serviceroot reads the root of a Redfish service without credentials, to find out what is at an address.
//
// The root is the one resource that a service shows to everybody (DSP0266 9.2.1: GET /redfish/v1/ needs no authentication). Nothing secret is
// sent, so certificates are not verified. What answers may be anything: the answer is bounded in size and time, no redirect to another server is
// followed, and no proxy is used.
package serviceroot

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// path of the service root.
	path = "/redfish/v1/"
	// maxBody is far above the service root of any product, which has a few KiB.
	maxBody = 1 << 20
	// maxRedirects is how many redirects on the same server are followed. Some services redirect the root to its path without a slash.
	maxRedirects = 5
	// dialTimeout is how long a connection may take to open. On its own segment a system gives up after 3 s without an answer to ARP.
	dialTimeout = 3 * time.Second
)

// Kind is what was found at an address.
type Kind string

// What can be found at an address.
const (
	// Nothing means that no connection was opened.
	Nothing Kind = "Nothing"
	// Other means that something answers that is no Redfish service.
	Other Kind = "Other"
	// Unclear means that a connection was opened and no answer came, so that nobody can tell what is there.
	Unclear Kind = "Unclear"
	// Unreadable means that a Redfish service is there, and that its root cannot be read.
	Unreadable Kind = "Unreadable"
	// Redfish means that a Redfish service is there. Its root is empty where the service shows it to nobody without a login.
	Redfish Kind = "Redfish"
)

// Answer is what was found at an address.
type Answer struct {
	Kind Kind
	// Scheme is https, or http where the service has no TLS.
	Scheme string
	// Root is the service root, with the Kind Redfish.
	Root Root
	// Problem says what is wrong, with the Kinds Unclear and Unreadable.
	Problem string
}

// Root has members of a service root (DSP0268, ServiceRoot). All texts are as the service sent them.
type Root struct{ Vendor, Product, RedfishVersion, UUID string }

var errElsewhere = errors.New("redirected to another server")

// Look returns what is at the address, which is a host with a port. It ends with the context, whose end makes the answer Nothing or Unclear.
func Look(ctx context.Context, address string) Answer {
	a := look(ctx, "https", address)
	if a.Kind == Other && a.Scheme == "http" {
		return look(ctx, "http", address)
	}
	return a
}

// look asks by one scheme. An answer of the Kind Other with the scheme http says that the server has no TLS on this port.
func look(ctx context.Context, scheme, address string) Answer {
	isConnected := false
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, target string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, target)
			isConnected = isConnected || err == nil
			return conn, err
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, // see the package comment
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+path, nil)
	if err != nil {
		return Answer{Kind: Nothing, Scheme: scheme}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OData-Version", "4.0")
	resp, err := client.Do(req)
	if err != nil {
		return failure(err, scheme, resp, isConnected)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	return read(resp, body, err, scheme)
}

// checkRedirect follows redirects on the same server. Without it: a service in the range that the user has named redirects to one outside of it.
func checkRedirect(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return errElsewhere
	}
	if len(before) > maxRedirects {
		return fmt.Errorf("redirected more than %d times", maxRedirects)
	}
	return nil
}

// failure returns the answer where the request failed.
func failure(err error, scheme string, resp *http.Response, isConnected bool) Answer {
	switch {
	case !isConnected:
		return Answer{Kind: Nothing, Scheme: scheme}
	case errors.Is(err, http.ErrSchemeMismatch):
		return Answer{Kind: Other, Scheme: "http"}
	case errors.Is(err, errElsewhere):
		location, locationErr := url.Parse(resp.Header.Get("Location"))
		if locationErr != nil || !strings.HasPrefix(location.Path, "/redfish") {
			return Answer{Kind: Other, Scheme: scheme}
		}
		return Answer{Kind: Unreadable, Scheme: scheme, Problem: "it redirects to " + location.Scheme + "://" + location.Host + ", which is not asked: name that address and port if a BMC is there"}
	case isTimeout(err):
		return Answer{Kind: Unclear, Scheme: scheme, Problem: "it accepts connections and does not answer in time: if it is a BMC, it hangs or needs a longer --timeout"}
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return Answer{Kind: Unclear, Scheme: scheme, Problem: "it accepts connections and gives no answer: " + err.Error()}
}

// isTimeout reports whether a time-out ended the request.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// read returns the answer for a response with as much of its body as may be read.
func read(resp *http.Response, body []byte, err error, scheme string) Answer {
	var members map[string]json.RawMessage
	isJSON := json.Unmarshal(body, &members) == nil
	// Every answer of a Redfish service has this header (DSP0266 9.3).
	isRedfish := resp.Header.Get("OData-Version") != "" || hasExtendedInfo(members)
	if problem := bodyProblem(body, err); problem != "" {
		if isRedfish || isJSONType(resp) {
			return Answer{Kind: Unreadable, Scheme: scheme, Problem: problem}
		}
		return Answer{Kind: Other, Scheme: scheme}
	}
	switch isOK := resp.StatusCode == http.StatusOK; {
	case isOK && isServiceRoot(members):
		return Answer{Kind: Redfish, Scheme: scheme, Root: Root{
			Vendor: text(members, "Vendor"), Product: text(members, "Product"), RedfishVersion: text(members, "RedfishVersion"), UUID: text(members, "UUID"),
		}}
	case !isRedfish:
		return Answer{Kind: Other, Scheme: scheme}
	case resp.StatusCode == http.StatusUnauthorized:
		return Answer{Kind: Redfish, Scheme: scheme}
	case !isOK:
		return Answer{Kind: Unreadable, Scheme: scheme, Problem: fmt.Sprintf("it answers %d %s: if that stays so, restart the BMC", resp.StatusCode, http.StatusText(resp.StatusCode))}
	case !isJSON:
		return Answer{Kind: Unreadable, Scheme: scheme, Problem: "its service root is no JSON object: if that stays so, restart the BMC"}
	}
	return Answer{Kind: Other, Scheme: scheme} // another service that speaks OData
}

// bodyProblem says why a body could not be read completely.
func bodyProblem(body []byte, err error) string {
	switch {
	case len(body) > maxBody:
		return fmt.Sprintf("its service root is larger than %d bytes: it is no BMC, or its firmware is broken", maxBody)
	case err != nil && isTimeout(err):
		return "its service root did not come in time: it is overloaded or needs a longer --timeout"
	case err != nil:
		return "its service root breaks off: " + err.Error()
	}
	return ""
}

// isServiceRoot reports whether the members are those of a service root.
func isServiceRoot(members map[string]json.RawMessage) bool {
	return text(members, "RedfishVersion") != "" || strings.HasPrefix(text(members, "@odata.type"), "#ServiceRoot.")
}

// isJSONType reports whether the response says that it is JSON.
func isJSONType(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// hasExtendedInfo reports whether the members are an error as Redfish services send it (DSP0266 8.6).
func hasExtendedInfo(members map[string]json.RawMessage) bool {
	var refused map[string]json.RawMessage
	return json.Unmarshal(members["error"], &refused) == nil && refused["@Message.ExtendedInfo"] != nil
}

// text returns a member that is a text. A member of another type is left out, so that it does not cost the others.
func text(members map[string]json.RawMessage, name string) string {
	var value string
	if json.Unmarshal(members[name], &value) != nil {
		return ""
	}
	return value
}
