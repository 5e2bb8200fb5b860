// Package fat32 writes a FAT32 file system with long names from a tree of nodes: the EFI system partition of an image. The same tree
// always results in the same bytes. The layout follows Microsoft's "FAT: General Overview of On-Disk Format" (1.03), which section
// 13.3 of the UEFI specification adopts.
//
// It exists for the same reason as package ext4: the usual libraries put the clock into directory entries.
package fat32
