package hostindex

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
)

// indexKeys is the name of the indexes of BareMetalHosts and HostRecords by sameserver.Host.Keys.
const indexKeys = "hostindex.keys"

// Add adds the indexes. Call it once, before the manager starts.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	for _, object := range []client.Object{&metal3.BareMetalHost{}, &v1alpha1.HostRecord{}} {
		if err := indexer.IndexField(ctx, object, indexKeys, keysOf); err != nil {
			return fmt.Errorf("index hosts by what identifies their server: %w", err)
		}
	}
	return nil
}

// keysOf returns the keys of what one object says about its server.
func keysOf(o client.Object) []string {
	switch o := o.(type) {
	case *metal3.BareMetalHost:
		return sameserver.HostOf(o, nil).Keys()
	case *v1alpha1.HostRecord:
		return recordedHost(o).Keys()
	}
	return nil
}

// recordedHost returns what the record alone says.
func recordedHost(record *v1alpha1.HostRecord) sameserver.Host {
	return sameserver.Host{Namespace: record.Namespace, Name: record.Name}.WithInventory(record.Status.Seen())
}

// Conflicts returns the other hosts that are the same server.
func Conflicts(ctx context.Context, reader client.Reader, host sameserver.Host) ([]sameserver.Conflict, error) {
	candidates, err := withKeys(ctx, reader, host.Keys())
	if err != nil {
		return nil, err
	}
	others := make([]sameserver.Host, 0, len(candidates))
	for _, key := range candidates {
		if key.Namespace == host.Namespace && key.Name == host.Name {
			continue
		}
		other, err := read(ctx, reader, key)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			others = append(others, other)
		}
	}
	return sameserver.Conflicts(host, others), nil
}

// ConflictsOfAll returns the other hosts that are the same server for each host that has some, by its namespace/name. For all hosts it is much cheaper than
// Conflicts for each.
func ConflictsOfAll(ctx context.Context, reader client.Reader) (map[string][]sameserver.Conflict, error) {
	hosts, records, err := List(ctx, reader, "")
	if err != nil {
		return nil, err
	}
	recorded := make(map[types.NamespacedName]*v1alpha1.HostRecord, len(records))
	for i := range records {
		recorded[client.ObjectKeyFromObject(&records[i])] = &records[i]
	}
	all := make([]sameserver.Host, len(hosts))
	for i := range hosts {
		all[i] = sameserver.HostOf(&hosts[i], recorded[client.ObjectKeyFromObject(&hosts[i])])
	}
	return sameserver.ConflictsOfAll(all), nil
}

// List returns the BareMetalHosts and the HostRecords of a namespace; empty: of all. They belong to the cache and must not be changed.
func List(ctx context.Context, reader client.Reader, namespace string) ([]metal3.BareMetalHost, []v1alpha1.HostRecord, error) {
	var hosts metal3.BareMetalHostList
	if err := reader.List(ctx, &hosts, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	var records v1alpha1.HostRecordList
	if err := reader.List(ctx, &records, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list HostRecords: %w", err)
	}
	return hosts.Items, records.Items, nil
}

// read returns what BareMetalHost and HostRecord of that name say about the server.
func read(ctx context.Context, reader client.Reader, key types.NamespacedName) (sameserver.Host, error) {
	host, record := &metal3.BareMetalHost{}, &v1alpha1.HostRecord{}
	if err := reader.Get(ctx, key, host); err != nil {
		return sameserver.Host{}, fmt.Errorf("read BareMetalHost %s: %w", key, err)
	}
	if err := reader.Get(ctx, key, record); client.IgnoreNotFound(err) != nil {
		return sameserver.Host{}, fmt.Errorf("read HostRecord %s: %w", key, err)
	}
	return sameserver.HostOf(host, record), nil
}

// withKeys returns the names of the hosts that have one of the keys, each once.
func withKeys(ctx context.Context, reader client.Reader, keys []string) ([]types.NamespacedName, error) {
	var found []types.NamespacedName
	add := func(o client.Object) {
		if name := client.ObjectKeyFromObject(o); !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	for _, key := range keys {
		var hosts metal3.BareMetalHostList
		if err := reader.List(ctx, &hosts, client.MatchingFields{indexKeys: key}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the BareMetalHosts of one server: %w", err)
		}
		for i := range hosts.Items {
			add(&hosts.Items[i])
		}
		var records v1alpha1.HostRecordList
		if err := reader.List(ctx, &records, client.MatchingFields{indexKeys: key}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the HostRecords of one server: %w", err)
		}
		for i := range records.Items {
			add(&records.Items[i])
		}
	}
	return found, nil
}

// EnqueueSameServer returns a handler that enqueues the other hosts that may be, or may have been, the same server as a BareMetalHost or a
// HostRecord that was created, deleted or changed. Without the values before the change, a host would keep its error for minutes after the
// address of the other one was corrected.
func EnqueueSameServer(reader client.Reader) handler.EventHandler {
	enqueue := func(ctx context.Context, q queue, keys []string, changed client.Object) {
		found, err := withKeys(ctx, reader, keys)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the hosts of one server", "host", client.ObjectKeyFromObject(changed))
		}
		for _, name := range found {
			if name != client.ObjectKeyFromObject(changed) {
				q.Add(reconcile.Request{NamespacedName: name})
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, keysOf(e.Object), e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, keysOf(e.Object), e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := keysOf(e.ObjectOld), keysOf(e.ObjectNew)
			if exceptions(e.ObjectOld) != exceptions(e.ObjectNew) || !slices.Equal(before, after) {
				enqueue(ctx, q, slices.Concat(before, after), e.ObjectNew)
			}
		},
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func exceptions(o client.Object) string { return o.GetAnnotations()[v1alpha1.AnnotationNotSameServer] }
