package sessions

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// Names of the cache's indexes of BareMetalHosts.
const (
	// indexBootMAC is spec.bootMACAddress in lower case.
	indexBootMAC = "ingot.bootMAC"
	// indexUID is metadata.uid.
	indexUID = "ingot.uid"
)

// maxConflicts is how often Update tries. The writers of a HostRecord are one agent, the host controller and the boot service.
const maxConflicts = 10

// Index adds the indexes that a Store needs. Call it once, before the manager starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for name, value := range map[string]func(*metal3.BareMetalHost) string{
		indexBootMAC: func(h *metal3.BareMetalHost) string { return strings.ToLower(h.Spec.BootMACAddress) },
		indexUID:     func(h *metal3.BareMetalHost) string { return string(h.UID) },
	} {
		err := indexer.IndexField(ctx, &metal3.BareMetalHost{}, name, func(o client.Object) []string {
			host, ok := o.(*metal3.BareMetalHost)
			if !ok || value(host) == "" {
				return nil
			}
			return []string{value(host)}
		})
		if err != nil {
			return fmt.Errorf("index BareMetalHosts by %s: %w", name, err)
		}
	}
	return nil
}

// Store implements netboot.Store. It is safe for concurrent use.
type Store struct {
	// Client writes the status, finds BareMetalHosts by the indexes that Index adds, and reads HostRecords from a cache that is never
	// older than its own writes (package readyourwrites).
	Client client.Client
	// APIReader reads from the API server: HostRecords where writes of other processes must not be missed, and the Secrets of a claim.
	APIReader client.Reader
	// Clock is the clock that the times of sessions are by; nil: they are as they are stored.
	Clock clock.PassiveClock
	// IsUnwritten reports whether this process knows that the documents of a Machine's installation with that number are not written yet; nil: it never does.
	IsUnwritten func(machine types.UID, number int64) bool
}

var _ netboot.Store = (*Store)(nil)

// opByMAC is the operation of ByMAC in errors.
const opByMAC = "find host by MAC address"

// ByMAC implements netboot.Store. If two hosts of Ingot have the MAC address, or another host is the same server, it returns a Conflict, and
// neither is served, unless all of them are settled. Without that exception: somebody registers a server a second time, the server reboots
// a month later from the network first, as its firmware is set, and its node stays away until somebody finds the second host.
//
// An address that is no host's costs no request to the API server: the index and the HostRecord in the cache say so.
func (s *Store) ByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.byMAC(ctx, s.APIReader, mac)
}

// CachedByMAC implements netboot.Store.
func (s *Store) CachedByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.byMAC(ctx, s.Client, mac)
}

func (s *Store) byMAC(ctx context.Context, reader client.Reader, mac string) (netboot.Session, error) {
	hosts, err := s.listHosts(ctx, opByMAC, indexBootMAC, mac)
	if err != nil {
		return netboot.Session{}, err
	}
	var found []netboot.Session
	var conflict error
	for i := range hosts {
		record, err := s.readRecord(ctx, s.Client, opByMAC, &hosts[i])
		if err == nil && reader != s.Client {
			record, err = s.readRecord(ctx, reader, opByMAC, &hosts[i])
		}
		if hardware.KindOf(err) == hardware.NotFound {
			continue // a host without a HostRecord is not Ingot's; an attempt begins long after the HostRecord is in every cache
		}
		if err != nil {
			return netboot.Session{}, err
		}
		if e := record.Status.Error; e != nil && e.Reason == v1alpha1.ReasonSameServer {
			// An attempt began before the other host was there. Without this check the agent would erase the disks of a server that the other
			// host may hold.
			conflict = hardware.Errorf(hardware.Conflict, opByMAC, mac, "host %s/%s: %s", hosts[i].Namespace, hosts[i].Name, e.Message)
		}
		found = append(found, s.session(&hosts[i], record))
	}
	return onlySession(mac, found, conflict)
}

