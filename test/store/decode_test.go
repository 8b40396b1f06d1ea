package store

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	got, err := Decode([]byte(`{"spec":{"replicas":3}}`))
	if err != nil || got["spec"].(map[string]any)["replicas"] != int64(3) {
		t.Errorf("%v, %v", got, err)
	}
	for value, want := range map[string]string{
		"k8s\x00\n":            "is protobuf",
		"k8s:enc:aescbc:v1:x:": "is encrypted",
		"\xd9\xd9\xf7\xa1":     "is CBOR",
		"null":                 "is no JSON object",
		"7":                    "cannot unmarshal",
		"":                     "unexpected end",
	} {
		if _, err := Decode([]byte(value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", value, err, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		key, namespace, name, prefix string
		ok                           bool
	}{
		{"/registry/pods/shop/web", "shop", "web", "pods", true},
		{"/registry/services/specs/shop/web", "shop", "web", "services/specs", true},
		{"/registry/minions/one", "", "one", "minions", true},
		{"/registry/example.com/widgets/shop/w", "shop", "w", "example.com/widgets", true},
		{"/registry/pods/shop/web", "shop", "other", "", false},
		{"/registry/pods/shop/web", "", "shop", "", false},
		{"/registry/web", "", "web", "", false},
		{"/other/pods/shop/web", "shop", "web", "", false},
	} {
		got, ok := Split(c.key, c.namespace, c.name)
		if ok != c.ok || got.Prefix != c.prefix {
			t.Errorf("%q: %+v, %v; want prefix %q, %v", c.key, got, ok, c.prefix, c.ok)
		}
	}
}
