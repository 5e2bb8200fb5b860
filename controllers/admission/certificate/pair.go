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

// skew is how long before its issue a certificate becomes valid, for API servers whose clocks are behind.
const skew = time.Hour

// Pair is a certificate and its private key.
type Pair struct {
	// Certificate and Key are in PEM. The key is secret.
	Certificate, Key []byte
}

// leafFor returns the parsed certificate, or an error if the pair cannot be served for all the names.
func (p Pair) leafFor(names []string) (*x509.Certificate, error) {
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

// Issue returns a certificate for the names, which are host names and IP addresses, that is valid for life from now, and the
// certificate of the authority that signed it. The authority's key is discarded.
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

// template returns the fields that both certificates have in common. The serial number is part of the subject, because a verifier
// that finds authorities by subject could use an earlier authority and reject the certificate.
func template(name string, now time.Time, life time.Duration, random io.Reader) (*x509.Certificate, error) {
	raw := make([]byte, 16)
	if _, err := io.ReadFull(random, raw); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	raw[0] = raw[0]&0x7f | 1 // positive and not zero, as RFC 5280 wants it
	serial := new(big.Int).SetBytes(raw)
	if len(name) > 64 {
		name = name[:64] // X.520's limit of a common name; the full name is among the alternative names
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, SerialNumber: serial.Text(16)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(life),
	}, nil
}

// authorities parses a bundle and skips blocks that are not certificates.
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

// mergedBundle returns the bundle with the additional authorities and without duplicates and expired ones.
func mergedBundle(bundle []byte, now time.Time, more ...[]byte) []byte {
	var out bytes.Buffer
	var added [][]byte
	for _, a := range authorities(slices.Concat(bytes.Join(more, nil), bundle)) {
		if now.After(a.NotAfter) || slices.ContainsFunc(added, func(s []byte) bool { return bytes.Equal(s, a.Raw) }) {
			continue
		}
		added = append(added, a.Raw)
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Raw}))
	}
	return out.Bytes()
}

// isTrusted tells whether an authority of the bundle has signed the certificate.
func isTrusted(bundle []byte, leaf *x509.Certificate) bool {
	return slices.ContainsFunc(authorities(bundle), func(a *x509.Certificate) bool { return leaf.CheckSignatureFrom(a) == nil })
}
