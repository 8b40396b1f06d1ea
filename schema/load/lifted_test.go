package load

import (
	"strings"
	"testing"
)

// TestC2_AnotherDocumentDoesNotLiftABarrier: documents of administrators have no rank among each other, so the name of an object does not
// decide whether a barrier holds. The barrier of the author holds whatever they say.
func TestC2_AnotherDocumentDoesNotLiftABarrier(t *testing.T) {
	const bars, verb = "{path: .spec.name, verb: example.com/name, excluded: true}", "{path: .spec.name, verb: example.com/name}"
	plain := runner(partial("", listed))
	for name, c := range map[string]struct {
		documents []string
		want      string
	}{
		"a later name":       {[]string{plain, permissionSchema("a", "example.com", "Runner", bars), permissionSchema("b", "example.com", "Runner", verb)}, "EXAMPLE.COM/NAME"},
		"an earlier name":    {[]string{plain, permissionSchema("a", "example.com", "Runner", verb), permissionSchema("b", "example.com", "Runner", bars)}, "EXAMPLE.COM/NAME"},
		"another barrier":    {[]string{plain, permissionSchema("a", "example.com", "Runner", bars), permissionSchema("b", "example.com", "Runner", "{path: .spec.name, verb: other, excluded: true}")}, "OTHER EXAMPLE.COM/NAME"},
		"a conditional one":  {[]string{plain, permissionSchema("a", "example.com", "Runner", bars), permissionSchema("b", "example.com", "Runner", "{path: .spec.name, verb: other, excludedWhen: self == 'x'}")}, "OTHER EXAMPLE.COM/NAME"},
		"that of the author": {[]string{runnerWith(plain, `{"path":".spec.name","verb":"example.com/name","excluded":true}`), permissionSchema("a", "example.com", "Runner", verb)}, "EXAMPLE.COM/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFragments(t, c.documents...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := verbsAt(t, s, gvk("example.com", "v1", "Runner"), ".spec.name"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestC2_TwoDocumentsLiftNoBarrierTogether: one has the author's verb without the barrier, the other a barrier with another verb.
func TestC2_TwoDocumentsLiftNoBarrierTogether(t *testing.T) {
	definition := strings.Replace(vaults("v1"), "metadata: {name: vaults.example.com}", `metadata: {name: vaults.example.com, annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.secret","verb":"example.com/a","excluded":true}]}'}}`, 1)
	same, other := `{path: .spec.secret, verb: example.com/a}`, `{path: .spec.secret, verb: example.com/b, excluded: true}`
	for name, documents := range map[string][]string{
		"same verb first": {permissionSchema("c", "example.com", "Vault", same), permissionSchema("d", "example.com", "Vault", other)},
		"same verb last":  {permissionSchema("c", "example.com", "Vault", other), permissionSchema("d", "example.com", "Vault", same)},
	} {
		got := passingOf(t, vaultKind, "vaults", `{"spec":{"secret":"a"}}`, `{"spec":{"secret":"b"}}`, append(documents, definition)...)
		if !strings.Contains(got, "[a]") {
			t.Errorf("%s: needs %q", name, got)
		}
	}
}
