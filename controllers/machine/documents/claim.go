package documents

import (
	"strconv"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
)

// Keys of the claim Secret. The token is kept beside the user data that holds it, so that one that ran out can be made again.
const (
	KeyUserData    = "userData"
	KeyNetworkData = "networkData"
	KeyMetaData    = "metaData"
	KeyToken       = "bootstrapToken"
)

// Marks on the claim Secret; they say what its data is without showing it.
const (
	annotationAttempt = "ingot.dev/attempt"
	annotationTokenID = "ingot.dev/bootstrap-token-id"
)

// ClaimKey names the claim Secret of a host.
func ClaimKey(host *metal3.BareMetalHost) types.NamespacedName {
	return types.NamespacedName{Namespace: host.Namespace, Name: host.Name + "-claim"}
}

// Claim is the claim Secret, with the bootstrap token that the documents hold; an empty token: they hold nothing that is secret.
func (n Node) Claim(d cloudinit.Documents, tokenID, token string) *corev1.Secret {
	key := ClaimKey(n.Host)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		Labels:      map[string]string{v1alpha1.LabelMachine: string(n.Machine.UID)},
		Annotations: map[string]string{annotationAttempt: strconv.FormatInt(n.Machine.Status.Attempt, 10), annotationTokenID: tokenID},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: metal3.GroupVersion.String(), Kind: "BareMetalHost", Name: n.Host.Name, UID: n.Host.UID,
		}},
	}, Data: map[string][]byte{KeyUserData: d.UserData, KeyMetaData: d.MetaData}}
	if len(d.NetworkData) > 0 {
		secret.Data[KeyNetworkData] = d.NetworkData
	}
	if token != "" {
		secret.Data[KeyToken] = []byte(token)
	}
	return secret
}

// Marks are for which attempt a claim Secret was written, and the id of the token that it holds; empty: it holds none. Marks
// that were tampered with give attempt 0, and are written again.
func Marks(claim *corev1.Secret) (attempt int64, tokenID string) {
	attempt, err := strconv.ParseInt(claim.Annotations[annotationAttempt], 10, 64)
	if err != nil {
		attempt = 0
	}
	return attempt, claim.Annotations[annotationTokenID]
}
