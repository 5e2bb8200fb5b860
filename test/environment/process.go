package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Process is a program that was started.
type Process struct {
	// Log is the path of the file with its output.
	Log  string
	name string
	cmd  *exec.Cmd
	done chan error
}

// stopTimeout is how long a process may take to exit before it is killed.
const stopTimeout = 20 * time.Second

// StartProcess starts a program and appends its output to NAME.log in dir. The kernel kills it when this program dies.
func StartProcess(dir, name, program string, args ...string) (*Process, error) {
	p := &Process{name: name, Log: filepath.Join(dir, name+".log"), done: make(chan error, 1)}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A process group of its own: Ctrl-C in the terminal does not reach it, and Stop stops it in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w: run `make build`", name, err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	return p, nil
}

// Exited reports whether the process has exited, and returns an error that says so.
func (p *Process) Exited() (bool, error) {
	select {
	case err := <-p.done:
		p.done <- err
		why := "it exited although nobody asked it to"
		if err != nil {
			why = err.Error()
		}
		return true, fmt.Errorf("%s ended: %s; its log %s ends with: %s", p.name, why, p.Log, p.lastLine())
	default:
		return false, nil
	}
}

// lastLine returns what the program said last.
func (p *Process) lastLine() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// Stop sends SIGTERM, and kills the process when it has not exited after stopTimeout.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case err := <-p.done:
		p.done <- err
		return nil
	case <-time.After(stopTimeout):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return fmt.Errorf("%s did not stop within %s and was killed; its log is %s", p.name, stopTimeout, p.Log)
}

// Kill kills the process, as a crash does, and returns when it has exited.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	p.done <- <-p.done
	return nil
}

// ProgramBeside returns the path of a program in the folder of the running one.
func ProgramBeside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not beside %s: run `make build`", name, self)
	}
	return path, nil
}

// tokenSeconds is longer than any run.
const tokenSeconds = 24 * 3600

// The manager runs as this service account.
const managerNamespace, managerName = "ingot-system", "ingot-manager"

// ManagerUser returns the user name with which the manager authenticates to the management cluster.
func (e *Environment) ManagerUser() string {
	return "system:serviceaccount:" + managerNamespace + ":" + managerName
}

// AccountKubeconfig writes a kubeconfig for a service account, with whose rights a program then runs. ingot-manager has those of config/rbac and no others.
func (e *Environment) AccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := e.ManagementClient.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("get the token of %s: %w", name, err)
	}
	e.Secrets = append(e.Secrets, request.Status.Token)
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: e.Management.Endpoint(), CertificateAuthorityData: e.Management.CA()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	path := filepath.Join(e.Dir, strings.TrimPrefix(name, "ingot-")+".kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}
