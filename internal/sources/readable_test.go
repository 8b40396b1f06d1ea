package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/fieldperm/fieldperm/internal/allowlist"
)

// readable reads a cluster with sources that its user may not read.
func (c *cluster) readable(t *testing.T, forbidden ...string) (*Snapshot, []Missing) {
	t.Helper()
	unless := func(source string) error {
		for _, one := range forbidden {
			if one == source {
				return apierrors.NewForbidden(runtimeschema.GroupResource{Resource: source}, "", errors.New("no"))
			}
		}
		return nil
	}
	c.pathsErr = unless("openapi")
	s, missing, err := readable(t.Context(), Config{
		OpenAPI:  &c.world,
		Services: func(context.Context) (allowlist.Services, error) { return c.services, unless("apiservices") },
		Definitions: func() ([]*Definition, error) {
			if err := unless("definitions"); err != nil {
				return nil, err
			}
			return c.defined()
		},
		Objects: func(context.Context) ([]*unstructured.Unstructured, error) {
			return nil, errors.New("definitions are not known")
		},
	}, func(context.Context) ([]*unstructured.Unstructured, error) {
		if err := unless("objects"); err != nil {
			return nil, err
		}
		return c.objects, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, missing
}

func TestReadable_NamesWhatIsMissingAndHasTheRest(t *testing.T) {
	c := &cluster{objects: []*unstructured.Unstructured{deployments("d", 1, pausedIsBarred)}}
	for _, test := range []struct {
		forbidden []string
		want      []string
	}{
		{[]string{"definitions"}, []string{customKinds}},
		{[]string{"definitions", "objects"}, []string{customKinds, documentsOwn}},
		{[]string{"apiservices", "definitions"}, []string{otherServers, customKinds}},
		{[]string{"openapi", "definitions"}, []string{ownFields, customKinds}},
	} {
		s, missing := c.readable(t, test.forbidden...)
		var got []string
		for _, m := range missing {
			got = append(got, m.What)
			if !apierrors.IsForbidden(m.Err) {
				t.Errorf("%s: %v", m.What, m.Err)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("without %v: missing %q, want %q", test.forbidden, got, test.want)
		}
		k, err := s.Schema.Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		if err != nil {
			t.Fatal(err)
		}
		// The PermissionSchema is in force if it could be read.
		if isRead := !strings.Contains(fmt.Sprint(test.forbidden), "objects"); k.MayBar() != isRead {
			t.Errorf("without %v: a barrier %t", test.forbidden, k.MayBar())
		}
	}
}

// With everything read, the snapshot is that of Once.
func TestReadable_EqualsOnce(t *testing.T) {
	c := &cluster{
		world:   world{definitions: []*unstructured.Unstructured{widget("1", 1, entry(".spec.size", sizeIsUncovered))}},
		objects: []*unstructured.Unstructured{deployments("d", 1, pausedIsBarred), set("1", 1, `{uncoveredPermissions: ["granular:scale"]}`)},
	}
	s, missing, err := readable(t.Context(), Config{
		OpenAPI:     &c.world,
		Services:    func(context.Context) (allowlist.Services, error) { return c.services, nil },
		Definitions: c.defined,
		Objects:     func(context.Context) ([]*unstructured.Unstructured, error) { return c.objects, nil },
	}, nil)
	if err != nil || len(missing) > 0 {
		t.Fatal(err, missing)
	}
	if got, want := fmt.Sprint(outline(s.Schema)), fmt.Sprint(outline(mustOnce(t, c).Schema)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A document that cannot be read, and a set that is faulty, are missing too.
func TestReadable_SaysWhatOnceRefuses(t *testing.T) {
	c := &cluster{objects: []*unstructured.Unstructured{set("1", 2, `{uncoveredPermissions: ["granular:Scale"]}`)}}
	c.paths = map[string]openapi.GroupVersionWithContext{"apis/apps/v1": document{world: &c.world, err: errors.New("down")}}
	_, missing := c.readable(t, "definitions")
	if len(missing) != 3 || missing[1].What != ownFields || !strings.Contains(missing[2].Err.Error(), "is faulty") {
		t.Errorf("missing %v", missing)
	}
}
