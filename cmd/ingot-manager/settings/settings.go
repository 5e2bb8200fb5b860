package settings

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
)

// APIVersion and Kind head the file.
const (
	APIVersion = "config.ingot.dev/v1alpha1"
	Kind       = "ManagerConfiguration"
)

// EFIStubFile is the EFI stub in the folder of the agent's kernel, where `ingot image ramdisk --efi-stub` puts it.
const EFIStubFile = "linuxx64.efi.stub"

// FolderARM64 is the folder below that of the agent's kernel with the files for servers with an arm64 processor, of the same names, and EFIStubFileARM64 the
// EFI stub there.
const (
	FolderARM64      = "arm64"
	EFIStubFileARM64 = "linuxaa64.efi.stub"
)

// Settings are the contents of the configuration file. Durations are written as "30s".
type Settings struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is the manager's own: its lease, its boot key and its webhook's certificate live there.
	Namespace string `json:"namespace"`
	// LeaderElection lets several replicas run, one of which acts. The boot service answers from every replica.
	LeaderElection LeaderElection `json:"leaderElection"`
	// Health serves /healthz and /readyz.
	Health Listener `json:"health"`
	// Metrics serves /metrics.
	Metrics Metrics `json:"metrics"`
	// Log is the structured log on standard error.
	Log Log `json:"log"`
	// Webhook answers API servers that ask whether a NodeType may be written.
	Webhook Webhook `json:"webhook"`
	// Boot is the boot service.
	Boot Boot `json:"boot"`
	// BMC configures the connections to BMCs.
	BMC BMC `json:"bmc"`
	// Tenants configures the connections to tenants' API servers.
	Tenants Tenants `json:"tenants"`
	// Intervals say how often hosts are polled, because BMCs report nothing by themselves.
	Intervals Intervals `json:"intervals"`
	// Timeouts bound the phases of a Machine's life.
	Timeouts Timeouts `json:"timeouts"`
	// Concurrency is how many objects of one kind are reconciled at a time, where a controller has no number of its own.
	Concurrency int `json:"concurrency"`
}

// LeaderElection configures the lease of the leader.
type LeaderElection struct {
	Enabled bool   `json:"enabled"`
	Name    string `json:"name"`
}

// Listener is an address to listen on: HOST:PORT, or :PORT for every interface; "0" turns it off.
type Listener struct {
	Address string `json:"address"`
}

// Metrics is the metrics endpoint.
type Metrics struct {
	Address string `json:"address"`
	// Secure serves TLS and asks the API server who may read (TokenReview, SubjectAccessReview).
	Secure bool `json:"secure"`
}

// Log is the structured log.
type Log struct {
	// Level: debug, info, warn, error.
	Level string `json:"level"`
	// Format: json or text.
	Format string `json:"format"`
}

// Webhook configures the admission webhook. The names in its certificate are the name of the Service, or the host of the URL, in the
// ValidatingWebhookConfiguration.
type Webhook struct {
	// Address to listen on, in every replica; "0", the default, turns it off, because without config/webhook no API server calls it.
	Address string `json:"address"`
	// CertificateSecret names the Secret with the certificate; made when it does not exist.
	CertificateSecret string `json:"certificateSecret"`
	// Configuration names the ValidatingWebhookConfiguration whose caBundle the manager keeps.
	Configuration string `json:"configuration"`
}

// Boot is the boot service.
type Boot struct {
	// Address to listen on in a process that serves boots: `ingot-manager --only=boot`, or a manager with --embed-boot.
	Address string `json:"address"`
	// URL is where servers reach it, unless their NodeProvider says otherwise. It may be empty for a manager that serves no boots.
	URL string `json:"url"`
	// HostNamespaces are the only ones whose hosts are answered, where the boot service runs alone (--only=boot): a host namespace belongs to one
	// NodeProvider. The service needs its rights in these only. Empty: all.
	HostNamespaces []string `json:"hostNamespaces"`
	// Files is the folder of the agent's kernel and initrd.
	Files string `json:"files"`
	// Kernel and Initrd are file names in Files.
	Kernel string `json:"kernel"`
	Initrd string `json:"initrd"`
	// EFIStub is the path of systemd's EFI stub, which boot media are made with; empty: linuxx64.efi.stub in Files, and no media where it is missing.
	EFIStub string `json:"efiStub"`
	// KernelArguments are added to the agent's command line.
	KernelArguments []string `json:"kernelArguments"`
	// KeySecret names the Secret with the key that signs the agents' tokens; the manager makes it when it does not exist.
	KeySecret string `json:"keySecret"`
	// KeyNamespace is the namespace of KeySecret; empty: Namespace. A boot service that runs alone has the manager's key.
	KeyNamespace string `json:"keyNamespace"`
	// TLS is the boot service's HTTPS, which agents use.
	TLS BootTLS `json:"tls"`
	// ProgressInterval is the least time between two writes of one host's byte progress.
	ProgressInterval metav1.Duration `json:"progressInterval"`
	// Network answers servers on the provisioning network before they speak HTTP.
	Network Network `json:"network"`
}

