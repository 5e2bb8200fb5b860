// Package agent is the installer that runs on the server, in the ramdisk that the boot service serves. It registers, receives its
// instructions, writes an image or erases disks, reports its progress, and ends with a result. Simulated servers run the same code in
// their own process against a file.
//
// # Writing the disk
//
// The first MiB of the disk holds the boot sector and the primary partition table. It is cleared together with the last MiB and synced
// before anything else is written, because some firmware restores the table from its copy at the end. Then the image is written, except
// for its first MiB, which stays in memory. When the digest of the file as served matches and everything else is on the medium, the rest
// of the first MiB is written, and after another sync its first block. Whenever the power fails, the disk either boots the
// requested image or does not boot.
//
// Example of the danger: an image server is replaced by an attacker, and the power fails when the whole manipulated image is written and
// its digest is not yet compared. Because the first MiB is missing, the firmware finds nothing to boot at the next power-on.
//
// # Pipeline
//
// Download, digest, decompression and writing overlap: each is a stage of a pipeline with a few blocks between two stages, so that the
// slowest stage alone determines the speed. A broken download continues at the byte where it broke.
//
// Blocks of zeros are cleared with ZeroRange instead of being written. They are skipped only when this run has already cleared the whole
// disk.
//
// # Erasing
//
// In a full erase a disk erases itself by its own command where it has one (packages nvme, scsi and ata). What it returns afterwards is not
// defined, so random marks are written before, and the proof is that they are gone. A way that fails is followed by the next one: deallocation where
// the disk guarantees zeros, with every byte read back, and at last an overwrite. An attempt first ends what a power cut has left: an operation that
// goes on, one that has failed, or a password.
//
// # Config drive
//
// The config drive becomes the last partition of the disk, in the image's own GUID partition table: the table is changed while the first
// MiB is in memory, and its copy is written at the end of the disk. An image without such a table is refused when there is a config drive.
// Config drives that an earlier installation left on other disks of the server are cleared: an operating system finds its config
// drive by label, so there must be only one.
package agent
