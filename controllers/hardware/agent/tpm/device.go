package tpm

import (
	"context"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
)

// timeout is how long a TPM may take for one of the two things that it is asked. Making an RSA key takes some of them a minute.
const timeout = 3 * time.Minute

// Identity is what a server's TPM is known by, and the name of the object that a secret for it is bound to.
type Identity struct {
	// Key is the endorsement key as ParseKey reads it.
	Key []byte
	// Certificate is that of the key in DER; nil: the TPM has none.
	Certificate []byte
	// Name is that of an object which only this program has made.
	Name []byte
}

// Device is a TPM 2.0 that is open.
type Device struct {
	tpm         transport.TPM
	file        io.Closer
	key, object tpm2.NamedHandle
	// isLoaded says that key and object are in the TPM, and isSilent that it has not answered.
	isLoaded, isSilent bool
}

// Open opens a device such as /dev/tpmrm0.
func Open(path string) (*Device, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the TPM: %w", err)
	}
	return New(file), nil
}

// New returns the TPM that takes commands and gives responses there.
func New(connection io.ReadWriteCloser) *Device {
	return &Device{tpm: transport.FromReadWriter(connection), file: connection}
}

// Close removes from the TPM what Identify has made in it.
func (d *Device) Close() error {
	var flushed error
	if !d.isSilent && d.isLoaded {
		for _, handle := range []tpm2.TPMHandle{d.object.Handle, d.key.Handle} {
			_, err := tpm2.FlushContext{FlushHandle: handle}.Execute(d.tpm)
			flushed = errors.Join(flushed, err)
		}
	}
	return errors.Join(flushed, d.file.Close())
}

