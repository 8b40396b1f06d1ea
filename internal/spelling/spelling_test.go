package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"replicas", "image", "images", "label", "serviceAccountName"}
	for name, want := range map[string]string{
		"replica":            "replicas",
		"REPLICAS":           "replicas",
		"imgae":              "",
		"imag":               "image",
		"imagess":            "images",
		"lable":              "",
		"labe":               "label",
		"servicAcountNam":    "serviceAccountName",
		"nothing":            "",
		"":                   "",
		"x":                  "",
		"lxbxl":              "",
		"image":              "image",
		"replicasreplicas":   "",
		"spec.replicas":      "",
		"serviceaccountname": "serviceAccountName",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q): got %q, want %q", name, got, want)
		}
	}
	long := strings.Repeat("a", longest+1)
	if got := Nearest(long, []string{long}); got != "" {
		t.Errorf("a name of %d bytes is compared", len(long))
	}
}
