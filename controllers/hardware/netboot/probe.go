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
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// PathIdentity is where the boot service says which one it is.
	PathIdentity = "/identity"
	// probeTimeout limits one question for the identity.
	probeTimeout = 5 * time.Second
	// identityContext is what is signed for the identity, so that it is no token.
	identityContext = "ingot boot service identity v1\x00"
)

// identityOf returns the identity of the boot services that have the key: all replicas of one installation of Ingot, and no other one. The key
// cannot be computed from it.
func identityOf(key []byte) string {
	return "ingot-boot-service " + hex.EncodeToString(signature(key, []byte(identityContext)))
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
// of the kind Unreachable if nothing could be learned, because the network between does not carry the question or the service is not ready,
// and of the kind Conflict if something else answers. Nothing secret is sent.
func Probe(ctx context.Context, client *http.Client, base string, key []byte) error {
	const op = "ask the boot service"
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+PathIdentity, nil)
	if err != nil {
		return hardware.Errorf(hardware.Conflict, op, base, "it is no address")
	}
	direct := *client
	// A boot service redirects nobody, and the answer of another address says nothing about this one.
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := direct.Do(request)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return hardware.Errorf(hardware.Unreachable, op, base, "%w", err)
	}
	// The body has been read as far as it is needed, so an error of closing it does not matter.
	defer func() { _ = response.Body.Close() }()
	want := identityOf(key)
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(len(want))+1))
	switch {
	case response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests || err != nil:
		return hardware.Errorf(hardware.Unreachable, op, base, "it answered %s", response.Status)
	case response.StatusCode != http.StatusOK:
		return hardware.Errorf(hardware.Conflict, op, base, "it answered %s, which is no boot service's answer", response.Status)
	case !hmac.Equal(body, []byte(want)):
		return hardware.Errorf(hardware.Conflict, op, base, "%s", otherIdentity(string(body)))
	}
	return nil
}

// otherIdentity says what answers at an address that is not this installation's boot service.
func otherIdentity(body string) string {
	var digest string
	if n, _ := fmt.Sscanf(body, "ingot-boot-service %s", &digest); n == 1 {
		return "the boot service of another installation of Ingot answers, or of one with another boot key"
	}
	return "something else answers, which is no boot service"
}
