package blockdev

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/scsi"
)

// noClock counts how often it sleeps.
type noClock struct{ sleeps int }

func (c *noClock) Sleep(ctx context.Context, _ time.Duration) error {
	c.sleeps++
	return ctx.Err()
}

func TestADiskWithoutSizeIsReadAgainWhenItsEraseHasEnded(t *testing.T) {
	const running, failed = 0x041B, 0x3103
	for name, c := range map[string]struct {
		// codes are the additional sense codes and qualifiers that REQUEST SENSE returns, one after the other.
		codes   []uint16
		sleeps  int
		rescans bool
		exits   bool
	}{
		"it erases itself":                  {[]uint16{running, running, 0}, 2, true, false},
		"it fails to":                       {[]uint16{running, failed, failed, 0}, 1, true, true},
		"it had failed before":              {[]uint16{failed, failed, 0}, 0, true, true},
		"it has no size for another reason": {[]uint16{0}, 0, false, false},
	} {
		rescan := filepath.Join(t.TempDir(), "rescan")
		if err := os.WriteFile(rescan, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		exits, clock := false, &noClock{}
		drive := &scsi.Drive{Send: func(command scsi.Command) error {
			switch command.CDB[0] {
			case 0x03:
				command.In[0], command.In[7], command.In[12], command.In[13] = 0x70, 10, byte(c.codes[0]>>8), byte(c.codes[0])
				if len(c.codes) > 1 {
					c.codes = c.codes[1:]
				}
			case 0x48:
				exits = command.CDB[1] == 0x1F
			}
			return nil
		}}
		if err := endErase(t.Context(), clock, drive, rescan); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		written, err := os.ReadFile(rescan)
		if err != nil || (string(written) == "1") != c.rescans || clock.sleeps != c.sleeps || exits != c.exits {
			t.Errorf("%s: wrote %q, %v, slept %d times, left the failure: %v", name, written, err, clock.sleeps, exits)
		}
	}
}
