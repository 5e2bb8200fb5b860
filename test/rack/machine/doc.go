// Package machine is a simulated server with its operating system up: the installed system, the PCI bus with its drivers, and
// what accelerators their drivers found.
//
// What the documents on the disk do to the machine happens here: kernel modules take devices, scripts run in a shell of the
// machine's own, services start or fail, NVIDIA's and AMD's programs cut GPUs. A driver may also come later, in a pod.
//
// Taken for granted where no document says: a vGPU guest gets a licence whenever its token is there and its feature type is one
// that exists; a fabric manager of which the image says no version has the driver's.
package machine
