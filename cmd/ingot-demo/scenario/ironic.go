package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/ironic/standin"
)

// ironicProvider is for a site whose servers are nodes of a real Ironic. Its hardware and its agent are simulated.
var ironicProvider = provider{
	registrar: "Ironic", programs: "ingot-manager",
	takesRawImages: true,
	missing:        missingForIronic,
	install:        startIronic,
	adapt:          adaptIronic,
	serve:          startStandIn,
	isErased:       hasEraseRecord,
}

func missingForIronic() error {
	program, install := ironic.Missing(), ironic.Install
	if _, err := exec.LookPath("sgdisk"); err != nil && program == "" {
		program, install = "sgdisk", "apt-get install gdisk"
	}
	if program == "" {
		return nil
	}
	return fmt.Errorf("--provider ironic needs the program %s, which is not on this machine: %s", program, install)
}

func startIronic(ctx context.Context, d *demo) error {
	d.screen.Step("starting Ironic: API and conductor are real; the servers' power, boot and agent are simulated, and said to be")
	dir := filepath.Join(d.env.Dir, "ironic")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of Ironic: %w", err)
	}
	process, err := ironic.Launch(ctx, dir, ironic.Options{})
	if process != nil {
		d.closers = append(d.closers, func() error { process.Stop(); return nil })
	}
	if err != nil {
		return err
	}
	d.ironic = process
	d.screen.Note("Ironic answers at %s", process.Endpoint)
	return nil
}

func adaptIronic(d *demo, samples []*unstructured.Unstructured) error {
	for _, o := range samples {
		if o.GetKind() == "NodeProvider" {
			unstructured.RemoveNestedField(o.Object, "spec", "redfish")
		}
	}
	return environment.SetField(samples, "NodeProvider", map[string]any{
		"endpoint": d.ironic.Endpoint, "hardwareType": "fake-hardware", "deployInterface": "direct",
	}, "spec", "ironic")
}

func startStandIn(_ context.Context, d *demo) error {
	standIn, err := standin.Start(standin.Options{Endpoint: d.ironic.Endpoint, Servers: d.env.Rack.Servers(), Say: d.screen.Note})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, func() error { standIn.Stop(); return nil })
	return nil
}
