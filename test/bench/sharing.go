package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/fleet"
	"github.com/ingot-dev/ingot/test/loopback"
)

// sharing measures a cluster that tenants share: the Entitlements of all tenants are made at once, then all claims, which are given devices as the scheduler does
// it, and at last all claims end.
type sharing struct {
	*fleetRun
	tenants, claims int
	// began is the sample before the Entitlements, enforced the one when all are enforced, held the one when the status of each has its claims, and ended the
	// one when no status has one.
	began, enforced, held, ended sample
	// rest is the time between two samples while nothing changes.
	restFrom, restTo sample
}

// devicesPerNode is the number of GPUs of a node.
const devicesPerNode = 8

func (s *sharing) stop() error { return errors.Join(s.Env.Manager.Stop(), s.Env.Stop()) }

// run performs the steps that are measured.
func (s *sharing) run(ctx context.Context) error {
	if err := s.setUpSharing(ctx); err != nil {
		return err
	}
	var err error
	if s.pids, err = waitForProcesses(ctx, func() (map[string]int, error) {
		return findChildren(map[string]string{manager: managerSign, management: managementSign, tenant: "/" + fleet.SharedTenant.Name + " "})
	}); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
		to   *sample
	}{
		{"the manager renders the NodeType", s.awaitRendering, &s.began},
		{fmt.Sprintf("%d tenants get their Entitlements", s.tenants), s.entitleAll, &s.enforced},
		{fmt.Sprintf("%d claims get devices", s.claims), s.allocateAll, &s.held},
		{fmt.Sprintf("nothing changes for %s, after %s of rest", s.options.steady, restTime), s.rest, &s.restTo},
		{"all claims end", s.endAll, &s.ended},
	} {
		s.Log("%s", step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		if *step.to, err = s.takeSample(); err != nil {
			return err
		}
	}
	return nil
}

// setUpSharing starts everything, with the devices of as many nodes as the claims need.
func (s *sharing) setUpSharing(ctx context.Context) error {
	return s.Perform(ctx, []fleet.Step{
		{What: "starting the management and the shared cluster's control plane", Do: func(ctx context.Context) error { return s.Env.StartClusters(ctx, fleet.SharedTenant.Name) }},
		{What: "making the installer's ramdisk, which the manager must have", Do: s.makeBootFiles},
		{What: "applying CRDs, roles and policies", Do: s.Env.InstallIngot},
		{What: "applying config/samples/sharing", Do: s.applySharing},
		{What: "introducing the shared cluster", Do: func(ctx context.Context) error { return s.Introduce(ctx, fleet.SharedTenant, s.Env.Tenants[0]) }},
		{What: "making its namespaces, nodes and devices", Do: s.fillCluster},
		{What: "starting the manager", Do: s.StartManager},
	})
}

func (s *sharing) makeBootFiles(context.Context) error {
	var err error
	if s.Env.BootAddress, err = loopback.FreeAddress(); err != nil {
		return err
	}
	return s.Env.WriteBootFiles()
}

// applySharing applies the samples without their Entitlements and NodePools.
func (s *sharing) applySharing(ctx context.Context) error {
	files, err := fs.Sub(config.Files, "samples")
	if err != nil {
		return err
	}
	samples, _, err := environment.ReadSharingSamples(files)
	if err != nil {
		return err
	}
	objects := slices.DeleteFunc(samples, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Entitlement" || o.GetKind() == "NodePool"
	})
	return s.ApplyWhenServed(ctx, objects)
}

func (s *sharing) tenantName(i int) string { return fmt.Sprintf("tenant-%03d", i) }

// fillCluster makes the tenants' namespaces, and nodes that publish their GPUs as NVIDIA's DRA driver does.
func (s *sharing) fillCluster(ctx context.Context) error {
	var objects []client.Object
	for i := range s.tenants {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.tenantName(i)}})
	}
	for i := range (s.claims + devicesPerNode - 1) / devicesPerNode {
		name := fmt.Sprintf("node-%03d", i)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.nvidia.com", NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1},
		}}
		for j := range devicesPerNode {
			slice.Spec.Devices = append(slice.Spec.Devices, a100(fmt.Sprintf("gpu-%d", j)))
		}
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, slice)
	}
	return s.create(ctx, objects)
}

