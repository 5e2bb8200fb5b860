package readyourwrites

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatIsNeverReadAgainIsForgottenInTime(t *testing.T) {
	// Nothing is asked of an API server here.
	c, err := client.New(&rest.Config{}, client.Options{Scheme: scheme.Scheme, Mapper: meta.NewDefaultRESTMapper(nil)})
	if err != nil {
		t.Fatal(err)
	}
	w := Wrap(c, c).(*wrapper)
	write := func(name string, version int) objectID {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)}}
		if err := w.remember(o, nil); err != nil {
			t.Fatal(err)
		}
		id, err := w.id(o, client.ObjectKeyFromObject(o))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := write("first", 7)
	for i := range maxVersions {
		write(fmt.Sprintf("other-%d", i), i)
	}
	if wanted, _, is := w.lastWrite(first); !is || wanted != 7 {
		t.Errorf("of the first object %d is awaited (%v), want 7: it is forgotten too early", wanted, is)
	}
	w.forget(first, 6)
	if _, _, is := w.lastWrite(first); !is {
		t.Error("an older version than was written ended the wait")
	}
	w.forget(first, 7)
	if _, _, is := w.lastWrite(first); is {
		t.Error("the version that was written did not end the wait")
	}
	for i := range 4 * maxVersions {
		write(fmt.Sprintf("further-%d", i), i)
	}
	if held := len(w.versions.recent) + len(w.versions.older); held > 2*maxVersions {
		t.Errorf("%d writes are remembered, want no more than %d", held, 2*maxVersions)
	}
}
