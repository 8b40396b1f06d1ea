//go:build integration

package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/sender"
)

const (
	scenariosRoot = "../../testdata"
	// largeObject is the size of enlarged objects, in bytes.
	largeObject = 16 << 10
	// target is the scenario whose object exists, for questions to /authorize.
	target = "use-case-05-image-and-replicas"
)

// scenarios are the scenarios of use cases with kinds that every cluster has.
func scenarios() ([]*corpus.Scenario, error) {
	all, err := corpus.Load(scenariosRoot)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s *corpus.Scenario) bool {
		return !strings.HasPrefix(s.Name, "use-case-") || strings.Contains(s.Resource.Group, ".") && !strings.HasSuffix(s.Resource.Group, ".k8s.io")
	}), nil
}

// mix has the requests of the load: every review in two sizes for each endpoint whose answer is known, and questions to /authorize.
type mix struct {
	questions, small, large []sender.Request
}

// all lists every request once.
func (m *mix) all() []sender.Request { return slices.Concat(m.questions, m.small, m.large) }

// pick returns a request: every tenth is a question, and objects of both sizes are equally frequent.
func (m *mix) pick(random *rand.Rand) *sender.Request {
	from := m.small
	switch share := random.IntN(100); {
	case share < 10:
		from = m.questions
	case share < 55:
		from = m.large
	}
	return &from[random.IntN(len(from))]
}

// requests are the requests of the scenarios; large ones have objects of the given number of bytes.
func requests(all []*corpus.Scenario, large int) (*mix, error) {
	out := &mix{}
	var err error
	if out.questions, err = questions(); err != nil {
		return nil, err
	}
	for _, s := range all {
		for _, step := range s.Reviewed() {
			if step.ErrorCode != 0 || step.ByAPIServer {
				continue
			}
			if err := out.addReviews(s, step, large); err != nil {
				return nil, fmt.Errorf("%s/%s: %w", s.Name, step.Name, err)
			}
		}
	}
	return out, nil
}

func (m *mix) addReviews(s *corpus.Scenario, step *corpus.Step, size int) error {
	asItIs, err := s.Request(step)
	if err != nil || asItIs.Operation != admissionv1.Create && asItIs.Operation != admissionv1.Update {
		return err
	}
	large, err := grown(asItIs, size)
	if err != nil {
		return err
	}
	for to, req := range map[*[]sender.Request]*admissionv1.AdmissionRequest{&m.small: asItIs, &m.large: large} {
		if req == nil {
			continue
		}
		name := s.Name + "/" + step.Name
		if to == &m.large {
			name += fmt.Sprintf(", %d KB", size>>10)
		}
		req.UID = types.UID(name)
		review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req}
		body, err := json.Marshal(review)
		if err != nil {
			return err
		}
		*to = append(*to, sender.Request{Name: name, Path: "/admit/granular", Body: body, UID: req.UID, Want: wanted(step.Allowed)})
		// Only for a user with the generic permission a denial is known to come from a barrier.
		if step.Allowed || generic(s, step, req.Operation) {
			*to = append(*to, sender.Request{Name: name + ", uncovered", Path: "/admit/uncovered", Body: body, UID: req.UID, Want: wanted(step.Allowed)})
		}
	}
	return nil
}

func wanted(allowed bool) sender.Answer {
	if allowed {
		return sender.Allowed
	}
	return sender.Denied
}

func generic(s *corpus.Scenario, step *corpus.Step, operation admissionv1.Operation) bool {
	verb := "update"
	if operation == admissionv1.Create {
		verb = "create"
	}
	return step.Subresource == "" && slices.ContainsFunc(s.Users[step.User].May, func(g corpus.Grant) bool {
		return len(g.Resources) == 0 && g.Group == nil && slices.Contains(g.Verbs, verb)
	})
}

// grown returns an update whose two objects have the same large annotation; nil if the annotation would change the decision.
func grown(req *admissionv1.AdmissionRequest, size int) (*admissionv1.AdmissionRequest, error) {
	if req.Operation != admissionv1.Update {
		return nil, nil
	}
	var old, object map[string]any
	if json.Unmarshal(req.OldObject.Raw, &old) != nil || json.Unmarshal(req.Object.Raw, &object) != nil {
		return nil, nil // Some objects are intentionally invalid.
	}
	_, before, err := unstructured.NestedMap(old, "metadata", "annotations")
	if err != nil {
		return nil, err
	}
	if _, after, err := unstructured.NestedMap(object, "metadata", "annotations"); err != nil || before != after {
		return nil, err // The step tests the map itself.
	}
	out, padding := req.DeepCopy(), strings.Repeat("x", max(0, size-len(req.OldObject.Raw)))
	for _, one := range []map[string]any{old, object} {
		if err := unstructured.SetNestedField(one, padding, "metadata", "annotations", "padding"); err != nil {
			return nil, err
		}
	}
	if out.OldObject.Raw, err = json.Marshal(old); err != nil {
		return nil, err
	}
	out.Object.Raw, err = json.Marshal(object)
	return out, err
}

// questions are requests to /authorize: the marker lets its users through for proven resources, and fieldperm lets no other users through.
func questions() ([]sender.Request, error) {
	var out []sender.Request
	for name, q := range map[string]struct {
		user, verb, resource string
		allowed              bool
	}{
		"holder of the marker": {"operator", "patch", "deployments", true},
		"holder, update":       {"operator", "update", "deployments", true},
		"holder, delete":       {"operator", "delete", "deployments", false},
		"holder, elsewhere":    {"operator", "patch", "daemonsets", false},
		"nobody":               {"nobody", "patch", "deployments", false},
	} {
		review := authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
			Spec: authorizationv1.SubjectAccessReviewSpec{User: q.user, Groups: []string{"system:authenticated"}, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: q.verb, Group: "apps", Version: "v1", Resource: q.resource, Namespace: target, Name: "web",
			}},
		}
		body, err := json.Marshal(review)
		if err != nil {
			return nil, err
		}
		out = append(out, sender.Request{Name: "authorize: " + name, Path: "/authorize", Body: body, Want: wanted(q.allowed)})
	}
	return out, nil
}
