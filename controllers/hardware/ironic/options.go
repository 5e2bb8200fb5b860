package ironic

import (
	"context"
	"log/slog"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// DefaultListAge is how long a list of the nodes is used.
const DefaultListAge = 5 * time.Second

// Options configure an Installer. Endpoint is required.
type Options struct {
	// Endpoint is the URL of Ironic's API, with or without /v1.
	Endpoint string
	// Credentials returns how Ironic is logged in to. It is called for every request, so that changed credentials are used by the next one; nil: noauth.
	// Its errors are of the credentials themselves, unless they are *hardware.Error.
	Credentials func(ctx context.Context) (Credentials, error)
	// CABundle holds PEM certificates that verify Ironic and Keystone. When it is empty the root certificates of the system are used.
	CABundle []byte
	// HardwareType is Ironic's driver of the nodes that are created; empty: redfish or ipmi, by the scheme of the BMC's address.
	HardwareType string
	// BootInterface, DeployInterface and NetworkInterface of the nodes that are created; empty: Ironic's default for the hardware type.
	BootInterface, DeployInterface, NetworkInterface string
	// DeployKernel and DeployRamdisk are the URLs of Ironic's agent; empty: Ironic's own configuration has them.
	DeployKernel, DeployRamdisk string
	// BMCCAPath is the file or directory, on the machines of the conductors, with the certificates that verify BMCs; empty: the roots of those machines.
	BMCCAPath string
	// ListAge is how long a list of the nodes is used; 0: DefaultListAge.
	ListAge time.Duration
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
	// Timeouts are the time-outs of changes of power. Ironic has its own for the steps of an attempt.
	Timeouts hardware.Timeouts
	// Log receives one line for every request that changes something; nil means no log.
	Log *slog.Logger
}

// Credentials are how Ironic is logged in to. The zero value is noauth. It holds secrets: never log or print it.
type Credentials struct {
	// Username and Password are for HTTP basic authentication.
	Username, Password string
	// KeystoneURL is the identity service, https://keystone.example.com/v3, that ApplicationID and ApplicationSecret, an application credential, are for.
	KeystoneURL, ApplicationID, ApplicationSecret string
}

// String returns a fixed text, so that printing Credentials shows no secret.
func (Credentials) String() string { return "credentials" }

// GoString does the same for the verb %#v.
func (Credentials) GoString() string { return "credentials" }

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Credentials == nil {
		o.Credentials = func(context.Context) (Credentials, error) { return Credentials{}, nil }
	}
	if o.ListAge <= 0 {
		o.ListAge = DefaultListAge
	}
	o.Timeouts = o.Timeouts.WithDefaults()
	return o
}
