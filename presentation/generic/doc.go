// Package generic gives accelerators that are not in the catalogue to pods, such as an FPGA, a DPU or a Gaudi. The NodeType says
// what Ingot cannot know of them: the resource, the kernel modules and arguments, the packages, the DRA driver. The node is
// checked against that as against any other plan.
package generic
