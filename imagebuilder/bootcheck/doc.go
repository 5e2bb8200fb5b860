// Package bootcheck boots an image in QEMU with real UEFI firmware, and waits until cloud-init in it is done.
//
// Hardware virtualisation may be there and not work, so that a failure with it says nothing: the image is then booted once more, translated (TCG).
package bootcheck
