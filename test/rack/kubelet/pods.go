package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// podWorker is the state of one pod on this node. Its fields except the channels are guarded by Kubelet.mu.
type podWorker struct {
	pod *corev1.Pod
	// ending is closed when the pod must end, gone when its object was deleted.
	ending, gone             chan struct{}
	endingClosed, goneClosed bool
	// holdsDevices means that the pod was admitted and has not ended.
	holdsDevices bool
}

// watchPods watches the pods that are bound to this node.
func (k *Kubelet) watchPods(ctx context.Context) {
	selector := fields.OneTermEqualSelector("spec.nodeName", k.settings.name)
	source := cache.NewListWatchFromClient(k.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, selector)
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { k.handlePod(ctx, object) },
			UpdateFunc: func(_, object any) { k.handlePod(ctx, object) },
			DeleteFunc: k.handleDeletedPod,
		},
	})
	controller.RunWithContext(ctx)
}

// handlePod stores a pod's latest state, starts a worker for a new pod, and tells the worker when the pod must end.
func (k *Kubelet) handlePod(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	worker := k.pods[pod.UID]
	if worker == nil {
		worker = &podWorker{pod: pod, ending: make(chan struct{}), gone: make(chan struct{})}
		k.pods[pod.UID] = worker
		k.workers.Go(func() { k.runPod(ctx, worker) })
	}
	worker.pod = pod
	if pod.DeletionTimestamp != nil && !worker.endingClosed {
		worker.endingClosed = true
		close(worker.ending)
	}
}

// handleDeletedPod ends the worker of a pod whose object was deleted, possibly by force.
func (k *Kubelet) handleDeletedPod(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if worker := k.pods[pod.UID]; worker != nil && !worker.goneClosed {
		worker.goneClosed = true
		close(worker.gone)
		delete(k.pods, pod.UID)
	}
}

// runPod runs a pod until it ends. It reads only fields of the pod that do not change after binding.
func (k *Kubelet) runPod(ctx context.Context, worker *podWorker) {
	k.mu.Lock()
	pod := worker.pod
	k.mu.Unlock()
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if !finished && !worker.isEnding() {
		finished = k.startPod(ctx, worker, pod)
	}
	select {
	case <-ctx.Done():
		return
	case <-worker.gone:
	case <-worker.ending:
		if !finished {
			k.pause(ctx, worker, k.options.Container)
		}
		k.deletePod(ctx, pod)
	}
	k.mu.Lock()
	worker.holdsDevices = false
	k.mu.Unlock()
}

func (w *podWorker) isEnding() bool {
	select {
	case <-w.ending:
		return true
	case <-w.gone:
		return true
	default:
		return false
	}
}

// pause waits for a duration, or until the pod's object is deleted.
func (k *Kubelet) pause(ctx context.Context, worker *podWorker, d time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-worker.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = k.options.Wait(ctx, d) // whoever waits looks at the pod next
}

// startPod starts the pod's containers. finished is true when the pod has failed.
func (k *Kubelet) startPod(ctx context.Context, worker *podWorker, pod *corev1.Pod) (finished bool) {
	if refusal := k.allocateDevices(worker); refusal != "" {
		k.setStatus(ctx, pod, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: refusal})
		return true
	}
	k.awaitClaims(ctx, worker, pod)
	k.pause(ctx, worker, k.options.Container)
	if ctx.Err() != nil || worker.isEnding() {
		return false
	}
	k.setStatus(ctx, pod, k.runningStatus(pod, ""))
	if driver := k.options.Drivers.DriverName(pod); driver != "" {
		k.serveDriver(ctx, worker, pod, driver)
		return false
	}
	if k.options.Plugins.IsPlugin(pod) {
		k.servePlugin(ctx, worker, pod)
	}
	return false
}

// deletePod deletes the pod's object, as kubelet does when its containers have ended.
func (k *Kubelet) deletePod(ctx context.Context, pod *corev1.Pod) {
	now := int64(0)
	err := k.retry(ctx, "deleting a pod that has ended", time.Second, 10*time.Second, func() error {
		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		k.log.Warn("a pod remains", "pod", podName(pod), "error", err)
	}
}

// podContext returns a context that ends with the pod.
func (w *podWorker) podContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-w.ending:
		case <-w.gone:
		}
	}()
	return ctx, cancel
}

// setStatus writes the pod's status. It retries until the status is written or the pod is gone.
func (k *Kubelet) setStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) {
	err := k.retry(ctx, "writing a pod's status", time.Second, 10*time.Second, func() error {
		newest, err := k.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && newest.UID != pod.UID {
			return nil
		}
		if err != nil {
			return err
		}
		status.QOSClass, status.StartTime = newest.Status.QOSClass, newest.Status.StartTime
		// The claims' are the scheduler's and the claim controller's to write.
		status.ResourceClaimStatuses, status.ExtendedResourceClaimStatus = newest.Status.ResourceClaimStatuses, newest.Status.ExtendedResourceClaimStatus
		if status.StartTime == nil {
			now := metav1.NewTime(k.options.Clock.Now())
			status.StartTime = &now
		}
		for _, condition := range newest.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				status.Conditions = append([]corev1.PodCondition{condition}, status.Conditions...)
			}
		}
		newest.Status = status
		_, err = k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, newest, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		k.log.Warn("a pod's status was not written", "pod", podName(pod), "error", err)
	}
}

// runningStatus returns the status of a pod whose containers run, or, with a problem, of one whose containers crash
// repeatedly.
func (k *Kubelet) runningStatus(pod *corev1.Pod, problem string) corev1.PodStatus {
	now := metav1.NewTime(k.options.Clock.Now())
	ready := corev1.ConditionTrue
	if problem != "" {
		ready = corev1.ConditionFalse
	}
	status := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: k.options.Address, HostIPs: []corev1.HostIP{{IP: k.options.Address}}}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
		if kind == corev1.ContainersReady || kind == corev1.PodReady {
			condition.Status = ready
		}
		status.Conditions = append(status.Conditions, condition)
	}
	restarts := map[string]int32{}
	for _, old := range pod.Status.ContainerStatuses {
		restarts[old.Name] = old.RestartCount + 1
	}
	for _, container := range pod.Spec.Containers {
		state := corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image, RestartCount: restarts[container.Name],
			ContainerID: fmt.Sprintf("containerd://%s-%s", pod.UID, container.Name),
		}
		started := problem == ""
		state.Ready, state.Started = started, &started
		if started {
			state.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		} else {
			state.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container: " + problem}
			state.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: problem, FinishedAt: now}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, state)
	}
	return status
}

// podName returns a pod's name for messages.
func podName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