func (s *sharing) create(ctx context.Context, objects []client.Object) error {
	for _, o := range objects {
		if err := s.Env.TenantClient.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// a100 returns what the driver publishes of an A100 with 40 GB.
func a100(name string) resourcev1.Device {
	text := func(value string) resourcev1.DeviceAttribute {
		return resourcev1.DeviceAttribute{StringValue: &value}
	}
	driver := "570.172.8"
	return resourcev1.Device{
		Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("gpu"), "productName": text("NVIDIA A100-SXM4-40GB"), "architecture": text("Ampere"), "brand": text("Nvidia"), "driverVersion": {VersionValue: &driver},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}},
	}
}

// awaitRendering waits until it is known what the NodeType promises.
func (s *sharing) awaitRendering(ctx context.Context) error {
	return fleet.WaitFor(ctx, s.options.timeout, "the NodeType has a rendering", func() (bool, error) {
		var n v1alpha1.NodeType
		err := s.Env.ManagementClient.Get(ctx, client.ObjectKey{Name: "a100"}, &n)
		return n.Status.StableRendering != "", err
	})
}

// entitleAll creates an Entitlement of each tenant, and waits until all are enforced and have devices.
func (s *sharing) entitleAll(ctx context.Context) error {
	for i := range s.tenants {
		name := s.tenantName(i)
		if err := s.Env.ManagementClient.Create(ctx, &v1alpha1.Entitlement{
			ObjectMeta: metav1.ObjectMeta{Namespace: fleet.SharedTenant.Namespace, Name: name},
			Spec: v1alpha1.EntitlementSpec{
				TenantClusterRef: v1alpha1.LocalReference{Name: fleet.SharedTenant.Name}, Tenant: name, Namespaces: v1alpha1.TenantNamespaces{Names: []string{name}},
				Classes: []v1alpha1.EntitledClass{{Name: "a100", NodeTypeRef: v1alpha1.LocalReference{Name: "a100"}, Kind: v1alpha1.DeviceGPU, Devices: int32(s.claims)}},
			},
		}); err != nil {
			return err
		}
	}
	return s.awaitEntitlements(ctx, "Entitlements are Ready", s.tenants, func(e *v1alpha1.Entitlement) int {
		if meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) {
			return 1
		}
		return 0
	})
}

// awaitEntitlements waits until the sum of what is counted of each Entitlement is as wanted.
func (s *sharing) awaitEntitlements(ctx context.Context, what string, wanted int, count func(*v1alpha1.Entitlement) int) error {
	last := time.Now()
	return fleet.WaitFor(ctx, s.options.timeout, fmt.Sprintf("%d %s", wanted, what), func() (bool, error) {
		if ended, err := s.Env.Manager.Exited(); ended {
			return false, err
		}
		var list v1alpha1.EntitlementList
		if err := s.Env.ManagementClient.List(ctx, &list); err != nil {
			return false, err
		}
		n := 0
		for i := range list.Items {
			n += count(&list.Items[i])
		}
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			s.Log("%d of %d %s", n, wanted, what)
		}
		if n != wanted {
			return false, fleet.Pause(ctx, time.Second)
		}
		return true, nil
	})
}

// claimName returns the namespace and the name of a claim.
func (s *sharing) claimName(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.tenantName(i % s.tenants), Name: fmt.Sprintf("claim-%04d", i)}
}

