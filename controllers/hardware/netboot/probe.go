package netboot

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

const (
	// PathIdentity is where the boot service says which one it is.
	PathIdentity = "/identity"
	// pathKernel is the path of the agent's kernel.
	pathKernel = "/files/kernel"
	// probeTimeout limits the questions of one Probe.
	probeTimeout = 5 * time.Second
	// identityContext is what is signed for the identity, so that it is no token.
	identityContext = "ingot boot service identity v1\x00"
)

// identityOf returns the identity of the boot services that have the key: all replicas of one installation of Ingot, and no other one. The key
// cannot be computed from it.
func identityOf(key []byte) string {
	return "ingot-boot-service " + hex.EncodeToString(signature(key, tokenContext, []byte(identityContext)))
}

// serveIdentity answers the question of Probe.
func (s *Service) serveIdentity(w http.ResponseWriter, r *http.Request) {
	key, err := s.signingKey(r.Context())
	if err != nil {
		s.options.Log.Error("no identity", "error", err)
		refuseDocument(w, retryAfter)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// This fails when the client is gone.
	_, _ = io.WriteString(w, identityOf(key))
}

// Probe asks the address of a boot service, such as http://10.0.0.2:8090, whether it is one that has the key. The error is a *hardware.Error:
// of the kind Unreachable if nothing could be learned, because the network between does not carry the question, or the service is not ready or
// does not answer it, and of the kind Conflict if something else answers. Nothing secret is sent.
func Probe(ctx context.Context, client *http.Client, base string, key []byte) error {
	const op = "ask the boot service"
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	want := identityOf(key)
	status, body, err := askPath(ctx, client, http.MethodGet, base+PathIdentity, len(want)+1)
	var refused *pin.RefusedError
	switch {
	case errors.Is(err, errNoAddress):
		return hardware.Errorf(hardware.Conflict, op, base, "%w", err)
	case errors.As(err, &refused):
		return hardware.Errorf(hardware.Conflict, op, base, "something else answers: %w", err)
	case err != nil:
		return hardware.Errorf(hardware.Unreachable, op, base, "%w", err)
	case isUndecided(status):
		return hardware.Errorf(hardware.Unreachable, op, base, "it answered %s with %s", PathIdentity, statusText(status))
	case status != http.StatusOK:
		return probeKernel(ctx, client, base, status)
	case !hmac.Equal(body, []byte(want)):
		return hardware.Errorf(hardware.Conflict, op, base, "%s", otherIdentity(string(body)))
	}
	return nil
}

// probeKernel decides what answers at an address that refuses the path of the identity. Without it: a proxy on the provisioning network passes only
// the paths that servers ask for, or a replica of the version before answers, and a boot service that works is taken for something else.
func probeKernel(ctx context.Context, client *http.Client, base string, identity int) error {
	const op = "ask the boot service"
	status, _, err := askPath(ctx, client, http.MethodHead, base+pathKernel, 0)
	switch {
	case err != nil:
		return hardware.Errorf(hardware.Unreachable, op, base, "it answered %s with %s, and %s not at all: %w", PathIdentity, statusText(identity), pathKernel, err)
	case status == http.StatusOK || isUndecided(status) || isForbidden(status):
		return hardware.Errorf(hardware.Unreachable, op, base, "it answered %s with %s and %s with %s, as a proxy does that does not pass %s, or a boot service of the version before: let the proxy pass that path too, and this is confirmed",
			PathIdentity, statusText(identity), pathKernel, statusText(status), PathIdentity)
	}
	return hardware.Errorf(hardware.Conflict, op, base, "it answered %s with %s and %s with %s, which is no boot service's answer", PathIdentity, statusText(identity), pathKernel, statusText(status))
}

// isUndecided reports whether the answer says nothing about who answers.
func isUndecided(status int) bool { return status >= 500 || status == http.StatusTooManyRequests }

// isForbidden reports whether the answer is that of a server, such as a proxy, that lets the manager not ask although it may let others.
func isForbidden(status int) bool {
	return status == http.StatusForbidden || status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// errNoAddress is the error of an address that is no URL.
var errNoAddress = errors.New("it is no address")

// askPath sends one request and returns the status and at most limit bytes of the body.
func askPath(ctx context.Context, client *http.Client, method, address string, limit int) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return 0, nil, errNoAddress
	}
	direct := *client
	// A boot service redirects nobody, and the answer of another address says nothing about this one.
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := direct.Do(request)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return 0, nil, err
	}
	// The body has been read as far as it is needed, so an error of closing it does not matter.
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)))
	return response.StatusCode, body, err
}

// otherIdentity says what answers at an address that is not this installation's boot service.
func otherIdentity(body string) string {
	var digest string
	if n, _ := fmt.Sscanf(body, "ingot-boot-service %s", &digest); n == 1 {
		return "the boot service of another installation of Ingot answers, or of one with another boot key"
	}
	return "something else answers, which is no boot service"
}
