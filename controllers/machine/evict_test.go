package machine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// silentTenant returns a client of a server that never answers, and how many requests it got.
func silentTenant(t *testing.T) (kubernetes.Interface, *atomic.Int64) {
	t.Helper()
	asked := new(atomic.Int64)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1); <-release }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	tenant, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL, Timeout: 100 * time.Millisecond, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return tenant, asked
}

func podsOf(namespaces int) []corev1.Pod {
	var pods []corev1.Pod
	for i := range 50 {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("n-%d", i%namespaces), Name: fmt.Sprintf("p-%d", i)}})
	}
	return pods
}

func TestARoundOfEvictionsEndsAtTheFirstRequestWithoutAnAnswer(t *testing.T) {
	tenant, asked := silentTenant(t)
	if err := evictPods(t.Context(), tenant, podsOf(1)); err == nil || asked.Load() != 1 {
		t.Errorf("%d evictions are requested of a tenant that does not answer: %v", asked.Load(), err)
	}
}

func TestTheBudgetsOfATenantThatDoesNotAnswerAreAskedForOnce(t *testing.T) {
	tenant, asked := silentTenant(t)
	if names := blockingBudgets(t.Context(), tenant, podsOf(50)); len(names) != 1 || asked.Load() != 1 {
		t.Errorf("%d lists are requested of a tenant that does not answer: %v", asked.Load(), names)
	}
}
