package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// endpointGrace is the time for which kubelet keeps the resources of a plugin that has ended, with no healthy devices
// (pkg/kubelet/cm/devicemanager: endpointStopGracePeriod).
const endpointGrace = 5 * time.Minute

// servePlugin serves a device plugin from its registration to its end.
func (k *Kubelet) servePlugin(ctx context.Context, worker *podWorker, pod *corev1.Pod) {
	k.pause(ctx, worker, k.options.Plugin)
	if ctx.Err() != nil || worker.isEnding() {
		return
	}
	registered, err := k.registerPod(ctx, worker, pod)
	if err != nil {
		k.log.Warn("a device plugin ends again and again", "pod", podName(pod), "error", err)
		k.setStatus(ctx, pod, k.runningStatus(pod, err.Error()))
		return
	}
	k.log.Info("a device plugin has registered", "pod", podName(pod), "resources", fmt.Sprint(registered))
	k.setDevices(pod.UID, registered)
	select {
	case <-ctx.Done():
		return // kubelet ends with its plugins
	case <-worker.ending:
	case <-worker.gone:
	}
	k.withdrawDevices(ctx, pod.UID)
}

// registerPod returns the devices that the pod registers. Pods of ActingPlugins are retried until they succeed.
func (k *Kubelet) registerPod(ctx context.Context, worker *podWorker, pod *corev1.Pod) (devices map[corev1.ResourceName]Devices, err error) {
	read := func(ctx context.Context, name string) (map[string]string, error) {
		found, err := k.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return found.Data, nil
	}
	acting, ok := k.options.Plugins.(ActingPlugins)
	if !ok {
		return k.options.Plugins.Register(ctx, pod, read)
	}
	alive, cancel := worker.podContext(ctx)
	defer cancel()
	err = k.retry(alive, "running a vendor's pod", minPause, maxPause, func() error {
		node, err := k.client.CoreV1().Nodes().Get(alive, k.settings.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		labels, found, err := acting.RunPod(alive, pod, node, read)
		err = errors.Join(err, k.setNodeLabels(alive, pod, node, labels))
		if devices = found; err != nil && alive.Err() == nil {
			k.setStatus(ctx, pod, k.runningStatus(pod, err.Error()))
		}
		return err
	})
	if err == nil {
		k.setStatus(ctx, pod, k.runningStatus(pod, ""))
	}
	return devices, err
}

// setNodeLabels sets labels of the node with the pod's service account.
func (k *Kubelet) setNodeLabels(ctx context.Context, pod *corev1.Pod, node *corev1.Node, labels map[string]string) error {
	changed := false
	for key, value := range labels {
		changed = changed || node.Labels[key] != value
		metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
	}
	if !changed {
		return nil
	}
	client, done, err := k.podClient(pod)
	if err != nil {
		return err
	}
	defer done()
	_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// setDevices assigns the resources to the plugin that registered them last.
func (k *Kubelet) setDevices(plugin types.UID, devices map[corev1.ResourceName]Devices) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, count := range devices {
		k.devices[name], k.owners[name] = count, plugin
	}
	k.requestReport()
}

// withdrawDevices makes a plugin's devices unhealthy at once, and removes them when no plugin has registered them again
// after endpointGrace.
func (k *Kubelet) withdrawDevices(ctx context.Context, plugin types.UID) {
	k.changeDevices(plugin, func(devices *Devices) { devices.Healthy = 0 })
	k.workers.Go(func() {
		if k.options.Wait(ctx, endpointGrace) == nil {
			k.changeDevices(plugin, func(devices *Devices) { devices.Total = 0 })
		}
	})
}

// changeDevices changes the resources that still belong to the plugin.
func (k *Kubelet) changeDevices(plugin types.UID, change func(*Devices)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, devices := range k.devices {
		if k.owners[name] == plugin {
			change(&devices)
			k.devices[name] = devices
		}
	}
	k.requestReport()
}

// allocateDevices allocates the devices that the pod requests. It returns the reason why kubelet refuses the pod, or "".
func (k *Kubelet) allocateDevices(worker *podWorker) (refusal string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, wanted := range requestedDevices(worker.pod) {
		free := k.devices[name].Healthy
		for _, other := range k.pods {
			if other.holdsDevices {
				free -= requestedDevices(other.pod)[name]
			}
		}
		if wanted > free {
			return fmt.Sprintf("Allocate failed due to requested number of devices unavailable for %s. Requested: %d, Available: %d, which is unexpected", name, wanted, free)
		}
	}
	worker.holdsDevices = true
	return ""
}

// requestedDevices returns the devices that a pod's containers request, without those that are allocated by a claim.
func requestedDevices(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	out, claimed := map[corev1.ResourceName]int64{}, map[corev1.ResourceName]bool{}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		for _, request := range extended.RequestMappings {
			claimed[corev1.ResourceName(request.ResourceName)] = true
		}
	}
	for _, container := range pod.Spec.Containers {
		for name, quantity := range container.Resources.Limits {
			if isExtended(name) && !claimed[name] {
				out[name] += quantity.Value()
			}
		}
	}
	return out
}
