package fleet

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/ingot-dev/ingot/test/metal3rack"
	"github.com/ingot-dev/ingot/test/rack"
)

// metal3Spec is the configuration of a baremetal-operator.
type metal3Spec struct {
	// Kubeconfig is the path of a kubeconfig of the management cluster, and Namespace that of the hosts.
	Kubeconfig string `json:"kubeconfig"`
	Namespace  string `json:"namespace"`
	// Files is the directory of the agent's kernel and ramdisk, which servers boot from Address.
	Files   string `json:"files"`
	Address string `json:"address"`
}

// metal3Speed is how much sooner than a real one the baremetal-operator looks at a host again. Otherwise the run would mostly wait.
const metal3Speed = 20

// metal3Site is the baremetal-operator of the rack's process, once it has been started.
type metal3Site struct {
	rack *rack.Rack
	site *metal3rack.Site
}

func (s *metal3Site) start(ctx context.Context, spec metal3Spec) error {
	config, err := clientcmd.BuildConfigFromFlags("", spec.Kubeconfig)
	if err != nil {
		return fmt.Errorf("connect the baremetal-operator: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	s.site, err = metal3rack.Start(ctx, metal3rack.Options{
		Config: config, Rack: s.rack, Namespace: spec.Namespace, Address: spec.Address, Files: os.DirFS(spec.Files), Speed: metal3Speed,
	})
	return err
}

func (s *metal3Site) stop() error { return s.site.Stop() }
