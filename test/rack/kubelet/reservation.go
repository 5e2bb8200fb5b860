package kubelet

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"
)

// kernelShare of the memory is the kernel's before anything runs: page structures and reserved ranges.
const kernelShare = 0.016

// bootDisk is what boot loader, journal and metadata take of a disk.
const bootDisk = 2 << 30

// KernelMemory returns the memory that the kernel leaves of the installed memory, in bytes: MemTotal of proc(5).
func KernelMemory(installed int64) int64 { return int64(float64(installed)*(1-kernelShare)) &^ 4095 }

// capacity returns what kubelet measures.
func (h Hardware) capacity() corev1.ResourceList {
	disk := (h.DiskBytes - min(bootDisk, h.DiskBytes/8)) &^ 4095
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(h.CPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(KernelMemory(h.MemoryBytes), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
	}
}

// reservation is what kubelet keeps from pods.
type reservation kubeletconfig.KubeletConfiguration

func (s settings) reservation() reservation { return reservation(s.file) }

// evictionSignals are the thresholds that count as reserved (pkg/kubelet/cm/helpers.go, hardEvictionReservation).
var evictionSignals = map[corev1.ResourceName]string{corev1.ResourceMemory: "memory.available", corev1.ResourceEphemeralStorage: "nodefs.available"}

// of returns what is reserved of a resource with that capacity (pkg/kubelet/cm/node_container_manager_linux.go, GetNodeAllocatableReservation).
func (r reservation) of(name corev1.ResourceName, capacity resource.Quantity) resource.Quantity {
	var sum resource.Quantity
	for _, text := range []string{r.KubeReserved[string(name)], r.SystemReserved[string(name)]} {
		if quantity, err := resource.ParseQuantity(text); err == nil {
			sum.Add(quantity)
		}
	}
	if name == corev1.ResourceCPU && r.ReservedSystemCPUs != "" {
		// They replace the numbers of both (cmd/kubelet/app/server.go).
		if set, err := cpuset.Parse(r.ReservedSystemCPUs); err == nil {
			return *resource.NewQuantity(int64(set.Size()), resource.DecimalSI)
		}
	}
	threshold := r.EvictionHard[evictionSignals[name]]
	if share, isShare := strings.CutSuffix(threshold, "%"); isShare {
		if percent, err := strconv.ParseFloat(share, 64); err == nil {
			sum.Add(*resource.NewQuantity(int64(float64(capacity.Value())*percent/100), resource.BinarySI))
		}
	} else if quantity, err := resource.ParseQuantity(threshold); err == nil {
		sum.Add(quantity)
	}
	return sum
}

// check returns an error when more is reserved than there is: kubelet ends.
func (r reservation) check(h Hardware) error {
	for name, capacity := range h.capacity() {
		if reserved := r.of(name, capacity); reserved.Cmp(capacity) > 0 && !capacity.IsZero() {
			return fmt.Errorf("%w: resource %q has a reservation of %s but capacity of %s: expected capacity >= reservation", errConfig, name, reserved.String(), capacity.String())
		}
	}
	return nil
}
