package load

import "testing"

// TestC2_AnotherDocumentDoesNotLiftABarrier: documents of administrators have no rank among each other, so the name of an object does not
// decide whether a barrier holds. The author's barrier may be lifted.
func TestC2_AnotherDocumentDoesNotLiftABarrier(t *testing.T) {
	const bars, verb = "{path: .spec.name, verb: example.com/name, excluded: true}", "{path: .spec.name, verb: example.com/name}"
	plain := runner(partial("", listed))
	for name, c := range map[string]struct {
		documents []string
		want      string
	}{
		"a later name":       {[]string{plain, permissionSchema("a", "example.com", "Runner", bars), permissionSchema("b", "example.com", "Runner", verb)}, "EXAMPLE.COM/NAME"},
		"an earlier name":    {[]string{plain, permissionSchema("a", "example.com", "Runner", verb), permissionSchema("b", "example.com", "Runner", bars)}, "EXAMPLE.COM/NAME"},
		"another barrier":    {[]string{plain, permissionSchema("a", "example.com", "Runner", bars), permissionSchema("b", "example.com", "Runner", "{path: .spec.name, verb: other, excluded: true}")}, "OTHER"},
		"a conditional one":  {[]string{plain, permissionSchema("a", "example.com", "Runner", bars), permissionSchema("b", "example.com", "Runner", "{path: .spec.name, verb: other, excludedWhen: self == 'x'}")}, "EXAMPLE.COM/NAME"},
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
