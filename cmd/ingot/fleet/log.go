package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
	"github.com/ingot-dev/ingot/controllers/host/attemptlog"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// AgentLog is what `ingot why --log -o json` prints.
type AgentLog struct {
	// Host is NAMESPACE/NAME.
	Host string `json:"host"`
	// Attempt and Boot are those of the agent, ReceivedAt when the boot service received the end of the log.
	Attempt    int64     `json:"attempt"`
	Boot       int       `json:"boot"`
	ReceivedAt time.Time `json:"receivedAt"`
	// Length is the length of the whole log in bytes, of which Text is the end.
	Length int64  `json:"length"`
	Text   string `json:"text"`
}

// logCommand prints the log of the agent that last worked on the host of a Machine, or on a host.
func logCommand(cmd *cobra.Command, flags *connect.Flags, name string) error {
	json, err := flags.IsJSON(cmd)
	if err != nil {
		return err
	}
	k, err := flags.Client(cmd)
	if err != nil {
		return err
	}
	host, err := findHost(cmd.Context(), k, flags.Namespace(), name)
	if err != nil {
		return err
	}
	log, err := attemptlog.Read(cmd.Context(), k, host.Namespace, host.Name)
	switch {
	case apierrors.IsNotFound(err):
		if provider := providerOfNamespace(cmd.Context(), k, host.Namespace); provider != nil {
			if text := logElsewhere(host, providerkind.Of(*provider)); text != "" {
				return errors.New(text)
			}
		}
		return fmt.Errorf("there is no log of host %s: no agent has sent one since it was registered; an agent that has no network says so on the console of the server", host)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the log of host %s is for those who run the hosts: %w", host, err)
	case err != nil:
		return fmt.Errorf("read the log of host %s: %w", host, err)
	}
	if json {
		return writeJSON(cmd.OutOrStdout(), AgentLog{
			Host: host.String(), Attempt: log.Attempt, Boot: log.Boot, ReceivedAt: log.At, Length: log.End, Text: log.Text,
		})
	}
	return writeLog(cmd.OutOrStdout(), log, time.Now())
}

// writeLog writes a log with a line that says whose it is.
func writeLog(out io.Writer, log agentlogs.Log, now time.Time) error {
	text := log.Text
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := fmt.Fprintf(out, "# agent on host %s/%s, attempt %d, boot %d, received %s ago; the last %d of %d bytes\n%s",
		log.Namespace, log.Name, log.Attempt, log.Boot, timeSince(&log.At, now), len(log.Text), log.End, text)
	return err
}

// findHost returns the host of the Machine of that name, or else the host of that name in any namespace that the user may read.
func findHost(ctx context.Context, k client.Client, namespace, name string) (types.NamespacedName, error) {
	m, machineErr := connect.FindMachine(ctx, k, namespace, name)
	if machineErr == nil {
		if m.Status.HostRef == nil {
			return types.NamespacedName{}, fmt.Errorf("no host belongs to Machine %s/%s: ingot why %s says why", m.Namespace, m.Name, name)
		}
		return types.NamespacedName{Namespace: m.Status.HostRef.Namespace, Name: m.Status.HostRef.Name}, nil
	}
	var hosts metal3.BareMetalHostList
	if err := k.List(ctx, &hosts); err != nil {
		return types.NamespacedName{}, machineErr
	}
	wantedNamespace, wanted, isQualified := strings.Cut(name, "/")
	if !isQualified {
		wantedNamespace, wanted = namespace, name
	}
	var found []types.NamespacedName
	for i := range hosts.Items {
		if h := &hosts.Items[i]; h.Name == wanted && (wantedNamespace == "" || h.Namespace == wantedNamespace) {
			found = append(found, client.ObjectKeyFromObject(h))
		}
	}
	switch len(found) {
	case 0:
		return types.NamespacedName{}, fmt.Errorf("%w; there is no host of that name either", machineErr)
	case 1:
		return found[0], nil
	}
	return types.NamespacedName{}, fmt.Errorf("hosts %s and %s have that name: say NAMESPACE/NAME", found[0], found[1])
}
