package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// DiagnoseHost says why a host that has no Machine is in its state, and why no Machine can claim it. provider is its NodeProvider; nil: it is not known.
func DiagnoseHost(host placement.HostFacts, provider *v1alpha1.NodeProviderSpec, now time.Time) Diagnosis {
	row := hostRow(host, nil)
	d := Diagnosis{Host: &row, now: now}
	if provider != nil {
		setUse(&row, placement.CheckFree(host, *provider))
		d.provider = providerkind.Of(*provider)
	}
	if host.Record != nil {
		s := &host.Record.Status
		d.Attempt, d.Progress, d.FailingCalls = s.Wanted, s.Progress(), s.FailingCalls
		d.Queue = s.Queue
		d.missing, d.others = diskNames(s)
	}
	d.Summary = fmt.Sprintf("host %s/%s is %s, and no Machine has it", row.Namespace, row.Name, row.State)
	if ref := host.Host.Spec.ConsumerRef; ref != nil {
		d.Summary = fmt.Sprintf("host %s/%s is %s, and %s %s/%s has it", row.Namespace, row.Name, row.State, ref.Kind, ref.Namespace, ref.Name)
	}
	if d.Next = d.partStep(); d.Next == "" {
		d.Next = d.hostStep()
	}
	return d
}

// diagnose reads the Machine of that name or, where there is none, the host of that name with the Machine that has it.
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
		if h.Host.Name == wanted {
			found = append(found, h)
		}
	}
	if len(found) != 1 {
		return Diagnosis{}, machineErr
	}
	if ref := found[0].Host.Spec.ConsumerRef; v1alpha1.IsMachineRef(ref) {
		if d, err := diagnoseMachine(ctx, k, ref.Namespace, ref.Name, now); err == nil && d.Host != nil && d.Host.Name == wanted {
			return d, nil
		}
	}
	return DiagnoseHost(found[0], providerOfNamespace(ctx, k, found[0].Host.Namespace), now), nil
}
