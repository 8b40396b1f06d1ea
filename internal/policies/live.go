package policies

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/internal/sources"
)

func timing() refresh.Timing {
	return refresh.Timing{Interval: 5 * time.Minute, Settle: 50 * time.Millisecond, FirstRetry: 200 * time.Millisecond, LastRetry: 8 * time.Second}
}

// Config configures a Live. All fields are required.
type Config struct {
	// List returns the policies of the API server, as sources.Objects does.
	List func(context.Context) ([]*unstructured.Unstructured, error)
	// Synced reports whether List knows which kinds the API server serves.
	Synced func() bool
	// Types returns the types that the API server publishes now.
	Types func() Types
	// Compiled is called after each change of the policies in force. It must not block.
	Compiled func()
}

// Live has the policies of an API server that are in force.
type Live struct {
	config Config
	// expressions is made when there is a policy, because it takes some megabytes.
	expressions func() (*expression.Compiler, error)
	loop        *refresh.Loop
	retype      atomic.Bool
	current     atomic.Pointer[state]
	// objects are those of the last refresh. Only the loop uses them.
	objects map[string]*object
}

// state is immutable; a change replaces it.
type state struct {
	set    *Set
	states []sources.ObjectState
	denies []*v1alpha1.ConditionalPolicy
}

// object is one policy, in its current form and in its last valid one.
type object struct {
	uid        types.UID
	generation int64
	spec       any
	faults     []error
	// parsed is the current form. It is incomplete if the object could not be decoded.
	parsed *v1alpha1.ConditionalPolicy
	// good is the last form without a fault of its own, nil if there was none.
	good *form
	// decides is what is in force, nil if nothing is.
	decides *form
}

type form struct {
	compiled *policy
	parsed   *v1alpha1.ConditionalPolicy
}

// New returns a Live without policies. Run reads them.
func New(config Config) *Live {
	return &Live{config: config, expressions: sync.OnceValues(expression.NewCompiler), loop: refresh.New(timing()), objects: map[string]*object{}}
}

// Changed must be called when a policy has changed. It never blocks.
func (l *Live) Changed() { l.loop.Changed() }

// TypesChanged must be called when the types that the API server publishes may have changed. It never blocks.
func (l *Live) TypesChanged() {
	l.retype.Store(true)
	l.loop.Changed()
}

// Run keeps the policies current until the context ends.
func (l *Live) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("policies"))
	cache.WaitForCacheSync(ctx.Done(), l.config.Synced)
	l.loop.Run(ctx, l.Refresh, func(err error) {
		klog.FromContext(ctx).Error(err, "Policies, or the types of what they are about, could not be read: what was read before counts")
	})
}

// errUnread is the error until the policies have been read. A policy may deny, so no write may pass before.
var errUnread = errors.New("conditional policies: are not read yet")

// Ready returns nil once the policies have been read.
func (l *Live) Ready() error {
	if l.current.Load() == nil {
		return errUnread
	}
	return nil
}

// Set returns the policies in force. The error means that they have not been read.
func (l *Live) Set() (*Set, error) {
	s := l.current.Load()
	if s == nil {
		return nil, errUnread
	}
	return s.set, nil
}

// Objects returns the states of the policies, for their status.
func (l *Live) Objects() []sources.ObjectState {
	if s := l.current.Load(); s != nil {
		return s.states
	}
	return nil
}

// Denies returns the policies in force whose effect is Deny. The caller must not change them.
func (l *Live) Denies() []*v1alpha1.ConditionalPolicy {
	if s := l.current.Load(); s != nil {
		return s.denies
	}
	return nil
}

// Try returns the faults of a policy that is not in force. Unmatched faults do not refuse it.
func (l *Live) Try(raw []byte, name string) []error {
	p, faults := decode(admission.DocumentSource(v1alpha1.ConditionalPolicyKind, name), raw)
	if len(faults) > 0 {
		return faults
	}
	expressions, err := l.expressions()
	if err != nil {
		return []error{err}
	}
	p.Name = name
	_, faults = newCompiler(expressions, l.config.Types()).compile(p, nil)
	return faults
}

