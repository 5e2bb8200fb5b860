package fleet

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// hostWithTPM returns a host with what is listed and what is kept of its TPM.
func hostWithTPM(listed string, kept *v1alpha1.HostTPM) placement.HostFacts {
	host := placement.HostFacts{Host: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "a"}}, Record: &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{TPM: kept}}}
	if listed != "" {
		host.Host.Annotations = map[string]string{v1alpha1.AnnotationTPMKey: listed}
	}
	return host
}

func TestWideHostsSayByWhichTPMTheyAreKnown(t *testing.T) {
	key, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for _, c := range []struct {
		listed string
		kept   *v1alpha1.HostTPM
		want   string
	}{
		{"", nil, "unknown"}, {"", &v1alpha1.HostTPM{Proof: "None"}, "none"}, {"none", &v1alpha1.HostTPM{Proof: "None"}, "none listed"},
		{"", &v1alpha1.HostTPM{Proof: "FirstUse", Key: key}, "abababababababab first use"}, {key, &v1alpha1.HostTPM{Proof: "FirstUse", Key: key}, "abababababababab listed"},
		{other, &v1alpha1.HostTPM{Proof: "Listed", Key: key}, "cdcdcdcdcdcdcdcd listed, not seen"}, {key, nil, "abababababababab listed, not seen"},
		{"none", &v1alpha1.HostTPM{Proof: "FirstUse", Key: key}, "none listed, not seen"}, {"none", nil, "none listed, not seen"}, {"typo", nil, "invalid listed, not seen"},
	} {
		rows := HostRows([]placement.HostFacts{hostWithTPM(c.listed, c.kept)}, nil, nil, nil)
		wide, narrow := hostTable(rows, true), hostTable(rows, false)
		if at := len(wide[0]) - 2; wide[0][at] != "TPM" || wide[1][at] != c.want || len(narrow[1]) != len(wide[1])-1 {
			t.Errorf("%q listed and %+v kept: %q, narrow %q", c.listed, c.kept, wide[1], narrow[1])
		}
	}
}

func TestWhySaysHowAnotherTPMIsAccepted(t *testing.T) {
	key := strings.Repeat("ab", 32)
	const annotate = "kubectl annotate --overwrite bmh -n metal a ingot.dev/tpm-key="
	for _, c := range []struct {
		seen   v1alpha1.HostTPM
		reason string
		want   string
	}{
		{v1alpha1.HostTPM{Proof: "Differs", Key: key}, "TPMDiffers", "if the board was replaced, accept what answered: " + annotate + key},
		{v1alpha1.HostTPM{Proof: "None"}, "TPMDiffers", annotate + "none"},
		{v1alpha1.HostTPM{Proof: "Unlisted", Key: key}, "", "if it is the server's: " + annotate + key},
		{v1alpha1.HostTPM{Proof: "Failed", Error: "TPM_RC_FAILURE"}, "", "  tpm        TPM_RC_FAILURE\n"},
	} {
		host := hostWithTPM("", nil)
		host.Record.Status.Wanted = &v1alpha1.WantedAttempt{Number: 3, Operation: "Erase", Reason: c.reason}
		if c.reason != "" {
			host.Record.Status.Wanted.Outcome = v1alpha1.AttemptFailed
		}
		host.Record.Status.Attempt = &v1alpha1.HostAttempt{Number: 3, Channel: "Network", TPM: &c.seen}
		if text := DiagnoseHost(host, nil, noon).text(); !strings.Contains(text, c.want) {
			t.Errorf("%+v: expected %q in\n%s", c.seen, c.want, text)
		}
	}
}
