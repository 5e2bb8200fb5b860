package software

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/dra"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/rack/vendor"
)

var (
	_ kubelet.Plugins       = Host{}
	_ kubelet.ActingPlugins = Host{}
	_ kubelet.Drivers       = Host{}
)

// IsPlugin implements kubelet.Plugins.
func (h Host) IsPlugin(pod *corev1.Pod) bool {
	_, known := roleOf(pod)
	return known && h.DriverName(pod) == ""
}

// Register implements kubelet.Plugins, for a node without labels.
func (h Host) Register(ctx context.Context, pod *corev1.Pod, read func(context.Context, string) (map[string]string, error)) (map[corev1.ResourceName]kubelet.Devices, error) {
	_, devices, err := h.RunPod(ctx, pod, &corev1.Node{}, read)
	return devices, err
}

// RunPod implements kubelet.ActingPlugins.
func (h Host) RunPod(ctx context.Context, pod *corev1.Pod, node *corev1.Node, read func(context.Context, string) (map[string]string, error)) (map[string]string, map[corev1.ResourceName]kubelet.Devices, error) {
	h.Node = node
	result, err := h.Run(ctx, pod, read)
	return result.Labels, result.Devices, err
}

// DriverName implements kubelet.Drivers.
func (h Host) DriverName(pod *corev1.Pod) string {
	r, _ := roleOf(pod)
	switch r.name {
	case roleNVIDIADRA:
		return vendor.NVIDIADRA
	case roleAMDDRA:
		return amdDRA
	case roleDRA:
		return option(pod, "driver", "")
	}
	return ""
}

// RunDriver implements kubelet.Drivers. It finds devices once, when the driver starts.
func (h Host) RunDriver(ctx context.Context, in kubelet.DriverPod) error {
	if h.DriverName(in.Pod) == vendor.NVIDIADRA {
		return h.nvidiaHost().RunDriver(ctx, in)
	}
	h.Node = &corev1.Node{}
	result, err := h.Run(ctx, in.Pod, func(context.Context, string) (map[string]string, error) { return nil, errors.New("not read") })
	if err != nil {
		return err
	}
	publisher := dra.Publisher{Client: in.Client, Driver: result.Driver, Node: in.Node, Devices: result.Published, Retry: in.Retry}
	if h.IncompletePool {
		publisher.MissingSlices = 1
	}
	return publisher.Run(ctx)
}
