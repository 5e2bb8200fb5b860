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
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/test/rack"
)

// rackCommand is the argument that makes this program run the rack. It reads a rackSpec and then one request per line from
// its standard input, writes a rackReady and then one answer per request, and ends when its input ends.
const rackCommand = "rack"

// rackSpec is the configuration of the rack.
type rackSpec struct {
	// Servers is the number of servers. Every third one is for MIG, every third one is an H200.
	Servers int `json:"servers"`
	// Disks is the directory of the servers' disks, Images the directory of the image server.
	Disks  string `json:"disks"`
	Images string `json:"images"`
	// Boot is the address of the boot service, and Namespace the namespace of the hosts.
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"`
	// Profile is the file for a CPU profile of the rack; empty means none.
	Profile string `json:"profile,omitempty"`
}

// rackReady is the rack's first answer, once it listens.
type rackReady struct {
	// Hosts are the BareMetalHosts and their Secrets.
	Hosts []map[string]any `json:"hosts"`
	// CA is the authority that signed the BMCs' certificates.
	CA []byte `json:"ca"`
	// Images is the URL of the image server.
	Images string `json:"images"`
}

// noDelays makes servers act at once, so that only work is measured.
var noDelays = rack.Timing{PowerOn: time.Millisecond, PowerOff: time.Millisecond, NetworkTimeout: time.Second}

// useMIG is the label value by which the samples' MIG NodeType selects its servers among those with the same GPUs.
const useMIG = "mig"

// serveRack runs the rack and answers requests until the input ends.
func serveRack(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
	var spec rackSpec
	if err := questions.Decode(&spec); err != nil {
		return fmt.Errorf("what rack: %w", err)
	}
	end, err := startCPUProfile(spec.Profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	servers, err := serverSpecs(spec.Servers)
	if err != nil {
		return err
	}
	r, err := rack.New(rack.Options{Dir: spec.Disks, Servers: servers, BootURL: "http://" + spec.Boot, Timing: noDelays})
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
	if err := answers.Encode(rackReady{Hosts: hostObjects(r, spec.Namespace), CA: r.CA(), Images: images}); err != nil {
		return err
	}
	site := &metal3Site{rack: r}
	defer func() { err = errors.Join(err, site.stop()) }()
	return answerRequests(ctx, questions, answers, site)
}

// answerRequests answers until the input ends.
func answerRequests(ctx context.Context, questions *json.Decoder, answers *json.Encoder, site *metal3Site) error {
	for {
		var question request
		if err := questions.Decode(&question); err != nil {
			return ignoreEOF(err)
		}
		if question.Metal3 != nil {
			if err := site.start(ctx, *question.Metal3); err != nil {
				return err
			}
		}
		if err := answers.Encode(countBMCReads(site.rack)); err != nil {
			return err
		}
	}
}

// request asks for the number of reads of each BMC. With Metal3 it starts a baremetal-operator before.
type request struct {
	Metal3 *metal3Spec `json:"metal3,omitempty"`
}

// ignoreEOF returns nil for the end of the input: the parent has closed it or has exited.
func ignoreEOF(err error) error {
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

// hostObjects returns the objects that an operator would apply for the servers.
func hostObjects(r *rack.Rack, namespace string) []map[string]any {
	var out []map[string]any
	n := 0
	for _, o := range r.Objects(namespace) {
		if o.GetKind() == "BareMetalHost" {
			if n%3 == 1 {
				setLabel(o, "use", useMIG)
			}
			n++
		}
		out = append(out, o.Object)
	}
	return out
}

func setLabel(o *unstructured.Unstructured, name, value string) {
	labels := o.GetLabels()
	labels[name] = value
	o.SetLabels(labels)
}

// countBMCReads returns the number of reads of each BMC by server.
func countBMCReads(r *rack.Rack) map[string]int64 {
	out := map[string]int64{}
	for _, s := range r.Servers() {
		out[s.Name()] = s.BMC().Reads()
	}
	return out
}

// serveImages serves a directory on a loopback port.
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

// rackProcess is the process that runs the rack.
type rackProcess struct {
	ready rackReady
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	ended chan error
}

// rackGrace is the time that a large rack may take to stop.
const rackGrace = time.Minute

// startRack starts this program again as the rack. The rack ends when its standard input ends, and so at the latest with
// this process.
func startRack(dir string, spec rackSpec) (*rackProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "rack.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	defer log.Close()
	p := &rackProcess{cmd: exec.Command(self, rackCommand), ended: make(chan error, 1)}
	p.cmd.Stderr = log
	// Ctrl-C in a terminal must reach this process only, which then stops the manager before the rack.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	p.cmd.Stdout, p.out = outEnd, json.NewDecoder(out)
	err = p.cmd.Start()
	if err := errors.Join(err, outEnd.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the rack: %w", err), out.Close())
	}
	go func() { p.ended <- errors.Join(p.cmd.Wait(), out.Close()) }()
	if err := errors.Join(json.NewEncoder(p.in).Encode(spec), p.out.Decode(&p.ready)); err != nil {
		return nil, errors.Join(fmt.Errorf("start the rack: %w: see %s", err, log.Name()), p.stop())
	}
	return p, nil
}

// readCounts asks the rack for the number of reads of each BMC.
func (p *rackProcess) readCounts() (map[string]int64, error) {
	return p.ask(request{})
}

// startMetal3 starts a baremetal-operator that serves the hosts.
func (p *rackProcess) startMetal3(spec metal3Spec) error {
	_, err := p.ask(request{Metal3: &spec})
	return err
}

func (p *rackProcess) ask(question request) (map[string]int64, error) {
	var counts map[string]int64
	err := json.NewEncoder(p.in).Encode(question)
	if err == nil {
		err = p.out.Decode(&counts)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the rack: %w", err)
	}
	return counts, nil
}

func (p *rackProcess) stop() error {
	if p == nil {
		return nil
	}
	closed := p.in.Close()
	select {
	case err := <-p.ended:
		return errors.Join(closed, err)
	case <-time.After(rackGrace):
	}
	killed := p.cmd.Process.Kill()
	<-p.ended
	return errors.Join(closed, killed, fmt.Errorf("the rack did not stop within %s and was killed", rackGrace))
}
