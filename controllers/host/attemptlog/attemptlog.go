package attemptlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
)

//+kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update,roleName=ingot-manager-hosts

const (
	// suffix ends the names of the ConfigMaps.
	suffix = "-agent-log"
	// maxName is the longest name of an object.
	maxName = 253
	// maxText is more than any log has: a few bytes in an object may decompress to gigabytes.
	maxText = 1 << 20
	// key is the log in the ConfigMap, compressed by gzip.
	key = "log.gz"
	// Annotations of the ConfigMap.
	annotationAttempt  = "ingot.dev/log-attempt"
	annotationBoot     = "ingot.dev/log-boot"
	annotationEnd      = "ingot.dev/log-end"
	annotationReceived = "ingot.dev/log-received-at"
)

// Store implements agentlogs.Store.
type Store struct {
	// Client writes, and finds HostRecords in its cache.
	Client client.Client
	// APIReader reads ConfigMaps from the API server.
	APIReader client.Reader
}

var _ agentlogs.Store = (*Store)(nil)

// errForeign is returned for a ConfigMap of the log's name that is not the host's log.
var errForeign = errors.New("a ConfigMap of that name is not owned by the HostRecord: delete or rename it")

// SaveLog implements agentlogs.Store. A log that another replica has stored and that is not older stays.
func (s *Store) SaveLog(ctx context.Context, log agentlogs.Log) error {
	var record v1alpha1.HostRecord
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: log.Namespace, Name: log.Name}, &record); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // the host is gone, and its log with it
		}
		return fmt.Errorf("read the HostRecord: %w", err)
	}
	wanted, err := configMapOf(log, &record)
	if err != nil {
		return err
	}
	var stored corev1.ConfigMap
	err = s.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), &stored)
	switch {
	case apierrors.IsNotFound(err):
		return s.Client.Create(ctx, wanted)
	case err != nil:
		return fmt.Errorf("read the stored log: %w", err)
	case !isOwnedBy(&stored, &record):
		return fmt.Errorf("ConfigMap %s/%s: %w", stored.Namespace, stored.Name, errForeign)
	}
	if before, err := decode(&stored); err == nil && !before.IsOlder(log) {
		return nil
	}
	// Another replica may write meanwhile: the conflict is retried when the log is due again.
	wanted.ResourceVersion = stored.ResourceVersion
	return s.Client.Update(ctx, wanted)
}

// nameOf returns the name of the ConfigMap of a host.
func nameOf(host string) string {
	if len(host)+len(suffix) <= maxName {
		return host + suffix
	}
	sum := sha256.Sum256([]byte(host))
	return host[:maxName-len(suffix)-17] + "-" + hex.EncodeToString(sum[:8]) + suffix
}

// configMapOf returns the ConfigMap of the log.
func configMapOf(log agentlogs.Log, record *v1alpha1.HostRecord) (*corev1.ConfigMap, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err := io.WriteString(writer, log.Text)
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("compress the log: %w", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: log.Namespace, Name: nameOf(log.Name),
			Annotations: map[string]string{
				annotationAttempt: strconv.FormatInt(log.Attempt, 10), annotationBoot: strconv.Itoa(log.Boot), annotationEnd: strconv.FormatInt(log.End, 10),
				annotationReceived: log.At.UTC().Format(time.RFC3339),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "HostRecord", Name: record.Name, UID: record.UID}},
		},
		BinaryData: map[string][]byte{key: packed.Bytes()},
	}, nil
}

func isOwnedBy(m *corev1.ConfigMap, record *v1alpha1.HostRecord) bool {
	for _, owner := range m.OwnerReferences {
		if owner.UID == record.UID {
			return true
		}
	}
	return false
}

// Read returns the log of the agent that last worked on the host. A host without one is a NotFound.
func Read(ctx context.Context, reader client.Reader, namespace, host string) (agentlogs.Log, error) {
	var stored corev1.ConfigMap
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: nameOf(host)}, &stored); err != nil {
		return agentlogs.Log{}, err
	}
	log, err := decode(&stored)
	log.Namespace, log.Name = namespace, host
	return log, err
}

// decode returns the log in a ConfigMap, which whoever may edit the namespace can have written.
func decode(m *corev1.ConfigMap) (agentlogs.Log, error) {
	var log agentlogs.Log
	var err, failed error
	log.Attempt, failed = strconv.ParseInt(m.Annotations[annotationAttempt], 10, 64)
	log.Boot, err = strconv.Atoi(m.Annotations[annotationBoot])
	failed = errors.Join(failed, err)
	log.End, err = strconv.ParseInt(m.Annotations[annotationEnd], 10, 64)
	failed = errors.Join(failed, err)
	log.At, err = time.Parse(time.RFC3339, m.Annotations[annotationReceived])
	if failed = errors.Join(failed, err); failed != nil {
		return log, fmt.Errorf("the annotations of ConfigMap %s/%s cannot be read: %w", m.Namespace, m.Name, failed)
	}
	reader, err := gzip.NewReader(bytes.NewReader(m.BinaryData[key]))
	if err != nil {
		return log, fmt.Errorf("the log in ConfigMap %s/%s cannot be decompressed: %w", m.Namespace, m.Name, err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxText))
	if err != nil {
		return log, fmt.Errorf("the log in ConfigMap %s/%s cannot be decompressed: %w", m.Namespace, m.Name, err)
	}
	log.Text = input.Text(string(text))
	return log, nil
}
