package controllers

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/controllers/entitlement"
	"github.com/ingot-dev/ingot/controllers/grants"
	"github.com/ingot-dev/ingot/controllers/hardwaredata"
	"github.com/ingot-dev/ingot/controllers/host"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/inuse"
	"github.com/ingot-dev/ingot/controllers/machine"
	"github.com/ingot-dev/ingot/controllers/nodepool"
	"github.com/ingot-dev/ingot/controllers/nodeprovider"
	"github.com/ingot-dev/ingot/controllers/nodequota"
	"github.com/ingot-dev/ingot/controllers/nodetype"
	"github.com/ingot-dev/ingot/controllers/osimage"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/remainingnode"
	"github.com/ingot-dev/ingot/controllers/rollout"
	"github.com/ingot-dev/ingot/controllers/servingcert"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenant"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/controllers/validation"
	"github.com/ingot-dev/ingot/presentation"
)

// Dependencies are what the controllers need beside the manager. All fields are required.
type Dependencies struct {
	// Installers inspect, install, erase and power the servers.
	Installers host.Installers
	// ConfigDrives reads the documents of claims.
	ConfigDrives host.ConfigDrives
	// Tenants gives access to the tenants' clusters.
	Tenants *tenantaccess.Registry
	// Grants answers what would do to servers what cannot be undone and no person asked for.
	Grants *grants.Desk
	// Claims remembers what claim Secrets said; the boot service is answered from it too.
	Claims *machine.ClaimCache
	// HTTP is the client for image servers.
	HTTP *http.Client
	// CheckBoot asks the addresses of a boot service whether this installation's answers at them; see nodeprovider.Reconciler.
	CheckBoot nodeprovider.CheckBoot
	// CheckInstaller asks the service that installs the hosts of a NodeProvider.
	CheckInstaller nodeprovider.CheckInstaller
	// Clock tells the time.
	Clock clock.PassiveClock
	// Random is the source of bootstrap tokens: crypto/rand.Reader.
	Random io.Reader
	// Jitter returns numbers in [0, 1) that spread work over time.
	Jitter func() float64
	// Suffix returns five random lower-case letters and digits that make a Machine's name unique.
	Suffix func() string
	// HostTimeouts are the time limits of the work on hosts.
	HostTimeouts hostplan.Timeouts
	// MachineTimeouts are the time limits of the phases of Machines.
	MachineTimeouts lifecycle.Timeouts
	// Workers is how many Machines are reconciled at the same time.
	Workers int
	// Resolve makes the plan and the expectation of a revision's nodes: presentation.Resolve.
	Resolve presentation.Resolver
}

// Setup adds every controller to the manager.
func Setup(mgr ctrl.Manager, d Dependencies) error {
	c, apiReader := mgr.GetClient(), mgr.GetAPIReader()
	recorder := func(name string) events.EventRecorder { return step.NewRecorder(mgr.GetEventRecorder("ingot-" + name)) }
	if err := hostindex.Add(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	for name, controller := range map[string]interface{ SetupWithManager(ctrl.Manager) error }{
		"osimage":      &osimage.Reconciler{Client: c, Recorder: recorder("osimage"), HTTP: d.HTTP, Clock: d.Clock, Jitter: d.Jitter},
		"nodeprovider": &nodeprovider.Reconciler{Client: c, Recorder: recorder("nodeprovider"), Clock: d.Clock, CheckBoot: d.CheckBoot, CheckInstaller: d.CheckInstaller},
		"nodetype":     &nodetype.Reconciler{Client: c, APIReader: apiReader, Recorder: recorder("nodetype"), Clock: d.Clock, Resolve: d.Resolve},
		"nodepool":     &nodepool.Reconciler{Client: c, APIReader: apiReader, Recorder: recorder("nodepool"), Clock: d.Clock, Suffix: d.Suffix},
		"nodequota":    &nodequota.Reconciler{Client: c, APIReader: apiReader, Recorder: recorder("nodequota"), Clock: d.Clock},
		"entitlement":  &entitlement.Reconciler{Client: c, Tenants: d.Tenants, Recorder: recorder("entitlement"), Clock: d.Clock},
		"rollout":      &rollout.Reconciler{Client: c, APIReader: apiReader, Tenants: d.Tenants, Grants: d.Grants, Recorder: recorder("rollout"), Clock: d.Clock},
		"tenant":       &tenant.Reconciler{Client: c, APIReader: apiReader, Tenants: d.Tenants, Recorder: recorder("tenant"), Clock: d.Clock},
		"hardwaredata": &hardwaredata.Reconciler{Client: c, APIReader: apiReader, Recorder: recorder("hardwaredata")},
		"host": &host.Reconciler{
			Client: c, APIReader: apiReader, Installers: d.Installers, ConfigDrives: d.ConfigDrives, Grants: d.Grants, Recorder: recorder("host"), Clock: d.Clock, Jitter: d.Jitter,
			Timeouts: d.HostTimeouts,
		},
		"machine": &machine.Reconciler{
			Client: c, APIReader: apiReader, Tenants: d.Tenants, Claims: d.Claims, Recorder: recorder("machine"), Clock: d.Clock, Random: d.Random,
			Timeouts: d.MachineTimeouts, Workers: d.Workers,
		},
		"inuse":         &inuse.Reconciler{Client: c, APIReader: apiReader, Recorder: recorder("inuse"), Clock: d.Clock},
		"validation":    &validation.Reconciler{Client: c, Tenants: d.Tenants, Recorder: recorder("validation"), Clock: d.Clock, Workers: d.Workers},
		"servingcert":   &servingcert.Reconciler{Client: c, APIReader: apiReader, Tenants: d.Tenants, Recorder: recorder("servingcert"), Clock: d.Clock, Workers: d.Workers},
		"remainingnode": &remainingnode.Reconciler{Client: c, Tenants: d.Tenants, Recorder: recorder("remainingnode"), Clock: d.Clock, Workers: d.Workers},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up the %s controller: %w", name, err)
		}
	}
	return nil
}
