package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const (
	// sliceCleanupDelay is the time for which kubelet keeps the slices of a driver that has ended (pkg/kubelet/cm/dra/plugin).
	sliceCleanupDelay = 30 * time.Second
	// minPause and maxPause are the shortest and the longest pause between attempts.
	minPause, maxPause = time.Second, 10 * time.Second
)

// errNotPrepared is the error of a pod whose claims are not ready.
var errNotPrepared = errors.New("failed to prepare dynamic resources")

// serveDriver serves a DRA driver from its registration to its end.
func (k *Kubelet) serveDriver(ctx context.Context, worker *podWorker, pod *corev1.Pod, driver string) {
	k.pause(ctx, worker, k.options.Plugin)
	alive, cancel := worker.podContext(ctx)
	defer cancel()
	if alive.Err() != nil {
		return
	}
	k.registerDriver(driver, pod)
	// Its container ends and is started again, until it runs or the pod ends.
	err := k.retry(alive, "running DRA driver "+driver, minPause, maxPause, func() error {
		err := k.runDriver(alive, pod)
		if err != nil && alive.Err() == nil {
			k.setStatus(ctx, pod, k.runningStatus(pod, err.Error()))
		}
		return err
	})
	k.log.Info("a DRA driver has ended", "pod", podName(pod), "error", err)
	if ctx.Err() == nil {
		k.unregisterDriver(ctx, driver, pod)
	}
}

// runDriver runs the driver once.
func (k *Kubelet) runDriver(ctx context.Context, pod *corev1.Pod) error {
	client, done, err := k.podClient(pod)
	if err != nil {
		return err
	}
	defer done()
	return k.options.Drivers.RunDriver(ctx, DriverPod{Pod: pod, Node: k.settings.name, Client: client, Retry: func(ctx context.Context, doing string, attempt func() error) error {
		return k.retry(ctx, doing, minPause, maxPause, attempt)
	}})
}

func (k *Kubelet) registerDriver(driver string, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drivers[driver] = pod.UID
}

// unregisterDriver deletes the driver's slices unless the driver registers again in time.
func (k *Kubelet) unregisterDriver(ctx context.Context, driver string, pod *corev1.Pod) {
	k.mu.Lock()
	last := k.drivers[driver] == pod.UID
	if last {
		delete(k.drivers, driver)
	}
	k.mu.Unlock()
	if !last {
		return
	}
	k.workers.Go(func() {
		if k.options.Wait(ctx, sliceCleanupDelay) == nil && !k.isDriverRegistered(driver) {
			k.deleteSlices(ctx, driver)
		}
	})
}

func (k *Kubelet) isDriverRegistered(driver string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.drivers[driver]
	return ok
}

// deleteSlices deletes the node's ResourceSlices of one driver, or of all when driver is "".
func (k *Kubelet) deleteSlices(ctx context.Context, driver string) {
	selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: k.settings.name}
	if driver != "" {
		selector[resourcev1.ResourceSliceSelectorDriver] = driver
	}
	err := k.retry(ctx, "deleting the node's ResourceSlices", minPause, maxPause, func() error {
		err := k.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: selector.String()})
		if apierrors.IsNotFound(err) {
			return nil // a cluster that does not serve resource.k8s.io/v1
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		k.log.Warn("ResourceSlices remain", "error", err)
	}
}

// awaitClaims waits until the pod's claims are ready for its containers, or the pod ends.
func (k *Kubelet) awaitClaims(ctx context.Context, worker *podWorker, pod *corev1.Pod) {
	names := claimNames(pod)
	if len(names) == 0 {
		return
	}
	alive, cancel := worker.podContext(ctx)
	defer cancel()
	err := k.retry(alive, "preparing the claims of "+podName(pod), minPause, maxPause, func() error {
		for _, name := range names {
			if err := k.checkClaim(alive, pod, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && alive.Err() == nil {
		k.log.Warn("a pod does not start", "pod", podName(pod), "error", err)
	}
}

// claimNames returns the names of the pod's claims, including those made from templates and for extended resources.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			names = append(names, *claim.ResourceClaimName)
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.ResourceClaimName != nil && !slices.Contains(names, *made.ResourceClaimName) {
			names = append(names, *made.ResourceClaimName)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		names = append(names, extended.ResourceClaimName)
	}
	return names
}

// checkClaim makes kubelet's checks before it calls the drivers, and checks that the drivers are registered.
func (k *Kubelet) checkClaim(ctx context.Context, pod *corev1.Pod, name string) error {
	claim, err := k.client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotPrepared, err)
	}
	reserved := slices.ContainsFunc(claim.Status.ReservedFor, func(who resourcev1.ResourceClaimConsumerReference) bool { return who.UID == pod.UID })
	if claim.Status.Allocation == nil || !reserved {
		return fmt.Errorf("%w: ResourceClaim %s is not allocated to pod %s", errNotPrepared, name, podName(pod))
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if !k.isDriverRegistered(result.Driver) {
			return fmt.Errorf("%w: DRA driver %s is not registered", errNotPrepared, result.Driver)
		}
	}
	return nil
}
