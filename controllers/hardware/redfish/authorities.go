package redfish

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opAuthorities = "set the authorities for HTTPS boot"

// bootCertificate is a member of the collection Boot.Certificates of a ComputerSystem (DSP0268, ComputerSystem 1.7, Certificate 1.0).
type bootCertificate struct {
	CertificateString        string
	Fingerprint              string
	FingerprintHashAlgorithm string
	Subject                  struct{ CommonName string }

	uri string
}

// SetBootAuthorities implements hardware.BMC. It reads the collection again at the end: firmware may accept a certificate and drop it.
func (b *bmc) SetBootAuthorities(ctx context.Context, authorities []byte) error {
	wanted := fingerprintsOf(authorities)
	return b.call(ctx, opAuthorities, func(c *conn) error {
		collection, err := c.bootCertificates()
		if err != nil {
			return err
		}
		present, err := c.keepCertificates(collection, wanted)
		if err != nil {
			return err
		}
		isAdded := false
		for fingerprint, text := range wanted {
			if present[fingerprint] {
				continue
			}
			if _, err := c.post(collection, map[string]any{"CertificateString": text, "CertificateType": "PEM"}); err != nil {
				return c.authorityError(err)
			}
			isAdded = true
		}
		if !isAdded {
			return nil
		}
		if present, err = c.keepCertificates(collection, wanted); err != nil {
			return err
		}
		for fingerprint := range wanted {
			if !present[fingerprint] {
				return hardware.Errorf(hardware.Unsupported, opAuthorities, b.endpoint.Address, "the BMC accepted the certificate of the authority and does not list it")
			}
		}
		return nil
	})
}

// authorityError returns Unsupported for a certificate that the BMC does not take, and any other error as it is.
func (c *conn) authorityError(err error) error {
	if isRefused(err) || isMissing(err) {
		return hardware.Errorf(hardware.Unsupported, opAuthorities, c.bmc.endpoint.Address, "the BMC does not take the certificate of the authority: %w", err)
	}
	return err
}

// bootCertificates returns the path of the collection of the certificates that firmware trusts for HTTPS boot.
func (c *conn) bootCertificates() (string, error) {
	s, err := c.serverSystem()
	if err != nil {
		return "", err
	}
	var link schemas.Link
	if raw := s.links.Boot["Certificates"]; raw == nil || json.Unmarshal(raw, &link) != nil || link == "" {
		return "", hardware.Errorf(hardware.Unsupported, opAuthorities, c.bmc.endpoint.Address, "the BMC's Boot has no Certificates, so that the firmware cannot be told to trust an authority for HTTPS")
	}
	return link.String(), nil
}

// keepCertificates removes the certificates that Ingot has added earlier and that are not wanted any more, and returns the fingerprints of those that
// are there. One that the BMC does not describe well enough to be found again is removed, and then added again.
func (c *conn) keepCertificates(collection string, wanted map[string]string) (present map[string]bool, err error) {
	members, err := c.collectionMembers(collection)
	if err != nil {
		return nil, c.authorityError(err)
	}
	present = map[string]bool{}
	for _, member := range members {
		certificate := bootCertificate{uri: member}
		if _, err := c.readDocument(member, &certificate); err != nil {
			if err := c.skipResourceError(err, member); err != nil {
				return nil, err
			}
			continue
		}
		fingerprint := certificate.fingerprint()
		if _, isWanted := wanted[fingerprint]; isWanted {
			present[fingerprint] = true
		} else if certificate.isOwn() {
			resp, err := c.api.Delete(member)
			if err != nil {
				return nil, c.authorityError(err)
			}
			schemas.DeferredCleanupHTTPResponse(resp)
		}
	}
	return present, nil
}

// fingerprint returns the SHA-256 digest of the certificate in hexadecimal digits; "" when it is not known.
func (b bootCertificate) fingerprint() string {
	if parsed := b.parse(); parsed != nil {
		return fingerprintOf(parsed)
	}
	// DSP0268: digits in hexadecimal, in pairs with colons between them; the algorithm by its name in the TCG's registry.
	if b.FingerprintHashAlgorithm != "" && b.FingerprintHashAlgorithm != "TPM_ALG_SHA256" {
		return ""
	}
	return strings.ToLower(strings.ReplaceAll(b.Fingerprint, ":", ""))
}

// isOwn reports whether the certificate is of an authority of Ingot's boot service.
func (b bootCertificate) isOwn() bool {
	if parsed := b.parse(); parsed != nil {
		return parsed.Subject.CommonName == hardware.BootAuthorityName
	}
	return b.Subject.CommonName == hardware.BootAuthorityName
}

// parse returns the certificate; nil when the BMC does not show it.
func (b bootCertificate) parse() *x509.Certificate {
	block, _ := pem.Decode([]byte(b.CertificateString))
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return certificate
}

// fingerprintsOf returns the certificates of a PEM text by their fingerprints.
func fingerprintsOf(text []byte) map[string]string {
	found := map[string]string{}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return found
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			found[fingerprintOf(certificate)] = string(pem.EncodeToMemory(block))
		}
	}
}

func fingerprintOf(certificate *x509.Certificate) string {
	digest := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(digest[:])
}
