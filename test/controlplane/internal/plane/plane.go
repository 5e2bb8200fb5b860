// Package plane runs the components of one control plane together: in order up, in reverse order down.
package plane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ingot-dev/ingot/test/controlplane/internal/bootstrap"
	"github.com/ingot-dev/ingot/test/controlplane/internal/component"
	"github.com/ingot-dev/ingot/test/controlplane/internal/pki"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 10 * time.Second
)

// Options say what to run.
type Options struct {
	// Dir holds data and credentials. What an earlier run left there is used.
	Dir string
	// Address is where kube-apiserver listens, an IP address of this machine; empty is 127.0.0.1. Its certificate has it.
	Address string
	// Port is where kube-apiserver listens at Address; 0 takes a free one.
	Port int
	// AuditLog is the file of the audit log; empty writes none.
	AuditLog string
	// APIServerArgs, SchedulerArgs and ControllerManagerArgs come after the flags set here, and so win over them.
	APIServerArgs, SchedulerArgs, ControllerManagerArgs []string
}

// Endpoint tells how a control plane is reached.
type Endpoint struct {
	// URL is the server's address.
	URL string
	// Kubeconfig is the file with the administrator's credentials.
	Kubeconfig string
}

type plane struct {
	options   Options
	files     layout
	authority *pki.Authority
	endpoint  Endpoint
	// running are the components in the order of their start.
	running []*component.Component
	failed  chan error
}

// Run serves until the context ends or a component fails. It calls ready once, when pods can be created.
func Run(ctx context.Context, options Options, ready func(Endpoint)) error {
	options.Address = cmp.Or(options.Address, loopback)
	if net.ParseIP(options.Address) == nil {
		return fmt.Errorf("the address %q is no IP address", options.Address)
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return fmt.Errorf("find the directory: %w", err)
	}
	p := &plane{options: options, files: layout{dir: dir}, failed: make(chan error, 1)}
	lock, err := p.files.lock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()

	err = p.serve(ctx, ready)
	return errors.Join(err, p.stop())
}

func (p *plane) serve(requested context.Context, ready func(Endpoint)) error {
	ctx, cancel := context.WithCancelCause(requested)
	defer cancel(nil)
	go func() {
		select {
		case err := <-p.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := p.start(ctx)
	if err == nil {
		ready(p.endpoint)
		<-ctx.Done()
	}
	switch {
	case requested.Err() != nil:
		return nil
	case ctx.Err() != nil: // a failed component explains everything else
		return context.Cause(ctx)
	default:
		return err
	}
}

func (p *plane) start(ctx context.Context) error {
	// The listener is open from here on: nobody takes the port between the choice of it and its use.
	listener, err := net.Listen("tcp", net.JoinHostPort(p.options.Address, strconv.Itoa(p.options.Port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p.endpoint = Endpoint{URL: "https://" + listener.Addr().String(), Kubeconfig: p.files.adminKubeconfig()}
	if p.authority, err = p.files.writeCredentials(p.endpoint.URL, net.ParseIP(p.options.Address)); err != nil {
		return err
	}
	etcd, etcdEndpoint, err := component.StartEtcd(p.files.etcd())
	if err := p.add(etcd, err); err != nil {
		return err
	}
	if err := p.add(component.StartAPIServer(listener, p.apiServerFlags(etcdEndpoint))); err != nil {
		return err
	}
	return p.startClients(ctx)
}

// startClients starts what talks to kube-apiserver, after kube-apiserver itself is ready.
func (p *plane) startClients(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", p.endpoint.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "ingot-controlplane"))
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := waitForAPIServer(ctx, client); err != nil {
		return err
	}
	discovery, err := p.authority.DiscoveryKubeconfig(p.endpoint.URL)
	if err != nil {
		return err
	}
	if err := bootstrap.Apply(ctx, client, discovery); err != nil {
		return err
	}
	if err := p.add(component.StartControllerManager(p.controllerManagerFlags())); err != nil {
		return err
	}
	if err := p.add(component.StartScheduler(p.schedulerFlags())); err != nil {
		return err
	}
	return waitForControllers(ctx, client)
}

func (p *plane) add(started *component.Component, err error) error {
	if err != nil {
		return err
	}
	p.running = append(p.running, started)
	go func() {
		<-started.Done()
		if err := started.Err(); err != nil {
			select {
			case p.failed <- err:
			default: // the first failure is the cause
			}
		}
	}()
	return nil
}

func (p *plane) stop() error {
	var errs []error
	for len(p.running) > 0 {
		last := len(p.running) - 1
		errs = append(errs, p.running[last].Stop(stopTimeout))
		p.running = p.running[:last]
	}
	return errors.Join(errs...)
}
