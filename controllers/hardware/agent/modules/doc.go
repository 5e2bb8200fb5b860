// Package modules loads the kernel modules of a server's devices in the installer's ramdisk, as udev and modprobe do on an installed system.
//
// The kernel shows what each device is in a file modalias below /sys/devices; modules.alias says which modules serve it. What only a running
// driver knows to need (a checksum, the driver of a network port's transceiver) the kernel asks for by starting /sbin/modprobe, which in
// the ramdisk is the agent itself.
package modules
