package tenant

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/plan/join"
)

// options are the flags of the command line.
type options struct {
	name, namespace, kubeconfig, endpoint string
	// join is the method, and script the file of a join by script.
	join, script                       string
	managerNamespace                   string
	files, nodeTypes                   []string
	includeSecret, tenantSide, tryJoin bool
	servingCertificates, entitlements  bool
	// requestTimeout limits one request, issueTimeout the time until a trial's certificate is issued.
	requestTimeout, issueTimeout time.Duration
}

// Command is `ingot tenant`.
func Command() *cobra.Command {
	return cli.NewGroup("tenant", "Let a cluster get nodes", addCommand())
}

func addCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "add NAME --namespace NS --kubeconfig FILE",
		Short: "Examine a cluster and print what makes it a TenantCluster",
		Long: `Examines the cluster of a kubeconfig: whether Ingot may use the kubeconfig, reaches
the API, has the rights that it needs, whether nodes can join, whether versions go
together, and whether the DaemonSets that a node needs tolerate the gate. What was
found goes to standard error; what makes the cluster a TenantCluster, to standard
output, to be applied in the management cluster. Exit status 1 when something must
be mended.

--tenant-side prints what must be applied in the tenant's cluster instead.
--file names NodeTypes and OSImages that the tenant will use: their kubelets, gates
and presentations are checked as well, and the rights that their validation.probe needs.
--serving-certificates asks for the rights to approve the certificates that kubelets
serve with, and has the TenantCluster say so.
--join says how nodes will join. --try-join makes a bootstrap token in the tenant's
cluster, does with it what such a node does until its certificate is issued, and
deletes both; without it nothing is written anywhere. kubeadm's discovery, signature
and configuration are tried as well for kubeadm and vcluster; of a script, whether the
token is accepted.`,
		Example: "  ingot tenant add research -n research --kubeconfig research.kubeconfig -f nodetype.yaml -f osimage.yaml | kubectl apply -f -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if err := o.parseFlags(cmd); err != nil {
				return err
			}
			return run(cmd, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the TenantCluster in the management cluster")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file with the kubeconfig of the tenant's cluster")
	f.StringVar(&o.endpoint, "endpoint", "", "https://... of the API server as nodes reach it (default: the kubeconfig's server)")
	f.StringVar(&o.join, "join", string(v1alpha1.JoinTLSBootstrap), "how nodes join: tlsBootstrap, kubeadm, vcluster or script")
	f.StringVar(&o.script, "script", "", "file with the script of --join script (config/samples/join)")
	f.StringArrayVarP(&o.files, "file", "f", nil, "YAML file with NodeTypes and OSImages; may be repeated")
	f.StringArrayVar(&o.nodeTypes, "nodetype", nil, "NodeType of the files that the tenant will use; may be repeated (default: all)")
	f.BoolVar(&o.includeSecret, "include-secret", false, "print the Secret with the kubeconfig as well")
	f.BoolVar(&o.tenantSide, "tenant-side", false, "print what is missing in the tenant's cluster instead")
	f.BoolVar(&o.servingCertificates, "serving-certificates", false, "have Ingot approve the serving certificates of the nodes' kubelets")
	f.BoolVar(&o.entitlements, "entitlements", false, "have Ingot enforce Entitlements in the cluster, which tenants share")
	f.BoolVar(&o.tryJoin, "try-join", false, "join as a node would, as far as the certificate")
	f.StringVar(&o.managerNamespace, "manager-namespace", "ingot-system", "namespace of ingot-manager")
	f.DurationVar(&o.requestTimeout, "timeout", 10*time.Second, "limit of one request")
	o.issueTimeout = time.Minute
	return c
}

// parseFlags checks the flags.
func (o *options) parseFlags(cmd *cobra.Command) error {
	switch {
	case o.namespace == "" || o.kubeconfig == "":
		return cli.Usagef(cmd, "expected --namespace, where the TenantCluster will be, and --kubeconfig, the tenant's")
	case len(validation.IsDNS1123Label(o.namespace)) > 0:
		return cli.Usagef(cmd, "--namespace %s: expected a namespace such as research", o.namespace)
	case len(validation.IsDNS1123Subdomain(o.name+secretSuffix)) > 0:
		return cli.Usagef(cmd, "%s: expected a name such as research", o.name)
	case len(o.nodeTypes) > 0 && len(o.files) == 0:
		return cli.Usagef(cmd, "--nodetype chooses among the NodeTypes of --file, and there is none")
	case o.requestTimeout <= 0:
		return cli.Usagef(cmd, "--timeout %s: expected a duration such as 10s", o.requestTimeout)
	}
	if err := o.parseJoin(cmd); err != nil {
		return err
	}
	if o.endpoint != "" && !isHTTPS(o.endpoint) {
		return cli.Usagef(cmd, "--endpoint: expected a URL such as https://tenant.example.com:6443")
	}
	if join.IsLinkLocal(o.endpoint) {
		return cli.Usagef(cmd, "--endpoint %s: expected what nodes reach, seen a link-local address, which leads to another machine from every network", o.endpoint)
	}
	return nil
}

