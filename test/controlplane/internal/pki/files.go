package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	publicMode fs.FileMode = 0o644
	secretMode fs.FileMode = 0o600
)

// Write stores the certificate and the key in the two files.
func (p Pair) Write(certFile, keyFile string) error {
	if err := WriteFile(keyFile, p.Key, secretMode); err != nil {
		return err
	}
	return WriteFile(certFile, p.Certificate, publicMode)
}

// EnsureKey makes the private key file unless it exists. Service account tokens stay valid over a restart only while
// it stays.
func EnsureKey(file string) error {
	_, err := os.Stat(file)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for the key %s: %w", file, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate the key %s: %w", file, err)
	}
	encoded, err := encodePrivateKey(key)
	if err != nil {
		return err
	}
	return WriteFile(file, encoded, secretMode)
}

// WriteFile replaces a file as a whole: whoever reads it, also after a crash, sees the old content or the new.
func WriteFile(file string, content []byte, mode fs.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(temporary.Name(), file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// encodePrivateKey writes the SEC 1 form, the only one from which kube-apiserver derives the public key that verifies
// service account tokens.
func encodePrivateKey(key crypto.Signer) ([]byte, error) {
	ecdsaKey, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("cannot encode a private key of type %T", key)
	}
	der, err := x509.MarshalECPrivateKey(ecdsaKey)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
