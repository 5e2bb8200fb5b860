// Package ext4 writes an ext4 file system from a tree of nodes in one pass, byte for byte the same for the same tree.
//
// It exists because an image must be reproducible and must be made on a machine that has only Go: the libraries of the
// field take the clock and random seeds into the superblock, and mke2fs is not everywhere. It only ever creates: blocks
// are handed out in order, so every file is as contiguous as block groups allow.
//
// The features written are has_journal, ext_attr, dir_index, filetype, extents, 64bit, sparse_super, large_file,
// huge_file, dir_nlink, extra_isize and metadata_csum, 4 KiB blocks and 256-byte inodes. There is no resize inode: Linux 3.7 and
// later grow such a file system online by way of meta_bg. The layout follows the kernel's
// Documentation/filesystems/ext4.
package ext4
