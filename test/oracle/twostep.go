package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/exact"
)

// applier applies an unchanged manifest again as an administrator, like kubectl, Argo CD, or a reconciling controller.
type applier struct {
	endpoint *Endpoint
	manager  string
	manifest []byte
	// serverSide selects server-side apply. Otherwise the applier sends kubectl's three-way patch with its annotation.
	serverSide, force bool
}

const (
	lastApplied       = "kubectl.kubernetes.io/last-applied-configuration"
	clientSideManager = "kubectl-client-side-apply"
)

// withLastApplied is the object that "kubectl apply" creates.
func withLastApplied(object map[string]any) ([]byte, error) {
	manifest, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := clone(object)
	child(metadata(out), "annotations")[lastApplied] = string(manifest) + "\n"
	return json.Marshal(out)
}

// apply applies the manifest to the object. It reports whether the API server accepted it.
func (s *shard) apply(ctx context.Context, v *victim) (bool, error) {
	a := v.applier
	path := a.endpoint.Path(s.namespace, v.name)
	if a.serverSide {
		answer, err := s.sender.admin(ctx, http.MethodPatch, fmt.Sprintf("%s?fieldManager=%s&force=%t", path, a.manager, a.force), contentTypes[Apply], a.manifest)
		return err == nil && answer.OK(), err
	}
	live, err := s.sender.admin(ctx, http.MethodGet, path, "", nil)
	if err != nil || !live.OK() {
		return false, err
	}
	object, err := parseObject(live.Body)
	if err != nil {
		return false, err
	}
	annotations, _ := metadata(object)["annotations"].(map[string]any)
	original, _ := annotations[lastApplied].(string)
	manifest, err := parseObject(a.manifest)
	if err != nil {
		return false, err
	}
	modified, err := withLastApplied(manifest)
	if err != nil {
		return false, err
	}
	patch, contentType, err := threeWay(a.endpoint, []byte(original), modified, live.Body)
	if err != nil {
		return false, nil //nolint:nilerr // An annotation that is no manifest stops kubectl, too.
	}
	answer, err := s.sender.admin(ctx, http.MethodPatch, path+"?fieldManager="+clientSideManager, contentType, patch)
	return err == nil && answer.OK(), err
}

// threeWay is the patch that "kubectl apply" sends.
func threeWay(e *Endpoint, original, modified, current []byte) ([]byte, string, error) {
	if typed, err := scheme.Scheme.New(e.Kind); err == nil {
		lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
		if err != nil {
			return nil, "", err
		}
		patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, lookup, true)
		return patch, contentTypes[StrategicPatch], err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	return patch, contentTypes[MergePatch], err
}

// twoStep sends a write to an object on which the manifest of another applier agrees with the stored object, and then lets that applier
// apply its unchanged manifest again. The user of the write must have been able to change every field that differs after both steps.
func (s *shard) twoStep(ctx context.Context, r *Request, v *victim) error {
	before, err := s.settled(ctx, v)
	if err != nil || before == nil {
		return err
	}
	stored, err := s.write(ctx, r)
	if err != nil || !stored || s.victims[r.Endpoint.Place.Main()] != v {
		return err
	}
	if len(r.User.gates) > 0 {
		return nil // What a gate gives changes with the object, so that the applier's change says nothing of it.
	}
	found, err := s.second(ctx, r, v, before)
	if err != nil || found == nil {
		return err
	}
	return s.fail(ctx, r, &Answer{}, found, v)
}

