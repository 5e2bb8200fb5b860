// Package connect makes a client of the management cluster from the same flags, files and contexts as kubectl.
package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
)

// timeout limits one request, because a person waits for the answer.
const timeout = 15 * time.Second

// Flags say which cluster is asked and how the answer is printed.
type Flags struct {
	// Output is text, json or, where the command has more columns, wide.
	Output string
	// hasWide says that the command has more columns.
	hasWide bool
	kube    *genericclioptions.ConfigFlags
	// lease is NAMESPACE/NAME of the Lease of the manager's leader election, and manager what it said.
	lease   string
	manager Manager
}

// AddFlags adds the flags to a command.
func AddFlags(c *cobra.Command) *Flags {
	f := &Flags{kube: &genericclioptions.ConfigFlags{
		KubeConfig: new(string), Context: new(string), Namespace: new(string),
	}}
	c.Flags().StringVar(f.kube.KubeConfig, "kubeconfig", "", "kubeconfig file of the management cluster; without it as kubectl finds it")
	c.Flags().StringVar(f.kube.Context, "context", "", "context in the kubeconfig")
	c.Flags().StringVarP(f.kube.Namespace, "namespace", "n", "", "namespace; without it all that you may see")
	c.Flags().StringVarP(&f.Output, "output", "o", "text", "text or json")
	c.Flags().StringVar(&f.lease, leaseFlag, leaderlease.DefaultNamespace+"/"+leaderlease.DefaultName, "Lease of ingot-manager's leader election, which tells whether one works; without it also any that has its label")
	return f
}

// AddAllNamespaces adds -A to a command that lists, for who is used to it from kubectl. It says what leaving -n out says, so nothing needs to know whether it is
// given.
func (f *Flags) AddAllNamespaces(c *cobra.Command) {
	c.Flags().BoolP("all-namespaces", "A", false, "all namespaces, as without --namespace")
	c.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

// AddWide lets the command be asked for more columns.
func (f *Flags) AddWide(c *cobra.Command) {
	f.hasWide = true
	c.Flags().Lookup("output").Usage = "text, wide or json"
}

// IsWide says whether more columns are asked for.
func (f *Flags) IsWide() bool { return f.hasWide && f.Output == "wide" }

// Namespace returns the namespace that was asked for; empty: all namespaces.
func (f *Flags) Namespace() string { return *f.kube.Namespace }

// IsJSON says whether the answer is printed as JSON. The error is a *cli.UsageError.
func (f *Flags) IsJSON(c *cobra.Command) (bool, error) {
	switch {
	case f.IsWide(), f.Output == "text", f.Output == "json":
	case f.hasWide:
		return false, cli.Usagef(c, "-o %s: expected text, wide or json", f.Output)
	default:
		return false, cli.Usagef(c, "-o %s: expected text or json", f.Output)
	}
	return f.Output == "json", nil
}

// Client returns a client of the management cluster. Where the user may read that no ingot-manager works, it first writes this to the command's
// standard error.
func (f *Flags) Client(cmd *cobra.Command) (client.Client, error) {
	config, err := f.kube.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("no management cluster: %w: look at --kubeconfig, KUBECONFIG and --context", err)
	}
	// Without a kubeconfig the loader names a server on this machine, which nobody has asked for.
	if raw, err := f.kube.ToRawKubeConfigLoader().RawConfig(); err == nil && len(raw.Clusters) == 0 && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return nil, errors.New("no management cluster: no kubeconfig is found: give --kubeconfig, or set KUBECONFIG")
	}
	// A limit of the client's own would end a wait with words about itself; the API server has its limits for each user.
	config.Timeout, config.QPS = timeout, -1
	clock := &serverClock{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { clock.next = next; return clock })
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
	if err := f.reportManager(cmd, c, clock); err != nil {
		return nil, err
	}
	if err := clock.connectError(); err != nil {
		return nil, fmt.Errorf("the management cluster at %s does not answer: %w: see that it runs, and that --kubeconfig and --context name the right one", config.Host, err)
	}
	return c, nil
}

// FindMachine finds the Machine NAME or NAMESPACE/NAME in a namespace, or in all when namespace is empty. A name that is there in
// several namespaces is an error that names them, and the name of a host one that names the host's Machine.
func FindMachine(ctx context.Context, k client.Reader, namespace, name string) (*v1alpha1.Machine, error) {
	if ns, rest, found := strings.Cut(name, "/"); found {
		if namespace != "" && namespace != ns {
			return nil, fmt.Errorf("%s is in namespace %s, and -n says %s: leave one of them out", name, ns, namespace)
		}
		namespace, name = ns, rest
	}
	var list v1alpha1.MachineList
	if err := k.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(m v1alpha1.Machine) bool { return m.Name != name })
	switch len(list.Items) {
	case 0:
		var hosts metal3.BareMetalHostList
		_ = k.List(ctx, &hosts) // whoever may not list hosts gets the other message
		if hint := hostHint(hosts.Items, name); hint != "" {
			return nil, fmt.Errorf("there is no Machine %s%s: %s", name, inNamespace(namespace), hint)
		}
		return nil, fmt.Errorf("there is no Machine %s%s: ingot machines lists them; ingot hosts shows hosts whose Machine is gone", name, inNamespace(namespace))
	case 1:
		return &list.Items[0], nil
	default:
		return nil, fmt.Errorf("several Machines are called %s, in namespaces %s and %s: say which with -n", name, list.Items[0].Namespace, list.Items[1].Namespace)
	}
}

// hostHint says which Machine has the host of that name. It is empty where there is no such host.
func hostHint(hosts []metal3.BareMetalHost, name string) string {
	at := slices.IndexFunc(hosts, func(h metal3.BareMetalHost) bool { return h.Name == name })
	if at < 0 {
		return ""
	}
	switch ref := hosts[at].Spec.ConsumerRef; {
	case v1alpha1.IsMachineRef(ref):
		return fmt.Sprintf("%s is a host; Machine %s/%s has it", name, ref.Namespace, ref.Name)
	case ref != nil:
		return fmt.Sprintf("%s is a host; %s %s/%s has it", name, ref.Kind, ref.Namespace, ref.Name)
	default:
		return name + " is a host, and no Machine has it: ingot hosts shows it"
	}
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return " in any namespace that you may see"
	}
	return " in namespace " + namespace
}