// Refresh reads the policies, and compiles those that have changed, or all of them after TypesChanged. It is not safe for concurrent use.
func (l *Live) Refresh(ctx context.Context) (err error) {
	if !l.config.Synced() {
		return errors.New("the CustomResourceDefinitions are not listed yet")
	}
	retype := l.retype.Swap(false)
	defer func() {
		if err != nil && retype {
			l.retype.Store(true)
		}
	}()
	list, err := l.config.List(ctx)
	if err != nil {
		return err
	}
	var compile *compiler
	if len(list) > 0 {
		expressions, err := l.expressions()
		if err != nil {
			return err
		}
		compile = newCompiler(expressions, l.config.Types())
	}
	next := make(map[string]*object, len(list))
	changed := l.current.Load() == nil || len(list) != len(l.objects)
	for _, u := range list {
		before := l.objects[u.GetName()]
		if before != nil && before.uid != u.GetUID() {
			before = nil
		}
		// After a restore of etcd, a generation may occur a second time with another content.
		if before != nil && !retype && before.generation == u.GetGeneration() && reflect.DeepEqual(before.spec, u.Object["spec"]) && !waits(before) {
			next[u.GetName()] = before
			continue
		}
		next[u.GetName()], changed = compile.object(u, before), true
	}
	l.objects = next
	if changed {
		l.publish()
	}
	if compile != nil && compile.unread != nil {
		l.retype.Store(true)
		return compile.unread
	}
	return nil
}

// waits reports whether a policy is about what the API server may serve later.
func waits(o *object) bool { return len(o.faults) > 0 && !isFaulty(o.faults) }

// object compiles one policy. While what it says is faulty, its last valid form stays in force. If there was none, it allows nothing, and it
// counts as true if its effect is Deny or NoOpinion. If the condition does not fit the type of a version, the policy is in force for the others.
func (c *compiler) object(u *unstructured.Unstructured, before *object) *object {
	out := &object{uid: u.GetUID(), generation: u.GetGeneration(), spec: u.Object["spec"]}
	if before != nil {
		out.good = before.good
	}
	source := admission.DocumentSource(v1alpha1.ConditionalPolicyKind, u.GetName())
	raw, err := u.MarshalJSON()
	if err == nil {
		out.parsed, out.faults = decode(source, raw)
	} else {
		out.faults = []error{err}
	}
	if out.parsed == nil || len(out.faults) > 0 {
		// Unknown fields can only narrow a policy. Without them a Deny denies more.
		out.parsed = &v1alpha1.ConditionalPolicy{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out.parsed) != nil {
			out.decides = out.good
			return out
		}
	}
	out.parsed.Name = u.GetName()
	var same *policy
	if before != nil && before.decides != nil && before.parsed != nil && reflect.DeepEqual(before.decides.parsed.Spec, out.parsed.Spec) {
		same = before.decides.compiled
	}
	compiled, faults := c.compile(out.parsed, same)
	out.faults = append(out.faults, faults...)
	switch current := (&form{compiled, out.parsed}); {
	case !isInvalid(out.faults):
		out.good, out.decides = current, current
	case out.good != nil:
		out.decides = out.good
	default:
		compiled.decides.Expression = nil // An error on every request.
		out.decides = current
	}
	return out
}

func (l *Live) publish() {
	s := &state{}
	var inForce []*policy
	for _, name := range slices.Sorted(maps.Keys(l.objects)) {
		o := l.objects[name]
		st := sources.ObjectState{Kind: v1alpha1.ConditionalPolicyKind, Name: name, UID: o.uid, Generation: o.generation}
		if isFaulty(o.faults) {
			st.Faults = o.faults
		} else {
			st.Unmatched = o.faults
		}
		s.states = append(s.states, st)
		if o.decides == nil {
			continue
		}
		inForce = append(inForce, o.decides.compiled)
		if o.decides.compiled.decides.Effect == expression.Deny {
			s.denies = append(s.denies, o.decides.parsed)
		}
	}
	s.set = newSet(inForce)
	l.current.Store(s)
	l.config.Compiled()
}
