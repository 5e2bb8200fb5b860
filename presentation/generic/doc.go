// Package generic gives accelerators that are not in the catalogue to pods: an FPGA, a DPU, a Gaudi, a SambaNova. What
// Ingot cannot know - the resource, the kernel's modules and arguments, packages, the DRA driver - the NodeType says, and the
// node is held to it as to everything else.
package generic
