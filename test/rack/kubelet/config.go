package kubelet

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// errConfig is the error of a configuration with which kubelet does not start.
var errConfig = errors.New("kubelet does not start")

// settings are the values from the command line and the configuration file.
type settings struct {
	name           string
	bootstrapFile  string
	kubeconfigFile string
	labels         map[string]string
	file           kubeletconfig.KubeletConfiguration
}

// parseSettings reads the command line, with the program's name first, and the files that --config and --config-dir name.
func parseSettings(words []string, hostname string, readFile func(string) ([]byte, error), listFiles func(string) []string) (settings, error) {
	flags := parseFlags(words)
	s := settings{
		name:          strings.ToLower(strings.TrimSpace(cmp.Or(flags["hostname-override"], hostname))),
		bootstrapFile: flags["bootstrap-kubeconfig"], kubeconfigFile: flags["kubeconfig"], labels: map[string]string{},
	}
	if problems := validation.IsDNS1123Subdomain(s.name); len(problems) > 0 {
		return s, fmt.Errorf("%w: node name %q: %s", errConfig, s.name, strings.Join(problems, "; "))
	}
	if s.kubeconfigFile == "" {
		return s, fmt.Errorf("%w: without --kubeconfig it is no member of a cluster", errConfig)
	}
	for _, pair := range strings.Split(flags["node-labels"], ",") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if err := checkLabel(key, value); err != nil {
			return s, err
		}
		s.labels[key] = value
	}
	paths := []string{}
	if path := flags["config"]; path != "" {
		paths = append(paths, path)
	}
	if directory := flags["config-dir"]; directory != "" {
		for _, path := range listFiles(directory) {
			if strings.HasSuffix(path, dropInSuffix) {
				paths = append(paths, path)
			}
		}
	}
	if err := s.readFiles(paths, readFile); err != nil {
		return s, err
	}
	return s, checkTaints(s.file.RegisterWithTaints)
}

// decodeStrictly decodes as kubelet does: with case, by kind and version.
func decodeStrictly(text []byte, into *kubeletconfig.KubeletConfiguration) error {
	scheme := runtime.NewScheme()
	if err := kubeletconfig.AddToScheme(scheme); err != nil {
		return err
	}
	_, _, err := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true}).Decode(text, nil, into)
	return err
}

// parseFlags reads "--name=value", "--name value" and "--name".
func parseFlags(words []string) map[string]string {
	flags := map[string]string{}
	for i := 1; i < len(words); i++ {
		word, isFlag := strings.CutPrefix(words[i], "--")
		if !isFlag {
			continue
		}
		name, value, found := strings.Cut(word, "=")
		if !found && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value = words[i]
		}
		flags[name] = value
	}
	return flags
}

// checkLabel refuses what kubelet refuses: labels of Kubernetes' own domains that are not for nodes to set
// (cmd/kubelet/app/options: "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels").
func checkLabel(key, value string) error {
	if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
		return fmt.Errorf("%w: --node-labels %s=%s: %s", errConfig, key, value, strings.Join(problems, "; "))
	}
	domain, _, found := strings.Cut(key, "/")
	ofKubernetes := found && (domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || domain == "k8s.io" || strings.HasSuffix(domain, ".k8s.io"))
	if ofKubernetes && !kubeletapis.IsKubeletLabel(key) {
		return fmt.Errorf("%w: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: %s", errConfig, key)
	}
	return nil
}

// checkTaints returns an error for a taint that occurs twice, as kubelet does.
func checkTaints(taints []corev1.Taint) error {
	seen := map[string]bool{}
	for _, taint := range taints {
		id := taint.Key + ":" + string(taint.Effect)
		if seen[id] {
			return fmt.Errorf("%w: registerWithTaints has %s twice", errConfig, id)
		}
		seen[id] = true
	}
	return nil
}
