// Package image implements `ingot image`, which makes disk images and the installer's ramdisk.
package image
