package configdrive

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kdomanski/iso9660"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/require"
)

var documents = hardware.ConfigDrive{
	UserData:    bytes.Repeat([]byte("#cloud-config\n"), 500),
	NetworkData: []byte(`{"links":[]}`),
	MetaData:    []byte(`{"uuid":"u"}`),
}

// volumeFile writes the volume of the documents to a file.
func volumeFile(t *testing.T) string {
	t.Helper()
	volume, err := Build(documents)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.iso")
	if err := os.WriteFile(path, volume, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAThirdPartyReaderFindsTheDocumentsByTheirExactNames(t *testing.T) {
	volume, err := Build(documents)
	if err != nil {
		t.Fatal(err)
	}
	image, err := iso9660.OpenImage(bytes.NewReader(volume))
	if err != nil {
		t.Fatal(err)
	}
	if label, err := image.Label(); err != nil || strings.TrimSpace(label) != "config-2" {
		t.Errorf("label %q, %v", label, err)
	}
	dir, err := image.RootDir()
	for _, name := range []string{"openstack", "latest"} {
		if err != nil {
			t.Fatal(err)
		}
		dir, err = child(dir, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{
		"user_data": documents.UserData, "network_data.json": documents.NetworkData, "meta_data.json": documents.MetaData,
	} {
		file, err := child(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(file.Reader())
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, error %v", name, len(got), err)
		}
		if file.Mode().Perm() != 0o400 {
			t.Errorf("%s has mode %s", name, file.Mode())
		}
	}
}

func child(dir *iso9660.File, name string) (*iso9660.File, error) {
	children, err := dir.GetChildren()
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		if c.Name() == name {
			return c, nil
		}
	}
	return nil, os.ErrNotExist
}

func TestIsoinfoReadsTheDocuments(t *testing.T) {
	isoinfo := require.Tool(t, "isoinfo", "apt-get install genisoimage")
	out, err := exec.Command(isoinfo, "-R", "-i", volumeFile(t), "-x", "/openstack/latest/user_data").CombinedOutput()
	if err != nil || !bytes.Equal(out, documents.UserData) {
		t.Errorf("isoinfo: %v, %d bytes: %.100s", err, len(out), out)
	}
}

func TestBlkidFindsTheVolumeByItsLabel(t *testing.T) {
	blkid := require.Tool(t, "blkid", "apt-get install util-linux")
	out, err := exec.Command(blkid, "-p", "-o", "export", volumeFile(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nLABEL=config-2\n") || !strings.Contains(string(out), "TYPE=iso9660\n") {
		t.Errorf("blkid: %v: %s", err, out)
	}
}

func TestEmptyDocumentsAreLeftOutAndOversizedOnesRefused(t *testing.T) {
	if !IsEmpty(hardware.ConfigDrive{}) || IsEmpty(documents) {
		t.Error("Empty is wrong")
	}
	volume, err := Build(hardware.ConfigDrive{MetaData: []byte("{}")})
	if err != nil || len(volume) != (sectorFiles+1)*sector || bytes.Contains(volume, []byte("user_data")) {
		t.Errorf("volume of one document: %d bytes, %v", len(volume), err)
	}
	if !IsConfigDrive(bytes.NewReader(volume), 0) || IsConfigDrive(bytes.NewReader(volume), 512) {
		t.Error("Found is wrong")
	}
	if _, err := Build(hardware.ConfigDrive{UserData: make([]byte, maxSize)}); err == nil {
		t.Error("64 MiB of user data do not fit and were taken")
	}
}
