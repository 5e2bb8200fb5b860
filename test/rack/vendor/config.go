package vendor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// pluginConfig has the settings that decide which resources are registered.
type pluginConfig struct {
	migStrategy     string
	failOnInitError bool
	// sharing is by the resource's full name.
	sharing map[string]sharing
}

// hasMPS reports whether pods share GPUs by MPS.
func (c pluginConfig) hasMPS() bool {
	for _, s := range c.sharing {
		if s.kind == "mps" {
			return true
		}
	}
	return false
}

// sharing registers each device several times, possibly under another name.
type sharing struct {
	replicas int64
	name     string
	// kind is how: time-slicing, mps.
	kind string
}

// configFile is the plugin's configuration file, version v1 (api/config/v1). Its member resources is left out: the plugin
// says "not yet supported" to it and goes on.
type configFile struct {
	Version string `json:"version"`
	Flags   struct {
		MIGStrategy     string `json:"migStrategy"`
		FailOnInitError *bool  `json:"failOnInitError"`
	} `json:"flags"`
	Sharing struct {
		TimeSlicing replicatedResources `json:"timeSlicing"`
		MPS         replicatedResources `json:"mps"`
	} `json:"sharing"`
}

type replicatedResources struct {
	RenameByDefault bool `json:"renameByDefault"`
	Resources       []struct {
		Name     string `json:"name"`
		Rename   string `json:"rename"`
		Replicas int64  `json:"replicas"`
	} `json:"resources"`
}

// nvidiaConfig reads command line, environment and configuration file, in this order of precedence.
func nvidiaConfig(ctx context.Context, pod *corev1.Pod, container *corev1.Container, configMap func(context.Context, string) (map[string]string, error)) (pluginConfig, error) {
	config := pluginConfig{failOnInitError: true, sharing: map[string]sharing{}}
	var file configFile
	if name := option(container, "config-file", "CONFIG_FILE"); name != "" {
		text, err := mountedFile(ctx, pod, container, name, configMap)
		if err != nil {
			return config, err
		}
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			return config, fmt.Errorf("unable to parse config file %s: %w", name, err)
		}
		if file.Version != "v1" {
			return config, fmt.Errorf("unable to parse config file %s: unknown version: %q", name, file.Version)
		}
	}
	config.migStrategy = cmp.Or(option(container, "mig-strategy", "MIG_STRATEGY"), file.Flags.MIGStrategy)
	if file.Flags.FailOnInitError != nil {
		config.failOnInitError = *file.Flags.FailOnInitError
	}
	if text := option(container, "fail-on-init-error", "FAIL_ON_INIT_ERROR"); text != "" {
		config.failOnInitError = text != "false"
	}
	if len(file.Sharing.MPS.Resources) > 0 && config.migStrategy == "mixed" {
		return config, errors.New("using --mig-strategy=mixed is not supported with MPS")
	}
	return config, errors.Join(config.addSharing("time-slicing", file.Sharing.TimeSlicing), config.addSharing("mps", file.Sharing.MPS))
}

// NeedsMPS reports whether the device plugin in the pod shares GPUs by MPS, for which it needs the control daemon.
func NeedsMPS(ctx context.Context, pod *corev1.Pod, configMap func(context.Context, string) (map[string]string, error)) (bool, error) {
	config, err := nvidiaConfig(ctx, pod, pluginContainer(pod), configMap)
	for _, shared := range config.sharing {
		if shared.kind == "mps" {
			return true, err
		}
	}
	return false, err
}

// option returns a flag of the command line, or else its environment variable.
func option(container *corev1.Container, flag, variable string) string {
	if text, ok := arguments(container)[flag]; ok {
		return text
	}
	for _, env := range container.Env {
		if env.Name == variable {
			return env.Value
		}
	}
	return ""
}

func (c *pluginConfig) addSharing(word string, kind replicatedResources) error {
	for _, resource := range kind.Resources {
		name := prefix + strings.TrimPrefix(resource.Name, prefix)
		if resource.Replicas < 2 {
			return fmt.Errorf("number of replicas must be >= 2, %s has %d", name, resource.Replicas)
		}
		renamed := name
		if kind.RenameByDefault {
			renamed += ".shared"
		}
		if resource.Rename != "" {
			renamed = prefix + strings.TrimPrefix(resource.Rename, prefix)
		}
		c.sharing[name] = sharing{replicas: resource.Replicas, name: renamed, kind: word}
	}
	return nil
}

// arguments returns the flags on the container's command line.
func arguments(container *corev1.Container) map[string]string {
	out := map[string]string{}
	words := append(append([]string(nil), container.Command...), container.Args...)
	for i, word := range words {
		flag, isFlag := strings.CutPrefix(word, "-")
		if !isFlag {
			continue
		}
		name, text, found := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		switch {
		case found:
			out[name] = text
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			out[name] = words[i+1]
		default:
			out[name] = "true"
		}
	}
	return out
}

// mountedFile reads a file of a ConfigMap volume that is mounted into the container.
func mountedFile(ctx context.Context, pod *corev1.Pod, container *corev1.Container, name string, configMap func(context.Context, string) (map[string]string, error)) (string, error) {
	for _, mount := range container.VolumeMounts {
		inside, ok := strings.CutPrefix(path.Clean(name), path.Clean(mount.MountPath)+"/")
		if !ok {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			data, err := configMap(ctx, volume.ConfigMap.Name)
			if err != nil {
				return "", fmt.Errorf("unable to read config file %s: %w", name, err)
			}
			for _, item := range volume.ConfigMap.Items {
				if item.Path == inside {
					inside = item.Key
				}
			}
			if text, ok := data[inside]; ok {
				return text, nil
			}
		}
	}
	return "", fmt.Errorf("unable to load config: open %s: no such file or directory", name)
}
