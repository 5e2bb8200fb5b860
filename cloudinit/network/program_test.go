package network

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/require"
)

// written puts the files of every golden network, and of the one with a bond, a VLAN and large frames, into one directory.
func written(t *testing.T, render func(Data) ([]v1alpha1.NodeFile, error)) (directory string, files []string) {
	t.Helper()
	texts := map[string]string{"bonded": bonded}
	names, err := filepath.Glob("../testdata/*.network_data.json")
	if err != nil || len(names) < 5 {
		t.Fatalf("golden networks %v, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(name), ".network_data.json")] = string(text)
	}
	directory = t.TempDir()
	for name, text := range texts {
		d, err := Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := render(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range rendered {
			path := filepath.Join(directory, name+"-"+filepath.Base(f.Path))
			if err := os.WriteFile(path, []byte(f.Content), 0o644); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
	}
	return directory, files
}

// readKeyfiles reads keyfiles with NetworkManager's own library, which names what it ignores, and writes each again: what it
// did not understand is missing there. Newer versions have other words for master and slave-type.
const readKeyfiles = `
import os, sys, gi
gi.require_version("NM", "1.0")
from gi.repository import GLib, NM

def handler(name):
    def told(keyfile, connection, kind, data, *rest):
        if kind == NM.KeyfileHandlerType.WARN:
            print(name, "is read with a warning:", data.warn_get()[0])
        return True
    return told

renamed = {"master": "controller", "slave-type": "port-type"}
for path in sys.argv[1:]:
    name, keyfile = os.path.basename(path), GLib.KeyFile()
    keyfile.load_from_file(path, GLib.KeyFileFlags.NONE)
    try:
        connection = NM.keyfile_read(keyfile, "/", NM.KeyfileHandlerFlags.NONE, handler(name))
        connection.normalize(None)
        connection.verify()
        again = NM.keyfile_write(connection, NM.KeyfileHandlerFlags.NONE, None)
    except GLib.Error as e:
        print(name, "is refused:", e.message)
        continue
    for group in keyfile.get_groups()[0]:
        for key in keyfile.get_keys(group)[0]:
            kept = None
            for word in (key, renamed.get(key, key)):
                try:
                    kept = kept or again.get_string(group, word)
                except GLib.Error:
                    pass
            if (kept or "").casefold() != keyfile.get_string(group, key).casefold():
                print(name, "[%s]" % group, key, "is read as", kept)
    print("READ", name)
`

func TestNetworkManagerReadsItsKeyfiles(t *testing.T) {
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", `import gi; gi.require_version("NM", "1.0"); from gi.repository import NM`).Run(); err != nil {
		require.Missing(t, "gir1.2-nm-1.0", "apt-get install -y gir1.2-nm-1.0 python3-gi")
	}
	_, files := written(t, Data.NetworkManager)
	out, err := exec.Command(python, append([]string{"-c", readKeyfiles}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if strings.HasPrefix(line, "READ ") {
			read++
			continue
		}
		t.Errorf("NetworkManager: %s", line)
	}
	if read != len(files) {
		t.Errorf("%d of %d keyfiles were read", read, len(files))
	}
}

// runNetworkd runs systemd-networkd on a directory's files alone, in namespaces of its own where it can change nothing. It may
// not drop its rights to a directory that is not its own.
const runNetworkd = `mount -t tmpfs none /run && mkdir -p /run/systemd/network && install -d -o systemd-network -g systemd-network /run/systemd/netif &&
cp "$2"/* /run/systemd/network/ && SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console exec "$1"`

func TestNetworkdReadsItsFiles(t *testing.T) {
	const daemon = "/lib/systemd/systemd-networkd"
	if _, err := os.Stat(daemon); err != nil {
		require.Missing(t, "systemd-networkd", "apt-get install -y systemd")
	}
	unshare := require.Tool(t, "unshare", "apt-get install -y util-linux")
	if err := exec.Command(unshare, "--net", "--mount", "true").Run(); err != nil {
		t.Skip("systemd-networkd is run in namespaces of its own, which takes root: run the test as root")
	}
	directory, files := written(t, Data.Networkd)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, unshare, "--net", "--mount", "sh", "-c", runNetworkd, "sh", daemon, directory)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, netdevs, all := false, 0, ""
	for lines := bufio.NewScanner(log); !ready && lines.Scan(); {
		line := lines.Text()
		all += line + "\n"
		switch {
		case strings.Contains(line, "Device was already configured by"):
			netdevs++ // several networks have a bond0; each was read before its name was looked at
		case strings.Contains(line, "/run/systemd/network/"):
			t.Errorf("systemd-networkd: %s", line)
		case strings.HasSuffix(line, `: loaded "bond"`), strings.HasSuffix(line, `: loaded "vlan"`):
			netdevs++
		}
		// It has read all its files by then.
		ready = strings.Contains(line, "Enumeration completed")
	}
	cancel()
	_ = cmd.Wait() // it was ended
	want := 0
	for _, f := range files {
		if strings.HasSuffix(f, ".netdev") {
			want++
		}
	}
	if !ready || netdevs != want {
		t.Errorf("systemd-networkd read %d of %d .netdev files, and ended early: %v\n%s", netdevs, want, !ready, all)
	}
}
