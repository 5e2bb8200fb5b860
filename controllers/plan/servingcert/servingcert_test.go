package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type pkcs10 = x509.CertificateRequest

// encoded signs the request with a new key.
func encoded(t testing.TB, template pkcs10) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func kubelets() pkcs10 {
	return pkcs10{
		Subject: pkix.Name{CommonName: "system:node:gpu-0", Organization: []string{"system:nodes"}}, DNSNames: []string{"gpu-0"}, IPAddresses: []net.IP{net.ParseIP("10.20.4.17")},
	}
}

func request(t testing.TB, p pkcs10) Request {
	t.Helper()
	return Request{
		Name: "csr-1", CreatedAt: now.Add(-time.Second), Signer: certificatesv1.KubeletServingSignerName, Username: "system:node:gpu-0", Groups: []string{"system:nodes", "system:authenticated"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth, certificatesv1.UsageDigitalSignature}, PEM: encoded(t, p),
	}
}

func machine() Machine {
	return Machine{
		Node: "gpu-0", HasNode: true, Addresses: Records{Boot: "10.20.4.17/22"}.Addresses(),
		Elsewhere: map[netip.Addr]string{netip.MustParseAddr("10.20.4.18"): "server-1"},
	}
}

func TestARequestWithTheMachinesNamesIsApproved(t *testing.T) {
	for name, change := range map[string]func(*pkcs10, *Machine){
		"as kubelet makes it":            func(*pkcs10, *Machine) {},
		"an address alone":               func(p *pkcs10, _ *Machine) { p.DNSNames = nil },
		"the name alone":                 func(p *pkcs10, _ *Machine) { p.IPAddresses = nil },
		"an IPv4 address in an IPv6 one": func(_ *pkcs10, m *Machine) { m.Addresses = []Address{{netip.MustParseAddr("::ffff:10.20.4.17"), "x"}} },
		"two of two families": func(p *pkcs10, m *Machine) {
			p.IPAddresses = append(p.IPAddresses, net.ParseIP("fd00::17"))
			m.Addresses = Records{Boot: "10.20.4.17", Named: " fd00::17 , nonsense"}.Addresses()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, m := kubelets(), machine()
			change(&p, &m)
			d := Decide(now, m, []Request{request(t, p)})
			if d.Approve == nil || d.Approve.Name != "csr-1" || d.Reason != v1alpha1.ReasonServingCertificateApproved {
				t.Errorf("%+v", d)
			}
		})
	}
	withKeyEncipherment := request(t, kubelets())
	withKeyEncipherment.Usages = append(withKeyEncipherment.Usages, certificatesv1.UsageKeyEncipherment)
	if d := Decide(now, machine(), []Request{withKeyEncipherment}); d.Approve == nil {
		t.Errorf("a kubelet with an RSA key: %+v", d)
	}
}

func TestARequestThatBreaksOneRuleIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request, *pkcs10, *Machine)
		want   string
	}{
		"another node's address": {func(_ *Request, p *pkcs10, _ *Machine) { p.IPAddresses = []net.IP{net.ParseIP("10.20.4.18")} }, "expected the address of its host (10.20.4.17 of the annotation ingot.dev/ip-address), seen 10.20.4.18. If the node"},
		"one more address": {func(_ *Request, p *pkcs10, _ *Machine) {
			p.IPAddresses = append(p.IPAddresses, net.ParseIP("10.20.4.18"))
		}, "seen 10.20.4.18"},
		"an address that no record has": {func(_ *Request, _ *pkcs10, m *Machine) { m.Addresses = nil }, "expected the address of its host (none is known)"},
		"an address of two hosts":       {func(_ *Request, _ *pkcs10, m *Machine) { m.Elsewhere[netip.MustParseAddr("10.20.4.17")] = "server-2" }, "recorded for BareMetalHost server-2 as well"},
		"another node's name":           {func(_ *Request, p *pkcs10, _ *Machine) { p.DNSNames = []string{"gpu-1"} }, `expected no DNS name but gpu-0, seen "gpu-1"`},
		"one more name":                 {func(_ *Request, p *pkcs10, _ *Machine) { p.DNSNames = []string{"gpu-0", "kubernetes.default.svc"} }, `seen "gpu-0", "kubernetes.default.svc"`},
		"another node's common name":    {func(_ *Request, p *pkcs10, _ *Machine) { p.Subject.CommonName = "system:node:gpu-1" }, `expected the common name system:node:gpu-0`},
		"no organization":               {func(_ *Request, p *pkcs10, _ *Machine) { p.Subject.Organization = nil }, "expected the organization system:nodes alone, seen none"},
		"an administrator's organization": {func(_ *Request, p *pkcs10, _ *Machine) {
			p.Subject.Organization = append(p.Subject.Organization, "system:masters")
		}, `"system:masters"`},
		"a further part of the subject": {func(_ *Request, p *pkcs10, _ *Machine) { p.Subject.OrganizationalUnit = []string{"x"} }, "common name and organization alone"},
		"an e-mail address":             {func(_ *Request, p *pkcs10, _ *Machine) { p.EmailAddresses = []string{"a@example.com"} }, "expected no e-mail addresses"},
		"a URI":                         {func(_ *Request, p *pkcs10, _ *Machine) { p.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }, "expected no URIs, seen 1"},
		"neither name nor address":      {func(_ *Request, p *pkcs10, _ *Machine) { p.DNSNames, p.IPAddresses = nil, nil }, "seen neither"},
		"no node's group":               {func(r *Request, _ *pkcs10, _ *Machine) { r.Groups = []string{"system:authenticated"} }, "expected a user of the group system:nodes"},
		"the usage of a client":         {func(r *Request, _ *pkcs10, _ *Machine) { r.Usages = append(r.Usages, certificatesv1.UsageClientAuth) }, `"client auth"`},
		"a usage is missing":            {func(r *Request, _ *pkcs10, _ *Machine) { r.Usages = r.Usages[:1] }, `seen "server auth"`},
		"a usage too many":              {func(r *Request, _ *pkcs10, _ *Machine) { r.Usages = append(r.Usages, r.Usages[0]) }, "expected the usages"},
		"the API server's name":         {func(_ *Request, _ *pkcs10, m *Machine) { m.Server = "https://gpu-0:6443" }, `seen "gpu-0", which is one of the cluster's API server`},
		"the API server's first name":   {func(_ *Request, _ *pkcs10, m *Machine) { m.Server = "https://GPU-0.example.com" }, "give the Machine another name"},
		"a usage is there twice":        {func(r *Request, _ *pkcs10, _ *Machine) { r.Usages[0] = r.Usages[1] }, "expected the usages"},
	} {
		t.Run(name, func(t *testing.T) {
			p, m := kubelets(), machine()
			r := request(t, p)
			c.change(&r, &p, &m)
			r.PEM = encoded(t, p)
			d := Decide(now, m, []Request{r})
			if d.Approve != nil || d.Reason != v1alpha1.ReasonServingCertificateUnapproved || !strings.Contains(d.Message, c.want) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestAnAddressHasOneForm: an IPv4 address that is written as an IPv6 one is looked up among those of other hosts as well.
func TestAnAddressHasOneForm(t *testing.T) {
	address := net.ParseIP("10.20.4.17")
	names, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 7, Bytes: address.To16()}})
	if err != nil {
		t.Fatal(err)
	}
	p, m := kubelets(), machine()
	p.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: names}}
	if d := Decide(now, m, []Request{request(t, p)}); d.Approve == nil {
		t.Errorf("of its own host: %+v", d)
	}
	m.Elsewhere[netip.MustParseAddr("10.20.4.17")] = "server-2"
	if d := Decide(now, m, []Request{request(t, p)}); d.Approve != nil || !strings.Contains(d.Message, "server-2 as well") {
		t.Errorf("of two hosts: %+v", d)
	}
}

