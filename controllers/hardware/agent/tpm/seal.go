package tpm

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-tpm/tpm2"
)

// Limits of what an agent reports, in bytes.
const (
	// maxKey is far more than a key of 2048 bits has.
	maxKey = 1024
	// MaxCertificate is more than any manufacturer's certificate has.
	MaxCertificate = 4096
	// rsaBits and rsaExponent are those of the default template of an endorsement key (TCG EK Credential Profile for TPM 2.0, template L-1).
	rsaBits, rsaExponent = 2048, 65537
)

// EndorsementKey is the public part of the key that a TPM is known by, with the default template for RSA 2048 or NIST P-256.
type EndorsementKey struct {
	der    []byte
	public tpm2.TPMTPublic
}

// ParseKey reads a key in the form of a DER SubjectPublicKeyInfo.
func ParseKey(der []byte) (EndorsementKey, error) {
	if len(der) > maxKey {
		return EndorsementKey{}, fmt.Errorf("endorsement key: %d bytes, expected at most %d", len(der), maxKey)
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return EndorsementKey{}, errors.New("endorsement key: expected a SubjectPublicKeyInfo in DER")
	}
	key := EndorsementKey{}
	switch public := parsed.(type) {
	case *rsa.PublicKey:
		if public.N.BitLen() != rsaBits || public.E != rsaExponent {
			return EndorsementKey{}, fmt.Errorf("endorsement key: RSA with %d bits and the exponent %d, expected %d and %d", public.N.BitLen(), public.E, rsaBits, rsaExponent)
		}
		key.public = tpm2.RSAEKTemplate
		key.public.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgRSA, &tpm2.TPM2BPublicKeyRSA{Buffer: public.N.FillBytes(make([]byte, rsaBits/8))})
	case *ecdsa.PublicKey:
		point, err := pointOf(public)
		if err != nil {
			return EndorsementKey{}, err
		}
		key.public = tpm2.ECCEKTemplate
		key.public.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, point)
	default:
		return EndorsementKey{}, errors.New("endorsement key: expected RSA, or ECDSA with the curve P-256")
	}
	key.der, err = x509.MarshalPKIXPublicKey(parsed)
	if err != nil || !bytes.Equal(key.der, der) {
		return EndorsementKey{}, errors.New("endorsement key: not in the one form that DER has for it")
	}
	return key, nil
}

// pointOf returns a public key of NIST P-256 as a TPM has it.
func pointOf(public *ecdsa.PublicKey) (*tpm2.TPMSECCPoint, error) {
	if public.Curve != elliptic.P256() {
		return nil, errors.New("endorsement key: expected the curve P-256")
	}
	point, err := public.ECDH()
	if err != nil || point.Curve() != ecdh.P256() {
		return nil, errors.New("endorsement key: not a point of P-256")
	}
	coordinates := point.Bytes()[1:] // after the byte that says that it is not compressed
	return &tpm2.TPMSECCPoint{X: tpm2.TPM2BECCParameter{Buffer: coordinates[:32]}, Y: tpm2.TPM2BECCParameter{Buffer: coordinates[32:]}}, nil
}

// Fingerprint is the SHA-256 digest of the key's SubjectPublicKeyInfo, in hexadecimal digits.
func (k EndorsementKey) Fingerprint() string {
	digest := sha256.Sum256(k.der)
	return hex.EncodeToString(digest[:])
}

// IsOf reports whether the certificate, in DER, is one of this key. Who has signed it is not looked at.
func (k EndorsementKey) IsOf(certificate []byte) bool {
	parsed, err := x509.ParseCertificate(certificate)
	return err == nil && bytes.Equal(parsed.RawSubjectPublicKeyInfo, k.der)
}

// Sealed is a secret that only the TPM opens which it was sealed for.
type Sealed struct {
	// Credential and Secret are the arguments of TPM2_ActivateCredential, without their lengths.
	Credential []byte
	Secret     []byte
}

// nameBytes is the length of an object's name: the algorithm, and a digest by SHA-256.
const nameBytes = 2 + sha256.Size

// IsName reports whether it has the form of the name of an object by SHA-256.
func IsName(name []byte) bool {
	return len(name) == nameBytes && binary.BigEndian.Uint16(name) == uint16(tpm2.TPMAlgSHA256)
}

// Seal seals the secret for the TPM with the key, while it holds the object with the name.
func (k EndorsementKey) Seal(random io.Reader, name, secret []byte) (Sealed, error) {
	if !IsName(name) {
		return Sealed{}, fmt.Errorf("name of an object: expected %d bytes that begin with the algorithm SHA-256", nameBytes)
	}
	key, err := tpm2.ImportEncapsulationKey(&k.public)
	if err != nil {
		return Sealed{}, fmt.Errorf("endorsement key: %w", err)
	}
	credential, encrypted, err := tpm2.CreateCredential(random, key, name, secret)
	if err != nil {
		return Sealed{}, fmt.Errorf("sealing for the endorsement key: %w", err)
	}
	return Sealed{Credential: credential, Secret: encrypted}, nil
}
