package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Scenario is one directory: an object, the permissions of users on it, and their requests.
type Scenario struct {
	// Name and Dir are the name and the path of the directory.
	Name string `json:"-"`
	Dir  string `json:"-"`

	// Rules are the rules of docs/semantics.md that the scenario shows.
	Rules []string `json:"rules,omitempty"`
	// UseCase is the number of a use case in docs, 0 for none.
	UseCase int `json:"useCase,omitempty"`
	// NotOnCluster says why the scenario cannot run on a real API server. Its steps then have pairs of their own.
	NotOnCluster string `json:"notOnCluster,omitempty"`
	// OneSided says why no step is allowed, or none denied.
	OneSided string `json:"oneSided,omitempty"`

	Resource Resource `json:"resource"`
	// Kind is the kind of the resource's objects.
	Kind string `json:"kind"`
	// ClusterScoped says that the objects have no namespace. All other objects are in a namespace with the name of the scenario.
	ClusterScoped bool `json:"clusterScoped,omitempty"`

	// Use names an object of testdata/shared/objects that Object is merged into (RFC 7386).
	Use    string         `json:"use,omitempty"`
	Object map[string]any `json:"object,omitempty"`
	// Others are objects that exist before the object of the scenario.
	Others []map[string]any `json:"others,omitempty"`

	Users map[string]User `json:"users"`
	Steps []Step          `json:"steps"`

	// Reviews are the recorded reviews, by step.
	Reviews map[string]*Review `json:"-"`
}

// User is a user that sends requests.
type User struct {
	Groups []string `json:"groups,omitempty"`
	May    []Grant  `json:"may,omitempty"`
	// Fails are verbs for which the authorizer returns an error, with the errors; only without a cluster.
	Fails map[string]string `json:"fails,omitempty"`
	// Reasons are the authorizer's reasons for verbs; only without a cluster.
	Reasons map[string]string `json:"reasons,omitempty"`
}

// Grant is a rule of RBAC.
type Grant struct {
	Verbs []string `json:"verbs"`
	// Resources are for example "deployments" and "deployments/status"; default: the resource of the scenario.
	Resources []string `json:"resources,omitempty"`
	// Group is their API group; default: the group of the scenario.
	Group *string `json:"group,omitempty"`
}

// Step is one attempt. A change of an allowed step is kept for the next one.
type Step struct {
	Name string `json:"name"`
	// User is a user of the scenario. The user "admin", which the corpus always has, is a member of system:masters. Its steps only prepare
	// other steps.
	User        string `json:"user"`
	Subresource string `json:"subresource,omitempty"`
	// Version is the version through which the request is sent, default: the version of the scenario.
	Version string `json:"version,omitempty"`
	// Object is the name of the object, default: the name in the scenario.
	Object  string  `json:"object,omitempty"`
	Request Request `json:"request,omitempty"`
	DryRun  bool    `json:"dryRun,omitempty"`
	// Pair replaces a recorded review if no API server can be made to send one.
	Pair *Pair `json:"pair,omitempty"`

	// Allowed is the expected decision.
	Allowed bool `json:"allowed"`
	// ErrorCode is the HTTP code of an error that is expected instead of a decision.
	ErrorCode int32 `json:"errorCode,omitempty"`
	// By are the verbs that cover an allowed request, sorted; the generic verb if that does.
	By []string `json:"by,omitempty"`
	// Field is the field that a denial names.
	Field string `json:"field,omitempty"`
	// Message are parts of the denial's or the error's message.
	Message []string `json:"message,omitempty"`
	// ByAPIServer marks a denial without fieldperm: the user holds neither a generic permission nor the marker, or fieldperm is not asked.
	ByAPIServer bool `json:"byAPIServer,omitempty"`
	// Checks are all verbs for which fieldperm asks, in order. It is for steps that test checks.
	Checks []string `json:"checks,omitempty"`
	// Audit are the audit annotations. It is for steps that test them.
	Audit map[string]string `json:"audit,omitempty"`
}

// through is the resource through which a step is sent.
func (s *Scenario) through(step *Step) Resource {
	out := s.Resource
	if step.Version != "" {
		out.Version = step.Version
	}
	return out
}

// Pair has the two objects of a review, byte for byte.
type Pair struct {
	Old *string `json:"old,omitempty"`
	New string  `json:"new"`
}

// Resource is group/version/resource, as in apps/v1/deployments and v1/pods.
type Resource struct {
	runtimeschema.GroupVersionResource
}