// onlySession returns the session of the only host with the MAC address, or that of the first one when all are settled. conflict says that
// another host is the same server as one of them.
func onlySession(mac string, found []netboot.Session, conflict error) (netboot.Session, error) {
	if len(found) == 0 {
		return netboot.Session{}, hardware.Errorf(hardware.NotFound, opByMAC, mac, "no host of ours boots with this address")
	}
	if conflict == nil && len(found) > 1 {
		conflict = hardware.Errorf(hardware.Conflict, opByMAC, mac, "both %s/%s and %s/%s have this spec.bootMACAddress: correct one of them",
			found[0].Namespace, found[0].Name, found[1].Namespace, found[1].Name)
	}
	if conflict != nil && slices.ContainsFunc(found, func(s netboot.Session) bool { return !s.IsSettled() }) {
		return netboot.Session{}, conflict
	}
	return found[0], nil
}

// ByUID implements netboot.Store.
func (s *Store) ByUID(ctx context.Context, hostUID string) (netboot.Session, error) {
	return s.readSession(ctx, s.APIReader, hostUID)
}

// CachedByUID implements netboot.Store.
func (s *Store) CachedByUID(ctx context.Context, hostUID string) (netboot.Session, error) {
	return s.readSession(ctx, s.Client, hostUID)
}

func (s *Store) readSession(ctx context.Context, reader client.Reader, hostUID string) (netboot.Session, error) {
	host, record, err := s.readByUID(ctx, reader, "find host", hostUID)
	if err != nil {
		return netboot.Session{}, err
	}
	return s.session(host, record), nil
}

// Update implements netboot.Store. The first try uses the HostRecord in the cache. If it ends in anything but a successful write, the
// change is tried again with the HostRecord in the API server.
func (s *Store) Update(ctx context.Context, hostUID string, change func(*netboot.Session) error) (netboot.Session, error) {
	reader := client.Reader(s.Client)
	for range maxConflicts {
		host, record, err := s.readByUID(ctx, reader, opUpdate, hostUID)
		if err != nil {
			return netboot.Session{}, err
		}
		before := s.session(host, record)
		after := before
		changed := record.DeepCopy()
		if err = change(&after); err == nil {
			err = updateRecord(changed, before, after)
		}
		if reader != s.APIReader && (err != nil || isUnchanged(before, after)) {
			reader = s.APIReader
			continue
		}
		if err != nil {
			return netboot.Session{}, err
		}
		if isUnchanged(before, after) {
			return after, nil
		}
		reader = s.APIReader
		err = s.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(record, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return netboot.Session{}, apiError(opUpdate, host.Namespace+"/"+host.Name, err)
		}
		return after, nil
	}
	return netboot.Session{}, storeError(hardware.Busy, opUpdate, hostUID, "the HostRecord was changed by others %d times meanwhile", maxConflicts)
}

// ConfigDrive implements netboot.Store. It returns Busy until every document is written for this attempt: the Secrets may hold those of an
// earlier one. Without it: an attempt fails, its bootstrap token is deleted, and the next agent installs a node with that token, which can
// never join.
func (s *Store) ConfigDrive(ctx context.Context, hostUID string, attempt int64) (hardware.ConfigDrive, error) {
	if err := s.missingConfigDrive(ctx, hostUID, attempt); err != nil {
		return hardware.ConfigDrive{}, err
	}
	const op = opConfigDrive
	host, record, err := s.readByUID(ctx, s.APIReader, op, hostUID)
	if err != nil {
		return hardware.ConfigDrive{}, err
	}
	// The references must be current, or an agent could get the secrets of another Machine. So they are read from the API server.
	key, name := client.ObjectKeyFromObject(host), host.Name
	host = &metal3.BareMetalHost{}
	if err := s.APIReader.Get(ctx, key, host); err != nil {
		return hardware.ConfigDrive{}, apiError(op, name, err)
	}
	if err := installationProblem(host, record, attempt); err != nil {
		return hardware.ConfigDrive{}, err
	}
	return s.readDocuments(ctx, host, record)
}

