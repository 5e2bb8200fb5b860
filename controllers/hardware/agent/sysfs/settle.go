package sysfs

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// quietPeriod is how long the disks must not change until they count as found. The kernel looks for disks in the background after it has
	// started the first process: NVMe namespaces, SCSI devices, and USB drives, after a second of their own.
	quietPeriod = 5 * time.Second
	// settlePoll is the time between two looks.
	settlePoll = 500 * time.Millisecond
	// settleLimit is how long the disks may take. A controller that resets a drive without end takes longer.
	settleLimit = 3 * time.Minute
)

// Clock returns the time and sleeps.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// WaitForDisks returns when the kernel has found the disks of the server: no controller is starting, no driver waits for another device, and
// the list of block devices and their sizes has not changed for some seconds. There is no udev in the ramdisk that would tell. It fails
// when that takes minutes, and names what is not ready.
//
// Example: the agent starts two seconds after the kernel, while the driver still resets one of eight drives. Without the wait the erase finds
// seven disks.
func WaitForDisks(ctx context.Context, root fs.FS, clock Clock) error {
	begin := clock.Now()
	var last []string
	since := begin
	for {
		found, busy := observeDisks(root)
		now := clock.Now()
		if len(busy) > 0 || !slices.Equal(found, last) {
			last, since = found, now
		}
		if len(busy) == 0 && now.Sub(since) >= quietPeriod {
			return nil
		}
		if now.Sub(begin) >= settleLimit {
			detail := "the list of disks still changes"
			if len(busy) > 0 {
				detail = strings.Join(busy, ", ")
			}
			return fmt.Errorf("the kernel has not found all disks after %s: %s: look at the drives and their controllers", settleLimit, detail)
		}
		if err := clock.Sleep(ctx, settlePoll); err != nil {
			return err
		}
	}
}

// observeDisks returns the block devices with their sizes, and what is still looking for disks.
func observeDisks(root fs.FS) (found, busy []string) {
	for _, name := range listNames(root, "sys/block") {
		dir := path.Join("sys/block", name)
		found = append(found, name+" "+readAttribute(root, dir+"/size")+" "+readAttribute(root, dir+"/ro"))
	}
	for _, c := range []struct {
		dir, attribute string
		states         []string
	}{
		{"sys/class/nvme", "state", []string{"new", "connecting", "resetting"}},
		{"sys/class/scsi_host", "state", []string{"created", "recovery"}},
		{"sys/bus/pci/devices", "waiting_for_supplier", []string{"1"}},
	} {
		for _, name := range listNames(root, c.dir) {
			if state := readAttribute(root, path.Join(c.dir, name, c.attribute)); slices.Contains(c.states, state) {
				busy = append(busy, fmt.Sprintf("%s has %s %q", name, c.attribute, state))
			}
		}
	}
	return found, busy
}
