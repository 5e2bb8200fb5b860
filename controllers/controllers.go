package controllers

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/host"
	"github.com/ingot-dev/ingot/controllers/machine"
	"github.com/ingot-dev/ingot/controllers/nodepool"
	"github.com/ingot-dev/ingot/controllers/nodetype"
	"github.com/ingot-dev/ingot/controllers/osimage"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/rollout"
	"github.com/ingot-dev/ingot/controllers/tenant"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/controllers/validation"
)

// World is what the controllers act on and with, beside the management cluster.
type World struct {
	// Installer touches the metal.
	Installer hardware.Installer
	// Tenants gives access to the tenants' clusters.
	Tenants *tenantaccess.Registry
	// HTTP asks image servers.
	HTTP *http.Client
	// Clock tells the time.
	Clock clock.PassiveClock
	// Secret gives bytes for tokens: crypto/rand.Reader. Jitter gives numbers in [0, 1) that spread work over time.
	Secret io.Reader
	Jitter func() float64
	// Suffix gives five random letters and digits that make a Machine's name unique.
	Suffix func() string
	// HostTimeouts bound the work on hosts, MachineTimeouts the phases of Machines.
	HostTimeouts    hostplan.Timeouts
	MachineTimeouts lifecycle.Timeouts
	// Workers serve that many Machines at once.
	Workers int
	// Resolve makes of a revision what its nodes are told and must advertise: presentation.Resolve.
	Resolve nodetype.Resolver
}

// Setup adds every controller to the manager.
func Setup(mgr ctrl.Manager, w World) error {
	c, direct := mgr.GetClient(), mgr.GetAPIReader()
	recorder := func(name string) events.EventRecorder { return mgr.GetEventRecorder("ingot-" + name) }
	now := func() time.Time { return w.Clock.Now() }
	for name, controller := range map[string]interface{ SetupWithManager(ctrl.Manager) error }{
		"osimage":  &osimage.Reconciler{Client: c, Recorder: recorder("osimage"), HTTP: w.HTTP, Clock: w.Clock, Jitter: w.Jitter},
		"nodetype": &nodetype.Reconciler{Client: c, Reader: direct, Recorder: recorder("nodetype"), Clock: w.Clock, Resolve: w.Resolve},
		"nodepool": &nodepool.Reconciler{Client: c, Reader: direct, Recorder: recorder("nodepool"), Clock: w.Clock, Suffix: w.Suffix},
		"rollout":  &rollout.Reconciler{Client: c, Reader: direct, Recorder: recorder("rollout"), Clock: w.Clock},
		"tenant":   &tenant.Reconciler{Client: c, Reader: direct, Registry: w.Tenants, Recorder: recorder("tenant"), Clock: w.Clock},
		"host": &host.Reconciler{
			Client: c, Direct: direct, Installer: w.Installer, Recorder: recorder("host"), Clock: now, Random: w.Jitter,
			Timeouts: w.HostTimeouts,
		},
		"machine": &machine.Reconciler{
			Client: c, Direct: direct, Tenants: w.Tenants, Recorder: recorder("machine"), Clock: now, Random: w.Secret,
			Timeouts: w.MachineTimeouts, Workers: w.Workers,
		},
		"validation": &validation.Reconciler{Client: c, Tenants: w.Tenants, Recorder: recorder("validation"), Clock: w.Clock},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up the %s controller: %w", name, err)
		}
	}
	return nil
}
