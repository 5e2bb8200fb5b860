package bmc

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

const (
	memberHTTPURI    = "HttpBootUri"
	pathCertificates = PathSystem + "/Boot/Certificates"
)

// PinnedURI returns HttpBootUri, or "".
func (b *BMC) PinnedURI() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.override().uri
}

// PinURI sets HttpBootUri as a person does at the BMC.
func (b *BMC) PinURI(uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.override().uri = uri
}

// BootedURI returns the URI that the last boot loads its program from; "" when it does not.
func (b *BMC) BootedURI() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bootedURI
}

// Certificates returns the certificates that the firmware trusts for HTTPS boot, in PEM.
func (b *BMC) Certificates() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.certificates), func(text string) bool { return text == "" })
}

// AddCertificate adds a certificate for HTTPS boot as a person does at the BMC.
func (b *BMC) AddCertificate(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.certificates = append(b.certificates, text)
}

// checkURI returns how a URI is refused; 0: it is accepted.
func (r BootRules) checkURI(uri string, isNull bool) (status int, key, message string) {
	switch {
	case r.HTTPBootURI == "":
		return http.StatusBadRequest, "PropertyUnknown", "The property HttpBootUri is not in the list of valid properties for the resource."
	case r.HTTPBootURI == URIRefused:
		return http.StatusBadRequest, "PropertyNotWritable", "The property HttpBootUri is a read only property and cannot be assigned the value " + uri + "."
	case r.HTTPBootURI == URIEmptyText && isNull:
		return http.StatusBadRequest, "PropertyValueTypeError", "The value null for the property HttpBootUri is of a different type than the property can accept."
	}
	return 0, "", ""
}

// changeURI changes the URI of the next override. It returns false when it has refused to.
func (b *BMC) changeURI(w http.ResponseWriter, next *bootOverride, value any) bool {
	rules := b.options.Personality.Boot
	uri, _ := value.(string)
	if status, key, message := rules.checkURI(uri, value == nil); status != 0 {
		b.refuse(w, status, key, message)
		return false
	}
	if rules.HTTPBootURI != URIDropped && (rules.HTTPBootURI != URIUnremovable || uri != "") {
		next.uri = uri
	}
	return true
}

// certificateDocument returns a member of the collection of certificates, or the collection.
func (b *BMC) certificateDocument(at string) (document map[string]any, found bool) {
	rule := b.options.Personality.Boot.Certificates
	if rule == "" {
		return nil, false
	}
	t := tree{}
	var members []string
	for i, text := range b.certificates {
		if text == "" {
			continue // it was deleted
		}
		member := map[string]any{"CertificateType": "PEM", "CertificateString": text}
		if block, _ := pem.Decode([]byte(text)); rule == CertificatesFingerprinted && block != nil {
			digest := sha256.Sum256(block.Bytes)
			member = map[string]any{"CertificateString": nil, "Fingerprint": strings.ToUpper(hex.EncodeToString(digest[:])), "FingerprintHashAlgorithm": "TPM_ALG_SHA256"}
			if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
				member["Subject"] = map[string]any{"CommonName": certificate.Subject.CommonName}
			}
		}
		members = append(members, t.add(fmt.Sprintf("%s/%d", pathCertificates, i+1), "#Certificate.v1_8_2.Certificate", member))
	}
	t.collection(pathCertificates, members...)
	document, found = t[at]
	return document, found
}

// changeCertificates adds or deletes a certificate.
func (b *BMC) changeCertificates(w http.ResponseWriter, r *http.Request, at string, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rule := b.options.Personality.Boot.Certificates
	if _, found := b.certificateDocument(at); !found {
		b.refuse(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+at+" was not found.")
		return
	}
	if r.Method == http.MethodDelete {
		for i := range b.certificates {
			if path.Base(at) == fmt.Sprint(i+1) {
				b.certificates[i] = ""
			}
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var request struct{ CertificateString, CertificateType string }
	switch {
	case json.Unmarshal(body, &request) != nil || request.CertificateType != "PEM" || !strings.Contains(request.CertificateString, "BEGIN CERTIFICATE"):
		b.refuse(w, http.StatusBadRequest, "PropertyMissing", "The properties CertificateString and CertificateType are required.")
		return
	case rule == CertificatesRefused:
		b.refuse(w, http.StatusBadRequest, "PropertyValueNotInList", "The value of CertificateType is not in the list of acceptable values.")
		return
	case rule != CertificatesDropped:
		b.certificates = append(b.certificates, request.CertificateString)
	}
	w.WriteHeader(http.StatusCreated)
}
