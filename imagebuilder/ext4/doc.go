// Package ext4 writes an ext4 file system from a tree of nodes. The same tree always results in the same bytes.
//
// It exists because an image must be reproducible and must be built on a machine that has only Go: the usual libraries put the clock
// and random seeds into the superblock, and mke2fs is not installed everywhere. It only creates file systems: blocks are allocated in
// order, so every file is as contiguous as block groups allow.
//
// The features are has_journal, ext_attr, dir_index, filetype, extents, 64bit, sparse_super, large_file, huge_file, dir_nlink,
// extra_isize and metadata_csum, with 4 KiB blocks and 256-byte inodes. There is no resize inode: Linux 3.7 and later grow such a file
// system online with meta_bg. The layout follows the kernel's Documentation/filesystems/ext4.
package ext4
