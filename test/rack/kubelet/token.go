package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// errNoToken is the error of a pod into which no token is mounted.
var errNoToken = errors.New("unable to load in-cluster configuration: no service account token is mounted")

// bearerTransport sets the current token on each request.
type bearerTransport struct {
	next  http.RoundTripper
	token func(context.Context) (string, error)
}

// RoundTrip implements http.RoundTripper.
func (b bearerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := b.token(request.Context())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(request)
}

// WrappedRoundTripper returns the wrapped transport to client-go.
func (b bearerTransport) WrappedRoundTripper() http.RoundTripper { return b.next }

// podClient returns a client with the pod's service account. As for a projected volume, kubelet requests the token for the
// pod, and renews it after four fifths of its lifetime.
func (k *Kubelet) podClient(pod *corev1.Pod) (kubernetes.Interface, func(), error) {
	projection := tokenProjection(pod)
	if projection == nil {
		return nil, nil, errNoToken
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: projection.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if projection.Audience != "" {
		request.Spec.Audiences = []string{projection.Audience}
	}
	var (
		mu      sync.Mutex
		current string
		renew   time.Time
	)
	return k.identity.client(func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		now := k.options.Clock.Now()
		if current != "" && now.Before(renew) {
			return current, nil
		}
		answer, err := k.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("requesting a token for %s: %w", podName(pod), err)
		}
		current, renew = answer.Status.Token, now.Add(answer.Status.ExpirationTimestamp.Sub(now)*4/5)
		return current, nil
	}, k.options.HasLink)
}

// tokenProjection returns the token projection that admission, or the pod's author, has added.
func tokenProjection(pod *corev1.Pod) *corev1.ServiceAccountTokenProjection {
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil {
				return source.ServiceAccountToken
			}
		}
	}
	return nil
}
