// Package disk does to a disk what Ironic's agent does to it: writes an image with a config drive, and erases it.
package disk

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

	"github.com/ingot-dev/ingot/controllers/hardware/agent/gpt"
)

// Disk is the content of a disk.
type Disk interface {
	io.ReaderAt
	io.WriterAt
}

// Image is an image as Ironic describes it to its agent.
type Image struct {
	// URL is where it can be downloaded from.
	URL string
	// SHA256 is the hash of its content, in hexadecimal digits.
	SHA256 string
}

// driveName is the name of the partition of the config drive. An operating system finds the drive by the label of its file system.
const driveName = "config-2"

// blockBytes is what is read and written at once. It holds every partition table.
const blockBytes = 1 << 20

var zeros = make([]byte, blockBytes)

// Write writes the image to an empty disk of so many bytes, verifies it by its hash, and adds a partition with the config drive as Ironic encodes it. An image that
// is not what was ordered does not boot: its partition tables are erased.
func Write(ctx context.Context, to Disk, size int64, image Image, configDrive string) error {
	drive, err := unpackDrive(configDrive)
	if err != nil {
		return err
	}
	sum, err := download(ctx, to, image.URL)
	if err == nil && sum != image.SHA256 {
		err = fmt.Errorf("the image has the sha256 %s, expected %s", sum, image.SHA256)
	}
	if err != nil {
		return errors.Join(err, EraseTables(to, size))
	}
	return addDrive(to, size, drive)
}

// EraseTables erases the first and the last MiB, where the partition tables are.
func EraseTables(on Disk, size int64) error {
	_, first := on.WriteAt(zeros, 0)
	_, last := on.WriteAt(zeros, size-blockBytes)
	return errors.Join(first, last)
}

// EraseAll erases everything. Blocks of zeros are read and not written, so that the file of a disk stays small.
func EraseAll(on Disk, size int64) error {
	block := make([]byte, blockBytes)
	for at := int64(0); at < size; at += blockBytes {
		n, err := on.ReadAt(block[:min(blockBytes, size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if bytes.Equal(block[:n], zeros[:n]) {
			continue
		}
		if _, err := on.WriteAt(zeros[:n], at); err != nil {
			return err
		}
	}
	return nil
}

// addDrive adds a partition with the content of the config drive to the partition table on the disk.
func addDrive(to Disk, size int64, drive []byte) error {
	head := make([]byte, blockBytes)
	if _, err := to.ReadAt(head, 0); err != nil {
		return err
	}
	table, err := gpt.ParseTable(head)
	if err != nil {
		return err
	}
	place, err := table.AddPartition(size, int64(len(drive)), driveName)
	if err != nil {
		return err
	}
	table.WritePrimary(head, size)
	backup, backupAt := table.Backup()
	_, written := to.WriteAt(drive, place.Offset)
	_, copied := to.WriteAt(backup, backupAt)
	_, described := to.WriteAt(head, 0)
	return errors.Join(written, copied, described)
}

// download writes what is at the URL to an empty disk, and returns its sha256.
func download(ctx context.Context, to io.WriterAt, url string) (string, error) {
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
	return writeBlocks(to, response.Body, response.ContentLength)
}

// writeBlocks writes so many bytes to an empty disk, all of them where length is negative, and returns their sha256. A block of zeros is left out.
func writeBlocks(to io.WriterAt, from io.Reader, length int64) (string, error) {
	sum, block := sha256.New(), make([]byte, blockBytes)
	for at := int64(0); ; {
		n, err := io.ReadFull(from, block)
		sum.Write(block[:n])
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := to.WriteAt(block[:n], at); err != nil {
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
	return io.ReadAll(reader)
}