// second lets the applier apply, and judges the difference to the object before the first step.
func (s *shard) second(ctx context.Context, r *Request, v *victim, before []byte) (*Verdict, error) {
	s.forget()
	between, _, err := s.store.value(ctx, v.key())
	if err != nil {
		return nil, err
	}
	if _, err := s.apply(ctx, v); err != nil {
		return nil, err
	}
	events, err := s.store.Settle(ctx, s.number)
	if err != nil {
		return nil, err
	}
	var last *Event
	serverWrote := false
	for _, e := range events {
		if e.Key == v.key() {
			last = e
			_, by := byServer(e, r)
			serverWrote = serverWrote || by
		}
	}
	if last == nil || last.Deleted() {
		return nil, nil // The apply stored no change: the first step is judged already.
	}
	both := &Event{Key: last.Key, Revision: last.Revision, Old: before, New: last.New}
	j, err := s.judge(both, r)
	if err != nil {
		s.table.unjudged(both, err)
		return nil, nil
	}
	s.table.add(s.table.steps, v.applier.manager+" applied again")
	if j.wrong == nil {
		return nil, nil
	}
	// Changes of owners were judged when they were made. Here only the changes count that the other applier makes because of them. The same
	// holds for the user's own changes: several writes to one place may together look like another change than each of them.
	again, err := s.judge(&Event{Key: last.Key, Revision: last.Revision, Old: between, New: last.New}, r)
	if err != nil {
		s.table.unjudged(both, err)
		return nil, nil
	}
	j.wrong.Charges = byUser(values(about(j.wrong.Charges, again.charges)), last.New, serverWrote)
	if len(j.wrong.Charges) == 0 || s.tolerate(r, j.wrong) {
		return nil, nil
	}
	if slices.IndexFunc(j.wrong.Charges, func(c exact.Charge) bool { return !isCounter(kindOf(last.New), c.Path) }) < 0 {
		s.table.add(s.table.tolerated, "the API server counts what the other applier changes: behind a barrier that apply needs the verb of the counter, a change of owners needs the field's own")
		return nil, nil
	}
	if !v.applier.serverSide && s.holdsLastApplied(r, before) {
		s.table.add(s.table.tolerated, "a user with the verb of last-applied-configuration chooses the fields that the next kubectl apply deletes")
		return nil, nil
	}
	if slices.IndexFunc(j.wrong.Charges, func(c exact.Charge) bool { return !isEmptied(c.Path, before, last.New) }) < 0 {
		s.table.add(s.table.tolerated, "structured-merge-diff makes null of a struct or map from which an apply takes the last")
		return nil, nil
	}
	j.wrong.Reason = "after " + v.applier.manager + " applied its unchanged manifest, a change is not covered by the verbs of the user of the write before"
	return j.wrong, nil
}

// byUser removes the charges of the status if only the server's own controllers write it. They may do so at any time, or have just done so.
func byUser(charges []exact.Charge, stored []byte, serverWrote bool) []exact.Charge {
	object, err := parseObject(stored)
	if err != nil || !serverWrote && !onlyServerWritesStatus(object) {
		return charges
	}
	return slices.DeleteFunc(slices.Clone(charges), func(c exact.Charge) bool { return within(c.Path, ".status") })
}

// kindOf returns the kind of a stored object, the zero Kind if it cannot be read.
func kindOf(stored []byte) endpoint.Kind {
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(stored, &object); err != nil {
		return endpoint.Kind{}
	}
	gvk := object.GroupVersionKind()
	return endpoint.Kind{Group: gvk.Group, Kind: gvk.Kind}
}

// isEmptied reports whether a struct or map with content has become null at a path of plain names.
func isEmptied(path string, old, new []byte) bool {
	was, err1 := parseObject(old)
	is, err2 := parseObject(new)
	if err1 != nil || err2 != nil || strings.ContainsAny(path, "[\"") {
		return false
	}
	names := strings.Split(strings.TrimPrefix(path, "."), ".")
	before, there, _ := unstructured.NestedFieldNoCopy(was, names...)
	after, still, _ := unstructured.NestedFieldNoCopy(is, names...)
	object, isMap := before.(map[string]any)
	return there && still && isMap && len(object) > 0 && after == nil
}

// about keeps the charges that are at, above or below a path of the other charges.
func about(charges, others []exact.Charge) []exact.Charge {
	return slices.DeleteFunc(slices.Clone(charges), func(a exact.Charge) bool {
		return !slices.ContainsFunc(others, func(b exact.Charge) bool { return within(a.Path, b.Path) || within(b.Path, a.Path) })
	})
}

// within reports whether a path is equal to another one or below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func values(charges []exact.Charge) []exact.Charge {
	var out []exact.Charge
	for _, c := range charges {
		if c.Operation != "ownership" {
			out = append(out, c)
		}
	}
	return out
}

// settled applies the manifest before the attack, so that a second apply would change nothing, and returns the stored object. It returns
// nil if the applier cannot apply.
func (s *shard) settled(ctx context.Context, v *victim) ([]byte, error) {
	if v.agreed != nil {
		return v.agreed, nil
	}
	s.forget()
	ok, err := s.apply(ctx, v)
	if err != nil || !ok {
		return nil, err
	}
	if _, err := s.store.Settle(ctx, s.number); err != nil {
		return nil, err
	}
	v.agreed, _, err = s.store.value(ctx, v.key())
	return v.agreed, err
}

// holdsLastApplied reports whether the user may write the annotation from which kubectl computes the fields that it deletes.
func (s *shard) holdsLastApplied(r *Request, before []byte) bool {
	object, err := parseObject(before)
	if err != nil {
		return false
	}
	child(metadata(object), "annotations")[lastApplied] = "another"
	after, err := json.Marshal(object)
	if err != nil {
		return false
	}
	j, err := s.judge(&Event{Old: before, New: after}, r)
	return err == nil && j.wrong == nil
}

// key is the key under which the object itself is stored.
func (v *victim) key() string {
	for _, key := range v.keys {
		if strings.HasSuffix(key, "/"+v.name) {
			return key
		}
	}
	return ""
}
