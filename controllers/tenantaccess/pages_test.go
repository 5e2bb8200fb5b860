package tenantaccess

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAListOfSeveralPagesIsReadToItsEnd(t *testing.T) {
	namespace := server.Namespace(t)
	want := map[string]bool{}
	for n := range pageSize + 1 {
		name := fmt.Sprintf("page-%03d", n)
		want[name] = n%2 == 0
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if want[name] {
			c.Labels = map[string]string{"even": "true"}
		}
		if err := server.Client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	pages := 0
	err := EachPage(t.Context(), server.Client, func() *corev1.ConfigMapList { return &corev1.ConfigMapList{} }, func(page *corev1.ConfigMapList) {
		pages++
		for _, c := range page.Items {
			if isEven, found := want[c.Name]; found && isEven == (c.Labels["even"] == "true") {
				delete(want, c.Name)
			}
		}
	}, client.InNamespace(namespace))
	if err != nil || len(want) > 0 || pages != 2 {
		t.Errorf("%d pages, missing or changed are %v: %v", pages, want, err)
	}
}

// endlessPages is a server whose lists have no end.
type endlessPages struct {
	client.Reader
	// text is what each object has.
	text string
}

func (e endlessPages) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	page := into.(*corev1.ConfigMapList)
	page.Continue = "more"
	page.Items = []corev1.ConfigMap{{Data: map[string]string{"text": e.text}}}
	return nil
}

func TestAListWithoutEndIsGivenUp(t *testing.T) {
	for text, says := range map[string]string{"": "more than 500 pages", strings.Repeat("x", 1<<20): "more than 64.0 MiB"} {
		err := EachPage(t.Context(), endlessPages{text: text}, func() *corev1.ConfigMapList { return &corev1.ConfigMapList{} }, func(*corev1.ConfigMapList) {})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, expected %q", err, says)
		}
	}
}
