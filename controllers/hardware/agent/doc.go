// Package agent is the installer that runs on the server itself, in the ramdisk the boot service hands out: it registers,
// is told what to do, inspects, writes an image or clears disks, says how far it is, and ends with done or failed and
// a reason. Simulated servers run the same code in-process against a file.
//
// # What makes a disk boot
//
// The first MiB of the disk holds the boot sector and the primary partition table. It is cleared, together with the
// last MiB, and synced before anything else is written, because some firmware repairs a table from its copy at the end.
// The image then flows to the disk with its first MiB held back in memory. Only when the digest of the file as served
// has matched, and everything else is on the medium, is the rest of the first MiB written, and after another sync its
// first block. Whenever the power goes, the disk either boots what was asked for, or does not boot.
//
// # Stages
//
// Download, digest, decompression and writing overlap: each is a stage of a pipeline with a few blocks between, so the
// slowest alone sets the pace. A broken download goes on where it broke.
//
// Blocks of zeros are cleared with ZeroRange instead of written, and skipped only when this run has cleared the whole disk.
//
// # Config drive
//
// The config drive becomes the last partition of the disk, in the image's own GUID partition table: the table is
// changed while it is held back, its copy is written at the disk's end. An image without such a table is refused when
// there is a config drive to deliver. Config drives that an earlier installation left on other disks of the server are
// cleared: an operating system finds its config drive by label, and must find one.
package agent