// missingConfigDrive returns the error of documents that are not written yet for the attempt, by the references that the cache has; nil: they may be written.
// While they are not, a question costs no read where their author runs, and one elsewhere.
func (s *Store) missingConfigDrive(ctx context.Context, hostUID string, attempt int64) error {
	host, record, err := s.readByUID(ctx, s.Client, opConfigDrive, hostUID)
	if err != nil || installationProblem(host, record, attempt) != nil {
		return nil // the API server may have another state
	}
	if s.IsUnwritten != nil && s.IsUnwritten(record.Status.Wanted.MachineUID, attempt) {
		return unwrittenError(host, attempt)
	}
	if _, err := s.readDocuments(ctx, host, record); hardware.ReasonOf(err) == hardware.ReasonNoConfigDrive {
		return err
	}
	return nil
}

// installationProblem returns why the attempt is not the installation for the Machine that has the host; nil: it is.
func installationProblem(host *metal3.BareMetalHost, record *v1alpha1.HostRecord, attempt int64) error {
	now := storedSession(host, record)
	if now.Number != attempt || now.Operation != hardware.OpInstall || now.State != hardware.AttemptRunning || !record.Status.Wanted.IsOpen() {
		return hardware.Errorf(hardware.Conflict, opConfigDrive, host.Namespace+"/"+host.Name, "attempt %d is not the installation under way", attempt)
	}
	if host.Spec.ConsumerRef == nil || host.Spec.ConsumerRef.UID != record.Status.Wanted.MachineUID {
		return hardware.Errorf(hardware.Conflict, opConfigDrive, host.Namespace+"/"+host.Name, "the Machine of attempt %d has this host no more", attempt)
	}
	return nil
}

func (s *Store) readDocuments(ctx context.Context, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (hardware.ConfigDrive, error) {
	var drive hardware.ConfigDrive
	read := map[corev1.SecretReference]*corev1.Secret{} // usually one Secret has all documents
	for _, document := range []struct {
		key  string
		ref  *corev1.SecretReference
		into *[]byte
	}{
		{"userData", host.Spec.UserData, &drive.UserData},
		{"networkData", host.Spec.NetworkData, &drive.NetworkData},
		{"metaData", host.Spec.MetaData, &drive.MetaData},
	} {
		if document.ref == nil {
			continue
		}
		secret := read[*document.ref]
		if secret == nil {
			var err error
			if secret, err = s.readSecret(ctx, host, document.ref, document.key); err != nil {
				return hardware.ConfigDrive{}, err
			}
			if !isCurrentClaim(secret, record) {
				return hardware.ConfigDrive{}, unwrittenError(host, record.Status.Wanted.Number)
			}
			read[*document.ref] = secret
		}
		data, err := documentIn(secret, host, document.key)
		if err != nil {
			return hardware.ConfigDrive{}, err
		}
		*document.into = data
	}
	return drive, nil
}

// unwrittenError returns the error of documents that are not written yet.
func unwrittenError(host *metal3.BareMetalHost, attempt int64) error {
	err := hardware.Errorf(hardware.Busy, opConfigDrive, host.Namespace+"/"+host.Name, "the claim Secret is not written for attempt %d yet", attempt)
	err.Reason = hardware.ReasonNoConfigDrive
	return err
}

// isCurrentClaim reports whether the Secret holds the documents of the attempt that is wanted, with a bootstrap token.
func isCurrentClaim(secret *corev1.Secret, record *v1alpha1.HostRecord) bool {
	wanted := record.Status.Wanted
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return secret.Labels[v1alpha1.LabelMachine] == string(wanted.MachineUID) && secret.Annotations[v1alpha1.AnnotationClaimTokenID] != "" &&
		secret.Annotations[v1alpha1.AnnotationClaimAttempt] == number(wanted.MachineAttempt) && secret.Annotations[v1alpha1.AnnotationClaimHostAttempt] == number(wanted.Number)
}

// The names of operations in errors.
const (
	opUpdate      = "update session"
	opConfigDrive = "read config drive"
)

func (s *Store) readSecret(ctx context.Context, host *metal3.BareMetalHost, ref *corev1.SecretReference, key string) (*corev1.Secret, error) {
	target := host.Namespace + "/" + host.Name
	if ref.Namespace != "" && ref.Namespace != host.Namespace {
		return nil, hardware.Errorf(hardware.Invalid, opConfigDrive, target, "spec.%s refers to namespace %s: it must be the host's own", key, ref.Namespace)
	}
	var secret corev1.Secret
	err := s.APIReader.Get(ctx, client.ObjectKey{Namespace: host.Namespace, Name: ref.Name}, &secret)
	if apierrors.IsNotFound(err) {
		return &secret, nil // it is written when the agent is known to wait for it
	}
	if err != nil {
		return nil, apiError(opConfigDrive, target, fmt.Errorf("the Secret %s for %s: %w", ref.Name, key, err))
	}
	return &secret, nil
}

// documentIn returns a document from its Secret. Like the baremetal-operator it accepts the key of the document or "value".
func documentIn(secret *corev1.Secret, host *metal3.BareMetalHost, key string) ([]byte, error) {
	for _, name := range []string{key, "value"} {
		if data, ok := secret.Data[name]; ok {
			return data, nil
		}
	}
	return nil, hardware.Errorf(hardware.Invalid, opConfigDrive, host.Namespace+"/"+host.Name, "Secret %s has no key %s", secret.Name, key)
}

// listHosts returns hosts as the cache has them, which must not be changed.
func (s *Store) listHosts(ctx context.Context, op, index, value string) ([]metal3.BareMetalHost, error) {
	var list metal3.BareMetalHostList
	if err := s.Client.List(ctx, &list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, apiError(op, value, err)
	}
	return list.Items, nil
}

func (s *Store) readRecord(ctx context.Context, reader client.Reader, op string, host *metal3.BareMetalHost) (*v1alpha1.HostRecord, error) {
	record := &v1alpha1.HostRecord{}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(host), record, client.UnsafeDisableDeepCopy); err != nil {
		return nil, apiError(op, host.Namespace+"/"+host.Name, err)
	}
	for _, owner := range record.OwnerReferences {
		if owner.UID == host.UID {
			return record, nil
		}
	}
	return nil, storeError(hardware.NotFound, op, host.Namespace+"/"+host.Name, "its HostRecord is of an earlier host of that name")
}

