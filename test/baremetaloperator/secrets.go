package baremetaloperator

import (
	"context"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// SecretLabel is the label that the operator writes onto every Secret that it reads, and SecretLabelValue its value. The operator's cache has the Secrets
// with it.
const (
	SecretLabel      = "environment.metal3.io"
	SecretLabelValue = "baremetal"
)

// SecretFinalizer is the finalizer of the Secret of a BMC.
const SecretFinalizer = metal3.BareMetalHostFinalizer + "/secret"

// credentials are the Secret of a BMC.
type credentials struct{ secret *corev1.Secret }

// readCredentials reads the Secret of the BMC, and ends the look when the host is not deleted and has none. The conditions stay as they are then.
func (o *Operator) readCredentials(ctx context.Context, r *round) (outcome, bool, error) {
	problem, after := "", wait(-1)
	var secret *corev1.Secret
	var err error
	if r.Spec.BMC.CredentialsName == "" {
		problem = "No BMC CredentialsName defined The BMC secret reference is empty"
	} else {
		secret, err = o.acquireSecret(ctx, r)
	}
	switch {
	case apierrors.IsNotFound(err):
		problem, after = fmt.Sprintf("BMC CredentialsName secret doesn't exist The BMC secret %s/%s does not exist", r.Namespace, r.Spec.BMC.CredentialsName), wait(pollInterval)
	case err != nil && r.DeletionTimestamp.IsZero():
		return outcome{}, false, err
	case err == nil && problem == "":
		problem = credentialsProblem(r, secret)
	}
	if problem == "" && err == nil {
		r.credentials = &credentials{secret}
	}
	if r.credentials != nil || !r.DeletionTimestamp.IsZero() {
		return outcome{}, false, nil
	}
	done := fail(r, metal3.RegistrationError, problem)
	done.after, done.keepsConditions = after.after, true
	return done, true, nil
}

// credentialsProblem says what is missing in order to reach the BMC. A change of the Secret leads to another look.
func credentialsProblem(r *round, secret *corev1.Secret) string {
	if r.Spec.BMC.Address == "" {
		return "Empty BMC address Missing BMC connection detail 'Address'"
	}
	for _, key := range []string{"username", "password"} {
		if strings.TrimSpace(string(secret.Data[key])) == "" {
			return fmt.Sprintf("Validation error with BMC credentials: Missing BMC connection detail '%s' in credentials", key)
		}
	}
	return ""
}

// acquireSecret reads the Secret of the BMC and claims it: with the label, the host as an owner, and a finalizer until the host is being deleted.
func (o *Operator) acquireSecret(ctx context.Context, r *round) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := o.o.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.BMC.CredentialsName}, secret); err != nil {
		return nil, err
	}
	isDirty := addLabel(secret)
	if !isOwner(r, secret) {
		if err := controllerutil.SetOwnerReference(r.BareMetalHost, secret, o.o.Client.Scheme()); err != nil {
			return nil, fmt.Errorf("own the Secret of host %s: %w", r.Name, err)
		}
		isDirty = true
	}
	if r.Status.Provisioning.State != metal3.StateDeleting && controllerutil.AddFinalizer(secret, SecretFinalizer) {
		isDirty = true
	}
	if !isDirty {
		return secret, nil
	}
	if err := o.o.Client.Update(ctx, secret); err != nil {
		return nil, fmt.Errorf("claim the Secret of host %s: %w", r.Name, err)
	}
	return secret, nil
}

// releaseSecret lets the Secret of the BMC go.
func (o *Operator) releaseSecret(ctx context.Context, r *round) error {
	if r.credentials == nil || !controllerutil.RemoveFinalizer(r.credentials.secret, SecretFinalizer) {
		return nil
	}
	if err := o.o.Client.Update(ctx, r.credentials.secret); err != nil {
		return fmt.Errorf("release the Secret of host %s: %w", r.Name, err)
	}
	return nil
}

func isOwner(r *round, secret *corev1.Secret) bool {
	for _, ref := range secret.OwnerReferences {
		if ref.UID == r.UID && ref.Controller == nil {
			return true
		}
	}
	return false
}

// addLabel gives the Secret the label unless it has one of that name, and reports whether it did.
func addLabel(secret *corev1.Secret) (isChanged bool) {
	if _, isSet := secret.Labels[SecretLabel]; isSet {
		return false
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, SecretLabel, SecretLabelValue)
	return true
}

// secretAccessPrefix begins the message about a Secret of the config drive that cannot be read. A host in provisioning with that message is not
// deprovisioned.
const secretAccessPrefix = "could not retrieve "

// secretAccessError says that a Secret of the config drive does not exist or may not be read.
type secretAccessError struct {
	key, name string
	err       error
}

func (e secretAccessError) Error() string {
	return fmt.Sprintf("%s%s secret %q: %v", secretAccessPrefix, e.key, e.name, e.err)
}

func (e secretAccessError) Unwrap() error { return e.err }

// isWaitingForSecret reports whether the host's error is one that ends when a Secret is there.
func (o *Operator) isWaitingForSecret(r *round) bool {
	return o.o.Conditions && r.Status.ErrorType == metal3.ProvisioningError &&
		strings.HasPrefix(r.Status.ErrorMessage, secretAccessPrefix) && strings.Contains(r.Status.ErrorMessage, " secret ")
}

// deployment reads the Secrets of the config drive.
func (o *Operator) deployment(ctx context.Context, r *round) (Deployment, error) {
	d := Deployment{URL: r.Spec.Image.URL, Checksum: string(r.Spec.Image.ChecksumType) + ":" + r.Spec.Image.Checksum, Format: ptr.Deref(r.Spec.Image.DiskFormat, "raw")}
	for _, part := range []struct {
		ref        *corev1.SecretReference
		key        string
		isOptional bool
		into       *[]byte
	}{{r.Spec.UserData, "userData", false, &d.UserData}, {r.Spec.NetworkData, "networkData", true, &d.NetworkData}, {r.Spec.MetaData, "metaData", false, &d.MetaData}} {
		if part.ref == nil {
			continue
		}
		data, isSet, err := o.documentOf(ctx, r, part.ref, part.key)
		if err != nil {
			return d, err
		}
		if !isSet && !part.isOptional {
			return d, fmt.Errorf("the Secret %s does not contain key %s", part.ref.Name, part.key)
		}
		*part.into = data
	}
	return d, nil
}

// documentOf returns what the Secret has under the key, or under the key value, and whether it has either.
func (o *Operator) documentOf(ctx context.Context, r *round, ref *corev1.SecretReference, key string) ([]byte, bool, error) {
	if ref.Namespace != "" && ref.Namespace != r.Namespace {
		return nil, false, fmt.Errorf("%s secret must be in same namespace as host %s/%s", key, r.Namespace, r.Name)
	}
	secret := &corev1.Secret{}
	err := o.o.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, false, secretAccessError{key: key, name: ref.Name, err: err}
	}
	if err != nil {
		return nil, false, err
	}
	if addLabel(secret) {
		if err := o.o.Client.Update(ctx, secret); err != nil {
			return nil, false, fmt.Errorf("label the Secret %s: %w", ref.Name, err)
		}
	}
	for _, name := range []string{key, "value"} {
		if data, isSet := secret.Data[name]; isSet {
			return data, true, nil
		}
	}
	return nil, false, nil
}
