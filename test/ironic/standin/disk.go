package standin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/ironic/disk"
)

// writeImage does what Ironic's agent does: the image, verified by its hash, and a partition with the config drive at the end.
func (one *server) writeImage(ctx context.Context, image ironic.Image, configDrive string) error {
	one.say("simulated: Ironic's agent writes the image to the disk of %s", one.Name())
	if len(image.URLs) == 0 || image.HashAlgorithm != "sha256" {
		return fmt.Errorf("expected the URL of an image with a hash of sha256, got %d URLs and a hash of %q", len(image.URLs), image.HashAlgorithm)
	}
	file, err := os.OpenFile(one.DiskPath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	size := one.Disks()[0].SizeBytes
	if err := errors.Join(one.RemoveState(), file.Truncate(0), file.Truncate(size)); err != nil {
		return err
	}
	return disk.Write(ctx, file, size, disk.Image{URL: image.URLs[0], SHA256: image.Hash}, configDrive)
}

// erase does what Ironic's agent does: all of every disk, or the first and the last block, where the partition tables are.
func (one *server) erase(step string) error {
	one.say("simulated: Ironic's agent does %s on the disks of %s", step, one.Name())
	errs := []error{one.RemoveState()}
	for i, d := range one.Disks() {
		errs = append(errs, eraseFile(one.DataDiskPath(i), d.SizeBytes, step == "erase_devices"))
	}
	return errors.Join(errs...)
}

func eraseFile(path string, size int64, whole bool) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was ever written to it
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if whole {
		return errors.Join(file.Truncate(0), file.Truncate(size))
	}
	return disk.EraseTables(file, size)
}
