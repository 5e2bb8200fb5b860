package bootca

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

// Do returns what is stored after the action. Keys are made from random. The arguments are not changed.
func Do(action Action, f Facts, random io.Reader) (Authorities, Served, error) {
	a, served := f.Authorities, f.Served
	var err error
	switch action {
	case Replace:
		a = Authorities{}
		a.Signing, err = newAuthority(f.Now, f.Times, random)
	case Prepare:
		a.Next, err = newAuthority(f.Now, f.Times, random)
	case Promote:
		a = Authorities{Signing: a.Next, Former: a.Signing.Certificate, FormerUntil: f.Now.Add(f.Times.Overlap)}
	case Forget:
		a.Former, a.FormerUntil = nil, time.Time{}
	case Serve:
		served.Trusted = a.trusted()
		served.Leaf, err = issue(a.Signing, f.Names, f.Now, f.Times, random)
	}
	return a, served, err
}

// Pins returns the pins of the trusted authorities.
func (s Served) Pins() []string {
	var pins []string
	for rest := s.Trusted; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return pins
		}
		if authority, err := x509.ParseCertificate(block.Bytes); err == nil {
			pins = append(pins, pin.Of(authority))
		}
	}
}

// TLS returns the certificate and its chain as they are served.
func (s Served) TLS() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(s.Leaf.Certificate, s.Leaf.Key)
	if err != nil {
		return nil, errPair
	}
	return &pair, nil
}

// errPair does not wrap the error of package tls, which may quote what it read.
var errPair = errors.New("certificate and key are missing, or do not fit each other")

// parse returns the certificate of a pair that fits its key.
func (p Pair) parse() (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, errPair
	}
	return pair.Leaf, nil
}

// newAuthority returns a self-signed authority.
func newAuthority(now time.Time, times Times, random io.Reader) (Pair, error) {
	template, err := newTemplate(hardware.BootAuthorityName, now, times.AuthorityLife, times, random)
	if err != nil {
		return Pair{}, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero, template.KeyUsage = true, true, true, x509.KeyUsageCertSign
	return sign(template, nil, authorityBits, random)
}

// issue returns a certificate of the authority, followed by the authority's own. Servers find the pinned key there.
func issue(authority Pair, names []string, now time.Time, times Times, random io.Reader) (Pair, error) {
	signer, err := tls.X509KeyPair(authority.Certificate, authority.Key)
	if err != nil {
		return Pair{}, errPair
	}
	template, err := newTemplate(Name, now, times.Life, times, random)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range withName(names) {
		if address, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, address.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, err := sign(template, &signer, leafBits, random)
	leaf.Certificate = slices.Concat(leaf.Certificate, authority.Certificate)
	return leaf, err
}

// newTemplate returns what both certificates have in common. The serial number is part of the subject, because a verifier that finds authorities by
// their subject could take the former one for the present one.
func newTemplate(name string, now time.Time, life time.Duration, times Times, random io.Reader) (*x509.Certificate, error) {
	raw := make([]byte, 16)
	if _, err := io.ReadFull(random, raw); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	raw[0] &= 0x7f // a serial number is positive and has at most 20 octets (RFC 5280, section 4.1.2.2)
	serial := new(big.Int).SetBytes(raw)
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, SerialNumber: serial.Text(16)}, NotBefore: now.Add(-times.Skew), NotAfter: now.Add(life),
	}, nil
}

// The keys are RSA: firmware of EDK II knows no elliptic curves in TLS before its build of OpenSSL had them (measured: OVMF 2022.11 offers neither ECDHE nor
// ECDSA). An authority lasts for years, a certificate for days.
const (
	authorityBits = 3072
	leafBits      = 2048
)

// makeKey makes a key. Tests of many years, which need hundreds, take them from a few.
var makeKey = rsa.GenerateKey

// sign makes a key and a certificate for it, which the signer signs, or without one the key itself.
func sign(template *x509.Certificate, signer *tls.Certificate, bits int, random io.Reader) (Pair, error) {
	key, err := makeKey(random, bits)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	var parent, signingKey = template, any(key)
	if signer != nil {
		parent, signingKey = signer.Leaf, signer.PrivateKey
	}
	der, err := x509.CreateCertificate(random, template, parent, key.Public(), signingKey)
	if err != nil {
		return Pair{}, fmt.Errorf("make a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode a key: %w", err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
