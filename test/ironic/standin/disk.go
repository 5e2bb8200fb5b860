package standin

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	"github.com/ingot-dev/ingot/test/ironic"
)

// Sectors of the partition that the config drive is written to. sgdisk moves a partition that is not aligned.
const sectorBytes, driveSectors, sgdiskAlignment = 512, 8192, 2048

// blockBytes is what is read and written at once. A block of zeros is left out, so that the file of a disk stays small.
const blockBytes = 1 << 20

// zeros is such a block.
var zeros = make([]byte, blockBytes)

// writeImage does what Ironic's agent does: the image, verified by its hash, and a partition with the config drive at the end.
func (one *server) writeImage(ctx context.Context, image ironic.Image, configDrive string) error {
	one.say("simulated: Ironic's agent writes the image to the disk of %s", one.Name())
	drive, err := unpackDrive(configDrive)
	if err != nil {
		return err
	}
	if len(image.URLs) == 0 || image.HashAlgorithm != "sha256" {
		return fmt.Errorf("expected the URL of an image with a hash of sha256, got %d URLs and a hash of %q", len(image.URLs), image.HashAlgorithm)
	}
	disk, err := os.OpenFile(one.DiskPath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	size := one.Disks()[0].SizeBytes
	// A disk whose image is not whole must not boot: it is emptied before, and again when the image is not what was ordered.
	if err := errors.Join(disk.Truncate(0), disk.Truncate(size)); err != nil {
		return err
	}
	sum, err := download(ctx, disk, image.URLs[0])
	if err == nil && sum != image.Hash {
		err = fmt.Errorf("the image has the sha256 %s, expected %s", sum, image.Hash)
	}
	if err != nil {
		return errors.Join(err, disk.Truncate(0), disk.Truncate(size))
	}
	first := (size/sectorBytes-driveSectors)/sgdiskAlignment*sgdiskAlignment - sgdiskAlignment
	last := first + driveSectors - 1
	if out, err := exec.Command("sgdisk", "-e", "-n", fmt.Sprintf("15:%d:%d", first, last), one.DiskPath()).CombinedOutput(); err != nil {
		return fmt.Errorf("sgdisk: %w: %s", err, out)
	}
	_, err = disk.WriteAt(drive, first*sectorBytes)
	return err
}

// download writes what is at the URL to an empty disk, and returns its sha256.
func download(ctx context.Context, disk io.WriterAt, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("download the image: the answer is %s", response.Status)
	}
	return writeBlocks(disk, response.Body, response.ContentLength)
}

// writeBlocks writes so many bytes to an empty disk, all of them where length is negative, and returns their sha256.
func writeBlocks(disk io.WriterAt, from io.Reader, length int64) (string, error) {
	sum, block := sha256.New(), make([]byte, blockBytes)
	for at := int64(0); ; {
		n, err := io.ReadFull(from, block)
		sum.Write(block[:n])
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := disk.WriteAt(block[:n], at); err != nil {
				return "", err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && (length < 0 || at == length) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("download the image: %w", err)
		}
	}
}

func unpackDrive(text string) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	drive, err := io.ReadAll(reader)
	if err == nil && len(drive) > driveSectors*sectorBytes {
		err = fmt.Errorf("the config drive has %d bytes", len(drive))
	}
	return drive, err
}

// erase does what Ironic's agent does: all of every disk, or the first and the last block, where the partition tables are.
func (one *server) erase(step string) error {
	one.say("simulated: Ironic's agent does %s on the disks of %s", step, one.Name())
	var errs []error
	for i, disk := range one.Disks() {
		errs = append(errs, eraseFile(one.DataDiskPath(i), disk.SizeBytes, step == "erase_devices"))
	}
	return errors.Join(errs...)
}

func eraseFile(path string, size int64, whole bool) error {
	disk, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was ever written to it
	}
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	if whole {
		return errors.Join(disk.Truncate(0), disk.Truncate(size))
	}
	_, first := disk.WriteAt(zeros, 0)
	_, last := disk.WriteAt(zeros, size-blockBytes)
	return errors.Join(first, last)
}
