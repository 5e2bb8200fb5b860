package scenario

import (
	"context"

	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
)

// repair puts the missing GPU back in: the technician unplugs the server, and Ingot does the rest.
func (t *story) repair(ctx context.Context) error {
	server := t.broken()
	t.s.step("a technician unplugs %s and reseats its GPU", server.Name())
	faults := server.Faults()
	faults.MissingGPUs = 0
	server.SetFaults(faults)
	server.PowerLoss()
	err := t.until(ctx, func(s observation.Snapshot) (bool, error) { return observation.Ready(s.On(server.Name())), nil })
	kept := observation.Ready(t.last.On(server.Name()))
	detail := ""
	if !kept {
		detail = observation.Unmet(t.last.On(server.Name()))
	}
	t.promise(kept, detail, "powered on again, judged anew, and admitted with 8 of 8 GPUs")
	return err
}