// UnmarshalJSON reads a Resource.
func (r *Resource) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	parts := strings.Split(text, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 3 {
		return fmt.Errorf("resource %q: is not group/version/resource: write apps/v1/deployments or v1/pods", text)
	}
	r.GroupVersionResource = runtimeschema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	return nil
}

// Admin is the user whose steps prepare other steps.
const Admin = "admin"

// The files of a scenario's directory. Other YAML files in it are documents of permission schemas.
const (
	scenarioFile  = "scenario.yaml"
	reviewsFile   = "reviews.json"
	decisionsFile = "decisions.txt"
)

// Load reads all scenarios below root (the repository's testdata), sorted by name.
func Load(root string) ([]*Scenario, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "scenarios", "*"))
	if err != nil {
		return nil, err
	}
	var out []*Scenario
	var errs []error
	for _, dir := range dirs {
		s, err := loadOne(root, dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("scenario %q: %w", filepath.Base(dir), err))
			continue
		}
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}

func loadOne(root, dir string) (*Scenario, error) {
	raw, err := os.ReadFile(filepath.Join(dir, scenarioFile))
	if err != nil {
		return nil, err
	}
	s := &Scenario{Name: filepath.Base(dir), Dir: dir}
	if err := yaml.UnmarshalStrict(raw, s); err != nil {
		return nil, err
	}
	if s.Use != "" {
		raw, err := os.ReadFile(filepath.Join(root, "shared", "objects", s.Use+".yaml"))
		if err != nil {
			return nil, err
		}
		var base map[string]any
		if err := yaml.UnmarshalStrict(raw, &base); err != nil {
			return nil, err
		}
		s.Object, _ = mergePatch(base, s.Object).(map[string]any)
	}
	if s.Reviews, err = readReviews(filepath.Join(dir, reviewsFile)); err != nil {
		return nil, err
	}
	return s, s.validate()
}

func (s *Scenario) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Kind == "" || s.Resource.Resource == "" {
		fault("has no kind or no resource: give both")
	}
	seen := map[string]bool{}
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Name == "" || seen[step.Name] {
			fault("step %d: name %q is empty or taken: give each step a name of its own", i+1, step.Name)
		}
		seen[step.Name] = true
		if _, ok := s.Users[step.User]; !ok && step.User != Admin {
			fault("step %q: user %q is none of the scenario's: add it", step.Name, step.User)
		}
		if (step.Pair != nil) != (s.NotOnCluster != "") {
			fault("step %q: a pair goes with notOnCluster and only with it", step.Name)
		}
		if step.Pair == nil && step.Request.kinds() != 1 {
			fault("step %q: its request is to have one of merge, json, strategic, apply, put, create and delete", step.Name)
		}
		if step.Allowed && (step.Field != "" || step.ErrorCode != 0 || step.ByAPIServer) {
			fault("step %q: is allowed and yet names a field, an error or the authorizer that denies it", step.Name)
		}
		if !step.Allowed && !step.ByAPIServer && step.Field == "" && len(step.Message) == 0 && step.User != Admin {
			fault("step %q: is denied: say which field or message the denial names, or byAPIServer", step.Name)
		}
	}
	return errors.Join(errs...)
}

// Namespace is the namespace of the objects, "" for cluster-scoped objects.
func (s *Scenario) Namespace() string {
	if s.ClusterScoped {
		return ""
	}
	return s.Name
}

// ObjectName is the name of the object of a step.
func (s *Scenario) ObjectName(step *Step) string {
	if step.Object != "" {
		return step.Object
	}
	meta, _ := s.Object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

// Reviewed returns the steps about which a webhook may be asked.
func (s *Scenario) Reviewed() []*Step {
	var out []*Step
	for i := range s.Steps {
		if s.Steps[i].User != Admin {
			out = append(out, &s.Steps[i])
		}
	}
	return out
}

// SchemaFiles returns the files and directories with permission schemas of all scenarios: they are in force together, as in a cluster.
func SchemaFiles(root string) ([]string, error) {
	own, err := filepath.Glob(filepath.Join(root, "scenarios", "*", "*.yaml"))
	if err != nil {
		return nil, err
	}
	out := []string{filepath.Join(root, "shared", "crds")}
	return append(out, slices.DeleteFunc(own, func(path string) bool { return filepath.Base(path) == scenarioFile })...), nil
}
