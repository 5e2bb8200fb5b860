package machineos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/diskfs/go-diskfs/partition/gpt"
)

// ErrNoConfigDrive is returned by ReadConfigDrive for a disk without a config drive.
var ErrNoConfigDrive = errors.New("no file system labelled config-2")

const (
	driveLabel = "config-2"
	// maxDocument is the largest size of a document on the drive, in bytes.
	maxDocument = 64 << 20
)

// ConfigDrive holds the documents of a config drive. It holds secrets: never log it.
type ConfigDrive struct {
	UserData, NetworkData []byte
	MetaData              MetaData
}

// MetaData has the members of meta_data.json that cloud-init uses.
type MetaData struct {
	// UUID is the instance id.
	UUID          string `json:"uuid"`
	Hostname      string `json:"hostname"`
	LocalHostname string `json:"local-hostname"`
	Name          string `json:"name"`
}

// String keeps secrets out of anything that is printed.
func (ConfigDrive) String() string { return "config drive" }

// GoString keeps secrets out of %#v.
func (ConfigDrive) GoString() string { return "config drive" }

// ReadConfigDrive finds the config drive by the label of its file system, as blkid does, and reads it.
func ReadConfigDrive(disk io.ReaderAt, size int64) (*ConfigDrive, error) {
	store := newStorage(disk, size)
	table, err := readTable(store)
	if err != nil {
		return nil, err
	}
	for _, partition := range table.Partitions {
		if partition.Type == gpt.Unused {
			continue
		}
		// A store of its own: go-diskfs reads path tables without the partition's offset.
		part := newStorage(io.NewSectionReader(disk, partition.GetStart(), partition.GetSize()), partition.GetSize())
		volume, err := iso9660.Read(part, partition.GetSize(), 0, 2048)
		if err != nil || strings.Trim(volume.Label(), " \x00") != driveLabel {
			continue // another kind of file system
		}
		return readDocuments(volume)
	}
	return nil, ErrNoConfigDrive
}

func readDocuments(volume fs.FS) (*ConfigDrive, error) {
	drive := &ConfigDrive{}
	var meta []byte
	for name, into := range map[string]*[]byte{"user_data": &drive.UserData, "network_data.json": &drive.NetworkData, "meta_data.json": &meta} {
		data, err := readAll(volume, "openstack/latest/"+name, maxDocument)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("config drive, %s: %w", name, err)
		}
		*into = data
	}
	// cloud-init takes a drive without meta_data.json for none.
	if err := json.Unmarshal(meta, &drive.MetaData); err != nil {
		return nil, fmt.Errorf("config drive: meta_data.json is missing or no JSON: %w", ErrNoConfigDrive)
	}
	return drive, nil
}
