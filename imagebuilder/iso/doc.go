// Package iso makes CD images (ISO 9660) from which UEFI firmware starts one EFI program: the El Torito boot catalogue names an EFI system
// partition, a FAT16 file system that has the program as EFI/BOOT/BOOTX64.EFI or BOOTAA64.EFI.
//
// A Layout is computed from the program's size once. The image of one boot is put together of the layout and the program when it is read. The same
// program always results in the same bytes: the image has no time and no serial number.
//
// The formats: ECMA-119, the El Torito specification 1.0, Microsoft's "FAT: General Overview of On-Disk Format" 1.03, and chapter 13.3 of the UEFI
// specification, which allows FAT12, FAT16 and FAT32 on removable media.
package iso
