package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/logbuffer"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

// savedLogs is the store of the boot service.
type savedLogs []agentlogs.Log

func (s *savedLogs) SaveLog(_ context.Context, log agentlogs.Log) error {
	*s = append(*s, log)
	return nil
}

// What the agent said before it had a network, and why it failed, are with the attempt when the server is off. The token is not.
func TestTheLogOfAFailedInstallationIsKeptWithTheAttempt(t *testing.T) {
	r := newRig(t, plainImage(8*mib), "raw", hardware.ConfigDrive{})
	r.change(hintOneMiB)
	r.served[5*mib] ^= 1
	disk := newMemoryDisk(32*mib, 0xff)
	token := r.boot()
	buffer := &logbuffer.Buffer{}
	buffer.AddSecret(token)
	config := r.config(token, disk)
	config.Log, config.LogChunk = slog.New(slog.NewTextHandler(io.MultiWriter(buffer, r.log), nil)), buffer.Chunk
	config.Log.Info("the network is up", "commandLine", "ingot.token="+token)
	for i := range 2000 {
		fmt.Fprintf(buffer, "kernel [1.5] nvme0n1: a message of many, number %d\n", i)
	}
	_, err := agent.Run(t.Context(), config)
	checkFailed(t, r, err, hardware.ReasonDigestMismatch, disk)
	r.logs.SaveDue(t.Context())
	if len(r.saved) == 0 {
		t.Fatal("no log is stored")
	}
	log := r.saved[len(r.saved)-1]
	if log.Attempt != 7 || log.Boot != 1 || log.Namespace != "metal" || log.Name != "gpu-1" || log.End < 100_000 || len(log.Text) > 64<<10 || len(log.Text) < 60<<10 {
		t.Errorf("attempt %d boot %d of %s/%s, %d of %d bytes", log.Attempt, log.Boot, log.Namespace, log.Name, len(log.Text), log.End)
	}
	for _, want := range []string{"number 1999\n", "msg=registered", "msg=failed reason=DigestMismatch"} {
		if !strings.Contains(log.Text, want) {
			t.Errorf("it lacks %q, and ends with:\n%s", want, log.Text[max(0, len(log.Text)-2000):])
		}
	}
	if strings.Contains(log.Text, token) {
		t.Error("it has the token")
	}
}

// What kept the agent from the boot service is on the console alone as long as it lasts. When it ends, the first chunk that is sent begins with it.
func TestTheTriesBeforeTheRegistrationAreInTheLog(t *testing.T) {
	r := newRig(t, nil, "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) { s.Work = netboot.Work{Operation: hardware.OpInspect} })
	buffer := &logbuffer.Buffer{}
	config := r.config(r.boot())
	config.Log, config.LogChunk = slog.New(slog.NewTextHandler(buffer, nil)), buffer.Chunk
	failures := []error{
		&net.DNSError{Err: "no such host", Name: "boot.hall-1.internal", IsNotFound: true},
		&pin.RefusedError{Seen: "one of the authority sha256:22", Expected: []string{"sha256:11"}},
		errors.New("connect: no route to host"),
	}
	config.HTTP = &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		if len(failures) > 0 {
			err := failures[0]
			failures = failures[1:]
			return nil, err
		}
		return http.DefaultTransport.RoundTrip(request)
	})}
	config.Log.Error("the network is not up", "reason", "NoAddress")
	if _, err := agent.Run(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	r.logs.SaveDue(t.Context())
	if len(r.saved) == 0 {
		t.Fatal("no log is stored")
	}
	text := r.saved[len(r.saved)-1].Text
	for _, want := range []string{"reason=NoAddress", "no such host", "sha256:22", "no route to host", "msg=registered"} {
		if _, rest, found := strings.Cut(text, want); !found {
			t.Errorf("it lacks %q after what came before:\n%s", want, text)
		} else {
			text = rest
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
