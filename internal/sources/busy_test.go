package sources

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/schema"
)

// unaccepted returns a definition whose names an API server has not accepted yet.
func unaccepted() *unstructured.Unstructured {
	u := widget("1", 1, "{}")
	delete(u.Object, "status")
	return u
}

// An API server that is busy answers late. What its informers have sent is in force before it is read, and what it answers is in force
// afterwards.
func TestDefinitions_AreInForceBeforeTheServerIsRead(t *testing.T) {
	w := &world{}
	l := mustLive(t, w)
	mustRefresh(t, l)
	asked := false
	w.asked = func() {
		asked = true
		if _, err := l.Schema().Kind(kindWidget()); err != nil {
			t.Errorf("while the API server is read: %v", err)
		}
		w.services.Own = []string{"example.com"}
	}
	w.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); !asked || !errors.Is(err, schema.ErrUnknownKind) {
		t.Errorf("the API server was read: %t; of a group that it turned out to serve itself: %v", asked, err)
	}
}

// An API server accepts hundreds of new definitions one after the other. Those that wait have no documents, so they cause no compile.
func TestDefinitions_NoCompileUntilTheyAreServed(t *testing.T) {
	w := &world{}
	l := mustLive(t, w)
	mustRefresh(t, l)
	before := l.Schema()
	for _, definitions := range [][]*unstructured.Unstructured{{unaccepted()}, nil} {
		w.definitions = definitions
		mustRefresh(t, l)
		if l.Schema() != before {
			t.Errorf("%d definitions that were never accepted: all others were compiled", len(definitions))
		}
	}
	for _, c := range []struct {
		name        string
		definitions []*unstructured.Unstructured
		known       bool
	}{
		{"created", []*unstructured.Unstructured{unaccepted()}, false},
		{"accepted", []*unstructured.Unstructured{widget("1", 1, "{}")}, true},
		{"created again", []*unstructured.Unstructured{func() *unstructured.Unstructured { u := unaccepted(); u.SetUID("2"); return u }()}, false},
		{"accepted again", []*unstructured.Unstructured{widget("2", 1, "{}")}, true},
		{"deleted", nil, false},
	} {
		w.definitions = c.definitions
		mustRefresh(t, l)
		if _, err := l.Schema().Kind(kindWidget()); (err == nil) != c.known {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