// parseJoin checks the flags of the join.
func (o *options) parseJoin(cmd *cobra.Command) error {
	switch method := v1alpha1.JoinMethod(o.join); {
	case method != v1alpha1.JoinTLSBootstrap && method != v1alpha1.JoinScript && !method.IsKubeadm():
		return cli.Usagef(cmd, "--join %s: expected tlsBootstrap, kubeadm, vcluster or script", o.join)
	case (method == v1alpha1.JoinScript) != (o.script != ""):
		return cli.Usagef(cmd, "expected --script, the file of the script, with --join script and with no other one")
	}
	return nil
}

func isHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

func run(cmd *cobra.Command, o options) error {
	wanted, err := readRequirements(o.files, o.nodeTypes)
	if err != nil {
		return err
	}
	kubeconfig, err := os.ReadFile(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	text, err := readScript(o.script)
	if err != nil {
		return err
	}
	t, usable := examine(cmd.Context(), o, wanted, kubeconfig)
	t.script = text
	t.print(cmd.ErrOrStderr())
	if usable {
		if err := t.printObjects(cmd, o, kubeconfig); err != nil {
			return err
		}
	}
	if n := t.countProblems(); n > 0 {
		return fmt.Errorf("%d to be mended before nodes of Ingot's can be used here", n)
	}
	return nil
}

// readScript reads the script of a join, and refuses one that cannot run on a node.
func readScript(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	if why := script.Problem(text); why != "" {
		return nil, fmt.Errorf("the script %s cannot run on a node: %s", path, why)
	}
	return text, nil
}

func (t *tenant) printObjects(cmd *cobra.Command, o options, kubeconfig []byte) error {
	if o.tenantSide {
		if len(t.grants) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "nothing is missing in the tenant's cluster that could be applied")
		}
		return cli.PrintObjects(cmd.OutOrStdout(), t.grants...)
	}
	objects, err := managementObjects(o, kubeconfig, t.script)
	if err != nil {
		return err
	}
	if !o.includeSecret && o.script != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "the Secret %s/%s%s with the script is not printed: add --include-secret, or make it with the key %s\n", o.namespace, o.name, scriptSuffix, v1alpha1.JoinScriptKey)
	}
	if !o.includeSecret {
		fmt.Fprintf(cmd.ErrOrStderr(), "the Secret %s/%s%s with the kubeconfig is not printed: add --include-secret, or make it of a file with that one cluster\n",
			o.namespace, o.name, secretSuffix)
	}
	return cli.PrintObjects(cmd.OutOrStdout(), objects...)
}

// examine makes the checks. When the kubeconfig may not be used, nothing can be applied.
func examine(ctx context.Context, o options, wanted requirements, kubeconfig []byte) (t *tenant, usable bool) {
	t = &tenant{requirements: wanted, endpoint: o.endpoint, servingCertificates: o.servingCertificates, entitlements: o.entitlements, random: rand.Reader, issueTimeout: o.issueTimeout, join: v1alpha1.JoinMethod(o.join)}
	if err := t.open(kubeconfig, o.requestTimeout); err != nil {
		t.add(levelMend, kubeconfigTopic, "%v", err)
		return t, false
	}
	t.add(levelOK, kubeconfigTopic, "runs no program, reads no file, verifies %s", t.config.Host)
	version, err := t.readVersion(ctx)
	if err != nil {
		t.add(levelMend, versionTopic, "%v", err)
		return t, true
	}
	t.add(levelOK, versionTopic, "%s answers, version %s", t.config.Host, version)
	t.checkImages(version)
	t.checkUser(ctx)
	t.checkSlices(ctx)
	t.checkRights(ctx)
	t.checkEndpoint(ctx)
	t.checkDaemonSets(ctx)
	if o.tryJoin {
		t.tryJoin(ctx)
	} else {
		t.checkJoin(ctx)
	}
	return t, true
}

// innermostError returns the cause of a *url.Error, which says more to a person than the text around it.
func innermostError(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
