package fieldrole

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/verbs"
)

// readVerb is the verb without which the marker lets nobody in to update or patch (A7).
const readVerb = "get"

// creation is the verb of the existence of an object (C5).
var creation = verbs.Creation().String()

// Role is what a role is for besides its rules.
type Role struct {
	// Name is "" for a name that depends on what the role grants.
	Name, Namespace string
	// Cluster means a ClusterRole.
	Cluster bool
	// ResourceNames are the names of the objects, none for all.
	ResourceNames []string
	// Create means that the role is for the creation of objects too, which rules with names do not let in. It then has granular:creation.
	Create bool
	// Verbs are other verbs that are granted as they are, such as list.
	Verbs []string
}

// Object returns the Role or ClusterRole with the rules.
func (r *Role) Object(rules []*Rule) any {
	var grants []needs.Grant
	for _, rule := range rules {
		creates := r.Create && rule.Subresource == ""
		g := needs.Grant{Group: rule.Target.Group, Resource: rule.name(), Verbs: slices.Concat(r.Verbs, rule.Verbs), Unnamed: creates}
		if creates && !slices.Contains(g.Verbs, creation) {
			g.Verbs = append(g.Verbs, creation)
		}
		if rule.Updates {
			g.Verbs = append(g.Verbs, readVerb)
		}
		for _, name := range r.ResourceNames {
			g.Name = name
			grants = append(grants, g)
		}
		if len(r.ResourceNames) == 0 {
			g.Unnamed = false
			grants = append(grants, g)
		}
	}
	var policy []rbacv1.PolicyRule
	for _, of := range needs.RulesOf(grants) {
		policy = append(policy, of.Rules...)
	}
	meta := metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace}
	if meta.Name == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", policy))
		meta.Name = "granular-" + rules[0].Target.Resource + "-" + hex.EncodeToString(sum[:4])
	}
	typed := metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}
	if r.Cluster {
		typed.Kind, meta.Namespace = "ClusterRole", ""
		return &rbacv1.ClusterRole{TypeMeta: typed, ObjectMeta: meta, Rules: policy}
	}
	return &rbacv1.Role{TypeMeta: typed, ObjectMeta: meta, Rules: policy}
}

// Manifest returns the role as YAML, with comments about what it allows.
func (r *Role) Manifest(rules []*Rule) ([]byte, error) {
	text, err := yaml.Marshal(r.Object(rules))
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	comment := func(format string, args ...any) { out.WriteString("# " + line(fmt.Sprintf(format, args...)) + "\n") }
	comment("Made by fieldperm-gen roles.")
	for _, rule := range rules {
		for _, text := range rule.Comments() {
			comment("%s", text)
		}
	}
	for _, rule := range rules {
		if !r.Create || rule.Subresource != "" {
			continue
		}
		comment("By %s the holder may create %s that have only fields that the verbs cover.", creation, rule.resource())
		if text := rule.createsText(); text != "" {
			comment("%s", text)
		}
	}
	if !slices.Contains(r.Verbs, readVerb) && !slices.ContainsFunc(rules, func(rule *Rule) bool { return rule.Updates }) {
		comment("Without get the marker lets in no update and no patch: add update to --verbs for them.")
	}
	return append([]byte(out.String()), text...), nil
}

// line keeps a comment on one line, with characters that YAML takes: a path may have any key of a map.
func line(text string) string { return printable.Text(text) }

// Comments say what a rule allows.
func (r *Rule) Comments() []string {
	out := []string{fmt.Sprintf("On %s the holder may change:", r.resource())}
	width := 0
	for i := range r.Fields {
		width = max(width, len(pathText(r.Fields[i].Path)))
	}
	for i := range r.Fields {
		f := &r.Fields[i]
		text := fmt.Sprintf("  %-*s  by %s", width, pathText(f.Path), strings.Join(f.Verbs, " and "))
		if f.Whole != "" {
			text += ", with all of " + f.Whole + ", which changes as a whole"
		}
		if f.Barrier {
			text += ", a barrier: update and create do not cover it"
		}
		out = append(out, text)
		for _, why := range f.Without {
			out = append(out, "    not every change: "+why)
		}
	}
	for _, section := range []struct {
		title string
		texts []string
	}{{"The verbs also cover:", r.alsoTexts()}, {"Powers of the verbs:", r.Powers}, {"Note:", r.Notes}} {
		if len(section.texts) > 0 {
			out = append(out, section.title)
		}
		for _, text := range section.texts {
			out = append(out, "  "+text)
		}
	}
	return out
}

func pathText(path string) string {
	if path == "" {
		return "(the object)"
	}
	return path
}

// alsoTexts returns a text for each verb that covers more, with all that it covers: an administrator grants what the comments say.
func (r *Rule) alsoTexts() []string {
	var out []string
	for _, verb := range r.Verbs {
		var texts []string
		for _, s := range r.Also {
			if s.Verb == verb {
				texts = append(texts, s.Text)
			}
		}
		if texts = distinct(texts); len(texts) == 0 {
			continue
		}
		out = append(out, verb+": "+strings.Join(texts, ", "))
	}
	return out
}
