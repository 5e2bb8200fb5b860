// Package uki makes unified kernel images: EFI programs of systemd's boot stub with a kernel, an initrd and the kernel's command line in further
// sections, as systemd-stub(7) and the UAPI group's "Unified Kernel Image" specification describe them.
//
// A Template is made once. An image for one boot differs from others in its header and its command line only; kernel and initrd are read from
// their files when the image is read, so that many servers that boot at once need no memory. All images of a template have the same size.
//
// The kernel's section is the last one, because a kernel that is started in place uses memory behind itself (its BSS); behind another section's
// place it would overwrite the initrd (systemd's ukify does the same).
//
// The images are not signed: firmware with Secure Boot refuses them.
package uki
