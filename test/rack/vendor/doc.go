// Package vendor is what the vendors' device plugins and DRA drivers find on a simulated server: names and counts
// by the plugins' own rules, from the plugin pod's own configuration.
//
// NVIDIA's (k8s-device-plugin v0.20) needs the driver and the container toolkit in the operating system and GPUs on the
// PCI bus; how GPUs and MIG devices become resources follows its internal/rm/device_map.go, how it is configured its
// cmd/nvidia-device-plugin/main.go: command line, then environment, then configuration file.
//
// NVIDIA's DRA driver (kubernetes-sigs/dra-driver-nvidia-gpu) needs the driver only. Attributes, capacities and names of its
// devices follow its cmd/gpu-kubelet-plugin/{deviceinfo,mig}.go without feature gates. Further vendors join as
// further functions of Host.
package vendor
