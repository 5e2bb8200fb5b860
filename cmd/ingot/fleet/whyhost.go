package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// DiagnoseHost says why a host that no Machine has is in its state.
func DiagnoseHost(host placement.HostFacts, now time.Time) Diagnosis {
	row := hostRow(host, nil)
	d := Diagnosis{Host: &row, now: now}
	if host.Record != nil {
		s := &host.Record.Status
		d.Attempt, d.Progress, d.FailingCalls = s.Wanted, s.Progress(), s.FailingCalls
		d.missing, d.others = diskNames(s)
	}
	d.Summary = fmt.Sprintf("host %s/%s is %s, and no Machine has it", row.Namespace, row.Name, row.State)
	if d.Next = d.diskStep(); d.Next == "" {
		d.Next = d.hostStep()
	}
	return d
}

// diagnose reads the Machine of that name or, where there is none, the host of that name that no Machine has.
func diagnose(ctx context.Context, k client.Client, namespace, name string, now time.Time) (Diagnosis, error) {
	d, machineErr := diagnoseMachine(ctx, k, namespace, name, now)
	if machineErr == nil {
		return d, nil
	}
	wantedNamespace, wanted, isQualified := strings.Cut(name, "/")
	if !isQualified {
		wantedNamespace, wanted = namespace, name
	}
	hosts, err := listHosts(ctx, k, wantedNamespace)
	if err != nil {
		return Diagnosis{}, machineErr // whoever may not read hosts asks for Machines
	}
	var found []placement.HostFacts
	for _, h := range hosts {
		if h.Host.Name == wanted && h.Host.Spec.ConsumerRef == nil {
			found = append(found, h)
		}
	}
	if len(found) != 1 {
		return Diagnosis{}, machineErr
	}
	return DiagnoseHost(found[0], now), nil
}
