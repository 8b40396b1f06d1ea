package recipes

import (
	"fmt"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Recipe is one section of the page.
type Recipe struct {
	// Key is the number of the recipe, or its title if it has none.
	Key string
	// Documents are its PermissionSchemas and UncoveredPermissionSets.
	Documents []string
	// Rules are the rules of all its Roles, in order.
	Rules []rbacv1.PolicyRule
}

var (
	title = regexp.MustCompile(`(?m)^\*\*(?:(\d+)\. )?(.+?)\.?\*\*`)
	fence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
)

// Parse returns the recipes of a page.
func Parse(page string) ([]Recipe, error) {
	var out []Recipe
	starts := title.FindAllStringSubmatchIndex(page, -1)
	for i, at := range starts {
		end := len(page)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		r := Recipe{Key: page[at[4]:at[5]]}
		if at[2] >= 0 {
			r.Key = page[at[2]:at[3]]
		}
		for _, block := range fence.FindAllStringSubmatch(page[at[0]:end], -1) {
			text := block[1]
			if strings.HasPrefix(text, "apiVersion: fieldperm.dev/") {
				r.Documents = append(r.Documents, text)
				continue
			}
			var rules []rbacv1.PolicyRule
			if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
				return nil, fmt.Errorf("recipe %q: %w", r.Key, err)
			}
			r.Rules = append(r.Rules, rules...)
		}
		if len(r.Documents)+len(r.Rules) > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}
