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
func install(ctx context.Context, config Config, client *client, reports *reporter, set diskSet, instructions protocol.Instructions, result *protocol.Result) error {
	image := *instructions.Image
	if err := checkFormat(image.Format); err != nil {
		return err
	}
	sum, expected, err := parseChecksum(image.Checksum)
	if err != nil {
		return err
	}
	root, others, note, err := set.selectRoot(ctx, client)
	if err != nil {
		return err
	}
	rootInfo := root.Info()
	result.RootDisk, result.Message = &rootInfo, note
	// The config drive is fetched before the disk is changed, because an image without its documents cannot join the cluster.
	volume, err := fetchConfigDrive(ctx, client)
	if err != nil {
		return err
	}
	drive := &configDrivePartition{volume: volume, disk: root}
	if err := drive.checkSectors(); err != nil {
		return err
	}
	config.Log.Info("installing", "disk", rootInfo.String(), "choice", note, "image", safeURL(image.URL), "checksum", image.Checksum, "configDriveBytes", len(volume))
	file, err := startDownload(ctx, config, image.URL)
	if err != nil {
		return err
	}
	defer file.Close()
	reports.total.Store(max(file.total, 0))
	reports.enterStep(ctx, hardware.StepWriting)
	writer, err := newImageWriter(root, false, drive.allocate)
	if err != nil {
		return err
	}
	err = transfer(ctx, file, image.Format, sum, func(n int) { reports.done.Add(int64(n)) }, writer.write)
	if damaged := (decodeError{}); err != nil && !errors.As(err, &damaged) {
		return err
	}
	reports.enterStep(ctx, hardware.StepVerifying)
	if actual := sum.Sum(nil); !bytes.Equal(actual, expected) {
		return failuref(hardware.ReasonDigestMismatch, nil, "image %s: expected %s, seen %x over %d bytes", safeURL(image.URL), image.Checksum, actual, reports.done.Load())
	}
	if err != nil {
		return failuref(hardware.ReasonImageInvalid, err, "image %s has the right digest and cannot be decompressed as %s", safeURL(image.URL), image.Format)
	}
	return finishInstall(ctx, config, writer, drive, others)
}

// finishInstall writes the rest of the verified image and the config drive, and then makes the disk bootable.
func finishInstall(ctx context.Context, config Config, writer *imageWriter, drive *configDrivePartition, others []Disk) error {
	if err := writer.finishBody(); err != nil {
		return err
	}
	if err := drive.write(writer); err != nil {
		return err
	}
	for _, disk := range others {
		// By another path to the root disk the new config drive would be found and cleared.
		if isSameByAnotherPath(drive.disk.Info(), disk.Info()) {
			continue
		}
		if err := clearOldConfigDrives(config, disk); err != nil {
			return err
		}
	}
	// After this a cancellation no longer prevents the disk from booting.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return writer.writeHead()
}

// parseChecksum parses "sha256:HEX" or "sha512:HEX".
func parseChecksum(text string) (hash.Hash, []byte, error) {
	algorithm, digits, _ := strings.Cut(text, ":")
	var sum hash.Hash
	switch algorithm {
	case "sha256":
		sum = sha256.New()
	case "sha512":
		sum = sha512.New()
	default:
		return nil, nil, failuref(hardware.ReasonImageInvalid, nil, "checksum %q: expected sha256:HEX or sha512:HEX", text)
	}
	expected, err := hex.DecodeString(digits)
	if err != nil || len(expected) != sum.Size() {
		return nil, nil, failuref(hardware.ReasonImageInvalid, nil, "checksum %q: expected %d hex digits behind the colon", text, 2*sum.Size())
	}
	return sum, expected, nil
}

// fetchConfigDrive fetches the documents and returns the volume; nil when there are no documents.
func fetchConfigDrive(ctx context.Context, client *client) ([]byte, error) {
	var documents protocol.ConfigDrive
	if err := client.get(ctx, protocol.PathConfigDrive, &documents); err != nil {
		return nil, fmt.Errorf("fetching the config drive: %w", err)
	}
	drive := hardware.ConfigDrive(documents)
	if configdrive.IsEmpty(drive) {
		return nil, nil
	}
	volume, err := configdrive.Build(drive)
	if err != nil {
		return nil, failuref(hardware.ReasonImageInvalid, err, "making the config drive")
	}
	return volume, nil
}

// configDrivePartition is the partition of the config drive on the root disk.
type configDrivePartition struct {
	volume []byte
	disk   Disk
	table  *gpt.Table
	extent gpt.Extent
}

// checkSectors refuses a disk that a config drive cannot be read from: Linux cannot mount an ISO 9660 volume, which has sectors of 2048 bytes, from a
// disk with larger sectors. It is called before the first byte is written. Without it: the head of the disk is cleared, the image's head arrives, the
// disk is refused, and the system that it had does not boot any more.
func (d *configDrivePartition) checkSectors() error {
	if d.volume == nil || d.disk.SectorSize() == gpt.Sector {
		return nil
	}
	return failuref(hardware.ReasonNoRootDevice, nil, "disk %s has sectors of %d bytes, and a config drive needs %d: format it with 512-byte sectors, or choose another disk by rootDeviceHints",
		d.disk.Info().Name, d.disk.SectorSize(), gpt.Sector)
}

// allocate adds a partition for the config drive to the partition table in head, the first MiB of the image.
func (d *configDrivePartition) allocate(head []byte) error {
	if d.volume == nil {
		return nil
	}
	table, err := gpt.ParseTable(head)
	if err != nil {
		return failuref(hardware.ReasonImageInvalid, err, "the config drive needs a place in the image's GUID partition table")
	}
	size := d.disk.Info().SizeBytes
	if d.extent, err = table.AddPartition(size, int64(len(d.volume)), configdrive.Label); err != nil {
		return failuref(hardware.ReasonImageInvalid, err, "the config drive has no place on disk %s", d.disk.Info().Name)
	}
	table.WritePrimary(head, size)
	d.table = table
	return nil
}

// write writes the config drive and the copy of the partition table to the disk.
func (d *configDrivePartition) write(w *imageWriter) error {
	if d.table == nil {
		return nil
	}
	if err := d.disk.ZeroRange(d.extent.Offset, d.extent.Size); err != nil {
		return w.diskError("clearing the config drive's partition", err)
	}
	if err := w.writeAt(d.volume, d.extent.Offset); err != nil {
		return err
	}
	return w.writeAt(d.table.Backup())
}

// clearOldConfigDrives clears config drives that an earlier installation left on another disk of the server. It clears only partitions
// that have both the name and the volume label of a config drive.
func clearOldConfigDrives(config Config, disk Disk) error {
	name := disk.Info().Name
	layout, err := gpt.ReadLayout(disk, disk.Info().SizeBytes, disk.SectorSize())
	if err != nil {
		// The operating system cannot read a config drive from it either.
		config.Log.Warn("another disk cannot be read", "disk", name, "error", err)
		return nil
	}
	for _, extent := range layout.Partitions {
		if extent.Name != configdrive.Label || !configdrive.IsConfigDrive(disk, extent.Offset) {
			continue
		}
		config.Log.Info("clearing an earlier config drive", "disk", name, "offset", extent.Offset)
		if err := errors.Join(disk.ZeroRange(extent.Offset, extent.Size), disk.Sync()); err != nil {
			return failuref(hardware.ReasonDiskError, err, "clearing an earlier config drive on disk %s", name)
		}
	}
	return nil
}