// allocateAll makes the claims, gives each a device as the scheduler does it, and waits until every status has them.
func (s *sharing) allocateAll(ctx context.Context) error {
	for i := range s.claims {
		claim := &resourcev1.ResourceClaim{ObjectMeta: s.claimName(i)}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: claim.Namespace + "-a100", Count: 1}}}
		if err := s.Env.TenantClient.Create(ctx, claim); err != nil {
			return err
		}
		node, now := fmt.Sprintf("node-%03d", i/devicesPerNode), metav1.Now()
		claim.Status.Allocation = &resourcev1.AllocationResult{
			AllocationTimestamp: &now,
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
				Request: "gpu", Driver: "gpu.nvidia.com", Pool: node, Device: fmt.Sprintf("gpu-%d", i%devicesPerNode),
			}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}}}}},
		}
		if err := s.Env.TenantClient.Status().Update(ctx, claim); err != nil {
			return err
		}
	}
	return s.awaitHoldings(ctx, s.claims)
}

func (s *sharing) awaitHoldings(ctx context.Context, wanted int) error {
	return s.awaitEntitlements(ctx, "claims are in a status", wanted, func(e *v1alpha1.Entitlement) int { return len(e.Status.Holdings) })
}

// rest lets the manager come to rest, and then watches it.
func (s *sharing) rest(ctx context.Context) error {
	if err := fleet.Pause(ctx, restTime); err != nil {
		return err
	}
	var err error
	if s.restFrom, err = s.takeSample(); err != nil {
		return err
	}
	return fleet.Pause(ctx, s.options.steady)
}

// endAll deletes the claims, and waits until no status has one.
func (s *sharing) endAll(ctx context.Context) error {
	for i := range s.claims {
		if err := s.Env.TenantClient.Delete(ctx, &resourcev1.ResourceClaim{ObjectMeta: s.claimName(i)}); err != nil {
			return err
		}
	}
	return s.awaitHoldings(ctx, 0)
}

// writeReport writes the results. It must be called while the processes run.
func (s *sharing) writeReport(w io.Writer) error {
	var all []environment.Request
	collect := func(log, user string) error {
		return environment.ReadRequests(s.Env.AuditLog(log), user, func(r environment.Request) { all = append(all, r) })
	}
	if err := errors.Join(collect("management", s.Env.ManagerUser()), collect(fleet.SharedTenant.Name, fleet.TenantUser)); err != nil {
		return err
	}
	p := &printer{w: w}
	writeMachine(p)
	p.writeLine("%d tenants, %d claims of one device each\n", s.tenants, s.claims)
	p.writeHeader("", "s", "manager, CPU s", "shared cluster, CPU s", "manager, resident MiB", "writes beside Events", "Events", "reads")
	for _, row := range []struct {
		what     string
		from, to sample
	}{
		{"all Entitlements are enforced", s.began, s.enforced}, {"all claims are in their status", s.enforced, s.held}, {"at rest", s.restFrom, s.restTo}, {"all claims ended", s.restTo, s.ended},
	} {
		writes, events, reads := countRequests(requestsBetween(all, row.from.at, row.to.at))
		p.writeRow(row.what, formatSeconds(row.to.at.Sub(row.from.at)), fmt.Sprintf("%.2f", (row.to.usage[manager].CPU-row.from.usage[manager].CPU).Seconds()),
			fmt.Sprintf("%.2f", (row.to.usage[tenant].CPU-row.from.usage[tenant].CPU).Seconds()), fmt.Sprint(row.to.usage[manager].Resident/mib), fmt.Sprint(writes), fmt.Sprint(events), fmt.Sprint(reads))
	}
	writes, events, _ := countRequests(append(requestsBetween(all, s.enforced.at, s.held.at), requestsBetween(all, s.restTo.at, s.ended.at)...))
	p.writeLine("\nFor a claim, from its beginning to its end: %.2f writes beside Events, %.2f Events; at rest the manager takes %.2f%% of a core",
		float64(writes)/float64(s.claims), float64(events)/float64(s.claims), 100*(s.restTo.usage[manager].CPU-s.restFrom.usage[manager].CPU).Seconds()/s.restTo.at.Sub(s.restFrom.at).Seconds())
	return p.err
}

// countRequests counts requests that change something, Events and others.
func countRequests(of []environment.Request) (writes, events, reads int) {
	for _, r := range of {
		switch {
		case !r.IsMutating():
			reads++
		case r.Resource == "events":
			events++
		default:
			writes++
		}
	}
	return writes, events, reads
}
