package apply

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// maxRecord is the largest record in bytes. A Secret may have 1 MiB.
const maxRecord = 900 << 10

// suffixLength is long enough that the names of added objects cannot be guessed: 50 bits.
const suffixLength = 10

// record is what Apply is about to do and has done for a subject.
type record struct {
	Subject string `json:"subject"`
	// Suffix ends the names of the added objects.
	Suffix string `json:"suffix"`
	// Plan has the hashes of the roles that were to be changed when the first step was made.
	Plan  map[string]string `json:"plan"`
	Added []made            `json:"added"`
	// Observed is the observation that the first step ended with. It is zero while the step is not complete.
	Observed observed `json:"observed,omitzero"`
	Changed  []taken  `json:"changed,omitempty"`
}

// identity names one object. Another object may have the name later, but never the UID.
type identity struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

func (i *identity) ref() tighten.Ref {
	return tighten.Ref{Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
}

func identityOf(ref tighten.Ref, uid types.UID) identity {
	return identity{ref.Kind, ref.Namespace, ref.Name, uid}
}

// observed is what an observation counts for: another one, or another generation of it, begins to count again.
type observed struct {
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
}

func observedBy(o *v1alpha1.PermissionObservation) observed { return observed{o.UID, o.Generation} }

// made is an object that was added, or that is about to be. Without a UID, the program has not learnt whether it exists.
type made struct {
	identity
	// Hash is that of the content. Next is that of a content that is about to take its place.
	Hash string `json:"hash"`
	Next string `json:"next,omitempty"`
}

// is reports whether an object is the one that was added, as it was made. Without a UID in the record, the exact content under a name that
// others could not know decides.
func (m *made) is(o *object) bool {
	if o == nil || m.UID != "" && m.UID != o.meta().UID || o.meta().DeletionTimestamp != nil {
		return false
	}
	sum := o.hash()
	return sum == m.Hash || sum == m.Next
}

// taken is an object that was changed, or that is about to be.
type taken struct {
	identity
	// After is the hash of a role without update and patch.
	After string `json:"after,omitempty"`
	// Rules of a role before, and the bindings that name it.
	Rules    []rbacv1.PolicyRule `json:"rules,omitempty"`
	Bindings []identity          `json:"bindings,omitempty"`
	// Subjects that are taken out of a binding, and the role that the binding names, with its hash.
	Subjects []placed  `json:"subjects,omitempty"`
	Role     *identity `json:"role,omitempty"`
	RoleHash string    `json:"roleHash,omitempty"`
	// Autoupdate: kube-apiserver wrote the object at its start.
	Autoupdate bool `json:"autoupdate,omitempty"`
}

// placed is a subject with its index.
type placed struct {
	Index   int            `json:"index"`
	Subject rbacv1.Subject `json:"subject"`
}

// NewSuffix returns the end of names that others cannot know.
func NewSuffix() string { return strings.ToLower(rand.Text()[:suffixLength]) }

// Before returns the suffix in the record of a subject, "" if there is none, and the objects as they would be without Apply for the subject,
// and without what it added for others: a group of the subject is one of them.
func Before(ctx context.Context, records typedcorev1.SecretInterface, s tighten.Subject, objects *rbac.Grants) (string, *rbac.Grants, error) {
	others, err := othersOf(ctx, records, s)
	if err != nil {
		return "", objects, err
	}
	added := map[tighten.Ref]bool{}
	for i := range others {
		for j := range others[i].Added {
			added[others[i].Added[j].ref()] = true
		}
	}
	objects = tighten.Without(objects, func(ref tighten.Ref) bool { return added[ref] })
	secret, err := secretOf(ctx, records, s)
	if err != nil || secret == nil {
		return "", objects, err
	}
	r, err := decode(s, secret)
	if err != nil {
		return "", objects, err
	}
	return r.Suffix, r.before(objects), nil
}

// decode reads the record of a subject.
func decode(s tighten.Subject, secret *corev1.Secret) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(secret.Data[recordKey], r); err != nil {
		return nil, noRecord(secret, err)
	}
	if r.Subject != s.String() {
		return nil, fmt.Errorf("record in Secret %s/%s: is that of %q, not of %q: rename or delete it", recordNamespace, secret.Name, r.Subject, s)
	}
	return r, nil
}

func noRecord(secret *corev1.Secret, cause error) error {
	return fmt.Errorf("record in Secret %s/%s: key %q is no record: %w: restore the objects by hand, then delete it", recordNamespace, secret.Name, recordKey, cause)
}

// text returns the record as it is written.
func (r *record) text() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record of %q: %w", r.Subject, err)
	}
	if len(text) > maxRecord {
		return nil, fmt.Errorf("record of %q: what is taken from its roles and bindings has %d bytes, more than %d, and cannot be recorded for --undo: make the changes by hand with -o yaml", r.Subject, len(text), maxRecord)
	}
	return text, nil
}

func (r *record) added(ref tighten.Ref) *made {
	for i := range r.Added {
		if r.Added[i].ref() == ref {
			return &r.Added[i]
		}
	}
	return nil
}

// take notes an object that is about to be changed.
func (r *record) take(t *taken) {
	r.Changed = append(slices.DeleteFunc(r.Changed, func(other taken) bool { return other.ref() == t.ref() }), *t)
}

// changes reports whether an object is one of those that were changed.
func (r *record) changes(t *identity) bool {
	return slices.ContainsFunc(r.Changed, func(other taken) bool { return other.identity == *t })
}

// plan returns the hashes of the roles of a proposal: those to be changed, and those that the subject gets copies of. Other subjects of a
// binding may come and go.
func plan(p *tighten.Proposal) map[string]string {
	out := map[string]string{}
	for i := range p.Change {
		ch := &p.Change[i]
		if ch.Role != nil {
			out[ch.Ref.String()] = (&object{role: ch.Role}).hash()
		} else {
			out[ch.Ref.String()] = hash(ch.Binding.RoleRef)
		}
	}
	for _, named := range p.Added() {
		o := objectOf(named)
		if source := o.meta().Annotations[tighten.SourceAnnotation]; source != "" && o.role != nil {
			out[source+" without update and patch"] = o.hash()
		}
	}
	return out
}

// unchanged returns an error if a role or binding is not as it was when the first step was made.
func (r *record) unchanged(p *tighten.Proposal) error {
	now := plan(p)
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		// What was changed already in an earlier call that did not end is not in the proposal any more.
		if r.Plan[name] != now[name] {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		return fmt.Errorf("%s changed since the first --apply: look at the change, then run with --undo and with --apply again", strings.Join(changed, ", "))
	}
	return nil
}

// takenFrom returns the subjects that a change takes out of a binding.
func takenFrom(before, after []rbacv1.Subject) []placed {
	var out []placed
	for i, subject := range before {
		if !slices.Contains(after, subject) {
			out = append(out, placed{i, subject})
		}
	}
	return out
}

// putBack adds subjects where they were, as far as the place is still there.
func putBack(subjects []rbacv1.Subject, taken []placed) []rbacv1.Subject {
	for _, p := range taken {
		if !slices.Contains(subjects, p.Subject) {
			subjects = slices.Insert(subjects, min(p.Index, len(subjects)), p.Subject)
		}
	}
	return subjects
}
