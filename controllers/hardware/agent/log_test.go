package agent_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/logbuffer"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
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
