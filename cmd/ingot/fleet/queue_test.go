package fleet

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

func TestThePlaceOfAMachineInTheQueueOfItsNodeProviderIsShown(t *testing.T) {
	m := machine("training-x", v1alpha1.MachineProvisioning, 6, 9, isNot(v1alpha1.ReasonQueued, "host server-04 has the place 7"))
	m.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}
	m.Status.WaitingFor = "its turn, place 7"
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProvisioned, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonQueued, Message: "host server-04 has the place 7"})
	since := metav1.NewMicroTime(noon.Add(-5 * time.Minute))
	host := placement.HostFacts{
		Host:   &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-04"}},
		Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Queue: &v1alpha1.HostQueue{Operation: "Install", Place: 7, Since: since}}},
	}
	table := machineTable(MachineRows([]v1alpha1.Machine{m}, nil, nil, noon), noon)
	if row := table[len(table)-1]; row[len(row)-1] != "Queued: its turn, place 7" {
		t.Errorf("ingot machines: %v", row)
	}
	line := "\n  queue      place 7 for Install, since " + clockTime(since.Time) + "; "
	text := Diagnose(&m, &host, nil, noon).text()
	if !strings.Contains(text, line) || !strings.Contains(text, "Provisioned=False Queued: host server-04 has the place 7") {
		t.Errorf("ingot why of the Machine:\n%s", text)
	}
	host.Record.Status.Queue.Operation = "Erase"
	if text := DiagnoseHost(host, nil, noon).text(); !strings.Contains(text, strings.Replace(line, "Install", "Erase", 1)) {
		t.Errorf("ingot why of the host:\n%s", text)
	}
}
