package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/test/crash/relay"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/loopback"
)

// manager is the program that is killed and started again.
type manager struct {
	dir, program string
	args         []string

	mu      sync.Mutex
	process *environment.Process
	// dying: it is being killed, and another one will be started.
	dying bool
	// fault is why it could not be killed or started again.
	fault error
}

func (s *testbed) startManager(ctx context.Context) error {
	program, err := s.env.Program("ingot-manager")
	if err != nil {
		return err
	}
	text, err := s.settings().YAML()
	if err != nil {
		return err
	}
	file, kubeconfig := filepath.Join(s.env.Dir, "manager.yaml"), filepath.Join(s.env.Dir, "manager.kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	access, err := s.kubeconfig(ctx, s.env.ManagementClient, s.management, s.management.CA(), systemNamespace, "ingot-manager")
	if err != nil {
		return err
	}
	if err := os.WriteFile(kubeconfig, access, 0o600); err != nil {
		return err
	}
	s.manager = &manager{dir: s.env.Dir, program: program, args: []string{"--config", file, "--kubeconfig", kubeconfig, "--embed-boot"}}
	return s.manager.start()
}

// settings scale the manager's waitTimeout to the rack's servers. Without an election the next manager need not wait for the
// end of a lease; that there is only one is seen to by kill, which returns when the process is no more.
func (s *testbed) settings() settings.Settings {
	d := func(seconds float64) metav1.Duration {
		return metav1.Duration{Duration: time.Duration(seconds * float64(time.Second))}
	}
	c := settings.Default()
	c.Tenants.PrivateNetworks = loopback.Networks()
	c.LeaderElection.Enabled = false
	c.Health.Address, c.Metrics.Address, c.Log.Format = "0", "0", "text"
	c.Boot.Address, c.Boot.URL, c.Boot.Files = s.boot, "http://boot.invalid", filepath.Join(s.env.Dir, "boot")
	c.Boot.TLS.Address = "0" // agents ask through the balancer
	if s.env.ChangeSettings != nil {
		s.env.ChangeSettings(&c)
	}
	c.Intervals.Working, c.Intervals.Steady, c.BMC.Timeout, c.Timeouts.Provisioning = d(0.05), d(60), d(5), d(240)
	c.Timeouts.Hosts.Install, c.Timeouts.Hosts.EraseMetadata, c.Timeouts.Hosts.Inspect = d(120), d(120), d(60)
	c.Timeouts.Hosts.BMCGrace, c.Timeouts.Hosts.Retry = d(10), d(0.2)
	c.Timeouts.Steps = settings.StepTimeouts{GracefulOff: d(2), PowerOff: d(20), PowerOn: d(20), PowerOnRetry: d(0.5), Boot: d(20), Load: d(20), Silence: d(60)}
	return c
}

// tenantKubeconfig is what the tenant gives Ingot. Nodes pin its authorities when they join: the relay's, and the cluster's
// own, because nodes speak to the API server itself.
func (s *testbed) tenantKubeconfig(ctx context.Context) ([]byte, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "ingot"}}
	if err := s.env.TenantClient.Create(ctx, account); err != nil {
		return nil, err
	}
	return s.kubeconfig(ctx, s.env.TenantClient, s.tenant, append(s.tenant.CA(), s.env.Tenant.CA()...), account.Namespace, account.Name)
}

// kubeconfig lets a service account through a relay.
func (s *testbed) kubeconfig(ctx context.Context, c client.Client, front *relay.Proxy, authorities []byte, namespace, name string) ([]byte, error) {
	seconds := int64((24 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("get a token of %s/%s: %w", namespace, name, err)
	}
	s.env.Secrets = append(s.env.Secrets, request.Status.Token)
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: front.URL(), CertificateAuthorityData: authorities}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return clientcmd.Write(*out)
}

func (m *manager) start() error {
	process, err := environment.StartProcess(m.dir, "manager", m.program, m.args...)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.process, m.dying = process, false
	return nil
}

// replaceManager kills the manager, and starts another one once it is gone.
func (s *testbed) replaceManager() {
	if err := s.killManager(); err != nil {
		s.manager.fail(err)
	}
}

func (s *testbed) killManager() error {
	if err := s.manager.dies().Kill(); err != nil {
		return err
	}
	return s.manager.start()
}

// fail remembers a fault, which health tells.
func (m *manager) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = errors.Join(m.fault, err)
}

func (m *manager) dies() *environment.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dying = true
	return m.process
}

func (m *manager) running() *environment.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

// settled is false while one manager dies and the next one is started.
func (m *manager) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.dying || m.fault != nil
}

// health is an error when no manager runs, and none will.
func (m *manager) health() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil || m.dying {
		return m.fault
	}
	_, err := m.process.Exited()
	return err
}
