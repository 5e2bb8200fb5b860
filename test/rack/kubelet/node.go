package kubelet

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// defaultPods is kubelet's.
	defaultPods = 110
	// leaseInterval and leaseDuration are kubelet's.
	leaseInterval, leaseDuration = 10 * time.Second, 40
	// reportInterval is how often kubelet reports a status that has not changed.
	reportInterval = 5 * time.Minute
)

// register creates the Node, or takes over an existing one.
func (k *Kubelet) register(ctx context.Context) (*corev1.Node, error) {
	var node *corev1.Node
	err := k.retry(ctx, "registering the node", 200*time.Millisecond, 7*time.Second, func() (err error) {
		node, err = k.client.CoreV1().Nodes().Create(ctx, k.newNode(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			node, err = k.takeOver(ctx)
		}
		return err
	})
	return node, err
}

// newNode returns the Node as kubelet creates it. Taints, labels and providerID are set only at creation.
func (k *Kubelet) newNode() *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: k.settings.name, Labels: k.defaultLabels(),
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{ProviderID: k.settings.file.ProviderID, Taints: k.settings.file.RegisterWithTaints},
	}
	maps.Copy(node.Labels, k.settings.labels)
	maps.Copy(node.Annotations, k.options.Annotations)
	k.fillStatus(node)
	return node
}

// FinalNode returns the Node that kubelet registers when plugins have registered these devices. It calls no API server.
func (k *Kubelet) FinalNode(devices map[corev1.ResourceName]Devices) *corev1.Node {
	k.mu.Lock()
	k.devices = devices
	k.mu.Unlock()
	return k.newNode()
}

func (k *Kubelet) defaultLabels() map[string]string {
	info := k.options.NodeInfo
	return map[string]string{
		corev1.LabelHostname: k.settings.name, corev1.LabelOSStable: info.OperatingSystem, corev1.LabelArchStable: info.Architecture,
		"beta.kubernetes.io/os": info.OperatingSystem, "beta.kubernetes.io/arch": info.Architecture,
	}
}

// takeOver updates an existing Node's default labels, has the machine's units report again, and sets its extended resources to zero. It changes nothing else.
func (k *Kubelet) takeOver(ctx context.Context) (*corev1.Node, error) {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.settings.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	changed := false
	for key, value := range k.defaultLabels() {
		if node.Labels[key] != value {
			changed = true
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
		}
	}
	for key, value := range k.options.Annotations {
		if node.Annotations[key] != value {
			changed = true
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, key, value)
		}
	}
	if changed {
		if node, err = k.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
	}
	for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		for name := range list {
			if isExtended(name) {
				list[name] = resource.Quantity{}
			}
		}
	}
	k.fillStatus(node)
	return k.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
}

// isExtended reports whether the resource belongs to a plugin: it has a domain that is not one of Kubernetes.
func isExtended(name corev1.ResourceName) bool {
	domain, _, found := strings.Cut(string(name), "/")
	return found && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// fillStatus sets the status that kubelet reports, including the resources of registered plugins.
func (k *Kubelet) fillStatus(node *corev1.Node) {
	now := metav1.NewTime(k.options.Clock.Now())
	node.Status.NodeInfo = k.options.NodeInfo
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: k.options.Address}, {Type: corev1.NodeHostName, Address: k.settings.name},
	}
	if node.Status.Capacity == nil {
		node.Status.Capacity, node.Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	}
	k.fillResources(node.Status.Capacity, node.Status.Allocatable)
	setCondition(node, corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", now)
	setCondition(node, corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available", now)
	setCondition(node, corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure", now)
	setCondition(node, corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available", now)
}

func (k *Kubelet) fillResources(capacity, allocatable corev1.ResourceList) {
	for name, total := range k.options.Hardware.capacity() {
		usable := total.DeepCopy()
		usable.Sub(k.settings.reservation().of(name, total))
		capacity[name], allocatable[name] = total, usable
	}
	pods := int64(defaultPods)
	if k.settings.file.MaxPods > 0 {
		pods = int64(k.settings.file.MaxPods)
	}
	capacity[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	allocatable[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, devices := range k.devices {
		capacity[name] = *resource.NewQuantity(devices.Total, resource.DecimalSI)
		allocatable[name] = *resource.NewQuantity(devices.Healthy, resource.DecimalSI)
	}
}

func setCondition(node *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, now metav1.Time) {
	condition := corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	for i, old := range node.Status.Conditions {
		if old.Type == kind {
			if old.Status == status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			node.Status.Conditions[i] = condition
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, condition)
}

// reportStatus reports the status when it has changed, and at the report interval.
func (k *Kubelet) reportStatus(ctx context.Context) {
	for {
		timer := k.options.Clock.NewTimer(reportInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-k.changed:
			timer.Stop()
		}
		if err := k.updateStatus(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("the status was not reported", "error", err)
			// kubelet tries again with its next status; a Node that was deleted stays so.
			if !apierrors.IsNotFound(err) && k.sleep(ctx, time.Second) == nil {
				k.requestReport()
			}
		}
	}
}

func (k *Kubelet) requestReport() {
	select {
	case k.changed <- struct{}{}:
	default: // it is awake
	}
}

func (k *Kubelet) updateStatus(ctx context.Context) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.settings.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the node: %w", err)
	}
	k.fillStatus(node)
	if _, err = k.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating the node's status: %w", err)
	}
	return nil
}

// renewLease renews the node's lease until ctx ends.
func (k *Kubelet) renewLease(ctx context.Context, node *corev1.Node) {
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	var held *coordinationv1.Lease
	isLost := false
	for {
		now := metav1.NewMicroTime(k.options.Clock.Now())
		var err error
		if held == nil {
			held, err = leases.Get(ctx, k.settings.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				held, err = leases.Create(ctx, newLease(node, now), metav1.CreateOptions{})
			}
		}
		if err == nil {
			held.Spec.RenewTime = &now
			held, err = leases.Update(ctx, held, metav1.UpdateOptions{})
		}
		if err == nil && isLost {
			// kubelet compares its status with the stored one every ten seconds, and writes it where the cluster has taken it for lost.
			k.requestReport()
		}
		if isLost = err != nil; isLost {
			held = nil // whoever changed it, the next renewal reads it anew
			if ctx.Err() == nil {
				k.log.Warn("the lease was not renewed", "error", err)
			}
		}
		if k.sleep(ctx, leaseInterval) != nil {
			return
		}
	}
}

func newLease(node *corev1.Node, now metav1.MicroTime) *coordinationv1.Lease {
	seconds := int32(leaseDuration)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}
