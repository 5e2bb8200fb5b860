package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/loopback"
)

// Values of Options.Provider: who installs the servers.
const (
	// Redfish is the manager itself.
	Redfish = "redfish"
	// Metal3 is a baremetal-operator in the process of the rack.
	Metal3 = "metal3"
)

// Class is a class of servers: those of one NodeType of the samples.
type Class struct {
	// NodeType is its name, and Profile that of the servers in test/rack.
	NodeType string `json:"nodeType"`
	Profile  string `json:"profile"`
	// Use is the label by which the NodeType selects its servers among those with the same GPUs; empty: none.
	Use string `json:"use,omitempty"`
}

// Tenant is a cluster of the samples that nodes join.
type Tenant struct {
	// Name is that of its TenantCluster, and Namespace that of this object.
	Name, Namespace string
}

// Options say what a Fleet consists of.
type Options struct {
	// Dir holds disks, images and logs.
	Dir string
	// Provider is who installs the servers.
	Provider string
	// Servers is their number. They are of the Classes in turn.
	Servers int
	Classes []Class
	// Tenants are the clusters. The NodePools of other tenants of the samples become the first one's.
	Tenants []Tenant
	// Sharing adds the samples for a cluster that tenants share, which must be one of Tenants.
	Sharing bool
	// ImageBytes is the size of the disk image. One half of it does not compress, the other half is zeros.
	ImageBytes int64
	// Timeout is the longest that a step of the fleet may take.
	Timeout time.Duration
	// Intervals is how often the manager looks at a host; zero: its defaults.
	Intervals settings.Intervals
	// SelfTest is how long a server's self-test takes before it boots.
	SelfTest time.Duration
	// TenantQPS is the manager's limit of requests a second to one tenant; 0: its default.
	TenantQPS int
	// Profile keeps CPU profiles of manager and rack in Dir.
	Profile bool
	// Progress gets a line for each step.
	Progress io.Writer
}

// Fleet is a site that runs.
type Fleet struct {
	Options Options
	Env     *environment.Environment
	Rack    *RackProcess
	// Image is the disk image of every NodeType.
	Image pack.Result
}

// New returns a fleet of which nothing runs yet.
func New(options Options) *Fleet {
	return &Fleet{Options: options, Env: &environment.Environment{Dir: options.Dir}}
}

// Stop stops the processes, each before those that it depends on. Processes that did not start are left out.
func (f *Fleet) Stop() error {
	return errors.Join(f.Env.Manager.Stop(), f.Rack.stop(), f.Env.Stop())
}

// Step is a part of a set-up.
type Step struct {
	What string
	Do   func(context.Context) error
}

// Perform performs the steps one after the other and logs each.
func (f *Fleet) Perform(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		f.Log("%s", step.What)
		if err := step.Do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.What, err)
		}
	}
	return nil
}

// SetUp starts everything except the manager and creates all objects except the Machines.
func (f *Fleet) SetUp(ctx context.Context) error {
	return f.Perform(ctx, []Step{
		{"starting the management cluster's and the tenants' control planes", f.StartClusters},
		{fmt.Sprintf("racking %d servers", f.Options.Servers), f.startRack},
		{"making the installer's ramdisk", func(context.Context) error { return f.Env.WriteBootFiles() }},
		{"applying CRDs, roles and policies", f.Env.InstallIngot},
		{"packing the image and applying the samples", f.applySamples},
		{"introducing the tenants", f.introduceTenants},
		{"applying the hosts", f.applyHosts},
		{"starting what serves the hosts", f.serveHosts},
	})
}

// StartClusters starts the control planes of the management cluster and of the tenants.
func (f *Fleet) StartClusters(ctx context.Context) error {
	names := make([]string, len(f.Options.Tenants))
	for i, t := range f.Options.Tenants {
		names[i] = t.Name
	}
	return f.Env.StartClusters(ctx, names...)
}

func (f *Fleet) startRack(context.Context) error {
	var err error
	if f.Env.BootAddress, err = loopback.FreeAddress(); err != nil {
		return err
	}
	f.Rack, err = startRack(f.Options, f.Env.BootAddress)
	return err
}

// classOf returns the class of the server with the index.
func (f *Fleet) classOf(i int) Class { return f.Options.Classes[i%len(f.Options.Classes)] }

// Log writes a line about the progress.
func (f *Fleet) Log(format string, args ...any) {
	fmt.Fprintf(f.Options.Progress, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
