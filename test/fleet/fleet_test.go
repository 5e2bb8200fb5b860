package fleet

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestAProcessTellsWhatItHasTaken(t *testing.T) {
	stat := "42 (a ) name) S 7 42 42 0 -1 4194560 1 2 3 4 250 150 0 0 20 0 9 0 100 1000 10\n"
	proc := fstest.MapFS{
		"42/stat":    {Data: []byte(stat)},
		"42/status":  {Data: []byte("Name:\ta ) name\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")},
		"42/cmdline": {Data: []byte("program\x00--dir\x00/x\x00")},
		"43/stat":    {Data: []byte(strings.Replace(stat, " 7 ", " 8 ", 1))},
		"self/stat":  {Data: []byte(stat)},
	}
	got, err := ReadUsage(proc, 42)
	if want := (Usage{CPU: 4 * time.Second, Peak: 2 << 20, Resident: 1 << 20}); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	of, err := ChildProcesses(proc, 7)
	if err != nil || len(of) != 1 || of[42] != "program --dir /x" {
		t.Errorf("children: got %v, %v", of, err)
	}
	if _, err := ReadUsage(proc, 44); err == nil {
		t.Error("a process that is gone has a usage")
	}
}

func TestARackAnswersUntilItsInputEnds(t *testing.T) {
	dir := t.TempDir()
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- ServeRack(t.Context(), in, out) }()
	write, read := json.NewEncoder(ask), json.NewDecoder(answers)
	if err := write.Encode(rackSpec{Servers: 3, Classes: []Class{{Profile: "hgx-h100"}, {Profile: "hgx-h200"}}, Disks: filepath.Join(dir, "disks"), Images: dir, Boot: "127.0.0.1:1", Namespace: "metal"}); err != nil {
		t.Fatal(err)
	}
	var ready rackReady
	if err := read.Decode(&ready); err != nil {
		t.Fatal(err)
	}
	if len(ready.Hosts) != 6 || len(ready.CA) == 0 || !strings.HasPrefix(ready.Images, "http://127.0.0.1:") {
		t.Errorf("got %d objects, images at %q", len(ready.Hosts), ready.Images)
	}
	var counts map[string]BMCRequests
	if err := write.Encode(request{}); err != nil {
		t.Fatal(err)
	}
	if err := read.Decode(&counts); err != nil || len(counts) != 3 {
		t.Errorf("got %v, %v", counts, err)
	}
	if err := ask.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