// within runs what the TPM is asked. A TPM that gives no response keeps its goroutine, and the device is not to be used again.
func within[T any](ctx context.Context, d *Device, what string, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := ask()
		answers <- answer{value, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case a := <-answers:
		if a.err != nil {
			return a.value, fmt.Errorf("%s: %w", what, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		d.isSilent = true
		var none T
		return none, fmt.Errorf("%s: the TPM does not answer: %w", what, ctx.Err())
	}
}

// Identify makes the endorsement key, which is the same each time, and an object, which is another one each time. It is called once.
func (d *Device) Identify(ctx context.Context) (Identity, error) {
	return within(ctx, d, "reading the TPM's endorsement key", d.identify)
}

func (d *Device) identify() (Identity, error) {
	template, certificate, err := d.template()
	if err != nil {
		return Identity{}, err
	}
	made, err := tpm2.CreatePrimary{PrimaryHandle: tpm2.TPMRHEndorsement, InPublic: tpm2.New2B(template)}.Execute(d.tpm)
	if err != nil {
		return Identity{}, fmt.Errorf("making the endorsement key, which a password of the endorsement hierarchy prevents: %w", err)
	}
	d.key = tpm2.NamedHandle{Handle: made.ObjectHandle, Name: made.Name}
	if d.object, err = d.makeObject(); err != nil {
		_, flushErr := tpm2.FlushContext{FlushHandle: made.ObjectHandle}.Execute(d.tpm)
		return Identity{}, errors.Join(err, flushErr)
	}
	d.isLoaded = true
	public, err := made.OutPublic.Contents()
	if err != nil {
		return Identity{}, err
	}
	key, err := tpm2.Pub(*public)
	if err != nil {
		return Identity{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Key: der, Certificate: d.readCertificate(certificate), Name: d.object.Name.Buffer}, nil
}

// Where manufacturers store the certificates of the default endorsement keys (TCG EK Credential Profile for TPM 2.0).
const (
	indexRSACertificate = 0x01c00002
	indexECCCertificate = 0x01c0000a
)

// template returns the template of the endorsement key, and where its certificate is. It is that of RSA where the TPM knows RSA.
func (d *Device) template() (tpm2.TPMTPublic, tpm2.TPMHandle, error) {
	response, err := tpm2.GetCapability{Capability: tpm2.TPMCapAlgs, Property: uint32(tpm2.TPMAlgRSA), PropertyCount: 1}.Execute(d.tpm)
	if err != nil {
		return tpm2.TPMTPublic{}, 0, fmt.Errorf("listing its algorithms: %w", err)
	}
	known, err := response.CapabilityData.Data.Algorithms()
	if err != nil {
		return tpm2.TPMTPublic{}, 0, err
	}
	if len(known.AlgProperties) > 0 && known.AlgProperties[0].Alg == tpm2.TPMAlgRSA {
		return tpm2.RSAEKTemplate, indexRSACertificate, nil
	}
	return tpm2.ECCEKTemplate, indexECCCertificate, nil
}

// makeObject makes an object that a secret is bound to. It is of the hierarchy that has no password and forgets its keys at each power-on.
func (d *Device) makeObject() (tpm2.NamedHandle, error) {
	random, err := tpm2.GetRandom{BytesRequested: 32}.Execute(d.tpm)
	if err != nil {
		return tpm2.NamedHandle{}, fmt.Errorf("reading random bytes: %w", err)
	}
	made, err := tpm2.CreatePrimary{PrimaryHandle: tpm2.TPMRHNull, InPublic: tpm2.New2B(tpm2.TPMTPublic{
		Type: tpm2.TPMAlgKeyedHash, NameAlg: tpm2.TPMAlgSHA256,
		ObjectAttributes: tpm2.TPMAObject{FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true, UserWithAuth: true, NoDA: true, SignEncrypt: true},
		Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgKeyedHash, &tpm2.TPMSKeyedHashParms{Scheme: tpm2.TPMTKeyedHashScheme{
			Scheme: tpm2.TPMAlgHMAC, Details: tpm2.NewTPMUSchemeKeyedHash(tpm2.TPMAlgHMAC, &tpm2.TPMSSchemeHMAC{HashAlg: tpm2.TPMAlgSHA256}),
		}}),
		Unique: tpm2.NewTPMUPublicID(tpm2.TPMAlgKeyedHash, &tpm2.TPM2BDigest{Buffer: random.RandomBytes.Buffer}),
	})}.Execute(d.tpm)
	if err != nil {
		return tpm2.NamedHandle{}, fmt.Errorf("making an object: %w", err)
	}
	return tpm2.NamedHandle{Handle: made.ObjectHandle, Name: made.Name}, nil
}

// OpenSealed opens what was sealed for the key and the name that Identify has returned.
func (d *Device) OpenSealed(ctx context.Context, sealed Sealed) ([]byte, error) {
	return within(ctx, d, "opening the credential by the TPM", func() ([]byte, error) {
		response, err := tpm2.ActivateCredential{
			ActivateHandle: d.object,
			KeyHandle:      tpm2.AuthHandle{Handle: d.key.Handle, Name: d.key.Name, Auth: tpm2.Policy(tpm2.TPMAlgSHA256, 16, satisfyPolicy)},
			CredentialBlob: tpm2.TPM2BIDObject{Buffer: sealed.Credential},
			Secret:         tpm2.TPM2BEncryptedSecret{Buffer: sealed.Secret},
		}.Execute(d.tpm)
		if err != nil {
			return nil, err
		}
		return response.CertInfo.Buffer, nil
	})
}

// satisfyPolicy meets the policy of the default endorsement key: who knows the password of the endorsement hierarchy, which is empty, may use it.
func satisfyPolicy(t transport.TPM, session tpm2.TPMISHPolicy, nonce tpm2.TPM2BNonce) error {
	_, err := tpm2.PolicySecret{AuthHandle: tpm2.TPMRHEndorsement, PolicySession: session, NonceTPM: nonce}.Execute(t)
	return err
}

// readCertificate returns the certificate at the index; nil where there is none that can be read. What a manufacturer has put after it is left out.
func (d *Device) readCertificate(index tpm2.TPMHandle) []byte {
	public, err := tpm2.NVReadPublic{NVIndex: index}.Execute(d.tpm)
	if err != nil {
		return nil
	}
	about, err := public.NVPublic.Contents()
	if err != nil || about.DataSize > MaxCertificate {
		return nil
	}
	var data []byte
	const block = 512 // every TPM reads as much at once
	for len(data) < int(about.DataSize) {
		part, err := tpm2.NVRead{
			AuthHandle: tpm2.AuthHandle{Handle: index, Name: public.NVName, Auth: tpm2.PasswordAuth(nil)},
			NVIndex:    tpm2.NamedHandle{Handle: index, Name: public.NVName},
			Size:       uint16(min(block, int(about.DataSize)-len(data))), Offset: uint16(len(data)),
		}.Execute(d.tpm)
		if err != nil || len(part.Data.Buffer) == 0 {
			return nil
		}
		data = append(data, part.Data.Buffer...)
	}
	var certificate asn1.RawValue
	if _, err := asn1.Unmarshal(data, &certificate); err != nil {
		return nil
	}
	return certificate.FullBytes
}
