// Package cmdline is the kernel command line of the agent: the boot service makes it for a boot document, a unified kernel image or virtual media,
// and the agent reads it.
package cmdline
