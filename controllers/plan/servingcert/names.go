package servingcert

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// nodesGroup is the group of all kubelets, and the organization of their certificates.
const nodesGroup = "system:nodes"

// MaxPEM is the longest PKCS#10 request that is read, in bytes. A kubelet's has less than one kilobyte.
const MaxPEM = 16 << 10

// usages are the sets of usages that the signer accepts for a kubelet that serves (pkg/apis/certificates, ValidateKubeletServingCSR).
var usages = [][]certificatesv1.KeyUsage{
	{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth},
}

// problem returns why the request is not approved; empty: it may be.
func (r Request) problem(m Machine) string {
	if !slices.Contains(r.Groups, nodesGroup) {
		return fmt.Sprintf("expected a user of the group %s, seen %s: whoever created it is no node", nodesGroup, quoted(r.Groups))
	}
	if !slices.ContainsFunc(usages, func(allowed []certificatesv1.KeyUsage) bool { return isSameSet(allowed, r.Usages) }) {
		return fmt.Sprintf("expected the usages digital signature and server auth, and key encipherment or not, seen %s", quoted(r.Usages))
	}
	parsed, err := parse(r.PEM)
	if err != nil {
		return "expected a PKCS#10 request of a kubelet: " + err.Error()
	}
	return firstNonEmpty(subjectProblem(parsed, m.Node), namesProblem(parsed, m.Node), systemProblem(m), addressProblem(parsed, m))
}

// parse returns the PKCS#10 request, which its maker has signed with the key that the certificate is for.
func parse(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > MaxPEM {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxPEM)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("it is no PEM block CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("it cannot be parsed")
	}
	if parsed.CheckSignature() != nil {
		return nil, errors.New("it is not signed with its own key")
	}
	return parsed, nil
}

// subjectProblem returns what is wrong with the subject, which is the common name and the organization of a node and nothing else.
func subjectProblem(parsed *x509.CertificateRequest, node string) string {
	s := parsed.Subject
	switch {
	case s.CommonName != UserPrefix+node:
		return fmt.Sprintf("expected the common name %s, of the node that has created it, seen %s", UserPrefix+node, quote(s.CommonName))
	case !slices.Equal(s.Organization, []string{nodesGroup}):
		return fmt.Sprintf("expected the organization %s alone, seen %s", nodesGroup, quoted(s.Organization))
	case len(s.Names) != 2:
		return "expected a subject of common name and organization alone, seen " + quote(s.String())
	}
	return ""
}

// namesProblem returns what is wrong with the alternative names that are no addresses.
func namesProblem(parsed *x509.CertificateRequest, node string) string {
	switch {
	case len(parsed.EmailAddresses) > 0:
		return "expected no e-mail addresses, seen " + quoted(parsed.EmailAddresses)
	case len(parsed.URIs) > 0:
		return fmt.Sprintf("expected no URIs, seen %d", len(parsed.URIs))
	case len(parsed.DNSNames)+len(parsed.IPAddresses) == 0:
		return "expected the node's name or an address of it, seen neither"
	}
	for _, name := range parsed.DNSNames {
		if name != node {
			return fmt.Sprintf("expected no DNS name but %s, seen %s", node, quoted(parsed.DNSNames))
		}
	}
	return ""
}

// systemNames are names by which programs on a node, or in a pod, reach something else than that node.
var systemNames = []string{"localhost", "ip6-localhost", "ip6-loopback", "kubernetes"}

// systemProblem returns why the node's name is not one that a kubelet serves by. Without it: a Machine is called as the API server is, and whoever has its node gets
// a certificate by which it answers in that server's place.
func systemProblem(m Machine) string {
	host := ""
	if server, err := url.Parse(m.Server); err == nil {
		host, _, _ = strings.Cut(strings.ToLower(server.Hostname()), ".")
	}
	if slices.Contains(systemNames, m.Node) || m.Node == host {
		return fmt.Sprintf("expected a name of the node alone, seen %s, which is one of the cluster's API server or of every machine: give the Machine another name", quote(m.Node))
	}
	return ""
}

// addressProblem returns what is wrong with the addresses: each must be recorded for the Machine's host, and for no other one.
func addressProblem(parsed *x509.CertificateRequest, m Machine) string {
	for _, ip := range parsed.IPAddresses {
		seen, ok := netip.AddrFromSlice(ip)
		seen = seen.Unmap()
		known := slices.IndexFunc(m.Addresses, func(a Address) bool { return a.isAddr(seen) })
		if !ok || known < 0 {
			return fmt.Sprintf("expected the address of its host (%s), seen %s. If the node has that address by right, set the annotation %s of the BareMetalHost to it; "+
				"else find out who has the node's credentials", listed(m.Addresses), ip, v1alpha1.AnnotationNodeAddresses)
		}
		if other := m.Elsewhere[seen]; other != "" {
			return fmt.Sprintf("its address %s (%s) is recorded for BareMetalHost %s as well: one of the two is wrong", seen, m.Addresses[known].Source, other)
		}
	}
	return ""
}

// listed returns the addresses and where they are from.
func listed(addresses []Address) string {
	if len(addresses) == 0 {
		return "none is known"
	}
	var out []string
	for _, a := range addresses {
		out = append(out, a.Addr.String()+" of "+a.Source)
	}
	return strings.Join(out, ", ")
}

// isSameSet reports whether both lists have the same items.
func isSameSet(a, b []certificatesv1.KeyUsage) bool {
	inB := func(u certificatesv1.KeyUsage) bool { return slices.Contains(b, u) }
	inA := func(u certificatesv1.KeyUsage) bool { return slices.Contains(a, u) }
	return len(a) == len(b) && !slices.ContainsFunc(a, func(u certificatesv1.KeyUsage) bool { return !inB(u) }) && !slices.ContainsFunc(b, func(u certificatesv1.KeyUsage) bool { return !inA(u) })
}

// maxQuoted is how many texts of a request a message quotes, and maxText how many bytes of each.
const (
	maxQuoted = 4
	maxText   = 64
)

// quoted returns texts that somebody on the node wrote.
func quoted[S ~string](texts []S) string {
	if len(texts) == 0 {
		return "none"
	}
	var out []string
	for _, t := range texts[:min(len(texts), maxQuoted)] {
		out = append(out, quote(string(t)))
	}
	if more := len(texts) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

func quote(text string) string { return strconv.QuoteToASCII(input.Line(text, maxText)) }

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
