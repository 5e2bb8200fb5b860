package kubelet

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func parse(words []string, config string) (settings, error) {
	return parseSettings(append([]string{"/usr/bin/kubelet", "--kubeconfig=/k"}, words...), "Host-1", func(string) ([]byte, error) {
		if config == "" {
			return nil, os.ErrNotExist
		}
		return []byte(config), nil
	}, nil)
}

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func TestKubeletDoesNotStartWithWhatKubeletRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		words  []string
		config string
		want   string
	}{
		"a label of Kubernetes":  {[]string{"--node-labels=node-role.kubernetes.io/worker=x"}, "", "unknown 'kubernetes.io' or 'k8s.io' labels"},
		"a label that is none":   {[]string{"--node-labels=a b=c"}, "", "--node-labels"},
		"a name that is none":    {[]string{"--hostname-override=a_b"}, "", "node name"},
		"no configuration":       {[]string{"--config=/c"}, "", "--config"},
		"an unknown field":       {[]string{"--config=/c"}, header + "providerId: x\n", "unknown field"},
		"another kind":           {[]string{"--config=/c"}, "apiVersion: v1\nkind: Pod\n", "/c"},
		"the same taint twice":   {[]string{"--config", "/c"}, header + "registerWithTaints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]\n", "twice"},
		"no kubeconfig to write": {[]string{"--kubeconfig="}, "", "--kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(test.words, test.config)
			if !errors.Is(err, errConfig) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestCommandLineAndFileAreReadAsKubeletReadsThem(t *testing.T) {
	s, err := parse([]string{"--config=/c", "--v", "2", "--node-labels=a=b,node.kubernetes.io/instance-type=h100", "--bootstrap-kubeconfig", "/b"},
		header+"providerID: ingot://u/1\nmaxPods: 250\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.name != "host-1" || s.labels["a"] != "b" || len(s.labels) != 2 || s.bootstrapFile != "/b" || s.file.ProviderID != "ingot://u/1" || s.file.MaxPods != 250 {
		t.Errorf("%+v", s)
	}
}

func TestABootstrapKubeconfigIsNeverQuoted(t *testing.T) {
	for _, text := range []string{"secret: [", "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: secret}}]\n"} {
		if _, err := readBootstrap([]byte(text)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
	}
}
