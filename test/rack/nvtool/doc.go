// Package nvtool is what two of NVIDIA's programs do to the GPUs of a simulated server: nvidia-smi as far as it sets the MIG
// mode, and nvidia-mig-parted, which reads its own configuration format and cuts GPUs by it.
//
// nvidia-mig-parted follows NVIDIA/mig-parted v0.15: cmd/nvidia-mig-parted (flags, order of mode and layout) and
// api/spec/v1 (the file). Its hooks are read, and not run.
package nvtool