// BootTLS is the boot service's HTTPS.
type BootTLS struct {
	// Address to listen on; "0" turns it off, and agents use HTTP. Servers reach it at the host of the boot service's URL and this port, unless their
	// NodeProvider says otherwise.
	Address string `json:"address"`
	// AuthoritySecret names the Secret with the authority, and CertificateSecret the one with the certificate; made when they do not exist.
	AuthoritySecret   string `json:"authoritySecret"`
	CertificateSecret string `json:"certificateSecret"`
}

// BMC configures the connections to BMCs.
type BMC struct {
	// Timeout of one request.
	Timeout metav1.Duration `json:"timeout"`
	// ExclusiveAccount says that nobody but this installation uses the accounts of the BMCs' Secrets. Then sessions of these accounts that a killed
	// manager left are ended also at BMCs that do not keep the mark by which they are known otherwise.
	ExclusiveAccount bool `json:"exclusiveAccount"`
}

// minTenantMemory is the least memory of a tenant, in bytes. With less a single answer could be too large.
const minTenantMemory = 8 << 20

// Tenants configures the connections to tenants' API servers.
type Tenants struct {
	// PrivateNetworks are those with addresses that are not public to which kubeconfigs of TenantClusters may lead, such as 10.40.0.0/16. Whoever may write
	// a TenantCluster and its Secret has the manager connect there: list the networks of tenants' API servers and no others. Public addresses need no entry.
	PrivateNetworks []netip.Prefix `json:"privateNetworks"`
	// Timeout of one request.
	Timeout metav1.Duration `json:"timeout"`
	// QPS and Burst bound the requests to each tenant.
	QPS   float32 `json:"qps"`
	Burst int     `json:"burst"`
	// Memory is the limit of what is kept of each tenant. A tenant that needs more is not used.
	Memory resource.Quantity `json:"memory"`
}

// Intervals say how often hosts are polled.
type Intervals struct {
	// Working is the interval for a host on which an attempt or a change of power is under way. It grows to five times this while a step of an attempt takes long.
	// The nodes of an Ironic are listed two and a half times as rarely.
	Working metav1.Duration `json:"working"`
	// Steady is the interval for all other hosts.
	Steady metav1.Duration `json:"steady"`
}

// Timeouts limit the phases of a Machine's life. The NodeType has the time-out of Validating.
type Timeouts struct {
	Claiming     metav1.Duration `json:"claiming"`
	Provisioning metav1.Duration `json:"provisioning"`
	Joining      metav1.Duration `json:"joining"`
	Releasing    metav1.Duration `json:"releasing"`
	Drain        metav1.Duration `json:"drain"`
	// Hosts bound the work on one host; a host's own work ends before the phase of the Machine that waits for it.
	Hosts HostTimeouts `json:"hosts"`
	// Steps bound the steps of an attempt to install or erase; slow servers need longer ones.
	Steps StepTimeouts `json:"steps"`
}

// Default returns the settings of an empty file.
func Default() Settings {
	d := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return Settings{
		APIVersion: APIVersion, Kind: Kind,
		Namespace:      leaderlease.DefaultNamespace,
		LeaderElection: LeaderElection{Enabled: true, Name: leaderlease.DefaultName},
		Health:         Listener{Address: ":8081"},
		Metrics:        Metrics{Address: ":8443", Secure: true},
		Log:            Log{Level: "info", Format: "json"},
		Webhook:        Webhook{Address: "0", CertificateSecret: "ingot-webhook-certificate", Configuration: "ingot-nodetype"},
		Boot: Boot{
			Address: ":8090", Files: "/var/lib/ingot/boot", Kernel: "vmlinuz", Initrd: "agent.cpio.zst",
			TLS:            BootTLS{Address: ":8092", AuthoritySecret: "ingot-boot-authority", CertificateSecret: "ingot-boot-certificate"},
			HostNamespaces: []string{}, KernelArguments: []string{}, KeySecret: "ingot-boot-key", ProgressInterval: d(10 * time.Second), Network: defaultNetwork(),
		},
		BMC:       BMC{Timeout: d(30 * time.Second)},
		Tenants:   Tenants{PrivateNetworks: []netip.Prefix{}, Timeout: d(15 * time.Second), QPS: 50, Burst: 100, Memory: resource.MustParse("64Mi")},
		Intervals: Intervals{Working: d(2 * time.Second), Steady: d(5 * time.Minute)},
		Timeouts: Timeouts{
			Claiming: d(time.Minute), Provisioning: d(time.Hour), Joining: d(20 * time.Minute), Releasing: d(time.Hour), Drain: d(30 * time.Minute),
			Hosts: defaultHostTimeouts(), Steps: defaultStepTimeouts(),
		},
		Concurrency: 16,
	}
}

