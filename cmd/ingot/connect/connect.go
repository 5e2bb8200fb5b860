// Package connect reaches the management cluster in the way that kubectl does: the same flags, files and contexts.
package connect

import (
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// timeout of one request: a person waits for it.
const timeout = 15 * time.Second

// Flags say which cluster, and how the answer is printed.
type Flags struct {
	// Output is text or json.
	Output string
	kube   *genericclioptions.ConfigFlags
}

// Add adds the flags to a command.
func Add(c *cobra.Command) *Flags {
	f := &Flags{kube: &genericclioptions.ConfigFlags{
		KubeConfig: new(string), Context: new(string), Namespace: new(string),
	}}
	c.Flags().StringVar(f.kube.KubeConfig, "kubeconfig", "", "kubeconfig file of the management cluster; without it as kubectl finds it")
	c.Flags().StringVar(f.kube.Context, "context", "", "context in the kubeconfig")
	c.Flags().StringVarP(f.kube.Namespace, "namespace", "n", "", "namespace; without it all that you may see")
	c.Flags().StringVarP(&f.Output, "output", "o", "text", "text or json")
	return f
}

// Namespace asked for; empty: all.
func (f *Flags) Namespace() string { return *f.kube.Namespace }

// JSON says whether the answer is to be JSON. The error is one of usage.
func (f *Flags) JSON(c *cobra.Command) (bool, error) {
	if f.Output != "text" && f.Output != "json" {
		return false, cli.Usagef(c, "-o %s: expected text or json", f.Output)
	}
	return f.Output == "json", nil
}

// Client of the management cluster.
func (f *Flags) Client() (client.Client, error) {
	config, err := f.kube.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("no management cluster: %w: give --kubeconfig, or set KUBECONFIG", err)
	}
	config.Timeout = timeout
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the management cluster at %s: %w", config.Host, err)
	}
	return c, nil
}
