package dra

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// Publisher publishes the devices of one driver on one node. All fields are required but MissingSlices.
type Publisher struct {
	Client   kubernetes.Interface
	Driver   string
	Node     string
	Contents Contents
	// MissingSlices is the number of slices that are announced but not written, so that the pool stays incomplete.
	MissingSlices int
	// Retry repeats an attempt until it succeeds or ctx ends.
	Retry func(ctx context.Context, doing string, attempt func() error) error
}

// Run keeps the devices published until ctx ends, and returns only that error. The slices stay.
func (p Publisher) Run(ctx context.Context) error {
	var owner metav1.OwnerReference
	err := p.Retry(ctx, "reading the node", func() error {
		node, err := p.Client.CoreV1().Nodes().Get(ctx, p.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		controller := true
		owner = metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &controller}
		return nil
	})
	for err == nil {
		var version string
		err = p.Retry(ctx, "publishing ResourceSlices", func() (err error) {
			version, err = p.publish(ctx, owner)
			return err
		})
		if err == nil {
			err = p.Retry(ctx, "watching ResourceSlices", func() error { return p.waitForChange(ctx, version) })
		}
	}
	return context.Cause(ctx)
}

// fieldSelector selects the slices of the driver on the node.
func (p Publisher) fieldSelector() string {
	return fields.Set{resourcev1.ResourceSliceSelectorNodeName: p.Node, resourcev1.ResourceSliceSelectorDriver: p.Driver}.String()
}

// publish writes the slices where they differ, and returns the resource version at which it compared them.
func (p Publisher) publish(ctx context.Context, owner metav1.OwnerReference) (version string, err error) {
	client := p.Client.ResourceV1().ResourceSlices()
	list, err := client.List(ctx, metav1.ListOptions{FieldSelector: p.fieldSelector()})
	if err != nil {
		return "", err
	}
	existing := list.Items
	slices.SortFunc(existing, func(a, b resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	wanted := p.nextSlices(existing)
	if wanted == nil {
		return list.ResourceVersion, nil
	}
	for i, spec := range wanted {
		if i < len(existing) {
			existing[i].Spec = spec
			if _, err = client.Update(ctx, &existing[i], metav1.UpdateOptions{}); err != nil {
				return "", fmt.Errorf("slice %s: %w", existing[i].Name, err)
			}
			continue
		}
		_, err = client.Create(ctx, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("%d-%s-%s-", i, p.Driver, p.Node), OwnerReferences: []metav1.OwnerReference{owner}}, Spec: spec,
		}, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("slice %d of node %s: %w", i, p.Node, err)
		}
	}
	for i := len(wanted); i < len(existing); i++ {
		if err := client.Delete(ctx, existing[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("slice %s: %w", existing[i].Name, err)
		}
	}
	return list.ResourceVersion, nil
}

// nextSlices returns the slices of the next generation, or nil when the existing ones hold the devices already.
func (p Publisher) nextSlices(existing []resourcev1.ResourceSlice) []resourcev1.ResourceSliceSpec {
	var generation int64
	for _, slice := range existing {
		generation = max(generation, slice.Spec.Pool.Generation)
	}
	parts := p.Contents.Slices()
	count := int64(len(parts) + p.MissingSlices)
	same := len(parts) == len(existing)
	var out []resourcev1.ResourceSliceSpec
	for i, spec := range parts {
		spec.Driver, spec.NodeName = p.Driver, &p.Node
		spec.Pool = resourcev1.ResourcePool{Name: p.Node, Generation: generation + 1, ResourceSliceCount: count}
		out = append(out, spec)
		if same {
			found := existing[i].Spec
			same = found.Pool.Name == p.Node && found.Pool.ResourceSliceCount == count && found.Pool.Generation == generation &&
				apiequality.Semantic.DeepEqual(found.Devices, spec.Devices) && apiequality.Semantic.DeepEqual(found.SharedCounters, spec.SharedCounters)
		}
	}
	if same {
		return nil
	}
	return out
}

// waitForChange returns at the first change of a slice after the version.
func (p Publisher) waitForChange(ctx context.Context, version string) error {
	watcher, err := p.Client.ResourceV1().ResourceSlices().Watch(ctx, metav1.ListOptions{FieldSelector: p.fieldSelector(), ResourceVersion: version})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer watcher.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-watcher.ResultChan():
		return nil // a change, or the end of the watch: what is there is looked at again
	}
}
