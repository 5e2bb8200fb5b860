// Package qemu runs virtual servers with real firmware: OVMF in QEMU. A Machine implements bmc.Machine, so that a simulated BMC can switch it on
// and off and choose what it boots once.
//
// The hardware virtualisation of a machine may be there and not work, so that it is used only after a kernel has really booted with it; else
// QEMU translates (TCG).
package qemu
