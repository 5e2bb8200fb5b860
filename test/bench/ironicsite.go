package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/bench/ironicloop"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/fleet"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/loopback"
)

// ironicSign is in the command line of Ironic's process.
const ironicSign = "ironic --config-file"

// ironicPageSize is the number of nodes in a page of the bare loop's lists: all of a measured run.
const ironicPageSize = 500

// The only NodeType and the only NodePool, of the samples.
const ironicNodeType, ironicPool = "h100", "training"

// ironicLimit is on how many nodes Ironic works at the same time, at least.
const ironicLimit = 250

// resetWorkers is how many nodes are reset at the same time. Their connections are beside those of the proxy.
const resetWorkers = 8

// setUpIronic starts everything except the manager and creates all objects except the Machines.
func (c *comparison) setUpIronic(ctx context.Context) error {
	if missing := ironicserver.Missing(); missing != "" {
		return fmt.Errorf("-provider ironic needs the program %s: %s", missing, ironicserver.Install)
	}
	return c.Perform(ctx, []fleet.Step{
		{What: "starting the management and the tenant's control plane", Do: func(ctx context.Context) error { return c.Env.StartClusters(ctx, tenantName) }},
		{What: "starting Ironic", Do: c.startIronic},
		{What: "making the installer's ramdisk, which the manager must have", Do: func(context.Context) error { return c.Env.WriteBootFiles() }},
		{What: "applying CRDs, roles and policies", Do: c.Env.InstallIngot},
		{What: "packing the image and applying the samples", Do: c.applyIronicSamples},
		{What: "introducing the tenant", Do: func(ctx context.Context) error { return c.Introduce(ctx, research, c.Env.Tenants[0]) }},
		{What: fmt.Sprintf("applying %d hosts", c.options.machines), Do: c.applyIronicHosts},
	})
}

func (c *comparison) startIronic(ctx context.Context) error {
	dir := filepath.Join(c.Env.Dir, "ironic")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	limit := max(ironicLimit, c.options.machines)
	c.ironic, err = ironicserver.Launch(ctx, dir, ironicserver.Options{HasOwnIntervals: true, MaxDeploys: limit, MaxCleans: limit})
	if err != nil {
		return err
	}
	if c.proxy, err = startIronicProxy(c.ironic.Endpoint); err != nil {
		return err
	}
	c.direct, err = ironicloop.New(c.ironic.Endpoint, resetWorkers, time.Second, ironicPageSize)
	if err != nil {
		return err
	}
	// Servers boot nothing of the manager's.
	c.Env.HasNoBoot = true
	c.Env.ChangeSettings = func(s *settings.Settings) { s.Boot.URL, s.Boot.TLS.Address = "", "0" }
	c.Env.BootAddress, err = loopback.FreeAddress()
	return err
}

// applyIronicSamples applies those of config/samples that one pool of nodes without GPUs needs.
func (c *comparison) applyIronicSamples(ctx context.Context) error {
	images := filepath.Join(c.Env.Dir, "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	var err error
	if c.Env.Images, err = environment.ServeImages(environment.Loopback, images, 1<<30); err != nil {
		return err
	}
	files, err := fs.Sub(config.Files, "samples")
	if err != nil {
		return err
	}
	samples, _, err := environment.ReadSamples(files)
	if err != nil {
		return err
	}
	image, err := c.PackImage(ctx, c.Env.Images.URL)
	if err != nil {
		return err
	}
	objects, err := c.adaptIronic(samples, image)
	if err != nil {
		return err
	}
	return c.ApplyWhenServed(ctx, objects)
}

// ironicSamples are the names of the samples that are applied, by their kinds; empty: all of the kind.
var ironicSamples = map[string]string{
	"Namespace": "", "RoleBinding": "", "NodeProvider": "", "OSImage": "", "TenantCluster": tenantName, "NodeType": ironicNodeType, "NodePool": ironicPool,
}

// adaptIronic returns the samples that are applied, with the addresses and the image of this run.
func (c *comparison) adaptIronic(samples []*unstructured.Unstructured, image map[string]any) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, o := range samples {
		name, isKnown := ironicSamples[o.GetKind()]
		if !isKnown || name != "" && name != o.GetName() {
			continue
		}
		switch o.GetKind() {
		case "OSImage":
			o.Object["spec"] = image
		case "NodeType":
			unstructured.RemoveNestedField(o.Object, "spec", "gpu")
		case "NodeProvider":
			unstructured.RemoveNestedField(o.Object, "spec", "redfish")
		}
		objects = append(objects, o)
	}
	limit := int64(max(ironicLimit, c.options.machines))
	return objects, errors.Join(
		environment.SetField(objects, "NodeProvider", map[string]any{
			"endpoint": c.proxy.url, "hardwareType": "fake-hardware", "deployInterface": "fake", "limits": map[string]any{"deploys": limit, "cleans": limit},
		}, "spec", "ironic"),
		environment.SetField(objects, "NodeProvider", string(v1alpha1.EraseNone), "spec", "erase", "onRelease"),
		environment.SetField(objects, "TenantCluster", c.Env.Tenant.Endpoint(), "spec", "join", "tlsBootstrap", "endpoint"),
		environment.SetField(objects, "NodeType", map[string]any{"matchLabels": map[string]any{"nodes": "ironic"}}, "spec", "hostSelector"),
		environment.SetField(objects, "NodePool", int64(0), "spec", "replicas"),
	)
}

// applyIronicHosts creates the BareMetalHosts and their Secrets. Their BMCs are addresses alone: fake-hardware keeps the power in memory.
func (c *comparison) applyIronicHosts(ctx context.Context) error {
	var objects []*unstructured.Unstructured
	for i := range c.options.machines {
		name := fmt.Sprintf("server-%04d", i+1)
		objects = append(objects,
			object("v1", "Secret", name+"-bmc", nil, map[string]any{"stringData": map[string]any{"username": "root", "password": "bmc-password"}}),
			object("metal3.io/v1alpha1", "BareMetalHost", name, map[string]string{"nodes": "ironic"}, map[string]any{"spec": map[string]any{
				"online": false, "bootMACAddress": fmt.Sprintf("52:54:00:02:%02x:%02x", i>>8, i&0xff),
				"bmc": map[string]any{"address": fmt.Sprintf("ipmi://10.1.%d.%d", i>>8, i&0xff), "credentialsName": name + "-bmc"},
			}}))
	}
	return environment.Apply(ctx, c.Env.ManagementClient, objects)
}

// object returns an object in the namespace of the hosts.
func object(version, kind, name string, labels map[string]string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(fleet.HostNamespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// scale sets the number of Machines.
func (c *comparison) scale(ctx context.Context, replicas int) error {
	pool := &v1alpha1.NodePool{}
	pool.Namespace, pool.Name = tenantName, ironicPool
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	return c.Env.ManagementClient.Patch(ctx, pool, client.RawPatch(types.MergePatchType, []byte(patch)))
}
