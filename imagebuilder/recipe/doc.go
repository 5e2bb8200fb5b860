// Package recipe decides what an image contains: its manifest, its partitions and their identifiers. It is pure; package pack reads the
// tree and writes the disk.
//
// A packed disk has a GUID partition table, an EFI system partition (FAT32, name "esp", from boot/efi of the tree) and a root file system
// (ext4, label and name "root", everything else). The root is last, so that it can grow. All identifiers are derived from the content:
// nothing depends on the clock, the machine or random numbers.
package recipe
