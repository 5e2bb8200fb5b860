package netboot

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// nameOfObject has the form of an object's name by SHA-256.
var nameOfObject = append([]byte{0, 0x0b}, make([]byte, 32)...)

// publicKey returns a key in the form of an endorsement key, and its fingerprint. It is in no TPM, so that nobody opens what is sealed for it.
func publicKey(t testing.TB, public any) ([]byte, string) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(der)
	return der, hex.EncodeToString(digest[:])
}

func rsaKey(t testing.TB, bits int) *rsa.PublicKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

func ecKey(t testing.TB, curve elliptic.Curve) *ecdsa.PublicKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

func asJSON(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestANeighbourWithoutTheServersTPMIsNotItsAgent: the boot document and the endorsement key are no secrets, and with both a neighbour gets nothing.
func TestANeighbourWithoutTheServersTPMIsNotItsAgent(t *testing.T) {
	for _, public := range []any{rsaKey(t, 2048), ecKey(t, elliptic.P256())} {
		s := newSite(t)
		key, fingerprint := publicKey(t, public)
		s.host().KnownTPM = hardware.KnownTPM{Key: fingerprint}
		token := s.boot()
		says := protocol.TPM{Key: key, Name: nameOfObject}
		if got := s.call("POST", protocol.PathChallenge, token, asJSON(t, says)); got != "" {
			t.Errorf("%T: the challenge, which only the TPM opens: %q", public, got)
		}
		registration := protocol.Registration{Inventory: hardware.Inventory{NICs: []hardware.NIC{{MAC: s.host().BootMAC}}}, TPM: &says}
		if got := s.call("POST", protocol.PathRegister, token, asJSON(t, registration)); got != protocol.KeyInvalid {
			t.Errorf("%T: with a key of its own: %q", public, got)
		}
		if h := s.host(); h.Agent != (Agent{}) || h.State != hardware.AttemptRunning || h.TPM != (hardware.TPM{}) {
			t.Errorf("%T: who proves nothing has changed the session: %+v", public, h)
		}
		registration.TPM = &protocol.TPM{IsAbsent: true}
		if got := s.call("POST", protocol.PathRegister, token, asJSON(t, registration)); got != protocol.ServerDiffers {
			t.Errorf("%T: without a TPM: %q", public, got)
		}
		if h := s.host(); h.Agent != (Agent{}) || h.Reason != hardware.ReasonTPMDiffers || h.TPM.Proof != hardware.TPMNone {
			t.Errorf("%T: without a TPM the attempt is %s, %s, %+v", public, h.State, h.Reason, h.TPM)
		}
	}
}

// TestTheKeyOfAnAgentIsForOneBootOneTPMAndOneObject: what was opened once opens no other session.
func TestTheKeyOfAnAgentIsForOneBootOneTPMAndOneObject(t *testing.T) {
	s := newSite(t)
	key, _ := publicKey(t, ecKey(t, elliptic.P256()))
	other, _ := publicKey(t, ecKey(t, elliptic.P256()))
	anotherName := append(bytes.Clone(nameOfObject[:33]), 1)
	of := claims{hostUID: "host-a", attempt: 3, boot: 1, expires: start.Add(time.Hour)}
	secret := func(c claims, said protocol.TPM) string {
		_, secret, err := s.service.credential(agentRequest{Request: httptest.NewRequest("POST", "/", nil), claims: c}, said)
		if err != nil || len(secret) != protocol.KeyBytes {
			t.Fatalf("%d bytes, %v", len(secret), err)
		}
		return string(secret)
	}
	seen := map[string]string{secret(of, protocol.TPM{Key: key, Name: nameOfObject}): "itself"}
	for what, is := range map[string]string{
		"another host":    secret(claims{"host-b", of.attempt, of.boot, of.expires}, protocol.TPM{Key: key, Name: nameOfObject}),
		"another attempt": secret(claims{of.hostUID, 4, of.boot, of.expires}, protocol.TPM{Key: key, Name: nameOfObject}),
		"another boot":    secret(claims{of.hostUID, of.attempt, 2, of.expires}, protocol.TPM{Key: key, Name: nameOfObject}),
		"another TPM":     secret(of, protocol.TPM{Key: other, Name: nameOfObject}),
		"another object":  secret(of, protocol.TPM{Key: key, Name: anotherName}),
	} {
		if before, exists := seen[is]; exists {
			t.Errorf("%s has the key of %s", what, before)
		}
		seen[is] = what
	}
	if again := secret(of, protocol.TPM{Key: key, Name: nameOfObject}); seen[again] != "itself" {
		t.Error("another replica would not know it again")
	}
}

// TestACertificateIsReportedUntilItIsKept: it is the longest part of a report, and no other boot needs it.
func TestACertificateIsReportedUntilItIsKept(t *testing.T) {
	for known, want := range map[hardware.KnownTPM]string{{}: "MII", {Key: "ab", IsListed: true}: "MII", {Key: "ab"}: ""} {
		session := &Session{KnownTPM: known}
		if judged, refusal := judgeTPM(session, hardware.TPM{Key: "ab", Certificate: "MII"}, hardware.ChannelNetwork, "10.0.0.5"); refusal != nil || judged.Certificate != want {
			t.Errorf("%+v: %v, certificate %q", known, refusal, judged.Certificate)
		}
	}
}

func TestWhatIsNoTPMIsABadRequest(t *testing.T) {
	good, _ := publicKey(t, ecKey(t, elliptic.P256()))
	small, _ := publicKey(t, rsaKey(t, 1024))
	long, _ := publicKey(t, rsaKey(t, 3072))
	curve, _ := publicKey(t, ecKey(t, elliptic.P384()))
	for what, said := range map[string]protocol.TPM{
		"nothing": {}, "no name": {Key: good}, "another name": {Key: good, Name: nameOfObject[1:]}, "a name by SHA-1": {Key: good, Name: append([]byte{0, 4}, nameOfObject[2:]...)},
		"no key": {Name: nameOfObject}, "text": {Key: []byte("key"), Name: nameOfObject}, "more after it": {Key: append(good[:len(good):len(good)], 0), Name: nameOfObject},
		"RSA 1024": {Key: small, Name: nameOfObject}, "RSA 3072": {Key: long, Name: nameOfObject}, "P-384": {Key: curve, Name: nameOfObject},
		"much": {Key: make([]byte, 4096), Name: nameOfObject}, "a long certificate": {Key: good, Name: nameOfObject, Certificate: make([]byte, 4097)},
	} {
		s := newSite(t)
		token := s.boot()
		if got := s.call("POST", protocol.PathChallenge, token, asJSON(t, said)); got != protocol.BadRequest {
			t.Errorf("%s, asking for a challenge: %q", what, got)
		}
		if got := s.call("POST", protocol.PathRegister, token, asJSON(t, protocol.Registration{TPM: &said})); got != protocol.BadRequest {
			t.Errorf("%s, registering: %q", what, got)
		}
	}
}

// opened is a service without a network, with a session that has booted.
type opened struct {
	service *Service
	store   *fakeStore
}

func openSession(t *testing.T, known hardware.KnownTPM) (opened, string) {
	t.Helper()
	signingKey, now := bytes.Repeat([]byte{1}, 32), start.Add(time.Minute)
	session := &Session{
		HostUID: "host-a", BootMAC: "0c:42:a1:00:00:0a", Work: Work{Operation: hardware.OpInspect, Inspector: hardware.InspectByAgent}, KnownTPM: known,
		AttemptStatus: hardware.AttemptStatus{Number: 3, Boots: 1, State: hardware.AttemptRunning, Step: hardware.StepLoading}, Since: start, OpenedAt: start, Deadline: start.Add(time.Hour),
	}
	store := &fakeStore{sessions: map[string]*Session{"host-a": session}}
	service, err := New(Options{
		Store: store, Key: func(context.Context) ([]byte, error) { return signingKey, nil }, Clock: func() time.Time { return now },
		BaseURL: "http://127.0.0.1:1", Files: fstest.MapFS{"k": {}, "i": {}}, Kernel: "k", Initrd: "i",
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened{service, store}, signToken(signingKey, claims{hostUID: "host-a", attempt: 3, boot: 1, expires: session.Deadline})
}

// FuzzARegistration: whatever is sent, nobody is the agent of a server whose TPM has opened nothing, and no key is believed.
func FuzzARegistration(f *testing.F) {
	key, fingerprint := publicKey(f, ecKey(f, elliptic.P256()))
	says := &protocol.TPM{Key: key, Name: nameOfObject, Certificate: []byte{0x30, 0}}
	inventory := hardware.Inventory{NICs: []hardware.NIC{{MAC: "0c:42:a1:00:00:0a"}}}
	for _, seed := range []string{hostRegistration, asJSON(f, says), asJSON(f, protocol.Registration{Inventory: inventory, TPM: says}), asJSON(f, protocol.Registration{Inventory: inventory, TPM: &protocol.TPM{Error: "no"}}), "{}", "null", "[", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, known := range []string{fingerprint, ""} {
			s, token := openSession(t, hardware.KnownTPM{Key: known})
			for _, path := range []string{protocol.PathChallenge, protocol.PathRegister} {
				request := httptest.NewRequest("POST", path, strings.NewReader(body))
				request.Header.Set("Authorization", "Bearer "+token)
				request.Header.Set(protocol.HeaderKey, strings.Repeat("0a", protocol.KeyBytes))
				answer := httptest.NewRecorder()
				s.service.ServeHTTP(answer, request)
				if answer.Code >= 500 {
					t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
				}
			}
			if h := s.store.sessions["host-a"]; h.TPM.Key != "" || known != "" && h.Agent != (Agent{}) {
				t.Errorf("nothing was opened, and the session has %+v, %+v", h.TPM, h.Agent)
			}
		}
	})
}
