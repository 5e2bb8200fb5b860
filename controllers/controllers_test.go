package controllers

import (
	"errors"
	"slices"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/controllers/entitlement"
	"github.com/ingot-dev/ingot/controllers/host"
	"github.com/ingot-dev/ingot/controllers/inuse"
	"github.com/ingot-dev/ingot/controllers/machine"
	"github.com/ingot-dev/ingot/controllers/nodepool"
	"github.com/ingot-dev/ingot/controllers/nodeprovider"
	"github.com/ingot-dev/ingot/controllers/nodequota"
	"github.com/ingot-dev/ingot/controllers/nodetype"
	"github.com/ingot-dev/ingot/controllers/osimage"
	"github.com/ingot-dev/ingot/controllers/remainingnode"
	"github.com/ingot-dev/ingot/controllers/rollout"
	"github.com/ingot-dev/ingot/controllers/servingcert"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenant"
	"github.com/ingot-dev/ingot/controllers/validation"
)

func TestSetupWithManagerReturnsAnErrorThatNamesTheMissingDependencies(t *testing.T) {
	for name, c := range map[string]struct {
		controller interface{ SetupWithManager(ctrl.Manager) error }
		required   string
	}{
		"host":          {&host.Reconciler{}, "Client APIReader Installers ConfigDrives Grants Recorder Clock Jitter"},
		"inuse":         {&inuse.Reconciler{}, "Client APIReader Recorder Clock"},
		"machine":       {&machine.Reconciler{}, "Client APIReader Tenants Claims Recorder Clock Random"},
		"nodepool":      {&nodepool.Reconciler{}, "Client APIReader Recorder Clock Suffix"},
		"nodequota":     {&nodequota.Reconciler{}, "Client APIReader Recorder Clock"},
		"entitlement":   {&entitlement.Reconciler{}, "Client Tenants Recorder Clock"},
		"nodeprovider":  {&nodeprovider.Reconciler{}, "Client Recorder Clock CheckBoot CheckInstaller"},
		"nodetype":      {&nodetype.Reconciler{}, "Client APIReader Recorder Clock Resolve"},
		"osimage":       {&osimage.Reconciler{}, "Client Recorder HTTP Clock Jitter"},
		"rollout":       {&rollout.Reconciler{}, "Client APIReader Tenants Grants Recorder Clock"},
		"tenant":        {&tenant.Reconciler{}, "Client APIReader Tenants Recorder Clock"},
		"validation":    {&validation.Reconciler{}, "Client Tenants Recorder Clock"},
		"servingcert":   {&servingcert.Reconciler{}, "Client APIReader Tenants Recorder Clock"},
		"remainingnode": {&remainingnode.Reconciler{}, "Client Tenants Recorder Clock"},
	} {
		t.Run(name, func(t *testing.T) {
			var missing *step.MissingDependenciesError
			if err := c.controller.SetupWithManager(nil); !errors.As(err, &missing) {
				t.Fatalf("SetupWithManager returns %v", err)
			}
			if missing.Controller != name || !slices.Equal(missing.Fields, strings.Fields(c.required)) {
				t.Errorf("the error is %v, expected one about %s: %s", missing, name, c.required)
			}
		})
	}
}
