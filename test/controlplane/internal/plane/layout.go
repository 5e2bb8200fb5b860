package plane

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/ingot-dev/ingot/test/controlplane/internal/pki"
)

// The names by which kube-apiserver is reached; serviceAddress is the first address of serviceRange.
const (
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1"
	loopback       = "127.0.0.1"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

// layout names the files of a control plane below its directory.
type layout struct{ dir string }

func (l layout) pki(name string) string             { return filepath.Join(l.dir, "pki", name) }
func (l layout) caCert() string                     { return filepath.Join(l.dir, "ca.crt") }
func (l layout) caKey() string                      { return l.pki("ca.key") }
func (l layout) servingCert() string                { return l.pki("apiserver.crt") }
func (l layout) servingKey() string                 { return l.pki("apiserver.key") }
func (l layout) serviceAccountKey() string          { return l.pki("service-account.key") }
func (l layout) adminKubeconfig() string            { return filepath.Join(l.dir, "admin.kubeconfig") }
func (l layout) kubeconfig(component string) string { return l.pki(component + ".kubeconfig") }
func (l layout) etcd() string                       { return filepath.Join(l.dir, "etcd") }
func (l layout) auditPolicy() string                { return filepath.Join(l.dir, "audit-policy.yaml") }
func (l layout) lockFile() string                   { return filepath.Join(l.dir, "lock") }

// lock keeps a second control plane off the directory. The kernel releases it however this process ends.
func (l layout) lock() (*os.File, error) {
	for _, dir := range []string{l.dir, l.pki("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the directory: %w", err)
		}
	}
	file, err := os.OpenFile(l.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another control plane runs on %s: %w", l.dir, err)
	}
	return file, nil
}

// writeCredentials keeps the authority and the service account key of an earlier run and renews all the rest, because
// the server's address may be another one.
func (l layout) writeCredentials(server string, address net.IP) (*pki.Authority, error) {
	authority, err := pki.EnsureAuthority(l.caCert(), l.caKey())
	if err != nil {
		return nil, err
	}
	if err := pki.EnsureKey(l.serviceAccountKey()); err != nil {
		return nil, err
	}
	if err := pki.WriteFile(l.auditPolicy(), auditPolicy, 0o644); err != nil {
		return nil, err
	}
	serving, err := authority.IssueServing("kube-apiserver",
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.ParseIP(loopback), net.IPv6loopback, net.ParseIP(serviceAddress), address})
	if err != nil {
		return nil, err
	}
	if err := serving.Write(l.servingCert(), l.servingKey()); err != nil {
		return nil, err
	}
	// The components are the users that Kubernetes' own roles and audit logs know.
	for _, name := range []string{"kube-scheduler", "kube-controller-manager"} {
		if err := authority.WriteKubeconfig(l.kubeconfig(name), server, "system:"+name); err != nil {
			return nil, err
		}
	}
	return authority, authority.WriteKubeconfig(l.adminKubeconfig(), server, "kubernetes-admin", "system:masters")
}
