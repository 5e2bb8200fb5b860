// Package recipe decides what an image is: what it says of itself, which partitions it has and how they are told apart.
// It is pure; package pack reads the tree and writes the disk.
//
// A packed disk has a GUID partition table, an EFI system partition (FAT32, name "esp", from boot/efi of the tree) and a
// root file system (ext4, label and name "root", everything else), which is last so that it can grow. Nothing in it
// depends on the clock, the machine or chance: all identifiers follow from the content.
package recipe
