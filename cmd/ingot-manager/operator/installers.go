package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
)

// credentialsAge is how long the Secret of an Ironic is used before it is read again.
const credentialsAge = 15 * time.Second

// installers are the Installers of all NodeProviders: one for all with redfish, and one for each with ironic, because each Ironic has its own address, login
// and list of nodes.
type installers struct {
	// direct is the Installer of redfish NodeProviders.
	direct hardware.Installer
	// reader reads Secrets from the API server.
	reader   client.Reader
	timeouts hardware.Timeouts
	// listAge is how long a list of the nodes of an Ironic is used.
	listAge time.Duration
	clock   func() time.Time
	log     *slog.Logger

	mu     sync.Mutex
	ironic map[types.UID]ironicInstaller
}

// ironicInstaller is the Installer that was made for a generation of a NodeProvider.
type ironicInstaller struct {
	generation int64
	*ironic.Installer
}

func newInstallers(mgr *timedManager, s settings.Settings, direct hardware.Installer, log *slog.Logger) *installers {
	return &installers{direct: direct, reader: mgr.GetAPIReader(), timeouts: s.InstallerTimeouts(), listAge: s.Intervals.Working.Duration * 5 / 2, clock: mgr.clock.Now, log: log.With("logger", "installer")}
}

// of returns the Installer of the NodeProvider. One whose spec has changed gets a new one: an Installer keeps nothing that Ironic does not have.
func (i *installers) of(provider *v1alpha1.NodeProvider) hardware.Installer {
	if provider.Spec.Ironic == nil {
		return i.direct
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	known, isKnown := i.ironic[provider.UID]
	if !isKnown || known.generation < provider.Generation {
		known = ironicInstaller{provider.Generation, ironic.New(i.ironicOptions(provider))}
		if i.ironic == nil {
			i.ironic = map[types.UID]ironicInstaller{}
		}
		i.ironic[provider.UID] = known
	}
	return known.Installer
}

// check asks the Ironic of the NodeProvider.
func (i *installers) check(ctx context.Context, provider *v1alpha1.NodeProvider) (string, error) {
	known, isIronic := i.of(provider).(*ironic.Installer)
	if !isIronic {
		return "", nil
	}
	return known.Check(ctx)
}

func (i *installers) ironicOptions(provider *v1alpha1.NodeProvider) ironic.Options {
	spec := provider.Spec.Ironic
	options := ironic.Options{
		Endpoint: spec.Endpoint, CABundle: []byte(spec.CABundle), HardwareType: spec.HardwareType, BootInterface: spec.BootInterface,
		DeployInterface: spec.DeployInterface, NetworkInterface: spec.NetworkInterface, DeployKernel: spec.DeployKernel, DeployRamdisk: spec.DeployRamdisk, BMCCAPath: spec.BMCCAPath,
		Clock: i.clock, Timeouts: i.timeouts, ListAge: i.listAge, Log: i.log.With("provider", provider.Name),
	}
	if spec.CredentialsSecretRef != nil {
		secret := &ironicSecret{reader: i.reader, clock: i.clock, key: client.ObjectKey{Namespace: provider.Spec.HostNamespace, Name: spec.CredentialsSecretRef.Name}, keystoneURL: spec.KeystoneURL}
		options.Credentials = secret.credentials
	}
	return options
}

// ironicSecret reads the Secret with the credentials of an Ironic. It holds secrets: never log or print it.
type ironicSecret struct {
	reader client.Reader
	clock  func() time.Time
	key    client.ObjectKey
	// keystoneURL is set for an application credential.
	keystoneURL string

	mu   sync.Mutex
	at   time.Time
	read ironic.Credentials
}

// credentials returns the credentials. They are read at most every credentialsAge, so that changed ones are used within that time.
func (s *ironicSecret) credentials(ctx context.Context) (ironic.Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	if age := now.Sub(s.at); !s.at.IsZero() && age >= 0 && age < credentialsAge {
		return s.read, nil
	}
	var secret corev1.Secret
	if err := s.reader.Get(ctx, s.key, &secret); err != nil {
		return ironic.Credentials{}, s.readError(err)
	}
	read, err := s.credentialsIn(secret.Data)
	if err != nil {
		return ironic.Credentials{}, err
	}
	s.at, s.read = now, read
	return read, nil
}

// readError says who has to do what about a Secret that was not read. Only one that is missing is a matter of the credentials.
func (s *ironicSecret) readError(err error) error {
	const op = "read Secret"
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no Secret %s", s.key)
	case apierrors.IsForbidden(err):
		return hardware.Errorf(hardware.Unauthorized, op, s.key.String(), "Ingot may not read it: bind ClusterRole ingot-manager-hosts to Ingot's service account by a RoleBinding in this namespace")
	default:
		return hardware.Errorf(hardware.Unreachable, op, s.key.String(), "%w", err)
	}
}

func (s *ironicSecret) credentialsIn(data map[string][]byte) (ironic.Credentials, error) {
	var missing []error
	value := func(key string) string {
		if len(data[key]) == 0 {
			missing = append(missing, fmt.Errorf("%s is missing in Secret %s", key, s.key))
		}
		return string(data[key])
	}
	read := ironic.Credentials{KeystoneURL: s.keystoneURL}
	if s.keystoneURL != "" {
		read.ApplicationID, read.ApplicationSecret = value("applicationCredentialID"), value("applicationCredentialSecret")
	} else {
		read.Username, read.Password = value("username"), value("password")
	}
	return read, errors.Join(missing...)
}
