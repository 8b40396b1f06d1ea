//go:build controllers

package controllers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

const observation = "controllers"

// event is what the test reads of an event of the audit log.
type event struct {
	Stage     string
	Verb      string
	User      struct{ Username string }
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct {
		Code    int
		Message string
	}
	Annotations map[string]string
}

// resource is a group and a resource with its subresource.
type resource struct{ group, name string }

func (r resource) String() string {
	if r.group == "" {
		return r.name
	}
	name, sub, found := strings.Cut(r.name, "/")
	if found {
		sub = "/" + sub
	}
	return name + "." + r.group + sub
}

// use is what a user wrote of a resource: how many updates, and what verbs they need.
type use struct {
	writes int
	verbs  map[string]int
	object string
}

// evidence has the updates of each controller.
type evidence map[string]map[resource]*use

func (e evidence) use(user string, r resource) *use {
	if e[user] == nil {
		e[user] = map[resource]*use{}
	}
	if e[user][r] == nil {
		e[user][r] = &use{verbs: map[string]int{}}
	}
	return e[user][r]
}

func (e evidence) writes() int {
	n := 0
	for _, resources := range e {
		for _, u := range resources {
			n += u.writes
		}
	}
	return n
}

func (e event) resource() resource {
	name := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return resource{e.ObjectRef.APIGroup, name}
}

// controller reports whether a user is kube-scheduler or a controller of kube-controller-manager.
func controller(user string) bool {
	return user == scheduler || strings.HasPrefix(user, "system:serviceaccount:kube-system:")
}

// events calls f for each event of a controller in the audit log.
func (r *run) events(f func(e *event)) {
	r.t.Helper()
	log, err := os.Open(r.stack.AuditLog())
	must(r.t, err)
	defer log.Close()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		// Most events are reads of others.
		if !strings.Contains(lines.Text(), scheduler) && !strings.Contains(lines.Text(), "serviceaccount:kube-system:") {
			continue
		}
		e := &event{}
		if err := json.Unmarshal(lines.Bytes(), e); err != nil {
			continue // The last line is being written.
		}
		if e.Stage == "ResponseComplete" && controller(e.User.Username) {
			f(e)
		}
	}
	must(r.t, lines.Err())
}

// settle waits until the controllers have written nothing for some seconds.
func (r *run) settle() {
	r.t.Helper()
	last, since := -1, time.Now()
	await(r.t, "the controllers have come to rest", patience, func(context.Context) (bool, string) {
		n, latest := 0, ""
		r.events(func(e *event) {
			if e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" && e.ObjectRef.Resource != "events" {
				n++
				latest = fmt.Sprintf("%s %s %s %s/%s %d", e.User.Username, e.Verb, e.resource(), e.ObjectRef.Namespace, e.ObjectRef.Name, e.ResponseStatus.Code)
			}
		})
		if n != last {
			last, since = n, time.Now()
		}
		time.Sleep(time.Second)
		return time.Since(since) > 6*time.Second, latest
	})
}

