package scenario

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/test/rack"
)

// The tenants of the samples for sharing. Each has the namespace of its name in the shared cluster, and a user there.
const (
	legal    = "legal-ai"
	research = "research-ai"
)

// sharingServers returns servers with A100s.
func sharingServers(o Options) ([]rack.ServerSpec, error) {
	a100, err := rack.ProfileNamed("hgx-a100-40gb")
	if err != nil {
		return nil, err
	}
	specs := make([]rack.ServerSpec, o.servers())
	for i := range specs {
		specs[i] = rack.ServerSpec{Name: fmt.Sprintf("server-%02d", i+1), Profile: a100}
	}
	return specs, nil
}

// isSliced reports whether the server is for MIG: the second half is.
func (o Options) isSliced(i int) bool { return i >= o.servers()/2 }

// prepareTenants makes the tenants' namespaces and users in the shared cluster, and has the manager serve its metrics.
func (d *demo) prepareTenants(ctx context.Context) error {
	d.screen.Step("two tenants get a namespace and a user each in the shared cluster: %s, %s", legal, research)
	for _, tenant := range []string{legal, research} {
		meta := metav1.ObjectMeta{Namespace: tenant, Name: "user"}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}},
			&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}},
				{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims", "resourceclaimtemplates"}, Verbs: []string{"*"}},
			}},
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "user"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}}},
		} {
			if err := d.env.TenantClient.Create(ctx, o); err != nil {
				return fmt.Errorf("prepare tenant %s: %w", tenant, err)
			}
		}
	}
	var err error
	d.metricsURL, err = d.env.ServeMetrics()
	return err
}

// as returns a client of the shared cluster for a tenant's user.
func (d *demo) as(tenant string) (client.Client, error) {
	config, err := d.env.Tenant.RESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: tenant, Groups: []string{"system:authenticated"}}
	return client.New(config, client.Options{Scheme: d.env.TenantClient.Scheme(), Mapper: d.env.TenantClient.RESTMapper()})
}

// fillPools scales each pool to the servers of its NodeType, and asserts that all are admitted.
func (d *demo) fillPools(ctx context.Context) error {
	d.screen.Step("ordering all servers from %d pools: power on, network boot, install, join, validate", len(d.fleet.pools))
	for _, pool := range d.fleet.pools {
		replicas, err := d.fleet.matchingHosts(pool, d.observed.Hosts)
		if err != nil {
			return err
		}
		d.screen.Note("%s: %d x %s", pool.Name, replicas, pool.Spec.NodeTypeRef.Name)
		if err := d.scalePool(ctx, pool, replicas); err != nil {
			return err
		}
	}
	ready := func(s observation.Observation) int {
		n := 0
		for i := range s.Machines {
			if observation.IsReady(&s.Machines[i]) {
				n++
			}
		}
		return n
	}
	wanted := d.options.servers()
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) { return ready(s) == wanted, nil })
	detail := ""
	if ready(d.observed) != wanted {
		for i := range d.observed.Machines {
			detail += observation.UnmetChecks(&d.observed.Machines[i]) + "\n"
		}
	}
	d.assert(ready(d.observed) == wanted, detail, "%d of %d servers went from powered off to admitted node", ready(d.observed), wanted)
	return err
}

// checkEntitlements asserts that every Entitlement is enforced, and that its classes have devices.
func (d *demo) checkEntitlements(ctx context.Context) error {
	d.screen.Step("what the tenants may ask for: ingot entitlements -n %s", d.fleet.firstPool().Namespace)
	var list v1alpha1.EntitlementList
	isReady := false
	err := d.waitUntil(ctx, func(observation.Observation) (bool, error) {
		if err := d.env.ManagementClient.List(ctx, &list); err != nil {
			return false, fmt.Errorf("list Entitlements: %w", err)
		}
		isReady = len(list.Items) == 2
		for i := range list.Items {
			isReady = isReady && meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady)
		}
		return isReady, nil
	})
	if err != nil {
		return err
	}
	detail := ""
	if !isReady {
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				detail += fmt.Sprintf("%s: %s is %s: %s\n", list.Items[i].Name, c.Type, c.Status, c.Message)
			}
		}
	}
	if err := d.showEntitlements(ctx); err != nil {
		return err
	}
	d.assert(isReady, detail, "both Entitlements are enforced in the shared cluster, and their classes select devices of admitted nodes")
	return nil
}

// entitlementColumns and claimColumns are what fits on a terminal of 120 columns. The commands print more.
var (
	entitlementColumns = []string{"TENANT", "CLASS", "GIVES", "ENTITLED", "ALLOCATED", "WAITS", "PROBLEM"}
	claimColumns       = []string{"TENANT", "CLAIM", "CLASS", "DEVICES", "NODE", "HOST"}
)

// showEntitlements shows what the tenants may ask for, have and wait for.
func (d *demo) showEntitlements(ctx context.Context) error {
	return d.showTable(ctx, entitlementColumns, "entitlements", "-n", d.fleet.firstPool().Namespace)
}

// showTable runs a command of the program ingot, and shows some columns of the table that it prints.
func (d *demo) showTable(ctx context.Context, columns []string, args ...string) error {
	said, err := d.ingot(ctx, args...)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(withColumns(said, columns...), "\n") {
		d.screen.Note("%s", line)
	}
	return nil
}

// gap is what a table has between two columns.
const gap = "   "

// withColumns returns a table with the columns that have these heads, in their order. A line before the table is left as it is.
func withColumns(table string, heads ...string) string {
	var starts []int
	var rows [][]string
	var out strings.Builder
	for line := range strings.SplitSeq(table, "\n") {
		cells := []rune(line)
		if starts == nil && !strings.HasPrefix(line, heads[0]) && !strings.Contains(line, gap+heads[0]+gap) {
			out.WriteString(line + "\n")
			continue
		}
		if starts == nil {
			for _, head := range heads {
				starts = append(starts, len([]rune((gap + line + gap)[:strings.Index(gap+line+gap, gap+head+gap)])))
			}
		}
		var row []string
		for _, start := range starts {
			cell, _, _ := strings.Cut(string(cells[min(start, len(cells)):]), gap)
			row = append(row, strings.TrimRight(cell, " "))
		}
		rows = append(rows, row)
	}
	if err := cli.WriteTable(&out, rows); err != nil {
		return table
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// describe returns the kind and the name of an object.
func describe(o client.Object) string { return step.Kind(o) + " " + o.GetName() }
