package rollout_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// beforeThePatch runs change before the first change of a NodeType that the site's commands ask for.
func (s *site) beforeThePatch(change func()) {
	s.t.Helper()
	backend, err := url.Parse(server.Config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	transport, err := rest.TransportFor(server.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	isChanged := false
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		if r.In.Method == http.MethodPatch && !isChanged {
			isChanged = true
			change()
		}
		r.SetURL(backend)
	}}
	front := httptest.NewServer(proxy)
	s.t.Cleanup(front.Close)
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"front": {Server: front.URL}}, Contexts: map[string]*clientcmdapi.Context{"front": {Cluster: "front"}}, CurrentContext: "front",
	}
	content, err := clientcmd.Write(config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.kubeconfig = filepath.Join(s.t.TempDir(), "front")
	if err := os.WriteFile(s.kubeconfig, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestAChangeIsDecidedAgainWhenTheManagerWritesInBetween(t *testing.T) {
	asked := func(s *site) {
		s.judged(func(n *v1alpha1.NodeTypeStatus) {
			n.TargetRevision, n.TargetRendering, n.RefreshedRendering = s.name+"-one", s.name+"-one-a", s.name+"-one-b"
			n.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRenderingCurrent, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRenderingCurrent, Message: "one", LastTransitionTime: metav1.Now()}}
		})
	}
	t.Run("a count", func(t *testing.T) {
		s := newSite(t)
		asked(s)
		s.beforeThePatch(func() { s.judged(func(n *v1alpha1.NodeTypeStatus) { n.Machines.Total++ }) })
		if status, out, stderr := s.run("refresh", s.name); status != cli.ExitOK || s.nodeType().Spec.Rendering != s.name+"-one-b" {
			t.Errorf("status %d: %s%s; spec.rendering %s", status, out, stderr, s.nodeType().Spec.Rendering)
		}
	})
	t.Run("what it was decided by", func(t *testing.T) {
		s := newSite(t)
		asked(s)
		s.beforeThePatch(func() { s.judged(func(n *v1alpha1.NodeTypeStatus) { n.RefreshedRendering = "" }) })
		if status, out, stderr := s.run("refresh", s.name); status != cli.ExitFailed || !strings.Contains(stderr, "has nothing to refresh: one") || s.nodeType().Spec.Rendering != "" {
			t.Errorf("status %d: %s%s; spec.rendering %s", status, out, stderr, s.nodeType().Spec.Rendering)
		}
	})
}
