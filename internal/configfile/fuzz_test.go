package configfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// FuzzLoad checks that no file causes a panic, that every fault has a file and a line, and that no chain is accepted that
// k8s.io/apiserver would refuse.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(samples, "*", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	cases, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range cases {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(raw), "\n=== ")[1:] {
			_, text, _ := strings.Cut(part, "\n")
			text, _, _ = strings.Cut(text, ">>>")
			f.Add([]byte(text))
		}
	}
	compiler := authorizationcel.NewDefaultCompiler()
	f.Fuzz(func(t *testing.T, data []byte) {
		chain, err := LoadAuthorization("f", data)
		check(t, err)
		if err == nil {
			theirs, err := load.LoadFromData(data)
			if err != nil {
				t.Fatalf("loads, but k8s.io/apiserver says %v", err)
			}
			if errs := validation.ValidateAuthorizationConfiguration(compiler, nil, theirs, known(), repeatable()); len(errs) > 0 || len(chain.Configuration.Authorizers) != len(theirs.Authorizers) {
				t.Fatalf("loads, but k8s.io/apiserver says %v", errs)
			}
		}
		_, _, err = LoadAuthentication("f", data)
		check(t, err)
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	var problems Problems
	if err == nil {
		return
	}
	if !errors.As(err, &problems) || len(problems) == 0 || len(problems) > most {
		t.Fatalf("%d problems: %v", len(problems), err)
	}
	for _, p := range problems {
		if p.File == "" || p.Line < 1 || p.Message == "" || strings.Contains(p.Error(), "\n") {
			t.Fatalf("problem %q", p.Error())
		}
	}
}