// Read reads a file over the defaults. For an unknown field or an invalid value the error names the field.
func Read(r io.Reader) (Settings, error) {
	s := Default()
	s.APIVersion, s.Kind = "", ""
	data, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return s, fmt.Errorf("read the configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return s, fmt.Errorf("the configuration is not a %s: %w", Kind, err)
	}
	return s, s.validate()
}

// YAML returns the settings as a file that Read accepts.
func (s Settings) YAML() ([]byte, error) { return yaml.Marshal(s) }

func (s Settings) validate() error {
	var errs []error
	for _, r := range []struct {
		broken           bool
		field, got, want string
	}{
		{s.APIVersion != APIVersion || s.Kind != Kind, "apiVersion, kind", s.APIVersion + ", " + s.Kind, APIVersion + ", " + Kind},
		{s.Namespace == "", "namespace", s.Namespace, "the name of the manager's own namespace"},
		{!isListenAddress(s.Health.Address) && s.Health.Address != "0", "health.address", s.Health.Address, "HOST:PORT or :PORT, or 0 for none"},
		{!isListenAddress(s.Metrics.Address) && s.Metrics.Address != "0", "metrics.address", s.Metrics.Address, "HOST:PORT or :PORT, or 0 for none"},
		{!isListenAddress(s.Webhook.Address) && s.Webhook.Address != "0", "webhook.address", s.Webhook.Address, "HOST:PORT or :PORT, or 0 for none"},
		{s.Webhook.CertificateSecret == "", "webhook.certificateSecret", "", "the name of a Secret in the manager's own namespace"},
		{s.Webhook.Configuration == "", "webhook.configuration", "", "the name of a ValidatingWebhookConfiguration"},
		{!isListenAddress(s.Boot.Address), "boot.address", s.Boot.Address, "HOST:PORT or :PORT; a manager without --embed-boot does not listen there"},
		{!isListenAddress(s.Boot.TLS.Address) && s.Boot.TLS.Address != "0", "boot.tls.address", s.Boot.TLS.Address, "HOST:PORT or :PORT, or 0 for none"},
		{s.Boot.TLS.AuthoritySecret == "", "boot.tls.authoritySecret", "", "the name of a Secret in the manager's own namespace"},
		{s.Boot.TLS.CertificateSecret == "" || s.Boot.TLS.CertificateSecret == s.Boot.TLS.AuthoritySecret, "boot.tls.certificateSecret", s.Boot.TLS.CertificateSecret,
			"the name of another Secret in the manager's own namespace"},
		{s.Boot.URL != "" && !isURL(s.Boot.URL), "boot.url", s.Boot.URL, "the URL where servers reach boot.address, such as http://10.20.0.2:8090"},
		{!slices.Contains([]string{"debug", "info", "warn", "error"}, s.Log.Level), "log.level", s.Log.Level, "debug, info, warn or error"},
		{!slices.Contains([]string{"json", "text"}, s.Log.Format), "log.format", s.Log.Format, "json or text"},
		{s.Concurrency < 1 || s.Concurrency > 256, "concurrency", fmt.Sprint(s.Concurrency), "1 to 256"},
		{s.Tenants.QPS <= 0, "tenants.qps", fmt.Sprint(s.Tenants.QPS), "more than 0"},
		{s.Tenants.Memory.Value() < minTenantMemory, "tenants.memory", s.Tenants.Memory.String(), "at least 8Mi"},
		{s.Tenants.Burst < 1, "tenants.burst", fmt.Sprint(s.Tenants.Burst), "at least 1"},
	} {
		if r.broken {
			errs = append(errs, fmt.Errorf("%s: got %q; expected %s", r.field, r.got, r.want))
		}
	}
	errs = append(errs, s.Boot.Network.validate()...)
	errs = append(errs, s.Boot.validateSharedAddress())
	return errors.Join(append(errs, s.validateDurations()...)...)
}

func isListenAddress(address string) bool {
	_, _, err := net.SplitHostPort(address)
	return err == nil
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
