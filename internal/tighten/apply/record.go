package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

const (
	// changedLabel, with the ID of a subject at its end, is on every object that was changed for it.
	changedLabel = "fieldperm.dev/tightened-"
	// originalAnnotation, with the ID of a subject at its end, has what was taken away for it.
	originalAnnotation = "fieldperm.dev/tighten-original-"
	// planAnnotation of a PermissionObservation has the hashes of the roles and bindings that were to be changed when it was made.
	planAnnotation = "fieldperm.dev/tighten-plan"
)

// maxRecord is the largest record in bytes. All annotations of an object together may have 256 KiB.
const maxRecord = 200 << 10

// original is what a change has taken away.
type original struct {
	// Rules of a role, and the hash of what took their place.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
	After string              `json:"after,omitempty"`
	// Subjects that were taken out of a binding.
	Subjects []placed `json:"subjects,omitempty"`
	// Autoupdate: kube-apiserver wrote the object at its start.
	Autoupdate bool `json:"autoupdate,omitempty"`
}

// placed is a subject with its index.
type placed struct {
	Index   int            `json:"index"`
	Subject rbacv1.Subject `json:"subject"`
}

// originalOf returns what a change takes away.
func originalOf(ch *tighten.Change) (*original, error) {
	if ch.Role == nil {
		return &original{Subjects: takenFrom(ch.Binding.Subjects, ch.BindingAfter.Subjects), Autoupdate: ch.Binding.Annotations[tighten.AutoupdateAnnotation] == "true"}, nil
	}
	sum, err := hash(ch.RoleAfter.Rules)
	return &original{Rules: ch.Role.Rules, After: sum, Autoupdate: ch.Role.Annotations[tighten.AutoupdateAnnotation] == "true"}, err
}

// recordable returns an error if what a change takes away is too large to be recorded.
func recordable(ch *tighten.Change) error {
	o, err := originalOf(ch)
	if err != nil {
		return err
	}
	return recorded(ch.Ref, "", &metav1.ObjectMeta{}, o)
}

// recorded adds the record of a change to the metadata of the changed object. ref is for errors.
func recorded(ref tighten.Ref, id string, meta *metav1.ObjectMeta, o *original) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if len(text) > maxRecord {
		return fmt.Errorf("%s: what is taken from it has %d bytes, more than %d, and cannot be recorded for --undo: change it by hand with -o yaml", ref, len(text), maxRecord)
	}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Labels[changedLabel+id] = "true"
	meta.Annotations[originalAnnotation+id] = string(text)
	return nil
}

// record takes the record of a subject from an object. It returns false if there is none.
func record(ref tighten.Ref, id string, meta *metav1.ObjectMeta) (*original, bool, error) {
	text, ok := meta.Annotations[originalAnnotation+id]
	if !ok {
		return nil, false, nil
	}
	o := &original{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, false, fmt.Errorf("%s: annotation %s%s is no record: %w: restore the object by hand", ref, originalAnnotation, id, err)
	}
	delete(meta.Annotations, originalAnnotation+id)
	delete(meta.Labels, changedLabel+id)
	others := false
	for key := range meta.Annotations {
		others = others || strings.HasPrefix(key, originalAnnotation)
	}
	if o.Autoupdate && !others && meta.Annotations[tighten.AutoupdateAnnotation] == "false" {
		meta.Annotations[tighten.AutoupdateAnnotation] = "true"
	}
	return o, true, nil
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

// hash returns a hash of what an object grants.
func hash(parts ...any) (string, error) {
	text, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// state returns the hash of the object before a change.
func state(ch *tighten.Change) (string, error) {
	if ch.Role != nil {
		return hash(ch.Role.Rules, ch.Role.AggregationRule)
	}
	return hash(ch.Binding.Subjects, ch.Binding.RoleRef)
}