func TestARequestThatCannotBeReadIsLeft(t *testing.T) {
	good := encoded(t, kubelets())
	block, _ := pem.Decode(good)
	forged := slices.Clone(block.Bytes)
	forged[len(forged)-1] ^= 1
	for name, text := range map[string][]byte{
		"nothing": nil, "no PEM": []byte("x"), "another block": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}),
		"cut off": pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes[:40]}), "too long": append(slices.Clone(good), make([]byte, MaxPEM)...),
		"signed with another key": pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: forged}),
	} {
		r := request(t, kubelets())
		r.PEM = text
		if d := Decide(now, machine(), []Request{r}); d.Approve != nil || !strings.Contains(d.Message, "expected a PKCS#10 request of a kubelet: it ") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestWhatIsNotOfTheMachinesNodeIsNobodysBusiness(t *testing.T) {
	for name, change := range map[string]func(*Request, *Machine){
		"another signer":                func(r *Request, _ *Machine) { r.Signer = certificatesv1.KubeAPIServerClientKubeletSignerName },
		"another node":                  func(r *Request, _ *Machine) { r.Username = "system:node:gpu-1" },
		"an administrator for the node": func(r *Request, _ *Machine) { r.Username = "kubernetes-admin" },
		"no Node is bound":              func(_ *Request, m *Machine) { m.HasNode = false },
		"it was denied":                 func(r *Request, _ *Machine) { r.IsDecided = true },
	} {
		r, m := request(t, kubelets()), machine()
		change(&r, &m)
		if d := Decide(now, m, []Request{r}); d != (Decision{}) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestOnlyTheNewestRequestCountsAndApprovalsAreRare(t *testing.T) {
	of := func(name string, age time.Duration) Request {
		r := request(t, kubelets())
		r.Name, r.CreatedAt = name, now.Add(-age)
		return r
	}
	old, fresh := of("old", time.Hour), of("fresh", time.Second)
	if d := Decide(now, machine(), []Request{fresh, old}); d.Approve == nil || d.Approve.Name != "fresh" {
		t.Errorf("two wait: %+v", d)
	}
	old.IsDecided, old.ApprovedAt = true, now.Add(-20*time.Second)
	if d := Decide(now, machine(), []Request{fresh, old}); d.Approve != nil || d.After != 40*time.Second || d.Reason != "" {
		t.Errorf("one was approved 20 seconds ago: %+v", d)
	}
	if d := Decide(now.Add(40*time.Second), machine(), []Request{fresh, old}); d.Approve == nil {
		t.Errorf("one was approved a minute ago: %+v", d)
	}
	old.ApprovedAt = now.Add(time.Hour) // the tenant's clock is ahead
	if d := Decide(now, machine(), []Request{fresh, old}); d.After != time.Minute {
		t.Errorf("one was approved in an hour: %+v", d)
	}
	fresh.IsDecided, fresh.ApprovedAt = true, now
	if d := Decide(now, machine(), []Request{fresh, old}); d.Approve != nil || d.After != 0 || d.Reason != v1alpha1.ReasonServingCertificateApproved {
		t.Errorf("the newest is approved: %+v", d)
	}
}

// TestOfOneSecondTheRequestThatCanBeApprovedCounts: a kubelet that was restarted with its right address has made two requests in a second.
func TestOfOneSecondTheRequestThatCanBeApprovedCounts(t *testing.T) {
	good := request(t, kubelets())
	wrong, decided := good, good
	wrong.Name, wrong.Usages = "z", nil
	decided.Name, decided.IsDecided = "zz", true
	for _, requests := range [][]Request{{good, wrong, decided}, {decided, wrong, good}} {
		if d := Decide(now, machine(), requests); d.Approve == nil || d.Approve.Name != good.Name {
			t.Errorf("%+v", d)
		}
	}
	if d := Decide(now, machine(), []Request{wrong, decided}); d.Reason != v1alpha1.ReasonServingCertificateUnapproved {
		t.Errorf("%+v", d)
	}
}

func TestTheAddressesOfAHost(t *testing.T) {
	static := []netip.Addr{netip.MustParseAddr("10.20.4.17"), netip.MustParseAddr("fd00::17")}
	for name, c := range map[string]struct {
		records Records
		want    string
	}{
		"nothing is known":                         {Records{}, ""},
		"the annotation":                           {Records{Boot: "10.20.4.17/22"}, "10.20.4.17"},
		"network data and annotation say the same": {Records{Boot: "10.20.4.17/22", Static: static}, "10.20.4.17 fd00::17"},
		"a static host was installed by an agent":  {Records{Static: static[:1], Agent: "10.9.9.9", Inspected: []string{"10.9.9.8"}}, "10.20.4.17"},
		"DHCP":                               {Records{Agent: "10.9.9.9", Inspected: []string{"10.9.9.8", "", "fe80::1%eth0"}}, "10.9.9.9 10.9.9.8"},
		"DHCP with further addresses":        {Records{Agent: "10.9.9.9", Named: "10.9.9.10, 10.9.9.9"}, "10.9.9.9 10.9.9.10"},
		"addresses that name any other host": {Records{Named: "127.0.0.1,::,::1,0.0.0.0/0,x"}, ""},
	} {
		var got []string
		for _, a := range c.records.Addresses() {
			got = append(got, a.Addr.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestARequestOfAnObject(t *testing.T) {
	o := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: "u", CreationTimestamp: metav1.NewTime(now)},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: "s", Username: "n", Groups: []string{"g"}, Usages: []certificatesv1.KeyUsage{"any"}, Request: []byte("p")}}
	if r := RequestOf(o); r.Name != "csr-1" || r.UID != "u" || !r.CreatedAt.Equal(now) || r.Signer != "s" || r.Username != "n" || r.Groups[0] != "g" || r.Usages[0] != "any" || string(r.PEM) != "p" || r.IsDecided {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct {
		typ        certificatesv1.RequestConditionType
		isApproved bool
	}{{certificatesv1.CertificateApproved, true}, {certificatesv1.CertificateDenied, false}, {certificatesv1.CertificateFailed, false}} {
		o.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: c.typ, LastUpdateTime: metav1.NewTime(now)}}
		if r := RequestOf(o); !r.IsDecided || r.ApprovedAt.IsZero() == c.isApproved {
			t.Errorf("%s: %+v", c.typ, r)
		}
	}
}

func TestMessagesStayShortWhateverARequestHas(t *testing.T) {
	p := kubelets()
	p.DNSNames = nil
	for i := range 50 {
		p.DNSNames = append(p.DNSNames, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 200)))
	}
	d := Decide(now, machine(), []Request{request(t, p)})
	if len(d.Message) > 800 || !strings.Contains(d.Message, "46 more") {
		t.Errorf("%d bytes: %s", len(d.Message), d.Message)
	}
}

// FuzzRequest: whatever a node sends, deciding about it ends, and what is approved has no name but the Machine's.
func FuzzRequest(f *testing.F) {
	f.Add(encoded(f, kubelets()))
	other := kubelets()
	other.IPAddresses = append(other.IPAddresses, net.ParseIP("10.20.4.18"))
	f.Add(encoded(f, other))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	base := request(f, kubelets())
	f.Fuzz(func(t *testing.T, text []byte) {
		r := base
		r.PEM = text
		d := Decide(now, machine(), []Request{r})
		if d.Approve == nil {
			return
		}
		block, _ := pem.Decode(text)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range parsed.DNSNames {
			if name != "gpu-0" {
				t.Errorf("DNS name %s", name)
			}
		}
		for _, ip := range parsed.IPAddresses {
			if ip.String() != "10.20.4.17" {
				t.Errorf("address %s", ip)
			}
		}
	})
}
