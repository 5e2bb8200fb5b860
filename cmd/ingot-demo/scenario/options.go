package scenario

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/test/rack"
)

// DefaultSpeed is the speed at which a self-test of four minutes takes four seconds.
const DefaultSpeed = 60

// Options are the flags of the demo.
type Options struct {
	// Story is the name of what is shown, one of stories; empty: the pipeline.
	Story string
	// Servers is the number of servers in the rack; nil: that of the story.
	Servers *int
	// Speed is how many times faster than real servers the simulated ones are.
	Speed float64
	// Keep leaves everything running at the end, until Ctrl-C.
	Keep bool
	// Plain writes one line per change, also on a terminal.
	Plain bool
	// HideGPUs is the number of healthy servers from which a GPU is taken. The demo then fails and names the check.
	HideGPUs int
	// Break is a defect of one MIG server: mig-unit removes the unit that partitions the GPUs from its disk, mig-profile partitions
	// them with other profiles. The demo then fails and names the check. Empty: no defect.
	Break string
	// Samples replaces the built-in samples; nil: the built-in ones.
	Samples fs.FS
	// Provider is the kind of the NodeProvider, a name of providers; empty: redfish.
	Provider string
	// Timeout is the time-out of each step.
	Timeout time.Duration
	// Out receives the output.
	Out io.Writer
}

// Validate returns an error that names the flag which is not valid.
func (o Options) Validate() error {
	if err := o.validateStory(); err != nil {
		return err
	}
	switch {
	case o.Speed < 1 || o.Speed > 1000:
		return fmt.Errorf("--speed %g: expected 1 to 1000; 60 makes a self-test of four minutes last four seconds", o.Speed)
	case o.HideGPUs < 0 || o.HideGPUs > 0 && o.HideGPUs > o.wholeGPUServers()-2:
		return fmt.Errorf("--hide-gpus %d: expected 0 to %d, the servers of the first pool that are not broken anyway", o.HideGPUs, o.wholeGPUServers()-2)
	case o.Break != "" && migDefects[o.Break] == nil:
		return fmt.Errorf("--break %s: expected one of %s", o.Break, strings.Join(slices.Sorted(maps.Keys(migDefects)), ", "))
	case o.Provider != "" && providers[o.Provider].serve == nil:
		return fmt.Errorf("--provider %s: expected one of %s", o.Provider, strings.Join(slices.Sorted(maps.Keys(providers)), ", "))
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %s: expected more than 0", o.Timeout)
	}
	return nil
}

// validateStory returns an error for flags that do not fit the story.
func (o Options) validateStory() error {
	story := o.story()
	switch {
	case story.read == nil:
		return fmt.Errorf("--story %s: expected %s", o.Story, strings.Join(slices.Sorted(maps.Keys(stories())), ", "))
	case o.servers() < story.fewest || o.servers() > 64:
		return fmt.Errorf("--servers %d: expected %d to 64: %s", o.servers(), story.fewest, story.why)
	case cmp.Or(o.Story, DefaultStory) != DefaultStory && (o.HideGPUs != 0 || o.Break != ""):
		return fmt.Errorf("--hide-gpus and --break: they go with the story %s", DefaultStory)
	}
	return nil
}

// The numbers of servers for MIG and for DRA.
const (
	migServers = 2
	draServers = 2
)

// useMIG is the value of the label "use" that the samples' MIG NodeType selects its servers by.
const useMIG = "mig"

// wholeGPUServers returns the number of servers of the first pool. A Machine is pinned to the first one, the last one loses a GPU.
func (o Options) wholeGPUServers() int { return o.servers() - migServers - draServers }

// servers returns the number of servers.
func (o Options) servers() int {
	if o.Servers != nil {
		return *o.Servers
	}
	return o.story().servers
}

// serverSpecs returns the servers of the rack: H100 servers for whole GPUs, H100 servers for MIG, H200 servers for DRA. The last one of the
// first kind loses a GPU at every boot, and so do as many as HideGPUs says.
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
	specs := make([]rack.ServerSpec, o.servers())
	for i := range specs {
		specs[i] = rack.ServerSpec{Name: fmt.Sprintf("server-%02d", i+1), Profile: h100}
		switch {
		case i >= whole+migServers:
			specs[i].Profile = h200
		case i == whole:
			o.addMIGDefect(&specs[i].Faults)
		case i > whole:
		case i == whole-1 || i > 0 && i <= o.HideGPUs:
			specs[i].Faults.FallenGPUs = 1
		}
	}
	return specs, nil
}

func (d *demo) server(i int) *rack.Server { return d.env.Rack.Servers()[i] }

// pinnedHost returns the name of the host that a Machine is pinned to.
func (d *demo) pinnedHost() string { return d.server(0).Name() }

// defectiveServer returns the server that loses a GPU.
func (d *demo) defectiveServer() *rack.Server { return d.server(d.options.wholeGPUServers() - 1) }

// isMIG reports whether the server is for the samples' MIG NodeType.
func (o Options) isMIG(i int) bool {
	return i >= o.wholeGPUServers() && i < o.wholeGPUServers()+migServers
}

// migDefects are the values of --break, each with the faults that it gives the first MIG server.
var migDefects = map[string]func(*rack.Faults){
	"mig-unit": func(f *rack.Faults) { f.RemoveUnit = "ingot-gpu-mode.service" },
	"mig-profile": func(f *rack.Faults) {
		f.ChangeProfile = rack.ProfileChange{From: "3g.40gb", To: "2g.20gb"}
	},
}

// addMIGDefect adds the defect that Break names.
func (o Options) addMIGDefect(f *rack.Faults) {
	if add := migDefects[o.Break]; add != nil {
		add(f)
	}
}
