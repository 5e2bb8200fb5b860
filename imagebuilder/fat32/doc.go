// Package fat32 writes a FAT32 file system with long names from a tree in one pass, byte for byte the same for the same
// tree: the EFI system partition of an image. The layout follows Microsoft's "FAT: General Overview of On-Disk Format"
// (1.03), which the UEFI specification, section 13.3, makes its own.
//
// It exists for the reason that package ext4 does: libraries of the field put the clock into directory entries.
package fat32
