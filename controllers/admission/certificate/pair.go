package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"time"
)

// skew is how much earlier than now a certificate begins to hold, for clocks that are behind.
const skew = time.Hour

// Pair is a certificate with its key.
type Pair struct {
	// Certificate and Key in PEM. The key is secret.
	Certificate, Key []byte
}

// usable says until when the pair can be served for all the names, and since when; an error says why it cannot.
func (p Pair) usable(names []string) (*x509.Certificate, error) {
	both, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, errors.New("certificate and key are missing, or do not fit each other") // an error of tls may quote what it read
	}
	for _, name := range names {
		if err := both.Leaf.VerifyHostname(name); err != nil {
			return nil, err
		}
	}
	return both.Leaf, nil
}

// Issue makes a certificate for names, host names and IP addresses, that holds for life from now, and the certificate of
// the authority that signed it. The authority's key is forgotten.
func Issue(names []string, now time.Time, life time.Duration, random io.Reader) (Pair, []byte, error) {
	if len(names) == 0 {
		return Pair{}, nil, errors.New("issue a certificate: there is no name that it would be for")
	}
	authority, err := template("ingot-webhook-authority", now, life, random)
	if err != nil {
		return Pair{}, nil, err
	}
	authority.IsCA, authority.BasicConstraintsValid, authority.MaxPathLenZero, authority.KeyUsage = true, true, true, x509.KeyUsageCertSign
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("make the authority's key: %w", err)
	}
	authorityDER, err := x509.CreateCertificate(random, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("make the authority: %w", err)
	}
	leaf, err := template(names[0], now, life, random)
	if err != nil {
		return Pair{}, nil, err
	}
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("make the certificate's key: %w", err)
	}
	der, err := x509.CreateCertificate(random, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("make the certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("encode the certificate's key: %w", err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER}), nil
}

// template is what both certificates have in common. The serial number is part of the authority's name: a verifier that
// finds authorities by name must not mistake one for the next.
func template(name string, now time.Time, life time.Duration, random io.Reader) (*x509.Certificate, error) {
	raw := make([]byte, 16)
	if _, err := io.ReadFull(random, raw); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	raw[0] = raw[0]&0x7f | 1 // positive and not zero, as RFC 5280 wants it
	serial := new(big.Int).SetBytes(raw)
	if len(name) > 64 {
		name = name[:64] // X.520's limit of a common name; the whole name is among the alternative names
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, SerialNumber: serial.Text(16)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(life),
	}, nil
}

// authorities parses a bundle, and leaves out what is no certificate.
func authorities(bundle []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out
		}
		if parsed, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			out = append(out, parsed)
		}
	}
}

// trusted is the bundle with the authorities added that it lacks, and without those that have ended.
func trusted(bundle []byte, now time.Time, more ...[]byte) []byte {
	var out bytes.Buffer
	var seen [][]byte
	for _, a := range authorities(slices.Concat(bytes.Join(more, nil), bundle)) {
		if now.After(a.NotAfter) || slices.ContainsFunc(seen, func(s []byte) bool { return bytes.Equal(s, a.Raw) }) {
			continue
		}
		seen = append(seen, a.Raw)
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Raw}))
	}
	return out.Bytes()
}

// trusts says whether an authority of the bundle has signed the certificate.
func trusts(bundle []byte, leaf *x509.Certificate) bool {
	return slices.ContainsFunc(authorities(bundle), func(a *x509.Certificate) bool { return leaf.CheckSignatureFrom(a) == nil })
}
