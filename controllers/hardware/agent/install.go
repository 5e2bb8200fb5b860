package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/configdrive"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/gpt"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// install writes the image and the config drive to the root disk.
func install(ctx context.Context, config Config, client *client, reports *reporter, disks []Disk, instructions protocol.Instructions) error {
	image := *instructions.Image
	if err := checkFormat(image.Format); err != nil {
		return err
	}
	sum, expected, err := parseChecksum(image.Checksum)
	if err != nil {
		return err
	}
	root, others, err := selectRoot(disks, instructions.RootDevice)
	if err != nil {
		return err
	}
	// Before the disk is touched: without its documents the image would boot into nothing.
	volume, err := fetchConfigDrive(ctx, client)
	if err != nil {
		return err
	}
	config.Log.Info("installing", "disk", root.Info().Name, "image", safeURL(image.URL), "checksum", image.Checksum, "configDriveBytes", len(volume))
	file, err := startDownload(ctx, config, image.URL)
	if err != nil {
		return err
	}
	defer file.Close()
	reports.total.Store(max(file.total, 0))
	reports.enter(ctx, hardware.StepWriting)
	drive := &drivePartition{volume: volume, disk: root}
	writer, err := newImageWriter(root, false, drive.place)
	if err != nil {
		return err
	}
	err = transfer(ctx, file, image.Format, sum, func(n int) { reports.done.Add(int64(n)) }, writer.write)
	if damaged := (decodeError{}); err != nil && !errors.As(err, &damaged) {
		return err
	}
	reports.enter(ctx, hardware.StepVerifying)
	if seen := sum.Sum(nil); !bytes.Equal(seen, expected) {
		return failf(hardware.ReasonDigestMismatch, nil, "image %s: expected %s, seen %x over %d bytes", safeURL(image.URL), image.Checksum, seen, reports.done.Load())
	}
	if err != nil {
		return failf(hardware.ReasonImageInvalid, err, "image %s has the right digest and cannot be decompressed as %s", safeURL(image.URL), image.Format)
	}
	return complete(ctx, config, writer, drive, others)
}

// complete puts the verified image's rest and the config drive on the disk, and makes it boot.
func complete(ctx context.Context, config Config, writer *imageWriter, drive *drivePartition, others []Disk) error {
	if err := writer.finish(); err != nil {
		return err
	}
	if err := drive.write(writer); err != nil {
		return err
	}
	for _, disk := range others {
		if err := clearConfigDrives(config, disk); err != nil {
			return err
		}
	}
	// The last moment at which a stop keeps the disk from booting.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return writer.seal()
}

// parseChecksum reads "sha256:HEX" or "sha512:HEX".
func parseChecksum(text string) (hash.Hash, []byte, error) {
	algorithm, digits, _ := strings.Cut(text, ":")
	var sum hash.Hash
	switch algorithm {
	case "sha256":
		sum = sha256.New()
	case "sha512":
		sum = sha512.New()
	default:
		return nil, nil, failf(hardware.ReasonImageInvalid, nil, "checksum %q: expected sha256:HEX or sha512:HEX", text)
	}
	expected, err := hex.DecodeString(digits)
	if err != nil || len(expected) != sum.Size() {
		return nil, nil, failf(hardware.ReasonImageInvalid, nil, "checksum %q: expected %d hex digits behind the colon", text, 2*sum.Size())
	}
	return sum, expected, nil
}

// fetchConfigDrive asks for the documents and makes the volume; nil when there is nothing to deliver.
func fetchConfigDrive(ctx context.Context, client *client) ([]byte, error) {
	var documents protocol.ConfigDrive
	if err := client.get(ctx, protocol.PathConfigDrive, &documents); err != nil {
		return nil, fmt.Errorf("fetching the config drive: %w", err)
	}
	drive := hardware.ConfigDrive(documents)
	if configdrive.Empty(drive) {
		return nil, nil
	}
	volume, err := configdrive.Build(drive)
	if err != nil {
		return nil, failf(hardware.ReasonImageInvalid, err, "making the config drive")
	}
	return volume, nil
}

// drivePartition is the config drive's place on the root disk.
type drivePartition struct {
	volume []byte
	disk   Disk
	table  *gpt.Table
	extent gpt.Extent
}

// place finds room for the config drive as soon as the image's partition table is known, and changes the table in head.
func (d *drivePartition) place(head []byte) error {
	if d.volume == nil {
		return nil
	}
	if d.disk.SectorSize() != gpt.Sector {
		// The kernel mounts no ISO 9660 volume on sectors larger than its own 2048 bytes.
		return failf(hardware.ReasonImageInvalid, nil, "disk %s has sectors of %d bytes: a config drive needs %d; format it with 512-byte sectors",
			d.disk.Info().Name, d.disk.SectorSize(), gpt.Sector)
	}
	table, err := gpt.Parse(head)
	if err != nil {
		return failf(hardware.ReasonImageInvalid, err, "the config drive needs a place in the image's GUID partition table")
	}
	size := d.disk.Info().SizeBytes
	if d.extent, err = table.Append(size, int64(len(d.volume)), configdrive.Label); err != nil {
		return failf(hardware.ReasonImageInvalid, err, "the config drive has no place on disk %s", d.disk.Info().Name)
	}
	table.PutPrimary(head, size)
	d.table = table
	return nil
}

// write puts the config drive and the partition table's copy on the disk.
func (d *drivePartition) write(w *imageWriter) error {
	if d.table == nil {
		return nil
	}
	if err := d.disk.ZeroRange(d.extent.Offset, d.extent.Size); err != nil {
		return w.diskError("clearing the config drive's partition", err)
	}
	if err := w.put(d.volume, d.extent.Offset); err != nil {
		return err
	}
	return w.put(d.table.Backup())
}

// clearConfigDrives clears config drives that an earlier installation left on another disk of the server. Partitions
// that are not both named and labelled as ours are left alone.
func clearConfigDrives(config Config, disk Disk) error {
	name := disk.Info().Name
	extents, err := gpt.Scan(disk, disk.Info().SizeBytes)
	if err != nil {
		// Nor will the operating system read a config drive from it.
		config.Log.Warn("another disk cannot be read", "disk", name, "error", err)
		return nil
	}
	for _, extent := range extents {
		if extent.Name != configdrive.Label || !configdrive.Found(disk, extent.Offset) {
			continue
		}
		config.Log.Info("clearing an earlier config drive", "disk", name, "offset", extent.Offset)
		if err := errors.Join(disk.ZeroRange(extent.Offset, extent.Size), disk.Sync()); err != nil {
			return failf(hardware.ReasonDiskError, err, "clearing an earlier config drive on disk %s", name)
		}
	}
	return nil
}
