package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/metal3rack"
)

// metal3Provider is for a site whose hosts a baremetal-operator serves. It is that of the tests, and has an installer of its own in the place of Ironic.
var metal3Provider = provider{
	registrar: "their baremetal-operator", programs: "a baremetal-operator (that of the tests) and ingot-manager",
	takesRawImages: true,
	install:        installForMetal3,
	adapt:          adaptMetal3,
	serve:          startMetal3,
	isErased:       hasEraseAnnotation,
	check:          checkMetal3,
}

// installForMetal3 gives the manager the rights and the settings of config/metal3.
func installForMetal3(ctx context.Context, d *demo) error {
	if err := d.env.UseMetal3(ctx); err != nil {
		return err
	}
	d.screen.Note("config/metal3: the manager boots no servers, reads no BMC and writes no HostRecord")
	return nil
}

// adaptMetal3 makes the NodeProvider one whose hosts a baremetal-operator serves.
func adaptMetal3(_ *demo, samples []*unstructured.Unstructured) error {
	for _, o := range samples {
		if o.GetKind() == "NodeProvider" {
			unstructured.RemoveNestedField(o.Object, "spec", "redfish")
		}
	}
	return environment.SetField(samples, "NodeProvider", map[string]any{}, "spec", "metal3")
}

// startMetal3 starts the baremetal-operator with its installer.
func startMetal3(ctx context.Context, d *demo) error {
	connection, err := d.env.Management.RESTConfig()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.env.Dir, "baremetal-operator.log"))
	if err != nil {
		return fmt.Errorf("write the baremetal-operator's log: %w", err)
	}
	d.metal3, err = metal3rack.Start(ctx, metal3rack.Options{
		Config: connection, Rack: d.env.Rack, Namespace: d.fleet.hostNamespace, Address: d.env.BootAddress,
		Files: os.DirFS(filepath.Join(d.env.Dir, "boot")), Speed: d.options.Speed, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	d.closers = append(d.closers, func() error { return errors.Join(d.metal3.Stop(), log.Close()) })
	return nil
}

// hasEraseAnnotation reports whether the host says how it was erased. It has no HostRecord.
func hasEraseAnnotation(s observation.Observation, h *metal3.BareMetalHost) bool {
	return h.Annotations[v1alpha1.AnnotationLastErase] == string(v1alpha1.EraseMetadata) && h.Spec.Image == nil && len(s.Records) == 0
}

// checkMetal3 asserts that the manager did without what belongs to the baremetal-operator, and that this one was not told to clean a disk that is in use.
func checkMetal3(d *demo) error {
	violations := d.metal3.Violations()
	d.assert(len(violations) == 0, joinLines(violations), "no host was cleaned while its node ran, none installed for another Machine before it was cleaned")
	var refused, credentials []string
	err := environment.ReadRequests(d.env.AuditLog("management"), d.env.ManagerUser(), func(r environment.Request) {
		if r.Code == http.StatusForbidden {
			refused = append(refused, r.String())
		}
		if r.Resource == "secrets" && r.Namespace == d.fleet.hostNamespace && d.isBMCSecret(r.Name) {
			credentials = append(credentials, r.String())
		}
	})
	if err != nil {
		return err
	}
	d.assert(len(refused) == 0, joinLines(refused), "the rights of config/metal3 are enough: the manager was refused nothing")
	d.assert(len(credentials) == 0, joinLines(credentials), "the manager read no credentials of a BMC")
	return nil
}

func (d *demo) isBMCSecret(name string) bool {
	for _, server := range d.env.Rack.Servers() {
		if name == server.Name()+"-bmc" {
			return true
		}
	}
	return false
}
