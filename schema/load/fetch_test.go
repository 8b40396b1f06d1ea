package load

import (
	"context"
	"errors"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
)

// document is what one API answers when it is asked for its OpenAPI.
type document struct {
	text string
	err  error
}

func (d document) SchemaWithContext(context.Context, string) ([]byte, error) {
	return []byte(d.text), d.err
}
func (document) ServerRelativeURL() string { return "" }

func TestFetch_OneBrokenAPIDoesNotFailTheRest(t *testing.T) {
	good := string(fischers(t))
	index := map[string]openapi.GroupVersionWithContext{
		"apis/sea.example.com/v1":  document{text: good},
		"apis/down.example.com/v1": document{err: errors.New("503")},
		"apis/odd.example.com/v1":  document{text: "<html>"},
		"apis/bad.example.com/v1":  document{text: strings.Replace(good, "x-kubernetes-permission-verb", "x-kubernetes-permission-vreb", 1)},
		// It claims the kind of another group.
		"apis/thief.example.com/v1":  document{text: good},
		"apis/custom.example.com/v1": document{text: strings.ReplaceAll(good, "sea.example.com", "custom.example.com")},
		"apis/sea.example.com":       document{text: good},
		"version":                    document{text: good},
	}
	topologies, errs := fetch(t.Context(), index, func(gv runtimeschema.GroupVersion) bool { return gv.Group != "custom.example.com" })
	if len(topologies) != 1 || topologies[0].Source != "/openapi/v3/apis/sea.example.com/v1" || len(topologies[0].Kinds) != 1 {
		t.Errorf("topologies %+v", topologies)
	}
	if len(errs) != 3 {
		t.Errorf("errors %v", errs)
	}
	wantFaults(t, errs, "/openapi/v3/apis/down.example.com/v1:: ", "503", "APIService")
	wantFaults(t, errs, "/openapi/v3/apis/odd.example.com/v1:: ", "no OpenAPI v3 document")
	wantFaults(t, errs, "/openapi/v3/apis/bad.example.com/v1:/components/schemas/com.example.sea.v1.FischerSpec/properties/catch/x-kubernetes-permission-vreb: ", "is unknown")
}
