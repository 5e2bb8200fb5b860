package modules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"
)

// Loader loads the modules of the devices that it finds.
type Loader struct {
	// Root is the root file system.
	Root fs.FS
	// Index are the modules of the ramdisk.
	Index *Index
	// Insert loads the module in the file, a path below Root. An error that wraps fs.ErrExist means that it is loaded.
	Insert func(file string) error
	// Log receives what was loaded and what could not be.
	Log *slog.Logger

	// served are the aliases for which modules were loaded, and tried the modules: one that failed is not tried for each device.
	served, tried map[string]bool
}

// LoadForDevices loads the modules of all devices that are there, and of those that appear because of it: behind a bus are devices that only its
// driver sees. It returns how many modules it has loaded.
func (l *Loader) LoadForDevices() int {
	total := 0
	for {
		n := 0
		for _, modalias := range l.listModaliases() {
			n += l.loadFor(modalias)
		}
		if total += n; n == 0 {
			return total
		}
	}
}

// listModaliases returns what the devices show, without duplicates. Directories vanish while devices come and go, so that an error is no reason
// to stop.
func (l *Loader) listModaliases() []string {
	var out []string
	// The function returns nil for every error.
	_ = fs.WalkDir(l.Root, "sys/devices", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && path.Base(file) == "modalias" && !entry.IsDir() {
			if text, err := fs.ReadFile(l.Root, file); err == nil {
				out = append(out, strings.TrimSpace(string(text)))
			}
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// loadFor loads the modules that serve the alias and returns how many were loaded.
func (l *Loader) loadFor(modalias string) int {
	if l.served == nil {
		l.served, l.tried = map[string]bool{}, map[string]bool{}
	}
	if modalias == "" || l.served[modalias] {
		return 0
	}
	l.served[modalias] = true
	n := 0
	for _, name := range l.Index.Serving(modalias) {
		loaded, err := l.load(name)
		n += loaded
		if err != nil {
			l.Log.Warn("a kernel module cannot be loaded", "module", name, "device", modalias, "error", err)
		}
	}
	return n
}

// load loads the module with what it needs. What it needs and cannot be loaded is no reason to leave it out, as it is none for modprobe: the kernel
// refuses the module if it is true. Without it: SATA and SAS disks stay away on a processor without PCLMULQDQ, because sd_mod asks, by three others,
// for a faster checksum that uses it.
func (l *Loader) load(name string) (int, error) {
	n := 0
	for _, needed := range l.Index.Order(name) {
		if l.tried[needed] {
			continue
		}
		l.tried[needed] = true
		err := l.Insert(l.Index.dir + l.Index.files[needed])
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil && needed == name {
			return n, fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			l.Log.Warn("a kernel module that another one asks for cannot be loaded", "module", needed, "asked by", name, "error", err)
			continue
		}
		n++
		l.Log.Info("kernel module loaded", "module", needed)
	}
	return n + l.loadFollowing(name), nil
}

// loadFollowing loads what the module asks to be loaded after it, and returns how many modules were loaded. modprobe, too, takes no failure of them for one
// of the module.
func (l *Loader) loadFollowing(name string) int {
	n := 0
	for _, next := range l.Index.Following(name) {
		if l.tried[next] {
			continue
		}
		loaded, err := l.load(next)
		if n += loaded; err != nil {
			l.Log.Warn("a kernel module that another one asks for cannot be loaded", "module", next, "asked by", name, "error", err)
		}
	}
	return n
}

// LoadNamed loads the modules that serve the name or alias, as modprobe does. It fails when there is none, or when none can be loaded.
func (l *Loader) LoadNamed(wanted string) error {
	if l.tried == nil {
		l.served, l.tried = map[string]bool{}, map[string]bool{}
	}
	var failed error
	for _, name := range l.Index.Serving(wanted) {
		_, err := l.load(name)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return cmp.Or(failed, fmt.Errorf("no module serves %q", wanted))
}

// Clock sleeps.
type Clock interface {
	Sleep(ctx context.Context, d time.Duration) error
}

// Watch loads the modules of devices that appear later, such as media that a BMC inserts, until ctx ends.
func (l *Loader) Watch(ctx context.Context, clock Clock, interval time.Duration) {
	for clock.Sleep(ctx, interval) == nil {
		l.LoadForDevices()
	}
}
