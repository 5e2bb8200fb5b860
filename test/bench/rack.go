package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/test/rack"
)

// rackCommand makes this program be the rack: it reads a rackSpec and then lines from its standard input, writes a
// rackReady and then one answer a line, and ends with its input.
const rackCommand = "rack"

// rackSpec is what the rack is told.
type rackSpec struct {
	// Servers is their number; every third one is meant for MIG, every third one is an H200.
	Servers int `json:"servers"`
	// Disks and Images are folders: what the servers write, and what they are served.
	Disks  string `json:"disks"`
	Images string `json:"images"`
	// Boot is the address of the boot service, and Namespace that of the hosts.
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"`
	// Profile is the file that gets a CPU profile of the rack; empty: none.
	Profile string `json:"profile,omitempty"`
}

// rackReady is what a rack that listens says.
type rackReady struct {
	// Hosts are the BareMetalHosts and their Secrets.
	Hosts []map[string]any `json:"hosts"`
	// CA signed the BMCs' certificates.
	CA []byte `json:"ca"`
	// Images is the URL of the image server.
	Images string `json:"images"`
}

// immediate servers need no time of their own: what is measured is work.
var immediate = rack.Timing{PowerOn: time.Millisecond, PowerOff: time.Millisecond, NetworkTimeout: time.Second}

// useMIG is the label by which the samples' MIG NodeType tells its servers from those with the same GPUs.
const useMIG = "mig"

// serveRack is the rack's process.
func serveRack(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
	var spec rackSpec
	if err := questions.Decode(&spec); err != nil {
		return fmt.Errorf("what rack: %w", err)
	}
	end, err := profileTo(spec.Profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	servers, err := serverSpecs(spec.Servers)
	if err != nil {
		return err
	}
	r, err := rack.New(rack.Options{Dir: spec.Disks, Servers: servers, BootURL: "http://" + spec.Boot, Timing: immediate})
	if err != nil {
		return err
	}
	if err := r.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	images, stop, err := serveImages(spec.Images)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := answers.Encode(rackReady{Hosts: hosts(r, spec.Namespace), CA: r.CA(), Images: images}); err != nil {
		return err
	}
	for {
		var question string
		if err := questions.Decode(&question); err != nil {
			return ignoreEnd(err)
		}
		if err := answers.Encode(bmcReads(r)); err != nil {
			return err
		}
	}
}

// ignoreEnd: whoever started the rack is done with it, or gone.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func serverSpecs(n int) ([]rack.ServerSpec, error) {
	h100, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		return nil, err
	}
	h200, err := rack.ProfileNamed("hgx-h200")
	if err != nil {
		return nil, err
	}
	out := make([]rack.ServerSpec, n)
	for i := range out {
		out[i] = rack.ServerSpec{Name: fmt.Sprintf("server-%04d", i+1), Profile: []rack.Profile{h100, h100, h200}[i%3]}
	}
	return out, nil
}

// hosts are what an operator would apply.
func hosts(r *rack.Rack, namespace string) []map[string]any {
	var out []map[string]any
	n := 0
	for _, o := range r.Objects(namespace) {
		if o.GetKind() == "BareMetalHost" {
			if n%3 == 1 {
				label(o, "use", useMIG)
			}
			n++
		}
		out = append(out, o.Object)
	}
	return out
}

func label(o *unstructured.Unstructured, name, value string) {
	labels := o.GetLabels()
	labels[name] = value
	o.SetLabels(labels)
}

// bmcReads counts what was read of each BMC, by its server.
func bmcReads(r *rack.Rack) map[string]int64 {
	out := map[string]int64{}
	for _, s := range r.Servers() {
		out[s.Name()] = s.BMC().Reads()
	}
	return out
}

// serveImages serves a folder as fast as loopback is.
func serveImages(dir string) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve images: %w", err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(filepath.Clean(dir))), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		err := server.Close()
		if why := <-ended; !errors.Is(why, http.ErrServerClosed) {
			err = errors.Join(err, fmt.Errorf("serve images: %w", why))
		}
		return err
	}, nil
}
