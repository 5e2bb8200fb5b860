// Package cluster starts the control plane program of test/controlplane and hands out its kubeconfig.
//
// The program is a module and a process of its own: its dependencies stay out of the product's, and several control
// planes run side by side, say one that hosts Ingot and two tenants.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// stopGrace is longer than an orderly end takes, also on a busy machine.
const stopGrace = 30 * time.Second

// Options say what Start runs.
type Options struct {
	// Program is the control plane program; empty looks for it as Program does.
	Program string
	// Dir gets the data and the credentials. A directory of an earlier run continues that cluster.
	Dir string
	// Address is the server's IP address; empty is 127.0.0.1. Nodes of their own reach it at another one.
	Address string
	// Port is the server's port; 0 takes a free one. A cluster that comes back after a stop needs its
	// earlier port for its earlier kubeconfig to work.
	Port int
	// AuditLog is the file that gets the server's audit log; empty writes none.
	AuditLog string
	// Args are further arguments of the program's run command.
	Args []string
	// Stderr gets what the program says about its own failure; its log is controlplane.log in Dir.
	Stderr io.Writer
}

// Cluster is a control plane that runs.
type Cluster struct {
	endpoint       string
	kubeconfigPath string
	kubeconfig     []byte
	ca             []byte

	process  *process
	stopOnce sync.Once
	stopErr  error
}

// Start returns when the cluster accepts pods. The context bounds the start alone: Stop ends the cluster, and so does
// the end of this process, however it comes.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Dir == "" {
		return nil, errors.New("start a control plane: Dir is required")
	}
	program := options.Program
	if program == "" {
		found, err := Program()
		if err != nil {
			return nil, err
		}
		program = found
	}
	started, err := startProcess(program, arguments(options), options.Stderr)
	if err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	cluster := &Cluster{process: started}
	if err := cluster.waitForReady(ctx); err != nil {
		started.kill()
		return nil, fmt.Errorf("start a control plane in %s: %w", options.Dir, err)
	}
	return cluster, nil
}

func arguments(options Options) []string {
	args := []string{"run", "--exit-with-parent", "--dir", options.Dir, "--port", strconv.Itoa(options.Port)}
	if options.Address != "" {
		args = append(args, "--address", options.Address)
	}
	if options.AuditLog != "" {
		args = append(args, "--audit-log", options.AuditLog)
	}
	return append(args, options.Args...)
}

func (c *Cluster) waitForReady(ctx context.Context) error {
	select {
	case line := <-c.process.firstLine:
		if _, err := fmt.Sscanf(line, "ready %s %s", &c.endpoint, &c.kubeconfigPath); err != nil {
			return fmt.Errorf("the program said %q: %w", line, err)
		}
		return c.readKubeconfig()
	case <-c.process.exited:
		return c.process.failure()
	case <-ctx.Done():
		return fmt.Errorf("wait until it is ready: %w", context.Cause(ctx))
	}
}

func (c *Cluster) readKubeconfig() error {
	var err error
	if c.kubeconfig, err = os.ReadFile(c.kubeconfigPath); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := c.RESTConfig()
	if err != nil {
		return err
	}
	c.ca = config.CAData
	return nil
}

// Endpoint is the server's URL.
func (c *Cluster) Endpoint() string { return c.endpoint }

// CA is the certificate, PEM encoded, of the authority that signs the server's certificate and those of the nodes.
func (c *Cluster) CA() []byte { return c.ca }

// KubeconfigPath is the file with the administrator's kubeconfig.
func (c *Cluster) KubeconfigPath() string { return c.kubeconfigPath }

// Kubeconfig is the administrator's kubeconfig. It refers to no file and no program.
func (c *Cluster) Kubeconfig() []byte { return c.kubeconfig }

// RESTConfig is the administrator's client configuration, with a rate limit that tests do not notice.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", c.kubeconfigPath, err)
	}
	config.QPS, config.Burst = 1000, 2000
	return config, nil
}

// Stop ends the cluster and keeps its directory. It tells when the program had ended before, or had to be killed.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		if err := c.process.stop(stopGrace); err != nil {
			c.stopErr = fmt.Errorf("stop the control plane %s: %w", c.endpoint, err)
		}
	})
	return c.stopErr
}
