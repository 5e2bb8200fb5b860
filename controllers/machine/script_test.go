package machine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// joinByScript has the rig's tenant join by the script in the Secret licence, whose content the rig looks for everywhere.
func (r *rig) joinByScript() {
	r.t.Helper()
	tenant := &v1alpha1.TenantCluster{}
	if err := server.Client.Get(r.t.Context(), r.key("research"), tenant); err != nil {
		r.t.Fatal(err)
	}
	tenant.Spec.Join = v1alpha1.JoinSpec{Script: &v1alpha1.ScriptJoin{SecretRef: v1alpha1.LocalReference{Name: "licence"}}}
	if err := server.Client.Update(r.t.Context(), tenant); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) script() string { return "#!/bin/sh\n# " + r.licence() + "\nexec agent\n" }

func TestAScriptReachesItsNodeAndIsNowhereElse(t *testing.T) {
	r := newRig(t, 1)
	r.joinByScript()
	var log transcript
	r.log = funcr.New(log.add, funcr.Options{Verbosity: 100})
	r.start()
	r.addMachine(r.namespace)
	waits := func(what string) {
		t.Helper()
		management.Eventually(t, "the Machine says that the script "+what, func() bool {
			r.poke(r.namespace)
			ready := r.condition(r.namespace, v1alpha1.ConditionReady)
			return ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonNodeSecretMissing &&
				strings.Contains(ready.Message, "TenantCluster research: spec.join.script: the key script of Secret "+r.namespace+"/licence "+what)
		})
	}
	waits("is expected and not there")
	secret := &corev1.Secret{ObjectMeta: r.meta("licence"), Data: map[string][]byte{"script": []byte(r.licence())}}
	server.Create(t, secret)
	waits("cannot run on a node: its first line does not begin with #!")
	if h, _ := r.host("server-00"); h.Spec.Image != nil {
		t.Error("an installation was asked for that cannot join")
	}
	secret.Data["script"] = []byte(r.script())
	if err := server.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	r.poke(r.namespace)
	r.awaitInstallation(1)
	r.play("server-00")
	userData := r.claim().Data["userData"]
	for _, want := range []string{r.licence(), "INGOT_TOKEN=", "ingot-join-script.service"} {
		if !bytes.Contains(userData, []byte(want)) {
			t.Errorf("the node gets no %s", want)
		}
	}
	r.seenNowhere(&log, "server-00-claim")
	r.finishInstallation(r.namespace, 1)
	management.Eventually(t, "the claim Secret has neither token nor script", func() bool {
		claim := r.claim()
		return claim.Data["bootstrapToken"] == nil && len(claim.Data["userData"]) > 0 && !bytes.Contains(claim.Data["userData"], []byte(r.licence())) &&
			!bytes.Contains(claim.Data["userData"], []byte("INGOT_TOKEN"))
	})
	r.seenNowhere(&log)
}

func TestARollBeginsNoSoonerThanItsScriptIsThere(t *testing.T) {
	r, _ := readyRig(t)
	r.joinByScript()
	r.want(r.namespace, r.addRevision(3, "1.37.0"))
	management.Eventually(t, "the Machine says which Secret the roll needs", func() bool {
		r.poke(r.namespace)
		c := r.condition(r.namespace, v1alpha1.ConditionUpToDate)
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "Secret "+r.namespace+"/licence is expected and not there")
	})
	if s := r.machine(r.namespace).Status; s.Phase != v1alpha1.MachineReady || r.node(r.namespace).Spec.Unschedulable {
		t.Errorf("the Machine is %s, its Node cordoned: %v", s.Phase, r.node(r.namespace).Spec.Unschedulable)
	}
	server.Create(t, &corev1.Secret{ObjectMeta: r.meta("licence"), Data: map[string][]byte{"script": []byte(r.script())}})
	r.poke(r.namespace)
	management.Eventually(t, "the roll begins", func() bool { return r.machine(r.namespace).Status.Phase == v1alpha1.MachineDraining })
}
