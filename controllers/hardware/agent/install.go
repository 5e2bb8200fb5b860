package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
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
	root, others, err := selectRootDisk(disks, instructions.RootDevice)
	if err != nil {
		return err
	}
	// The config drive is fetched before the disk is changed, because an image without its documents cannot join the cluster.
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
	reports.enterStep(ctx, hardware.StepWriting)
	drive := &configDrivePartition{volume: volume, disk: root}
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

// allocate adds a partition for the config drive to the partition table in head, the first MiB of the image.
func (d *configDrivePartition) allocate(head []byte) error {
	if d.volume == nil {
		return nil
	}
	if d.disk.SectorSize() != gpt.Sector {
		// Linux cannot mount an ISO 9660 volume, which has sectors of 2048 bytes, from a disk with larger sectors.
		return failuref(hardware.ReasonImageInvalid, nil, "disk %s has sectors of %d bytes: a config drive needs %d; format it with 512-byte sectors",
			d.disk.Info().Name, d.disk.SectorSize(), gpt.Sector)
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
	extents, err := gpt.ReadPartitions(disk, disk.Info().SizeBytes)
	if err != nil {
		// The operating system cannot read a config drive from it either.
		config.Log.Warn("another disk cannot be read", "disk", name, "error", err)
		return nil
	}
	for _, extent := range extents {
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

// minRootBytes is the minimum size of a disk that is selected without hints. An operating system with a GPU driver needs more.
const minRootBytes = 4 << 30

// selectRootDisk returns the disk for the image: the smallest that matches the hints, and of several of that size the first by name. It
// also returns the other disks.
func selectRootDisk(disks []Disk, hints hardware.RootDevice) (root Disk, others []Disk, err error) {
	if hints == (hardware.RootDevice{}) {
		hints.MinSizeBytes = minRootBytes
	}
	var matching []int
	var rejected []string
	for i, disk := range disks {
		if reason := mismatch(disk.Info(), hints); reason != "" {
			rejected = append(rejected, disk.Info().Name+" "+reason)
			continue
		}
		matching = append(matching, i)
	}
	if len(matching) == 0 {
		detail := "the server has no disk"
		if len(rejected) > 0 {
			detail = "seen: " + strings.Join(rejected, "; ")
		}
		return nil, nil, failuref(hardware.ReasonNoRootDevice, nil, "no disk fits the root device hints, %s", detail)
	}
	chosen := slices.MinFunc(matching, func(i, j int) int {
		a, b := disks[i].Info(), disks[j].Info()
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.Name, b.Name))
	})
	return disks[chosen], slices.Delete(slices.Clone(disks), chosen, chosen+1), nil
}

// mismatch returns which hint the disk does not match, "" when it matches all. The model may be a part of the disk's model, as in
// Metal3's hints.
func mismatch(disk hardware.Disk, hints hardware.RootDevice) string {
	switch {
	case hints.DeviceName != "" && disk.Name != hints.DeviceName:
		return "is not " + hints.DeviceName
	case hints.SerialNumber != "" && strings.TrimSpace(disk.SerialNumber) != hints.SerialNumber:
		return fmt.Sprintf("has serial number %q", disk.SerialNumber)
	case hints.WWN != "" && !strings.EqualFold(disk.WWN, hints.WWN):
		return fmt.Sprintf("has WWN %q", disk.WWN)
	case hints.Model != "" && !strings.Contains(disk.Model, hints.Model):
		return fmt.Sprintf("is a %q", disk.Model)
	case disk.SizeBytes < hints.MinSizeBytes:
		return fmt.Sprintf("has %d bytes, expected at least %d", disk.SizeBytes, hints.MinSizeBytes)
	}
	return ""
}
