package software

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/pci"
	"github.com/ingot-dev/ingot/test/rack/vendor"
)

// installDriver installs the driver of NVIDIA's operator. The image's tag begins with the version.
func (h Host) installDriver(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	c := pod.Spec.Containers[0]
	_, name, tag := splitImage(c.Image)
	version, _, _ := strings.Cut(tag, "-")
	driver := machineos.GPUDriver{Vendor: "nvidia", Version: version}
	if name == "vgpu-manager" {
		driver.Kind = "VGPUManager"
	}
	if option(pod, "kernel-module-type", "KERNEL_MODULE_TYPE") == "proprietary" {
		driver.KernelModule = "Proprietary"
	}
	if err := h.Machine.InstallDriver(driver); err != nil {
		return Result{}, err
	}
	if h.Machine.IsVGPUManager() && name == "vgpu-manager" {
		return Result{}, h.Machine.Bus.EnableVirtualFunctions()
	}
	return Result{}, nil
}

func (h Host) installToolkit(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	if h.Machine.Toolkit == "" {
		_, _, h.Machine.Toolkit = splitImage(pod.Spec.Containers[0].Image)
		h.Machine.ToolkitEnvironment = map[string]string{}
		for _, env := range pod.Spec.Containers[0].Env {
			h.Machine.ToolkitEnvironment[env.Name] = env.Value
		}
	}
	return Result{}, nil
}

// bindToVFIO simulates `vfio-manage bind --all`.
func (h Host) bindToVFIO(context.Context, *corev1.Pod, Reader) (Result, error) {
	bus := h.Machine.Bus
	bus.LoadModule("vfio_pci", nil)
	for _, d := range bus.Devices() {
		if d.VendorID != "10de" || !strings.HasPrefix(d.Class, "03") || d.Driver == pci.VFIO || d.Driver == pci.Grace {
			continue
		}
		files := "/sys/bus/pci/devices/" + d.Address
		err := bus.WriteFile(files+"/driver_override", []byte(pci.VFIO))
		if err == nil && d.Driver != "" {
			err = bus.WriteFile(files+"/driver/unbind", []byte(d.Address))
		}
		if err == nil {
			err = bus.WriteFile("/sys/bus/pci/drivers_probe", []byte(d.Address))
		}
		if err == nil && d.Driver != pci.VFIO {
			err = fmt.Errorf("%s is not bound to vfio-pci: is the IOMMU on?", d.Address)
		}
		if err != nil {
			return Result{}, err
		}
	}
	return Result{}, nil
}

// runManager runs a manager that reads its configuration's name from a node label and writes its state to another.
func (h Host) runManager(pod *corev1.Pod, key, fallback, failed string, apply func(name string) error) (Result, error) {
	name := h.Node.Labels[key]
	if name == "" {
		name = fallback
	}
	if name == "" {
		return Result{}, nil
	}
	if err := apply(name); err != nil {
		return Result{Labels: map[string]string{key + ".state": failed}}, fmt.Errorf("%s %s: %w", pod.Name, name, err)
	}
	return Result{Labels: map[string]string{key + ".state": "success"}}, nil
}

func (h Host) applyMIG(ctx context.Context, pod *corev1.Pod, read Reader) (Result, error) {
	return h.runManager(pod, "nvidia.com/mig.config", option(pod, "", "DEFAULT_CONFIG"), "failed", func(name string) error {
		if h.Machine.NVIDIADriver() == "" {
			return errors.New("the driver is not ready")
		}
		text, err := mountedConfig(ctx, pod, read, "config.yaml")
		if err != nil {
			return err
		}
		file := func(string) ([]byte, error) { return []byte(text), nil }
		return h.Machine.MIGParted().Run([]string{"apply", "-f", "config.yaml", "-c", name}, nil, file)
	})
}

func (h Host) applyVGPU(ctx context.Context, pod *corev1.Pod, read Reader) (Result, error) {
	return h.runManager(pod, "nvidia.com/vgpu.config", option(pod, "", "DEFAULT_VGPU_CONFIG"), "failed", func(name string) error {
		text, err := mountedConfig(ctx, pod, read, "config.yaml")
		if err != nil {
			return err
		}
		return h.Machine.VGPUDM().RunConfig("apply", []byte(text), name)
	})
}

// mountedConfig returns a file of a ConfigMap that the pod mounts.
func mountedConfig(ctx context.Context, pod *corev1.Pod, read Reader, key string) (string, error) {
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		data, err := read(ctx, v.ConfigMap.Name)
		if err != nil {
			return "", err
		}
		if text, ok := data[key]; ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("no mounted ConfigMap has %s", key)
}

// discoverGPUs simulates GPU feature discovery. Where it writes files, node feature discovery makes labels of them, and no test has both on a node.
func (h Host) discoverGPUs(ctx context.Context, pod *corev1.Pod, read Reader) (Result, error) {
	labels, err := h.nvidiaHost().FeatureLabels(ctx, h.withSelectedConfig(pod), read)
	if option(pod, "use-node-feature-api", "GFD_USE_NODE_FEATURE_API") == "false" {
		return Result{}, err
	}
	return Result{Labels: labels}, err
}

