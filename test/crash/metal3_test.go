package crash

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/metal3rack"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	// metal3Variable is choiceVariable for the test of a metal3 site.
	metal3Variable = "INGOT_CRASH_METAL3"
	// operatorSpeed divides the times after which the baremetal-operator looks again.
	operatorSpeed = 200
)

func TestNothingIsLostOnHostsOfABaremetalOperator(t *testing.T) {
	require.Turn(t, 2)
	testEveryDeath(t, kind{variable: metal3Variable, isMetal3: true, sampleSize: sampleSize / 2, scenarios: map[string]scenario{
		"life":    {prepare: (*testbed).prepareLife, tell: (*testbed).runLife},
		"rollout": {prepare: (*testbed).prepareRollout, tell: (*testbed).runRollout},
	}})
}

// setProvider makes the NodeProvider that of the hosts' kind.
func (s *testbed) setProvider(objects []*unstructured.Unstructured) error {
	if !s.kind.isMetal3 && !s.kind.isIronic {
		return environment.SetField(objects, "NodeProvider", s.env.BootAddress, "spec", "redfish", "netboot", "address")
	}
	for _, o := range objects {
		if o.GetKind() == "NodeProvider" {
			unstructured.RemoveNestedField(o.Object, "spec", "redfish")
		}
	}
	if s.kind.isIronic {
		return environment.SetField(objects, "NodeProvider", s.ironic.providerSpec(), "spec", "ironic")
	}
	return environment.SetField(objects, "NodeProvider", map[string]any{}, "spec", "metal3")
}

// startSite starts the baremetal-operator, which is not killed.
func (s *testbed) startSite(ctx context.Context) error {
	if !s.kind.isMetal3 {
		return nil
	}
	connection, err := s.env.Management.RESTConfig()
	if err != nil {
		return err
	}
	hasConditions := s.kind.seed%2 == 0 // an even seed has the release that writes conditions and has a limit of tries
	if hasConditions {
		if err := baremetaloperator.AddConditions(ctx, s.env.ManagementClient); err != nil {
			return err
		}
	}
	s.site, err = metal3rack.Start(ctx, metal3rack.Options{
		Config: connection, Rack: s.env.Rack, Namespace: hostNamespace, Address: s.boot, Files: os.DirFS(filepath.Join(s.env.Dir, "boot")), Speed: operatorSpeed,
		Conditions: hasConditions,
	})
	return err
}

// isServedAvailable: the baremetal-operator has given the host back, and it says how it was cleaned if it ever had a node.
func isServedAvailable(h metal3.BareMetalHost) bool {
	isUsed := !h.Status.OperationHistory.Deprovision.End.IsZero()
	return h.Status.Provisioning.State == metal3.StateAvailable && h.Status.Provisioning.Image.URL == "" && h.Spec.ConsumerRef == nil && h.Spec.Image == nil && !h.Status.PoweredOn &&
		(!isUsed || h.Annotations[v1alpha1.AnnotationLastErase] == string(v1alpha1.EraseMetadata))
}
