package load

import (
	"strings"
	"testing"
)

// TestC2_APrefixEndsAtTheFirstSlash: of the key of a value only the part before its first slash is looked up. A barrier on a longer prefix would hold for
// nothing, and says so.
func TestC2_APrefixEndsAtTheFirstSlash(t *testing.T) {
	for name, c := range map[string]struct{ definition, path, want string }{
		"two slashes":           {vaults("v1"), `.spec.plain["a/b/"]`, `prefix "a/b/": has a slash before its end, and would hold for no key: end it at the first slash, "a/", or name a whole key`},
		"nothing between them":  {vaults("v1"), `.spec.plain["a//"]`, `prefix "a//": has a slash before its end, and would hold for no key: end it at the first slash, "a/", or name a whole key`},
		"below the prefix":      {vaults("v1"), `.spec.items["a/b/"].deep.secret`, `prefix "a/b/": has a slash before its end, and would hold for no key: end it at the first slash, "a/", or name a whole key`},
		"of an unknown map":     {unknownVaults(), `.spec.x["a/b/"][*]`, `prefix "a/b/": has a slash before its end, and would hold for no key: end it at the first slash, "a/", or name a whole key`},
		"one slash":             {vaults("v1"), `.spec.plain["a/"]`, ""},
		"a slash alone":         {vaults("v1"), `.spec.plain["/"]`, ""},
		"a key":                 {vaults("v1"), `.spec.plain["a/b/c"]`, ""},
		"the name of a field":   {strings.Replace(vaults("v1"), "other: {type: string}", `other: {type: string}, "a/b/": {type: string}`, 1), `.spec["a/b/"]`, ""},
		"a field that is known": {strings.Replace(unknownVaults(), "other: {type: string}", `other: {type: string}, "a/b/": {type: string}`, 1), `.spec["a/b/"]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := compileFragments(t, c.definition, permissionSchema("a", "example.com", "Vault", `{path: '`+c.path+`', verb: example.com/y, excluded: true}`))
			switch {
			case c.want == "" && len(errs) > 0:
				t.Error(errs)
			case c.want != "" && (len(errs) != 1 || errs[0].Error() != "d1.yaml:/spec/permissions/0: "+c.want):
				t.Errorf("%v, want %s", errs, c.want)
			}
		})
	}
}