// discoverPCI simulates node-feature-discovery's labels for PCI devices, with the settings of the operators' charts.
func (h Host) discoverPCI(context.Context, *corev1.Pod, Reader) (Result, error) {
	out := map[string]string{}
	for _, d := range h.Machine.Bus.Devices() {
		if strings.HasPrefix(d.Class, "03") || strings.HasPrefix(d.Class, "12") {
			out["feature.node.kubernetes.io/pci-"+d.VendorID+".present"] = "true"
		}
	}
	return Result{Labels: out}, nil
}

// startMPS starts the MPS control daemon.
func (h Host) startMPS(context.Context, *corev1.Pod, Reader) (Result, error) {
	if h.Machine.NVIDIADriver() == "" {
		return Result{}, errors.New("the driver is not ready")
	}
	h.Machine.MPS = true
	return Result{}, nil
}

func (h Host) registerNVIDIA(ctx context.Context, pod *corev1.Pod, read Reader) (Result, error) {
	if uses, err := vendor.NeedsMPS(ctx, h.withSelectedConfig(pod), read); err != nil || uses && !h.Machine.MPS {
		return Result{}, errors.Join(err, errors.New("waiting for the MPS daemon: /mps/nvidia.com/gpu/.started: no such file or directory"))
	}
	devices, err := h.nvidiaHost().Register(ctx, h.withSelectedConfig(pod), read)
	return Result{Devices: devices}, err
}

func (h Host) publishNVIDIA(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	contents, err := h.nvidiaHost().PublishedContents(pod)
	return Result{Driver: vendor.NVIDIADRA, Published: contents}, err
}

// withSelectedConfig returns the pod with the configuration that the node's label selects, as its configuration manager
// provides it.
func (h Host) withSelectedConfig(pod *corev1.Pod) *corev1.Pod {
	label := option(pod, "node-label", "NODE_LABEL")
	if label == "" {
		return pod
	}
	name := h.Node.Labels[label]
	if name == "" {
		name = option(pod, "default-config", "DEFAULT_CONFIG")
	}
	out := pod.DeepCopy()
	for i, v := range out.Spec.Volumes {
		if v.ConfigMap != nil && v.Name == "available-configs" {
			out.Spec.Volumes[i].Name = "config"
			out.Spec.Volumes[i].ConfigMap.Items = []corev1.KeyToPath{{Key: name, Path: "config.yaml"}}
		}
	}
	out.Spec.Volumes = slices.DeleteFunc(out.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "config" && v.ConfigMap == nil })
	return out
}

// pciNames are names from the file pci.ids in the KubeVirt device plugin's image 1.6.0 (utils/pci.ids 2025.07.11).
var pciNames = map[string]string{
	"20b0": "GA100 [A100 SXM4 40GB]", "20b2": "GA100 [A100 SXM4 80GB]", "20b5": "GA100 [A100 PCIe 80GB]", "20f1": "GA100 [A100 PCIe 40GB]",
	"2330": "GH100 [H100 SXM5 80GB]", "2331": "GH100 [H100 PCIe]", "2335": "GH100 [H200 SXM 141GB]", "233b": "GH100 [H200 NVL]",
	"2235": "GA102GL [A40]", "2236": "GA102GL [A10]", "26b9": "AD102GL [L40S]", "1eb8": "TU104GL [Tesla T4]", "2901": "GB100 [B200]",
	"22a3": "GH100 [H100 NVSwitch]", "1af1": "GA100 [A100 NVSwitch]", "2342": "GH100 [GH200 120GB / 480GB]",
}

var notInResources = regexp.MustCompile(`[^A-Z0-9_.]`)

// registerKubeVirt simulates NVIDIA's KubeVirt device plugin. It advertises every NVIDIA function that is held for virtual
// machines, including NVSwitches, and every mediated device. It does not support types of virtual functions.
func (h Host) registerKubeVirt(context.Context, *corev1.Pod, Reader) (Result, error) {
	var names []string
	for _, d := range h.Machine.Bus.Devices() {
		if d.VendorID == "10de" && (d.Driver == pci.VFIO || d.Driver == pci.Grace) {
			names = append(names, resourceName(d.DeviceID))
		}
		for _, mediated := range d.MediatedDevices {
			names = append(names, strings.Join(strings.Fields(mediated), "_"))
		}
	}
	return Result{Devices: countDevices("nvidia.com/", names)}, nil
}

// resourceName follows pkg/device_plugin: upper case; slashes, dots and white space become underscores; other characters
// are removed.
func resourceName(id string) string {
	name, ok := pciNames[id]
	if !ok {
		return id
	}
	name = strings.NewReplacer("/", "_", ".", "_").Replace(strings.ToUpper(name))
	return notInResources.ReplaceAllString(regexp.MustCompile(`\s+`).ReplaceAllString(name, "_"), "")
}
