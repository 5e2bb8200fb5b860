package tpm_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/tpm"
	"github.com/ingot-dev/ingot/test/swtpm"
)

func identify(t *testing.T, device *tpm.Device) (tpm.Identity, tpm.EndorsementKey) {
	t.Helper()
	identity, err := device.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, err := tpm.ParseKey(identity.Key)
	if err != nil {
		t.Fatal(err)
	}
	return identity, key
}

func seal(t *testing.T, key tpm.EndorsementKey, name, secret []byte) tpm.Sealed {
	t.Helper()
	sealed, err := key.Seal(rand.Reader, name, secret)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestOnlyTheTPMThatASecretIsSealedForOpensIt(t *testing.T) {
	state, secret := t.TempDir(), bytes.Repeat([]byte{7}, 32)
	own, other := tpm.New(swtpm.Dial(t, state)), tpm.New(swtpm.Dial(t, t.TempDir()))
	identity, key := identify(t, own)
	otherIdentity, otherKey := identify(t, other)
	if key.Fingerprint() == otherKey.Fingerprint() || bytes.Equal(identity.Name, otherIdentity.Name) {
		t.Fatalf("two TPMs have one identity: %+v", identity)
	}
	opened, err := own.OpenSealed(t.Context(), seal(t, key, identity.Name, secret))
	if err != nil || !bytes.Equal(opened, secret) {
		t.Errorf("its own TPM opens %x: %v", opened, err)
	}
	for what, sealed := range map[string]tpm.Sealed{
		"for the other key": seal(t, otherKey, identity.Name, secret), "for the other object": seal(t, key, otherIdentity.Name, secret), "nothing": {},
	} {
		if opened, err := own.OpenSealed(t.Context(), sealed); err == nil {
			t.Errorf("sealed %s, and opened: %x", what, opened)
		}
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
}

// TestATPMIsKnownAgainAfterAPowerCycle: the key is the same, and the object is not, so that no credential is used twice.
func TestATPMIsKnownAgainAfterAPowerCycle(t *testing.T) {
	state := t.TempDir()
	var keys, names [][]byte
	for range 2 {
		t.Run("boot", func(t *testing.T) { // its TPM ends with it
			device := tpm.New(swtpm.Dial(t, state))
			identity, _ := identify(t, device)
			keys, names = append(keys, identity.Key), append(names, identity.Name)
			if identity.Certificate != nil {
				t.Errorf("a certificate that nobody stored: %x", identity.Certificate)
			}
			if err := device.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if len(keys) == 2 && (!bytes.Equal(keys[0], keys[1]) || bytes.Equal(names[0], names[1])) {
		t.Errorf("keys %x, names %x", keys, names)
	}
}

// TestTheCertificateOfAManufacturerIsRead: it is longer than one read, and what follows it is left out.
func TestTheCertificateOfAManufacturerIsRead(t *testing.T) {
	connection := swtpm.Dial(t, t.TempDir())
	first := tpm.New(struct {
		io.ReadWriter
		io.Closer
	}{connection, io.NopCloser(nil)})
	identity, key := identify(t, first)
	if err := first.Close(); err != nil { // a TPM has room for a few objects
		t.Fatal(err)
	}
	public, err := x509.ParsePKIXPublicKey(identity.Key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := certificateOf(t, public)
	store(t, transport.FromReadWriter(connection), 0x01c00002, append(bytes.Clone(certificate), 0xff, 0xff, 0xff))
	device := tpm.New(connection)
	again, err := device.Identify(t.Context())
	if err != nil || !bytes.Equal(again.Certificate, certificate) {
		t.Errorf("the certificate is %x: %v", again.Certificate, err)
	}
	if other, err := tpm.ParseKey(identity.Key); err != nil || !other.IsOf(certificate) || key.IsOf(nil) || key.IsOf(certificateOf(t, &otherKey(t).PublicKey)) {
		t.Errorf("whose certificate it is: %v", err)
	}
}

func otherKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certificateOf returns a certificate of a key, signed by a manufacturer, of more than 512 bytes.
func certificateOf(t *testing.T, public any) []byte {
	t.Helper()
	manufacturer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: strings.Repeat("m", 200)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, manufacturer)
	if err != nil || len(certificate) <= 512 {
		t.Fatal(len(certificate), err)
	}
	return certificate
}

// store stores data at an index, as a manufacturer does.
func store(t *testing.T, device transport.TPM, index tpm2.TPMHandle, data []byte) {
	t.Helper()
	owner := tpm2.AuthHandle{Handle: tpm2.TPMRHOwner, Auth: tpm2.PasswordAuth(nil)}
	public := tpm2.TPMSNVPublic{NVIndex: index, NameAlg: tpm2.TPMAlgSHA256, DataSize: uint16(len(data)),
		Attributes: tpm2.TPMANV{OwnerWrite: true, OwnerRead: true, AuthRead: true, AuthWrite: true, NoDA: true, NT: tpm2.TPMNTOrdinary}}
	if _, err := (tpm2.NVDefineSpace{AuthHandle: owner, PublicInfo: tpm2.New2B(public)}).Execute(device); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(data); at += 512 {
		name, err := tpm2.NVReadPublic{NVIndex: index}.Execute(device)
		if err != nil {
			t.Fatal(err)
		}
		write := tpm2.NVWrite{AuthHandle: owner, NVIndex: tpm2.NamedHandle{Handle: index, Name: name.NVName},
			Data: tpm2.TPM2BMaxNVBuffer{Buffer: data[at:min(at+512, len(data))]}, Offset: uint16(at)}
		if _, err := write.Execute(device); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzParseKey: a key that is read is of one of the two kinds, in one form, and a secret can be sealed for it.
func FuzzParseKey(f *testing.F) {
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			f.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der, []byte{0, 0x0b})
	}
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, der, name []byte) {
		key, err := tpm.ParseKey(der)
		if err != nil {
			return
		}
		if _, err := key.Seal(rand.Reader, name, make([]byte, 32)); (err == nil) != tpm.IsName(name) {
			t.Errorf("sealed for %x and %x: %v", der, name, err)
		}
		if len(key.Fingerprint()) != 64 || key.IsOf(der) {
			t.Errorf("%x: %s", der, key.Fingerprint())
		}
	})
}
