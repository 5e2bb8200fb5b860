// Package pki makes the credentials of a control plane: its certificate authority, what the authority signs, the key
// of the service accounts, and kubeconfigs that carry everything inside.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	// clockSkew backdates certificates, so that a machine whose clock is a little behind accepts them.
	clockSkew = 5 * time.Minute
)

// Authority signs the certificates of one control plane.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// Pair is a certificate and its private key, both PEM encoded.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// EnsureAuthority loads the authority from the two files, or makes a new one where there is none.
func EnsureAuthority(certFile, keyFile string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(certFile, keyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("load the certificate authority %s: %w", certFile, err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in %s cannot sign", keyFile)
	}
	return &Authority{certificate: pair.Leaf, key: key}, nil
}

func newAuthority(certFile, keyFile string) (*Authority, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: "ingot-controlplane"}, authorityLifetime)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the authority's key: %w", err)
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	// The key goes first: an interrupted start leaves no certificate without its key.
	if err := WriteFile(keyFile, pair.Key, secretMode); err != nil {
		return nil, err
	}
	if err := WriteFile(certFile, pair.Certificate, publicMode); err != nil {
		return nil, err
	}
	return EnsureAuthority(certFile, keyFile)
}

// IssueServing signs a certificate for a server that is reached under these names and addresses.
func (a *Authority) IssueServing(name string, dnsNames []string, addresses []net.IP) (Pair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: name}, leafLifetime)
	if err != nil {
		return Pair{}, err
	}
	template.DNSNames = dnsNames
	template.IPAddresses = addresses
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.issue(template)
}

// IssueClient signs a certificate that authenticates a user who is a member of these groups.
func (a *Authority) IssueClient(user string, groups ...string) (Pair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: user, Organization: groups}, leafLifetime)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// Certificate is the authority's own certificate, PEM encoded.
func (a *Authority) Certificate() []byte { return encodeCertificate(a.certificate.Raw) }

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate the key of %s: %w", template.Subject.CommonName, err)
	}
	return sign(template, a.certificate, key, a.key)
}

func certificateTemplate(subject pkix.Name, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      subject,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func sign(template, parent *x509.Certificate, key, parentKey crypto.Signer) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	encodedKey, err := encodePrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encodeCertificate(der), Key: encodedKey}, nil
}
