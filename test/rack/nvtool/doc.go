// Package nvtool simulates three of NVIDIA's programs on the GPUs of a server: nvidia-smi as far as it sets the MIG mode or prints
// the state of GPUs, nvidia-mig-parted, and nvidia-vgpu-dm.
//
// nvidia-mig-parted follows NVIDIA/mig-parted v0.15: cmd/nvidia-mig-parted (flags, order of mode and layout) and
// api/spec/v1 (the file). Its hooks are read, and not run.
package nvtool
