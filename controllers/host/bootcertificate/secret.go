package bootcertificate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/bootca"
)

// The keys of the data of the two Secrets.
const (
	fieldCertificate, fieldKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	fieldNext, fieldNextKey    = "next.crt", "next.key"
	fieldFormer, fieldUntil    = "former.crt", "former.until"
	fieldTrusted               = "ca.crt"
)

// authoritiesOf returns what the Secret of the authorities has.
func authoritiesOf(secret *corev1.Secret) bootca.Authorities {
	d := secret.Data
	// A time that cannot be read is zero: the former authority is then forgotten at once, which only the attempts of the change can notice.
	until, _ := time.Parse(time.RFC3339, string(d[fieldUntil]))
	return bootca.Authorities{
		Signing: bootca.Pair{Certificate: d[fieldCertificate], Key: d[fieldKey]}, Next: bootca.Pair{Certificate: d[fieldNext], Key: d[fieldNextKey]},
		Former: d[fieldFormer], FormerUntil: until,
	}
}

// dataOfAuthorities returns the data of the Secret of the authorities.
func dataOfAuthorities(a bootca.Authorities) map[string][]byte {
	data := map[string][]byte{fieldCertificate: a.Signing.Certificate, fieldKey: a.Signing.Key}
	if len(a.Next.Key) > 0 {
		data[fieldNext], data[fieldNextKey] = a.Next.Certificate, a.Next.Key
	}
	if len(a.Former) > 0 {
		data[fieldFormer], data[fieldUntil] = a.Former, []byte(a.FormerUntil.UTC().Format(time.RFC3339))
	}
	return data
}

// servedOf returns what the Secret of the boot service has.
func servedOf(secret *corev1.Secret) bootca.Served {
	d := secret.Data
	return bootca.Served{Leaf: bootca.Pair{Certificate: d[fieldCertificate], Key: d[fieldKey]}, Trusted: d[fieldTrusted]}
}

// dataOfServed returns the data of the Secret of the boot service.
func dataOfServed(s bootca.Served) map[string][]byte {
	return map[string][]byte{fieldCertificate: s.Leaf.Certificate, fieldKey: s.Leaf.Key, fieldTrusted: s.Trusted}
}

// readSecret returns the Secret, which is empty if it does not exist.
func readSecret(ctx context.Context, reader client.Reader, name client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := reader.Get(ctx, name, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret, nil
}

// writeSecret creates the Secret, or updates it under the resource version that was read.
func writeSecret(ctx context.Context, writer client.Writer, secret *corev1.Secret, data map[string][]byte) error {
	changed := secret.DeepCopy()
	changed.Data = data
	var err error
	if secret.ResourceVersion == "" {
		err = writer.Create(ctx, changed)
	} else {
		err = writer.Update(ctx, changed)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