// observe starts the observation of all controllers.
func (r *run) observe() {
	r.t.Helper()
	r.world = newWorld(r.t, r.stack) // With the kinds of fieldperm.
	o := &v1alpha1.PermissionObservation{
		TypeMeta:   metav1.TypeMeta{APIVersion: "fieldperm.dev/v1alpha1", Kind: "PermissionObservation"},
		ObjectMeta: metav1.ObjectMeta{Name: observation},
		Spec: v1alpha1.PermissionObservationSpec{
			Subjects:  []v1alpha1.ObservedSubject{{Kind: "Group", Name: controllersGroup}, {Kind: "User", Name: scheduler}},
			Resources: []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	must(r.t, err)
	client, _ := r.world.on("permissionobservations.fieldperm.dev", observation)
	r.world.again("create the observation", func() error {
		_, err := client.Create(r.t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		return err
	})
	r.world.until("permissionobservations.fieldperm.dev", observation, "status.conditions[Observing].status", "True")
}

// recorded adds what the observation recorded. fieldperm writes the status once more when it ends.
func (r *run) recorded(e evidence) {
	r.t.Helper()
	must(r.t, r.stack.StopWebhook())
	client, name := r.world.on("permissionobservations.fieldperm.dev", observation)
	object, err := client.Get(r.t.Context(), name, metav1.GetOptions{})
	must(r.t, err)
	o := &v1alpha1.PermissionObservation{}
	must(r.t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, o))
	s := o.Status
	if s.Failed > 0 || s.Omitted > 0 || len(s.Gaps) > 0 {
		r.t.Errorf("the observation is not complete: %d failed, %d omitted, gaps %v", s.Failed, s.Omitted, s.Gaps)
	}
	r.t.Logf("the observation has %d updates in %d rows, the audit log has %d", s.Writes, len(s.Resources), e.writes())
	for _, row := range s.Resources {
		u := e.use(row.User, resource{row.Group, row.Resource})
		for _, v := range row.Verbs {
			if u.verbs[v.Verb] == 0 {
				r.t.Logf("only the observation has %s %s %s", row.User, row.Resource, v.Verb)
			}
			u.verbs[v.Verb] = max(u.verbs[v.Verb], int(v.Count))
		}
	}
}

// evidence reads the updates of the controllers from the audit log.
func (r *run) evidence() evidence {
	r.t.Helper()
	out, cut, unseen := evidence{}, 0, map[string]int{}
	r.events(func(e *event) {
		if e.Verb != "update" && e.Verb != "patch" || e.ResponseStatus.Code != 200 {
			return
		}
		u := out.use(e.User.Username, e.resource())
		u.writes++
		u.object = strings.TrimPrefix(e.ObjectRef.Namespace+"/"+e.ObjectRef.Name, "/")
		fields, seen := "", false
		for key, value := range e.Annotations {
			if strings.HasSuffix(key, ".fieldperm.dev/fields") {
				fields, seen = value, true
			}
		}
		if !seen {
			unseen[e.User.Username+" "+e.resource().String()]++
		}
		for _, verb := range strings.Split(fields, ",") {
			switch {
			case strings.HasPrefix(verb, "…"):
				cut++
			case verb == "none":
				r.t.Errorf("no granular verb covers an update of %s by %s", e.resource(), e.User.Username)
			case verb != "":
				u.verbs[verb]++
			}
		}
	})
	for _, what := range slices.Sorted(maps.Keys(unseen)) {
		r.t.Logf("%s: not observed: %d updates of %s", r.name, unseen[what], what)
	}
	if cut > 0 {
		r.t.Logf("%s: %d lists of verbs are cut in the audit log", r.name, cut)
	}
	return out
}

// keep writes the evidence to a file, one row for each verb, and kept reads it.
func (e evidence) keep(t *testing.T, dir string) {
	t.Helper()
	text := ""
	for _, user := range slices.Sorted(maps.Keys(e)) {
		for at, u := range e[user] {
			text += fmt.Sprintf("%s\t%s\t%s\t%d\t%s\n", user, at.group, at.name, u.writes, u.object)
			for _, verb := range slices.Sorted(maps.Keys(u.verbs)) {
				text += fmt.Sprintf("%s\t%s\t%s\t%d\t%s\n", user, at.group, at.name, u.verbs[verb], verb)
			}
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "evidence.tsv"), []byte(text), 0o600))
}

func kept(t *testing.T, dir string) evidence {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "evidence.tsv"))
	must(t, err)
	out := evidence{}
	for line := range strings.Lines(string(content)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.Atoi(row[3])
		must(t, err)
		u := out.use(row[0], resource{row[1], row[2]})
		if strings.HasPrefix(row[4], marker) {
			u.verbs[row[4]] = n
		} else {
			u.writes, u.object = n, row[4]
		}
	}
	return out
}

// refusals returns the requests of controllers that RBAC or fieldperm refused, and those that fieldperm could not decide. A quota and a namespace
// that is being deleted refuse requests too, with and without fieldperm.
func (r *run) refusals() map[string][]string {
	r.t.Helper()
	out := map[string][]string{}
	r.events(func(e *event) {
		code, message := e.ResponseStatus.Code, e.ResponseStatus.Message
		if code != 403 && code < 500 || strings.Contains(message, "exceeded quota") || strings.Contains(message, "is being terminated") {
			return
		}
		text := fmt.Sprintf("%d %s %s %s/%s: %s", code, e.Verb, e.resource(), e.ObjectRef.Namespace, e.ObjectRef.Name, message)
		if !slices.Contains(out[e.User.Username], text) {
			out[e.User.Username] = append(out[e.User.Username], text)
		}
	})
	return out
}
