package join

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// nodeVariable tells a process that it is the first one of a node, and has its options.
	nodeVariable  = "INGOT_TEST_JOIN_NODE"
	runtimeSocket = "/run/containerd/containerd.sock"
	startLimit    = time.Minute
)

// options describe a node.
type options struct {
	// Name is the node's name.
	Name string
	// Dir gets its logs and the program systemctl.
	Dir string
	// Programs has kubelet, kubeadm and containerd.
	Programs string
	// UserData is what its first boot reads: a #cloud-config.
	UserData []byte
}

// runAsNode runs a node, or systemctl on it, in place of the tests, and exits.
func runAsNode() {
	text := os.Getenv(nodeVariable)
	if text == "" {
		return
	}
	var o options
	err := json.Unmarshal([]byte(text), &o)
	if err == nil && filepath.Base(os.Args[0]) == "systemctl" {
		err = o.systemctl(os.Args[1:])
	} else if err == nil {
		err = o.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// start starts a node in mount, process and host name namespaces of its own. It ends when the returned function is called, and with this process. pid is that of
// its first process.
func (o options) start() (pid int, stop func() error, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return 0, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	if err := os.Symlink(self, filepath.Join(o.Dir, "systemctl")); err != nil {
		return 0, nil, err
	}
	log, err := os.Create(filepath.Join(o.Dir, "node.log"))
	if err != nil {
		return 0, nil, err
	}
	defer log.Close()
	command := exec.Command(self)
	command.Env = append(os.Environ(), nodeVariable+"="+string(text), "PATH="+o.Dir+":"+o.Programs+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL}
	in, err := command.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := command.Start(); err != nil {
		return 0, nil, err
	}
	return command.Process.Pid, func() error { _ = in.Close(); return command.Wait() }, nil
}

// run is the node's first boot: the files are written, containerd is started, and the commands run.
func (o options) run() error {
	if err := errors.Join(o.mountOwn(), syscall.Sethostname([]byte(o.Name))); err != nil {
		return err
	}
	var config struct {
		Files []struct {
			Path, Content, Permissions string
		} `json:"write_files"`
		Commands [][]string `json:"runcmd"`
	}
	if err := yaml.Unmarshal(o.UserData, &config); err != nil {
		return err
	}
	for _, f := range config.Files {
		mode, err := strconv.ParseUint(f.Permissions, 8, 32)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(f.Path), 0o755), os.WriteFile(f.Path, []byte(f.Content), os.FileMode(mode))); err != nil {
			return err
		}
	}
	if err := o.startContainerd(); err != nil {
		return err
	}
	for _, words := range config.Commands {
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		fmt.Printf("%v: %v\n%s", words, err, out)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func (o options) mountOwn() error {
	if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		return err
	}
	for _, dir := range []string{"/run", "/etc/cni", "/etc/containerd", "/etc/kubernetes", "/etc/systemd/system", "/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods"} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755")); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	return nil
}

func (o options) startContainerd() error {
	if err := o.background("containerd", exec.Command(filepath.Join(o.Programs, "containerd"))); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := os.Stat(runtimeSocket)
		if err == nil {
			return nil
		}
		if time.Since(began) > startLimit {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
	}
}

// background starts a program that runs until the node ends, or systemctl stops it.
func (o options) background(name string, command *exec.Cmd) error {
	log, err := os.Create(filepath.Join(o.Dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	return os.WriteFile("/run/"+name+".pid", []byte(strconv.Itoa(command.Process.Pid)), 0o600)
}

// systemctl does what systemd would with the units that user data writes. Other calls change nothing.
func (o options) systemctl(args []string) error {
	isStart := len(args) > 1 && (args[0] == "start" || args[0] == "restart" || args[0] == "enable" && args[1] == "--now")
	unit := strings.TrimSuffix(args[len(args)-1], ".service")
	switch {
	case isStart && args[1] == "--no-block":
		again := exec.Command(filepath.Join(o.Dir, "systemctl"), "start", unit)
		return o.background("start-"+unit, again)
	case isStart:
		return o.startUnit(unit)
	case args[0] == "stop":
		text, err := os.ReadFile("/run/" + unit + ".pid")
		if err != nil {
			return nil
		}
		pid, err := strconv.Atoi(string(text))
		return errors.Join(err, syscall.Kill(pid, syscall.SIGTERM))
	}
	return nil
}

// startUnit runs the commands of a unit and of its drop-ins, in their order.
func (o options) startUnit(unit string) error {
	var text []byte
	dropIns, _ := filepath.Glob("/etc/systemd/system/" + unit + ".service.d/*.conf")
	for _, f := range append([]string{"/etc/systemd/system/" + unit + ".service"}, dropIns...) {
		content, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		text = append(append(text, content...), '\n')
	}
	replaced := strings.NewReplacer("/usr/bin/kubelet", filepath.Join(o.Programs, "kubelet"), "/bin/systemctl", filepath.Join(o.Dir, "systemctl"),
		// The checks are of a whole machine: its kernel's configuration, its swap.
		"/usr/bin/kubeadm join", filepath.Join(o.Programs, "kubeadm")+" join --v=1 --ignore-preflight-errors=all").Replace(string(text))
	for _, line := range strings.Split(replaced, "\n") {
		path, isCondition := strings.CutPrefix(line, "ConditionPathExists=")
		_, err := os.Stat(strings.TrimPrefix(path, "!"))
		if isCondition && strings.HasPrefix(path, "!") == (err == nil) {
			fmt.Println(unit, "is not started:", line)
			return nil
		}
	}
	environment := os.Environ()
	for _, line := range strings.Split(replaced, "\n") {
		key, value, _ := strings.Cut(line, "=")
		mayFail := strings.HasPrefix(value, "-")
		value = strings.TrimPrefix(value, "-")
		command := exec.Command("sh", "-c", "exec "+value)
		command.Env = environment
		var err error
		switch {
		case value == "":
		case key == "EnvironmentFile":
			content, readErr := os.ReadFile(value)
			err = readErr
			for _, l := range strings.Split(string(bytes.TrimSpace(content)), "\n") {
				name, v, _ := strings.Cut(l, "=")
				environment = append(environment, name+"="+strings.Trim(v, `"`))
			}
		case key == "ExecStart" && !strings.Contains(replaced, "Type=oneshot"):
			if strings.Contains(replaced, "\nRestart=always\n") {
				command.Args[2] = "trap 'kill $pid; exit' TERM; while :; do " + value + " & pid=$!; wait $pid; echo \"ended with $?\" >&2; sleep 1; done"
			}
			return o.background(unit, command)
		case key == "ExecStart" || key == "ExecStartPre" || key == "ExecStartPost":
			command.Stdout, command.Stderr = os.Stdout, os.Stderr
			err = command.Run()
		}
		if err != nil && !mayFail {
			return fmt.Errorf("%s: %s: %w", unit, line, err)
		}
	}
	return nil
}
