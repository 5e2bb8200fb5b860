package ironic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// heartbeatInterval is the time between two heartbeats, and between two tries to find the node, unless AgentOptions say another one.
const heartbeatInterval = 200 * time.Millisecond

// agentAPIVersion has the agent's token in a lookup. https://docs.openstack.org/ironic-python-agent/latest/contributor/index.html
const agentAPIVersion = "1.68"

// AgentError is an error as Ironic's agent reports one for a command.
type AgentError struct {
	Type    string `json:"type"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	Details string `json:"details"`
}

// AgentOptions configure an Agent.
type AgentOptions struct {
	// Absent means that the agent never starts.
	Absent bool
	// Fails maps the name of a step, write_image or erase_devices, to the error that it ends with.
	Fails map[string]AgentError
	// Hangs has the steps that never end.
	Hangs map[string]bool
	// WriteImage does what write_image asks for, with the config drive as Ironic encodes it; nil: nothing is written.
	WriteImage func(ctx context.Context, image Image, configDrive string) error
	// Interval is the time between two heartbeats of an agent that has nothing to say, and how long a server takes to boot again; 0: 200 ms. Set does not change it. Each heartbeat costs
	// Ironic as much as 20 ms, so that many agents need a longer one.
	Interval time.Duration
	// Listen is the address and port that the agent takes commands on, and that Ironic must reach; empty: a free port of the loopback.
	Listen string
	// Token is the agent's token where Ironic has given it with the boot; empty: it comes with the lookup.
	Token string
	// PowerOff is called, once, when Ironic has the agent power its machine off; nil: nothing is.
	PowerOff func()
	// Erase does what the step erase_devices or erase_devices_metadata asks for; nil: nothing is erased.
	Erase func(step string) error
}

// Image is what write_image says of an image.
type Image struct {
	// URLs are where it can be downloaded from.
	URLs []string
	// HashAlgorithm and Hash are those of the content.
	HashAlgorithm string `json:"os_hash_algo"`
	Hash          string `json:"os_hash_value"`
}

// Agent speaks the protocol of Ironic's agent for one node, whenever Ironic waits for the node's agent. It touches no disk.
type Agent struct {
	endpoint, mac string
	interval      time.Duration
	ctx           context.Context // ends with the agent
	stop          func()
	ended         sync.WaitGroup

	mu       sync.Mutex
	options  AgentOptions
	node     string
	token    string
	commands []map[string]any
	done     []string
	drive    string
	// isWorking is set while something is done to the disks. The next heartbeat says that it is done.
	isWorking bool
	// quiet is until when it has nothing to say.
	quiet time.Time
}

// StartAgent starts an agent for the node with a port of this MAC address. It ends with the test.
func StartAgent(t testing.TB, endpoint, mac string, options AgentOptions) *Agent {
	t.Helper()
	a, err := NewAgent(endpoint, mac, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	return a
}

// NewAgent starts an agent for the node with a port of this MAC address. Stop ends it.
func NewAgent(endpoint, mac string, options AgentOptions) (*Agent, error) {
	listener, err := net.Listen("tcp", cmp.Or(options.Listen, "127.0.0.1:0")) //nolint:noctx // it does not wait
	if err != nil {
		return nil, fmt.Errorf("serve an agent of Ironic: %w", err)
	}
	a := &Agent{endpoint: endpoint, mac: mac, interval: options.Interval, options: options}
	server := &http.Server{Handler: http.HandlerFunc(a.serve), ReadHeaderTimeout: 10 * time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	a.ctx = ctx
	a.ended.Go(func() { a.run(ctx, "http://"+listener.Addr().String()) })
	a.ended.Go(func() { _ = server.Serve(listener) })
	a.stop = func() {
		cancel()
		_ = server.Close()
		a.ended.Wait()
	}
	return a, nil
}

// Stop ends the agent.
func (a *Agent) Stop() { a.stop() }

// Set changes what the agent does from its next command on.
func (a *Agent) Set(options AgentOptions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.options = options
}

// Done returns the steps that the agent has carried out, and the config drive that it was given last, as Ironic encodes it.
func (a *Agent) Done() (steps []string, configDrive string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.done...), a.drive
}

// run looks the node up, as an agent does that has just booted, and then sends heartbeats until Ironic no more takes them.
func (a *Agent) run(ctx context.Context, callback string) {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.mu.Lock()
		absent, token := a.options.Absent || a.isWorking || time.Now().Before(a.quiet), a.token
		a.mu.Unlock()
		switch {
		case absent:
		case token == "":
			a.lookUp(ctx)
		default:
			a.heartbeat(ctx, callback)
		}
	}
}

func (a *Agent) lookUp(ctx context.Context) {
	var found struct {
		Node   struct{ UUID string }
		Config struct {
			Token string `json:"agent_token"`
		}
	}
	if status, err := a.send(ctx, http.MethodGet, "/v1/lookup?addresses="+url.QueryEscape(a.mac), nil, &found); err != nil || status != http.StatusOK {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.node, a.token, a.commands = found.Node.UUID, cmp.Or(a.options.Token, found.Config.Token), nil
}

func (a *Agent) heartbeat(ctx context.Context, callback string) {
	a.mu.Lock()
	node, token, said := a.node, a.token, len(a.commands)
	a.mu.Unlock()
	body := map[string]string{"callback_url": callback, "agent_version": "9.0.0", "agent_token": token}
	status, err := a.send(ctx, http.MethodPost, "/v1/heartbeat/"+node, body, nil)
	switch {
	case err != nil || status == http.StatusConflict || status >= http.StatusInternalServerError: // said again at once
	case status == http.StatusAccepted:
		a.mu.Lock()
		if len(a.commands) == said {
			a.quiet = time.Now().Add(a.interval)
		}
		a.mu.Unlock()
	default:
		a.reboot()
	}
}

// reboot forgets what an agent has in its memory.
func (a *Agent) reboot() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token, a.commands = "", nil
}

func (a *Agent) send(ctx context.Context, method, target string, body, into any) (int, error) {
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return 0, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, a.endpoint+target, &payload)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-OpenStack-Ironic-API-Version", agentAPIVersion)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if into == nil || response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		if bytes.Contains(bytes.ToLower(text), []byte("conductor")) {
			return http.StatusServiceUnavailable, nil // Ironic has just started: to that it answers as to a mistake of the agent
		}
		return response.StatusCode, nil
	}
	return response.StatusCode, json.NewDecoder(response.Body).Decode(into)
}

// serve answers the conductor: it lists the commands, or takes one.
func (a *Agent) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(map[string]any{"commands": a.commands})
		return
	}
	var command struct {
		Name   string
		Params struct {
			Step struct {
				Step string
				Args struct {
					ConfigDrive string
					Image       Image `json:"image_info"`
				}
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&command); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := a.execute(command.Name, command.Params.Step.Step)
	a.quiet = time.Time{}
	args := command.Params.Step.Args
	a.touchDisks(answer, command.Params.Step.Step, args.Image, args.ConfigDrive)
	a.commands = append(a.commands, answer)
	if command.Name == "standby.power_off" {
		a.token, a.commands, a.quiet = "", nil, time.Now().Add(a.interval)
		if a.options.PowerOff != nil {
			defer a.options.PowerOff()
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// touchDisks begins to do to the disks what the step asks for, and changes the answer when that has ended. A step that hangs or fails anyway touches none.
func (a *Agent) touchDisks(answer map[string]any, step string, image Image, configDrive string) {
	if answer["command_status"] != "SUCCEEDED" {
		return
	}
	var work func() error
	if options := a.options; step == "write_image" {
		a.drive = configDrive
		if options.WriteImage != nil {
			work = func() error { return options.WriteImage(a.ctx, image, configDrive) }
		}
	} else if strings.HasPrefix(step, "erase_devices") && options.Erase != nil {
		work = func() error { return options.Erase(step) }
	}
	if work == nil {
		return
	}
	answer["command_status"], a.isWorking = "RUNNING", true
	a.ended.Go(func() {
		err := work()
		a.mu.Lock()
		defer a.mu.Unlock()
		answer["command_status"], a.isWorking, a.quiet = "SUCCEEDED", false, time.Time{}
		if err != nil {
			answer["command_status"], answer["command_error"] = "FAILED", AgentError{Type: "ImageWriteError", Code: 500, Message: err.Error()}
		}
	})
}

// execute returns the result of a command. The name of a result is the command's without its extension.
func (a *Agent) execute(name, step string) map[string]any {
	answer := map[string]any{
		"id": name, "command_name": name[strings.LastIndexByte(name, '.')+1:], "command_status": "SUCCEEDED", "command_error": nil, "command_result": map[string]any{},
	}
	version := map[string]string{"generic_hardware_manager": "1.1"}
	switch name {
	case "clean.get_clean_steps":
		answer["command_result"] = map[string]any{"hardware_manager_version": version, "clean_steps": map[string]any{"Generic": []any{
			stepOf("erase_devices"), stepOf("erase_devices_metadata"),
		}}}
	case "deploy.get_deploy_steps":
		answer["command_result"] = map[string]any{"hardware_manager_version": version, "deploy_steps": map[string]any{"Generic": []any{stepOf("write_image")}}}
	case "clean.execute_clean_step", "deploy.execute_deploy_step":
		failure, fails := a.options.Fails[step]
		switch {
		case a.options.Hangs[step]:
			answer["command_status"] = "RUNNING"
			return answer
		case fails:
			answer["command_status"], answer["command_error"], answer["command_result"] = "FAILED", failure, nil
			return answer
		}
		a.done = append(a.done, step)
		// Ironic takes a result for that of its step only when the step is in it.
		answer["command_result"] = map[string]any{"clean_result": nil, "deploy_result": nil, "clean_step": stepOf(step), "deploy_step": stepOf(step)}
	}
	return answer
}

func stepOf(name string) map[string]any {
	return map[string]any{"step": name, "interface": "deploy", "priority": 0, "reboot_requested": false, "abortable": true}
}
