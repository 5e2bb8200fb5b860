package scenario

import (
	"cmp"
	"context"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/rack"
)

// DefaultStory is from powered-off servers to rollouts.
const DefaultStory = "pipeline"

// story is what a run of the demo shows.
type story struct {
	// folder names the samples in a sentence. read returns those for the management cluster and those for each tenant.
	folder string
	read   func(fs.FS) (management, tenants []*unstructured.Unstructured, err error)
	// clusters names in a sentence the clusters that nodes join, and gpus what each server has.
	clusters, gpus string
	// servers is how many there are unless it is said, and fewest how many there must be, with the reason why.
	servers, fewest int
	why             string
	// specs returns the servers of the rack, and isMIG which of them are for MIG.
	specs func(Options) ([]rack.ServerSpec, error)
	isMIG func(Options, int) bool
	// racks names the rack of each server; nil: all are in one.
	racks func(int) string
	// hints are commands to look around with at the end, with SHARED for the kubeconfig of the first cluster that nodes join.
	hints string
	// users are those of the first cluster that nodes join who get a kubeconfig each, with which one can try what they may.
	users []string
	// steps run in this order.
	steps []func(*demo, context.Context) error
}

// stories are by the value of --story.
func stories() map[string]story {
	return map[string]story{
		DefaultStory: {
			folder: "config/samples", read: environment.ReadSamples, clusters: "those of two tenants", gpus: "8 x H100 or H200",
			servers: 8, fewest: 6, why: "two for MIG, two for DRA, one that is pinned and released, one that loses a GPU; further ones are the first pool's",
			specs: serverSpecs, isMIG: Options.isMIG, hints: "ingot machines; ingot rollout status; kubectl get bmh -A",
			steps: []func(*demo, context.Context) error{
				(*demo).startClusters, (*demo).applySamples, (*demo).registerServers, (*demo).refuseImpossibleLayout, (*demo).orderMachines, (*demo).awaitAdmission,
				(*demo).checkOpenGate, (*demo).checkDefectiveServer, (*demo).repairServer, (*demo).rollOut, (*demo).rollOutBadImage, (*demo).rollBack, (*demo).releaseMachine,
			},
		},
		"outage": {
			folder: "config/samples", read: environment.ReadSamples, clusters: "those of two tenants", gpus: "8 x H100",
			servers: 5, fewest: 3, why: "one that is reached, and two behind the switch that fails",
			specs: outageServers, racks: rackOf, isMIG: func(Options, int) bool { return false }, hints: "ingot machines; ingot rollout status",
			steps: []func(*demo, context.Context) error{
				(*demo).startClusters, (*demo).applySamples, (*demo).registerServers, (*demo).fillPools, (*demo).darkenRack, (*demo).holdRollout, (*demo).lightRack,
			},
		},
		"tenants": {
			folder: "config/samples/sharing", read: environment.ReadSharingSamples, clusters: "one that two tenants share", gpus: "8 x A100",
			servers: 2, fewest: 2, why: "one for whole GPUs and one for MIG",
			specs: sharingServers, isMIG: Options.isSliced,
			hints: "ingot entitlements; ingot claims gpus -n shared --shared-kubeconfig SHARED; ingot machines", users: []string{legal, research},
			steps: []func(*demo, context.Context) error{
				(*demo).startClusters, (*demo).applySamples, (*demo).prepareTenants, (*demo).registerServers, (*demo).fillPools, (*demo).checkEntitlements,
				(*demo).runTenants, (*demo).refuseTenant, (*demo).exceedQuota, (*demo).takeClassAway,
			},
		},
	}
}

// story returns what is shown.
func (o Options) story() story { return stories()[cmp.Or(o.Story, DefaultStory)] }
