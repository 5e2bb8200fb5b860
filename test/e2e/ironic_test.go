package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// Sectors of the partition that the config drive is written to. sgdisk moves a partition that is not aligned.
const sectorBytes, driveSectors, sgdiskAlignment = 512, 8192, 2048

// ironicServer is a server of the rack behind a node of Ironic: Ironic's hardware is memory, and what its agent is told to write and what the power of the node
// becomes is done to the server.
type ironicServer struct {
	t        *testing.T
	endpoint string
	server   *rack.Server
	sgdisk   string
}

// writeImage does what Ironic's agent does: the image, and a partition with the config drive at the end.
func (s *ironicServer) writeImage(url, configDrive string) error {
	drive, err := unpackDrive(configDrive)
	if err != nil {
		return err
	}
	response, err := http.Get(url) //nolint:noctx // the server of images is this test's
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	disk, err := os.OpenFile(s.server.DiskPath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	if _, err := io.Copy(disk, response.Body); err != nil {
		return err
	}
	size := s.server.Disks()[0].SizeBytes
	if err := disk.Truncate(size); err != nil {
		return err
	}
	first := (size/sectorBytes-driveSectors)/sgdiskAlignment*sgdiskAlignment - sgdiskAlignment
	last := first + driveSectors - 1
	if out, err := exec.Command(s.sgdisk, "-e", "-n", fmt.Sprintf("15:%d:%d", first, last), s.server.DiskPath()).CombinedOutput(); err != nil {
		return fmt.Errorf("sgdisk: %w: %s", err, out)
	}
	_, err = disk.WriteAt(drive, first*sectorBytes)
	return err
}

func unpackDrive(text string) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	drive, err := io.ReadAll(reader)
	if err == nil && len(drive) > driveSectors*sectorBytes {
		err = fmt.Errorf("the config drive has %d bytes", len(drive))
	}
	return drive, err
}

// followPower gives the server the power of its node, until the context ends. While Ironic's agent would run, the server stays off.
func (s *ironicServer) followPower(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var node struct {
			Power string `json:"power_state"`
			State string `json:"provision_state"`
		}
		path := "/v1/nodes/" + hostNamespace + "~" + s.server.Name()
		if s.send(ctx, http.MethodGet, path, nil, &node) != nil {
			continue
		}
		if node.Power == "" && node.State == "manageable" {
			// Ironic's fake hardware has no power state before one is asked for. A real BMC tells that the server is off.
			_ = s.send(ctx, http.MethodPut, path+"/states/power", []byte(`{"target": "power off"}`), nil)
		}
		isOn := s.server.Power() != hardware.PowerOff
		mustBeOn := node.Power == "power on" && node.State == "active"
		switch {
		case mustBeOn && !isOn:
			s.server.Reset(bmc.ResetOn)
		case isOn && node.Power == "power off":
			s.server.Reset(bmc.ResetForceOff)
		}
	}
}

func (s *ironicServer) send(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.endpoint+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-OpenStack-Ironic-API-Version", "1.68")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if into == nil {
		return nil
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

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
	running := ironic.Start(t, ironic.Options{})
	sgdisk := require.Tool(t, "sgdisk", "apt-get install gdisk")
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	p := startEditedPipeline(t, programFolder(t), tune, asIronic(t, running.Endpoint), []rack.ServerSpec{{Name: "server-1", Profile: profile}})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	server := p.env.Rack.Servers()[0]
	standIn := &ironicServer{t: t, endpoint: running.Endpoint, server: server, sgdisk: sgdisk}
	agent := ironic.StartAgent(t, running.Endpoint, server.BootMAC(), ironic.AgentOptions{WriteImage: standIn.writeImage})
	go standIn.followPower(ctx)

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
	if steps, _ := agent.Done(); strings.Join(steps, " ") != "write_image erase_devices_metadata" {
		t.Errorf("Ironic's agent did %v", steps)
	}
	p.judge(ctx, t)
}
