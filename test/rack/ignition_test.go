package rack_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/rack/rootfs"
)

// serve packs the system as the image that servers get.
func (r *rig) serve(system string) {
	r.t.Helper()
	dir, out := r.t.TempDir(), r.t.TempDir()
	if err := rootfs.Write(dir, system, map[string]string{rootfs.Manifest: `{"software": {
		"gpuDriver": {"vendor": "nvidia", "version": "580.126.09", "kernelModule": "Open"}, "containerd": "2.2.0", "kubelet": "1.37.0", "containerToolkit": "1.18.0"}}`}); err != nil {
		r.t.Fatal(err)
	}
	packed, err := pack.Pack(r.t.Context(), pack.Options{Dir: dir, Output: out, Name: system, RootOwned: true})
	if err != nil {
		r.t.Fatal(err)
	}
	images := httptest.NewServer(http.FileServer(http.Dir(out)))
	r.t.Cleanup(images.Close)
	r.image = hardware.Image{URL: images.URL + packed.Path[strings.LastIndex(packed.Path, "/"):], Checksum: packed.Checksum, Format: "raw.zst"}
}

// TestANodeIsIgnited takes a whole path: what the product plans and renders for an image with Ignition, written to a disk over
// the network, makes a node with its GPUs as ordered, although the last tenant left them otherwise.
func TestANodeIsIgnited(t *testing.T) {
	t.Parallel()
	for system, variant := range map[string]string{"fedora": "fcos", "flatcar": "flatcar"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			asked := request("A100-SXM4-80GB", v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough})
			asked.Image.OS, asked.Image.UserData, asked.Image.KernelArguments = v1alpha1.OSImageOS{ID: system, Kernel: rootfs.Kernel}, v1alpha1.UserDataIgnition, nil
			planned, err := presentation.Resolve(asked)
			if err != nil {
				t.Fatal(err)
			}
			node := "ignited-" + system
			layer := "variant: " + variant + "\nversion: 1.0.0\nstorage:\n  files:\n  - path: /etc/motd\n    mode: 0644\n    contents:\n      inline: hello\n"
			rendered, err := cloudinit.Render(cloudinit.Input{
				Kind: v1alpha1.UserDataIgnition, OS: system, Layers: []cloudinit.Layer{{Name: "a team's", Text: layer}},
				Machine: cloudinit.MachineInput{Name: node, UID: node, Revision: "r1", Attempt: 1}, Gate: gate, Plan: planned,
				Join: &kubelet.Join{Endpoint: c.cluster.Endpoint(), CA: c.cluster.CA(), Token: c.token((system + "00000")[:6])},
			})
			if err != nil {
				t.Fatal(err)
			}
			r, s := newServer(t, "hgx-a100")
			r.serve(system)
			if err := s.SetMIGMode(true); err != nil { // as the last tenant left it
				t.Fatal(err)
			}
			if status := r.install(s, hardware.ConfigDrive(rendered)); status.State != hardware.AttemptSucceeded {
				t.Fatalf("%+v", status)
			}
			c.plugin(node, node)
			joined := c.awaitNode("the GPUs are whole", node, advertises(8))
			if !gated(joined) || joined.Spec.ProviderID != "ingot://"+node+"/1" || !slices.ContainsFunc(joined.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == node }) {
				t.Errorf("taints %v, provider ID %s, addresses %v", joined.Spec.Taints, joined.Spec.ProviderID, joined.Status.Addresses)
			}
		})
	}
}

func TestWhatIgnitionRefusesIsSeenOnTheServer(t *testing.T) {
	t.Parallel()
	r, s := newServer(t, "hgx-h100")
	r.serve("flatcar")
	for sentence, text := range map[string]string{
		"a cloud-config": "#cloud-config\n", "a path that is read-only": `{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/usr/local/bin/x"}]}}`,
	} {
		if status := r.install(s, drive("refused", text)); status.State != hardware.AttemptSucceeded {
			t.Fatalf("%s: %+v", sentence, status)
		}
		eventually(t, sentence+" keeps the system in its emergency shell", func() error {
			if state := s.State(); !strings.Contains(state.Activity, "emergency mode: ignition") || state.OS != "" || state.Node != "" {
				return errors.New(fmt.Sprint(state))
			}
			return nil
		})
	}
}
