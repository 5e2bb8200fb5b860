package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/ironic/standin"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// asIronic makes the samples those of a site with that Ironic.
func asIronic(t *testing.T, endpoint string) func(*pipeline, []*unstructured.Unstructured) error {
	images := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(images))) // at full speed: an image that is not compressed is large
	t.Cleanup(server.Close)
	return func(_ *pipeline, samples []*unstructured.Unstructured) error {
		for _, o := range samples {
			var err error
			switch o.GetKind() {
			case "NodeProvider":
				spec := o.Object["spec"].(map[string]any)
				delete(spec, "redfish")
				spec["ironic"] = map[string]any{"endpoint": endpoint, "hardwareType": "fake-hardware", "deployInterface": "direct"}
			case "OSImage":
				err = decompress(images, server.URL, o.Object["spec"].(map[string]any))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// decompress puts the image of the OSImage into the folder of another server of images as a raw one.
func decompress(folder, base string, spec map[string]any) error {
	url := spec["url"].(string)
	response, err := http.Get(url) //nolint:noctx // the server of images is this test's
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	reader, err := zstd.NewReader(response.Body)
	if err != nil {
		return err
	}
	defer reader.Close()
	file, err := os.Create(filepath.Join(folder, "debian.raw"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), reader); err != nil {
		return err
	}
	spec["url"] = base + "/debian.raw"
	spec["format"], spec["checksum"] = "raw", "sha256:"+hex.EncodeToString(sum.Sum(nil))
	return nil
}

func TestAMachineLivesOnANodeOfIronic(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	running := ironic.Start(t, ironic.Options{})
	require.Tool(t, "sgdisk", "apt-get install gdisk")
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	p := startEditedPipeline(t, programFolder(t), asIronic(t, running.Endpoint), []rack.ServerSpec{{Name: "server-1", Profile: profile}})
	ctx, server := t.Context(), p.env.Rack.Servers()[0]
	standIn, err := standin.Start(standin.Options{Endpoint: running.Endpoint, Servers: p.env.Rack.Servers(), Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standIn.Stop)

	await := func(limit time.Duration, what string, ok func(observation) bool) observation {
		t.Helper()
		v, err := p.fleet.await(ctx, limit, "worker-1", server.Name(), what, ok)
		if err != nil {
			t.Fatalf("%v\nserver: %+v", err, server.State())
		}
		return v
	}
	await(2*time.Minute, "the host is available", func(v observation) bool {
		return v.host != nil && v.host.Status.Provisioning.State == metal3.StateAvailable
	})
	if err := p.order(ctx, "worker-1", server.Name()); err != nil {
		t.Fatal(err)
	}
	ready := await(4*time.Minute, "the Machine is Ready", observation.isReady)
	if began, succeeded := p.fleet.attempts(ready.machine); began != 1 || succeeded != 1 {
		t.Errorf("%d installations began and %d succeeded, expected one", began, succeeded)
	}
	if err := p.env.ManagementClient.Delete(ctx, ready.machine); err != nil {
		t.Fatal(err)
	}
	await(3*time.Minute, "the host is back in the pool", observation.isBack)
	if steps := standIn.Steps(server.Name()); strings.Join(steps, " ") != "write_image erase_devices_metadata" {
		t.Errorf("Ironic's agent did %v", steps)
	}
	p.judge(ctx, t)
}
