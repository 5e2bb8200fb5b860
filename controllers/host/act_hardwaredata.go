package host

import (
	"context"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	bytesPerMiB = 1 << 20
	// mbpsPerGbps: network speeds are decimal.
	mbpsPerGbps = 1000
)

// hardwareDetails returns an inventory in Metal3's fields.
func hardwareDetails(i *v1alpha1.HostInventory, bootMAC string) *metal3.HardwareDetails {
	out := &metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: i.Manufacturer, ProductName: i.Model, SerialNumber: i.SerialNumber},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Version: i.BIOSVersion, Date: i.BIOSDate}},
		RAMMebibytes: int(i.MemoryBytes / bytesPerMiB),
		CPU:          metal3.CPU{Arch: i.Architecture, Model: i.CPUModel, Count: int(i.CPUThreads)},
	}
	for _, n := range i.NICs {
		if n.MAC == "" {
			continue // the field's pattern demands one
		}
		out.NIC = append(out.NIC, metal3.NIC{
			Name: n.Name, Model: nicModel(n.PCIID), MAC: n.MAC, SpeedGbps: int(n.SpeedMbps / mbpsPerGbps), PXE: strings.EqualFold(n.MAC, bootMAC),
		})
	}
	for _, d := range i.Disks {
		out.Storage = append(out.Storage, metal3.Storage{
			Name: d.Name, Model: d.Model, SerialNumber: d.SerialNumber, WWN: d.WWN, Type: diskType(d),
			SizeBytes: metal3.Capacity(d.SizeBytes), Rotational: d.Rotational,
		})
	}
	return out
}

// nicModel returns the ids of a NIC as Metal3 writes them, "0x15b3 0x1021".
func nicModel(pciID string) string {
	vendor, device, found := strings.Cut(pciID, ":")
	if !found {
		return ""
	}
	return "0x" + vendor + " 0x" + device
}

// diskType returns Metal3's type of a disk, "" while no agent has read how the disk is connected.
func diskType(d v1alpha1.DiskInventory) metal3.DiskType {
	switch {
	case d.Transport == "":
		return ""
	case d.Transport == "nvme":
		return metal3.NVME
	case d.Rotational:
		return metal3.HDD
	}
	return metal3.SSD
}

// writeHardwareData writes Metal3's HardwareData of the host when the hardware in its status changes. It is written before the status, so that one that
// could not be written is written by the next reconcile. A cluster that has no such kind, or does not allow it, does without. Without that: the manager is
// upgraded before Metal3's definitions are, and no host is inspected, installed or erased any more.
func (r *Reconciler) writeHardwareData(ctx context.Context, before, after *metal3.BareMetalHost) error {
	details := after.Status.HardwareDetails
	if details == nil || !after.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Status.HardwareDetails, details) {
		return nil
	}
	data := &metal3.HardwareData{Spec: metal3.HardwareDataSpec{HardwareDetails: details.DeepCopy()}}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(data)
	if err != nil {
		return fmt.Errorf("write HardwareData: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": fields["spec"]}}
	object.SetGroupVersionKind(metal3.GroupVersion.WithKind("HardwareData"))
	object.SetNamespace(after.Namespace)
	object.SetName(after.Name)
	if err := controllerutil.SetControllerReference(after, object, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own HardwareData: %w", err)
	}
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("ingot-manager"), client.ForceOwnership)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Info("HardwareData not written: apply config/crd/metal3 and config/rbac of this version", "error", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("write HardwareData: %w", err)
	}
	return nil
}
