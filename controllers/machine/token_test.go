package machine

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestATokenHasWhatItsJoinNeeds(t *testing.T) {
	for method, c := range map[v1alpha1.JoinMethod]struct {
		isSigning bool
		labels    []string
	}{
		v1alpha1.JoinTLSBootstrap: {false, nil},
		v1alpha1.JoinKubeadm:      {true, nil},
		v1alpha1.JoinVCluster:     {true, []string{"vcluster.loft.sh/token=true", "vcluster.loft.sh/token-node-type=worker"}},
	} {
		token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Data: map[string][]byte{}}
		addMethod(token, method)
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(token.Labels)) {
			labels = append(labels, key+"="+token.Labels[key])
		}
		if got := string(token.Data["usage-bootstrap-signing"]) == "true"; got != c.isSigning || !slices.Equal(labels, c.labels) {
			t.Errorf("%s: signing %v, labels %v", method, got, labels)
		}
	}
}
