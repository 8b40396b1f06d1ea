//go:build integration

package asks

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/plugin"
)

var (
	rounds = flag.Int("rounds", 2, "rounds with new grants and documents; each has a write of each user in each field")
	seed   = flag.Uint64("seed", 20261125, "seed of all draws")
)

// withValue is how many writes of a round can-i is asked about with --value, and applied how many manifests diff is asked about.
const withValue, applied = 60, 30

// TestAsks: what can-i, who-can and diff answer is what the API server does.
func TestAsks(t *testing.T) {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(*seed, 1)) //nolint:gosec // The same draws each time.
	c := &counts{}
	for round := range *rounds {
		w.draw(r, round)
		verb := []string{"update", "patch"}[round%2]
		answers := w.canI(verb)
		holders := w.whoCan(verb)
		for i, n := range r.Perm(len(w.users) * w.fields()) {
			u := &w.users[n%len(w.users)]
			o, f := w.field(n / len(w.users))
			value := f.Values[r.IntN(len(f.Values))]
			allowed, why := w.write(u.Name, verb, o, f, value)
			what := fmt.Sprintf("round %d: %s: %s %s/%s %s to %v (%s)", round, u.Name, verb, o.Resource, o.Name, f.Path, value, why)
			c.judge(t, "can-i", what, answers[asked{u.Name, o.Name, f.Path}], allowed)
			c.judge(t, "who-can", what, holders[asked{u.Name, o.Name, f.Path}], allowed)
			if i < withValue {
				c.judge(t, "can-i --value", what, w.canISet(u, verb, o, f, value), allowed)
			}
		}
		for range applied {
			c.diff(t, w, r)
		}
	}
	c.prove(t)
}

// asked is a question about a field.
type asked struct{ user, object, path string }

// counts are the numbers of answers by command, answer and what the API server did.
type counts map[string]int

// judge compares an answer with what the API server did. "depends" is right for both.
func (c counts) judge(t *testing.T, command, what, answer string, allowed bool) {
	t.Helper()
	c[fmt.Sprintf("%s %s %t", command, answer, allowed)]++
	if answer != "depends" && (answer == "yes") != allowed || answer == "depends" && command == "can-i --value" {
		t.Errorf("%s answers %q, and the API server allows it: %t: %s", command, answer, allowed, what)
	}
}

// prove fails if the answers are all alike.
func (c counts) prove(t *testing.T) {
	t.Helper()
	t.Log(c)
	for _, one := range []string{"can-i yes true", "can-i no false", "can-i depends true", "can-i depends false", "who-can yes true", "who-can no false", "can-i --value yes true", "can-i --value no false", "diff yes true", "diff no false"} {
		if c[one] < 5 {
			t.Errorf("%d answers are %q", c[one], one)
		}
	}
}

// ask runs a command of the plugin, and reads its JSON.
func ask(t *testing.T, newCommand func(genericiooptions.IOStreams) *cobra.Command, into any, stdin string, args ...string) int {
	t.Helper()
	var out, warnings bytes.Buffer
	cmd := newCommand(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &warnings})
	cmd.SetArgs(append(args, "-o", "json"))
	err := cmd.ExecuteContext(t.Context())
	code := plugin.ExitCode(err)
	if code > 1 {
		t.Fatalf("%v: %v: %s%s", args, err, &out, &warnings)
	}
	must(t, json.Unmarshal(out.Bytes(), into))
	return code
}

// as are the flags that name a user. Users with an even number ask themselves.
func (w *world) as(u *User) []string {
	for i := range w.users {
		if w.users[i].Name == u.Name && i%2 == 0 {
			user, err := w.stack.User(u.Name, u.Groups...)
			must(w.T, err)
			return []string{"--kubeconfig", user.Kubeconfig, "-n", Namespace}
		}
	}
	out := []string{"--kubeconfig", w.admin.Kubeconfig, "-n", Namespace, "--as", u.Name}
	for _, group := range u.Groups {
		out = append(out, "--as-group", group)
	}
	return out
}

type permissions struct {
	Fields []struct{ Path, Answer string }
}

// canI asks about every field as every user, whatever the value is.
func (w *world) canI(verb string) map[asked]string {
	w.Helper()
	out := map[asked]string{}
	for i := range w.users {
		for j := range w.objects {
			u, o := &w.users[i], &w.objects[j]
			args := append(w.as(u), verb, o.Resource+"/"+o.Name)
			for k := range o.Fields {
				args = append(args, "--field", o.Fields[k].Path)
			}
			var answer permissions
			ask(w.T, plugin.NewCanICommand, &answer, "", args...)
			if len(answer.Fields) != len(o.Fields) {
				w.Fatalf("can-i answers about %d fields of %d: %v", len(answer.Fields), len(o.Fields), args)
			}
			for k := range o.Fields {
				out[asked{u.Name, o.Name, o.Fields[k].Path}] = answer.Fields[k].Answer
			}
		}
	}
	return out
}

// canISet asks about a value.
func (w *world) canISet(u *User, verb string, o *Object, f *Field, value any) string {
	w.Helper()
	text, err := json.Marshal(value)
	must(w.T, err)
	var answer permissions
	code := ask(w.T, plugin.NewCanICommand, &answer, "", append(w.as(u), verb, o.Resource+"/"+o.Name, "--field", f.Path, "--value", string(text))...)
	if len(answer.Fields) != 1 || (code == 0) != (answer.Fields[0].Answer == "yes") {
		w.Fatalf("%s %s: exit code %d: %v", o.Name, f.Path, code, answer)
	}
	return answer.Fields[0].Answer
}

func (w *world) fields() int {
	n := 0
	for i := range w.objects {
		n += len(w.objects[i].Fields)
	}
	return n
}

// field returns the field of a number.
func (w *world) field(n int) (*Object, *Field) {
	for i := range w.objects {
		o := &w.objects[i]
		if n < len(o.Fields) {
			return o, &o.Fields[n]
		}
		n -= len(o.Fields)
	}
	panic("the number is of no field")
}

type holders struct {
	Subjects []struct{ Kind, Namespace, Name, How string }
}

// whoCan asks which subjects may change each field. A row of a group is about its members. For a user in a group of the certificate, no row is no
// answer: the command does not know of the group, and the user may hold one verb by it and another by itself.
func (w *world) whoCan(verb string) map[asked]string {
	w.Helper()
	out := map[asked]string{}
	for n := range w.fields() {
		o, f := w.field(n)
		var answer holders
		ask(w.T, plugin.NewWhoCanCommand, &answer, "", "--kubeconfig", w.admin.Kubeconfig, "-n", Namespace, verb, o.Resource+"/"+o.Name, "--field", f.Path)
		for i := range w.users {
			u := &w.users[i]
			says := "no"
			if len(u.Groups) > 0 && u.Subject.Kind == rbacv1.UserKind {
				says = "depends"
			}
			for _, s := range answer.Subjects {
				switch {
				case !u.is(s.Kind, s.Namespace, s.Name):
				case s.How != "conditional":
					says = "yes"
				case says == "no":
					says = "depends"
				}
			}
			out[asked{u.Name, o.Name, f.Path}] = says
		}
	}
	return out
}

// is reports whether a row is about the user: by its name, or by a group that it is in.
func (u *User) is(kind, namespace, name string) bool {
	if kind == rbacv1.GroupKind {
		return name == user.AllAuthenticated || slices.Contains(u.Groups, name)
	}
	return kind == u.Subject.Kind && namespace == u.Subject.Namespace && name == u.Subject.Name
}
