package cloudinit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
)

const joinConfig = "/etc/kubernetes/ingot-kubeadm-join.yaml"

// authority returns the certificate of a new authority, PEM.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestKubeadmIsToldTheClusterAndItsAuthority(t *testing.T) {
	in := plain()
	in.Node.Method, in.Kubelet.Version = v1alpha1.JoinKubeadm, "1.37.0"
	in.Join = &kubelet.Join{Endpoint: "https://[fd00::1]", CA: append(authority(t), authority(t)...), Token: secretToken}
	files := written(t, in)
	for _, want := range []string{"apiVersion: kubeadm.k8s.io/v1beta4\n", "apiServerEndpoint: '[fd00::1]:443'\n", "token: " + secretToken, "directory: /etc/kubernetes/ingot-kubeadm-patches\n"} {
		if !strings.Contains(files[joinConfig], want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if n := strings.Count(files[joinConfig], "sha256:"); n != 2 {
		t.Errorf("%d pins of two certificates", n)
	}
	in.Kubelet.Version = "1.30.4"
	if files := written(t, in); !strings.Contains(files[joinConfig], "kubeadm.k8s.io/v1beta3\n") {
		t.Error("an older kubeadm cannot read its configuration")
	}
	in.Join = nil
	if _, isWritten := written(t, in)[joinConfig]; isWritten {
		t.Error("the token stays")
	}
	for want, join := range map[string]kubelet.Join{
		"has no certificate authority": {Endpoint: "https://a"}, "cannot be read": {Endpoint: "https://a", CA: []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")},
		"without a path": {Endpoint: "https://a/b", CA: authority(t)},
	} {
		join.Token = secretToken
		in.Join = &join
		if _, err := Render(in); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secretToken) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

func TestKubeletRequestsItsServingCertificateWhereTheTenantSaysSo(t *testing.T) {
	for method, path := range map[v1alpha1.JoinMethod]string{
		v1alpha1.JoinTLSBootstrap: "/etc/kubernetes/kubelet.yaml", v1alpha1.JoinKubeadm: "/etc/kubernetes/ingot-kubeadm-patches/kubeletconfiguration+merge.json",
		v1alpha1.JoinVCluster: "/etc/kubernetes/ingot-kubeadm-patches/kubeletconfiguration+merge.json", v1alpha1.JoinScript: "/etc/kubernetes/kubelet.conf.d/50-node.conf",
	} {
		in := plain()
		in.Node.Method, in.Join = method, nil
		for _, isWanted := range []bool{false, true} {
			in.Node.ServerTLSBootstrap = isWanted
			text := strings.ReplaceAll(written(t, in)[path], `"`, "")
			if text == "" || strings.Contains(text, "serverTLSBootstrap: true") != isWanted {
				t.Errorf("%s, wanted %t: %s", method, isWanted, text)
			}
		}
	}
}
