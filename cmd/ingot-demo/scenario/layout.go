package scenario

import (
	"fmt"

	"github.com/ingot-dev/ingot/test/rack"
)

// Each presentation but the first gets so many servers.
const (
	migServers = 2
	draServers = 2
)

// useMIG is the label by which the samples' MIG NodeType tells its servers from those with the same GPUs.
const useMIG = "mig"

// wholeGPUServers are those of the first pool: one is pinned, the last one loses a GPU.
func (o Options) wholeGPUServers() int { return o.Servers - migServers - draServers }

// serverSpecs lists the rack: H100 servers for whole GPUs, H100 servers for MIG, H200 servers for DRA. The last one of the
// first kind loses a GPU at every boot, and so do those that HideGPUs asks for.
func serverSpecs(o Options) ([]rack.ServerSpec, error) {
	h100, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		return nil, err
	}
	h200, err := rack.ProfileNamed("hgx-h200")
	if err != nil {
		return nil, err
	}
	whole := o.wholeGPUServers()
	specs := make([]rack.ServerSpec, o.Servers)
	for i := range specs {
		specs[i] = rack.ServerSpec{Name: fmt.Sprintf("server-%02d", i+1), Profile: h100}
		switch {
		case i >= whole+migServers:
			specs[i].Profile = h200
		case i == whole:
			o.breakMIG(&specs[i].Faults)
		case i > whole:
		case i == whole-1 || i > 0 && i <= o.HideGPUs:
			specs[i].Faults.MissingGPUs = 1
		}
	}
	return specs, nil
}

// servers by their part in the story.
func (t *story) server(i int) *rack.Server { return t.w.Rack.Servers()[i] }
func (t *story) pinnedHost() string        { return t.server(0).Name() }
func (t *story) broken() *rack.Server      { return t.server(t.o.wholeGPUServers() - 1) }

// isMIG says whether the samples' MIG NodeType is to have the server.
func (t *story) isMIG(i int) bool {
	return i >= t.o.wholeGPUServers() && i < t.o.wholeGPUServers()+migServers
}

// What --break knows, each with what it does to the first MIG server.
var breakages = map[string]func(*rack.Faults){
	"mig-unit": func(f *rack.Faults) { f.RemoveUnit = "ingot-gpu-mode.service" },
	"mig-profile": func(f *rack.Faults) {
		f.ChangeProfile = rack.ProfileChange{From: "3g.40gb", To: "2g.20gb"}
	},
}

// breakMIG spoils a MIG server as Break asks for.
func (o Options) breakMIG(f *rack.Faults) {
	if spoil := breakages[o.Break]; spoil != nil {
		spoil(f)
	}
}
