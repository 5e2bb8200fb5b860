package demo

import (
	"context"

	"github.com/ingot-dev/ingot/cmd/ingot/demo/snapshot"
)

// repair puts the missing GPU back in: the technician unplugs the server, and Ingot does the rest.
func (t *story) repair(ctx context.Context) error {
	server := t.broken()
	t.s.step("a technician unplugs %s and reseats its GPU", server.Name())
	faults := server.Faults()
	faults.MissingGPUs = 0
	server.SetFaults(faults)
	server.PowerLoss()
	err := t.until(ctx, func(s snapshot.Snapshot) (bool, error) { return snapshot.Ready(s.On(server.Name())), nil })
	kept := snapshot.Ready(t.last.On(server.Name()))
	detail := ""
	if !kept {
		detail = snapshot.Unmet(t.last.On(server.Name()))
	}
	t.promise(kept, detail, "powered on again, judged anew, and admitted with 8 of 8 GPUs")
	return err
}