// readByUID returns a host as the cache has it, which must not be changed, and its record, likewise where the reader is the cache.
func (s *Store) readByUID(ctx context.Context, reader client.Reader, op, uid string) (*metal3.BareMetalHost, *v1alpha1.HostRecord, error) {
	hosts, err := s.listHosts(ctx, op, indexUID, uid)
	if err != nil {
		return nil, nil, err
	}
	if len(hosts) != 1 {
		return nil, nil, storeError(hardware.NotFound, op, uid, "no host has this uid")
	}
	record, err := s.readRecord(ctx, reader, op, &hosts[0])
	if err != nil {
		return nil, nil, err
	}
	return &hosts[0], record, nil
}

// storeError returns an error about a HostRecord that cannot be read or written.
func storeError(kind hardware.Kind, op, target, format string, args ...any) error {
	err := hardware.Errorf(kind, op, target, format, args...)
	err.Reason = hardware.ReasonHostRecordUnavailable
	return err
}

// apiError returns an error of the Kubernetes API as a *hardware.Error.
func apiError(op, target string, err error) error {
	var known *hardware.Error
	if errors.As(err, &known) {
		return err
	}
	kind := hardware.Unreachable
	switch {
	case apierrors.IsNotFound(err):
		kind = hardware.NotFound
	case apierrors.IsConflict(err):
		kind = hardware.Conflict
	case apierrors.IsTooManyRequests(err):
		kind = hardware.Busy
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		kind = hardware.Invalid
	}
	return &hardware.Error{Kind: kind, Reason: hardware.ReasonHostRecordUnavailable, Op: op, Target: target, Err: err}
}

// isUnchanged reports whether a change has changed nothing. An inventory that was read again is a change, because it proves that its disks are there.
func isUnchanged(before, after netboot.Session) bool {
	return after.Inventory == before.Inventory && after.Disks == before.Disks && reflect.DeepEqual(before, after)
}
