package fleet

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
	"runtime/pprof"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/test/rack"
)

// RackCommand is the argument that makes this program run the rack. It reads a rackSpec and then one request per line from
// its standard input, writes a rackReady and then one answer per request, and ends when its input ends.
const RackCommand = "rack"

// rackSpec is the configuration of the rack.
type rackSpec struct {
	// Servers is the number of servers, which are of the Classes in turn.
	Servers int     `json:"servers"`
	Classes []Class `json:"classes"`
	// Disks is the directory of the servers' disks, Images the directory of the image server.
	Disks  string `json:"disks"`
	Images string `json:"images"`
	// Boot is the address of the boot service, and Namespace the namespace of the hosts.
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"`
	// SelfTest is how long a server's self-test takes.
	SelfTest time.Duration `json:"selfTest,omitempty"`
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

// timing makes servers act at once but for their self-test, so that only work is measured.
func timing(selfTest time.Duration) rack.Timing {
	return rack.Timing{PowerOn: time.Millisecond, PowerOff: time.Millisecond, POST: selfTest, NetworkTimeout: time.Second}
}

// ServeRack runs the rack and answers requests until the input ends.
func ServeRack(ctx context.Context, in io.Reader, out io.Writer) (err error) {
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
	servers, err := serverSpecs(spec.Servers, spec.Classes)
	if err != nil {
		return err
	}
	r, err := rack.New(rack.Options{Dir: spec.Disks, Servers: servers, BootURL: "http://" + spec.Boot, Timing: timing(spec.SelfTest)})
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
	if err := answers.Encode(rackReady{Hosts: hostObjects(r, spec.Namespace, spec.Classes), CA: r.CA(), Images: images}); err != nil {
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
		if err := answers.Encode(countBMCRequests(site.rack)); err != nil {
			return err
		}
	}
}

// request asks for the requests to each BMC. With Metal3 it starts a baremetal-operator before.
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

func serverSpecs(n int, classes []Class) ([]rack.ServerSpec, error) {
	out := make([]rack.ServerSpec, n)
	for i := range out {
		profile, err := rack.ProfileNamed(classes[i%len(classes)].Profile)
		if err != nil {
			return nil, err
		}
		out[i] = rack.ServerSpec{Name: fmt.Sprintf("server-%04d", i+1), Profile: profile}
	}
	return out, nil
}

// hostObjects returns the objects that an operator would apply for the servers.
func hostObjects(r *rack.Rack, namespace string, classes []Class) []map[string]any {
	var out []map[string]any
	n := 0
	for _, o := range r.Objects(namespace) {
		if o.GetKind() == "BareMetalHost" {
			if use := classes[n%len(classes)].Use; use != "" {
				setLabel(o, "use", use)
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

// BMCRequests are the requests that a BMC has got since its start. Logins and logouts are not among them.
type BMCRequests struct {
	Reads  int64 `json:"reads"`
	Writes int64 `json:"writes"`
	// Handshakes are the TLS connections.
	Handshakes int64 `json:"handshakes"`
}

// countBMCRequests returns the requests to each BMC by server.
func countBMCRequests(r *rack.Rack) map[string]BMCRequests {
	out := map[string]BMCRequests{}
	for _, s := range r.Servers() {
		out[s.Name()] = BMCRequests{Reads: s.BMC().Reads(), Writes: s.BMC().Writes(), Handshakes: s.BMC().Handshakes()}
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

// RackProcess is the process that runs the rack.
type RackProcess struct {
	// Ready is what the rack said when it had started.
	Ready rackReady
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	ended chan error
}

// rackGrace is the time that a large rack may take to stop.
const rackGrace = time.Minute

// startRack starts this program again as the rack. The rack ends when its standard input ends, and so at the latest with
// this process.
func startRack(o Options, boot string) (*RackProcess, error) {
	spec := rackSpec{
		Servers: o.Servers, Classes: o.Classes, Disks: filepath.Join(o.Dir, "disks"), Images: filepath.Join(o.Dir, "images"), Boot: boot, Namespace: HostNamespace, SelfTest: o.SelfTest,
	}
	if o.Profile {
		spec.Profile = filepath.Join(o.Dir, "rack.cpu")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(o.Dir, "rack.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	defer log.Close()
	p := &RackProcess{cmd: exec.Command(self, RackCommand), ended: make(chan error, 1)}
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
	if err := errors.Join(json.NewEncoder(p.in).Encode(spec), p.out.Decode(&p.Ready)); err != nil {
		return nil, errors.Join(fmt.Errorf("start the rack: %w: see %s", err, log.Name()), p.stop())
	}
	return p, nil
}

// PID returns the process ID of the rack.
func (p *RackProcess) PID() int { return p.cmd.Process.Pid }

// ReadCounts asks the rack for the requests to each BMC.
func (p *RackProcess) ReadCounts() (map[string]BMCRequests, error) {
	return p.ask(request{})
}

// startMetal3 starts a baremetal-operator that serves the hosts.
func (p *RackProcess) startMetal3(spec metal3Spec) error {
	_, err := p.ask(request{Metal3: &spec})
	return err
}

func (p *RackProcess) ask(question request) (map[string]BMCRequests, error) {
	var counts map[string]BMCRequests
	err := json.NewEncoder(p.in).Encode(question)
	if err == nil {
		err = p.out.Decode(&counts)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the rack: %w", err)
	}
	return counts, nil
}

func (p *RackProcess) stop() error {
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

// startCPUProfile writes a CPU profile to file until end is called. It does nothing without a file.
func startCPUProfile(file string) (end func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, errors.Join(fmt.Errorf("profile: %w", err), out.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return out.Close()
	}, nil
}
