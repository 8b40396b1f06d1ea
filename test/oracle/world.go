package oracle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/exact"
	"github.com/fieldperm/fieldperm/test/stack"
	"github.com/fieldperm/fieldperm/test/store"
)

// Config is the configuration of a run. Only Bin is required.
type Config struct {
	// Bin is the directory of the built commands. Root is the checkout, which has the definitions of fieldperm's own kinds. If Root is
	// empty, the parent directory of Bin is used.
	Bin, Root string
	// Writes is the number of requests as drawn users, and Seed the start of the random numbers.
	Writes int
	Seed   uint64
	// Epoch is the number of writes before users, schemas and definitions are drawn anew. Zero: 4000.
	Epoch int
	// Shards is the number of concurrent requests. Zero: 12.
	Shards   int
	Topology stack.Topology
	// Definitions is the number of CustomResourceDefinitions in an epoch. Zero: 4; negative: none.
	Definitions int
	// MaxFound ends the run after this number of requests without permission. Zero: 5.
	MaxFound int
	// Enough ends the run after a failure, in addition to MaxFound. Nil: never.
	Enough func(*Failure) bool
	// Only restricts the run to resources, "group/resource" or "resource". Empty: all.
	Only []string
	// For ends the run after that time. Zero: no limit.
	For time.Duration
	// Log receives progress messages. Nil: none.
	Log io.Writer
	// Record is the folder for the documents and the reviews of the run, which test/previous replays. Empty: none.
	Record string
}

// world is a running control plane with the data that the oracle has about it.
type world struct {
	config Config
	stack  *stack.Stack
	store  *Store
	sender *sender
	client kubernetes.Interface
	table  *table
	ledger *ledger
	record *recorder

	converter *converter
	dresses   map[runtimeschema.GroupKind]*dress
	built     compile.Documents

	// The following fields are drawn anew for every epoch, while no request is sent.
	epoch     int
	endpoints []*Endpoint
	resources map[runtimeschema.GroupKind]Place
	stored    *exact.Stored
	users     []*User
	sets      []*set
	inForce   *guards
	// static are the guards with which a static installation was started, nil if the guards are objects of the cluster.
	static      *guards
	definitions []*custom
	// drawn and barred are endpoints that receive more writes than the others.
	drawn, barred []*Endpoint
	customs       map[Place]*custom

	// learned are verbs that refusals of earlier epochs named.
	learned map[Place]map[string]bool
	left    int
}

// Run runs the oracle, and returns its findings. The error says why it could not judge.
func Run(ctx context.Context, config Config) (*Report, error) {
	if config.Root == "" {
		config.Root = filepath.Dir(config.Bin)
	}
	if config.Epoch == 0 {
		config.Epoch = 4000
	}
	if config.Shards == 0 {
		config.Shards = 12
	}
	if config.Definitions == 0 {
		config.Definitions = 4
	}
	if config.MaxFound == 0 {
		config.MaxFound = 5
	}
	if config.Log == nil {
		config.Log = io.Discard
	}
	w, err := start(ctx, config)
	if err != nil {
		return nil, err
	}
	if err = w.run(ctx); err != nil {
		err = fmt.Errorf("%w; the log of kube-apiserver ends in:\n%s", err, w.stack.APIServerLogTail())
	}
	report := w.table.report(w)
	return report, errors.Join(err, w.stop())
}

func start(ctx context.Context, config Config) (*world, error) {
	w := &world{config: config, table: newTable(), learned: map[Place]map[string]bool{}, left: config.Writes}
	w.ledger = &ledger{shards: map[int][]asked{}, strange: w.table.strange}
	if config.Record != "" {
		w.record = &recorder{dir: config.Record}
	}
	var err error
	if w.dresses, err = dresses(); err != nil {
		return nil, err
	}
	if w.built, err = builtIn(config.Root); err != nil {
		return nil, err
	}
	if w.stack, err = stack.Start(ctx, stack.Config{
		Bin: config.Bin, Topology: config.Topology, Prepare: checksInProcess,
		Observe: func(path string, question, answer []byte) {
			w.ledger.enter(path, question, answer)
			w.record.enter(path, question)
		},
		ServerFlags: merged(store.ServerFlags(), map[string][]string{
			"runtime-config":                 {"api/all=true"},
			"feature-gates":                  {"AllAlpha=true,AllBeta=true,CBORServingAndStorage=false"},
			"max-requests-inflight":          {"0"},
			"max-mutating-requests-inflight": {"0"},
			"enable-priority-and-fairness":   {"false"},
		}),
	}); err != nil {
		return nil, err
	}
	if err := w.connect(ctx); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

func (w *world) connect(ctx context.Context) error {
	admin := rest.CopyConfig(w.stack.Admin())
	admin.QPS = -1
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		return err
	}
	client.Timeout = time.Minute
	w.sender = &sender{host: strings.TrimSuffix(admin.Host, "/"), client: client}
	if w.client, err = kubernetes.NewForConfig(admin); err != nil {
		return err
	}
	if err := w.stack.Apply(ctx, filepath.Join(w.config.Root, "config", "crd")); err != nil {
		return err
	}
	for i := range w.config.Shards {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i)}}
		if _, err := w.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := w.inject(ctx); err != nil {
		return err
	}
	if w.converter, err = newConverter(); err != nil {
		return err
	}
	w.store, err = OpenStore(context.WithoutCancel(ctx), w.stack.EtcdURL(), shardOf, w.table.outside)
	return err
}

func (w *world) stop() error {
	var errs []error
	if w.converter != nil {
		w.converter.close()
	}
	if w.store != nil {
		errs = append(errs, w.store.Close())
	}
	return errors.Join(append(errs, w.stack.Stop(), w.record.end())...)
}

// checksInProcess makes fieldperm evaluate RBAC in process, so that a check costs no request.
func checksInProcess(dir string) ([]string, error) {
	file := filepath.Join(dir, "oracle-authorization.yaml")
	chain := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC, name: rbac}]\n"
	return []string{"--authorization-config", file}, os.WriteFile(file, []byte(chain), 0o600)
}

func merged(flags, more map[string][]string) map[string][]string {
	maps.Copy(flags, more)
	return flags
}

// builtIn are the types of the built-in kinds and of fieldperm's own kinds, and the entries of the catalogue for every kind.
func builtIn(root string) (compile.Documents, error) {
	topology, err := load.BuiltIn()
	if err != nil {
		return compile.Documents{}, err
	}
	permissions, err := load.Catalogue(false)
	if err != nil {
		return compile.Documents{}, err
	}
	own, errs := load.Files([]string{filepath.Join(root, "config", "crd")})
	docs := compile.Documents{Topologies: []compile.Topology{topology}, Permissions: permissions}.Append(own)
	return docs, errors.Join(errs...)
}

// resource returns the resource of a stored object.
func (w *world) resource(kind runtimeschema.GroupKind) (Place, bool) {
	p, ok := w.resources[kind]
	return p, ok
}

// kindsOf are the kinds whose verbs may cover a write to an endpoint: the kind of the document that it accepts, and the kind of its main
// resource.
func (w *world) kindsOf(e *Endpoint) []runtimeschema.GroupVersionKind {
	out := []runtimeschema.GroupVersionKind{e.Kind}
	for _, other := range w.endpoints {
		if e.Sub != "" && other.Place == e.Place.Main() && other.Version == e.Version {
			out = append(out, other.Kind)
		}
	}
	return out
}

func (w *world) run(ctx context.Context) error {
	begin := time.Now()
	if w.config.For > 0 {
		defer time.AfterFunc(w.config.For, w.table.end).Stop()
	}
	for w.left > 0 && !w.table.enough(w.config) {
		if err := w.nextEpoch(ctx); err != nil {
			return fmt.Errorf("epoch %d: %w", w.epoch, err)
		}
		if err := w.record.begin(w.epoch, w.inForceNow()); err != nil {
			return err
		}
		budget := min(w.left, w.config.Epoch)
		w.left -= budget
		if err := w.play(ctx, budget, begin); err != nil {
			return fmt.Errorf("epoch %d: %w", w.epoch, err)
		}
	}
	return nil
}

// play sends the writes of one epoch.
func (w *world) play(ctx context.Context, budget int, begin time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, w.config.Shards)
	shards := make([]*shard, w.config.Shards)
	var running sync.WaitGroup
	for i := range w.config.Shards {
		s := newShard(w, i)
		shards[i] = s
		// Each shard has a fixed share of the writes, so that a seed draws the same whichever shard is faster.
		share := budget / w.config.Shards
		if i < budget%w.config.Shards {
			share++
		}
		running.Go(func() {
			defer func() { errs[i] = errors.Join(errs[i], s.leave(context.WithoutCancel(ctx))) }()
			for share > 0 && ctx.Err() == nil && !w.table.enough(w.config) {
				var sent int
				if sent, errs[i] = s.step(ctx); errs[i] != nil {
					cancel()
					return
				}
				share -= sent
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			fmt.Fprintln(w.config.Log, w.table.progress(begin))
			w.remember(shards)
			return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, context.Canceled) })...)
		case <-tick.C:
			fmt.Fprintln(w.config.Log, w.table.progress(begin))
		}
	}
}

// maxLearned limits the number of learned verbs of one resource.
const maxLearned = 200

// remember collects the learned verbs of the shards, in an order that does not depend on their speed.
func (w *world) remember(shards []*shard) {
	for _, s := range shards {
		for main, verbs := range s.learned {
			if w.learned[main] == nil {
				w.learned[main] = map[string]bool{}
			}
			for _, verb := range slices.Sorted(maps.Keys(verbs)) {
				if len(w.learned[main]) < maxLearned {
					w.learned[main][verb] = true
				}
			}
		}
	}
}

// chooseHot finds the endpoints of drawn definitions, and of resources with schemas and sets: they are drawn more often.
func (w *world) chooseHot() {
	w.drawn, w.barred = nil, nil
	for _, e := range w.endpoints {
		if w.customs[e.Place.Main()] != nil {
			w.drawn = append(w.drawn, e)
		}
		barred := slices.ContainsFunc(w.sets, func(s *set) bool { return slices.Contains(s.resources, e.Place.Main()) })
		if w.inForce != nil {
			for _, one := range w.inForce.schemas {
				barred = barred || w.resources[runtimeschema.GroupKind{Group: one.Spec.Group, Kind: one.Spec.Kind}] == e.Place.Main()
			}
		}
		// A resource of the same name in another group may have the same objects. A Binding concerns a Pod.
		if barred || slices.ContainsFunc(w.sets, func(s *set) bool {
			return slices.ContainsFunc(s.resources, func(p Place) bool {
				return p.Resource == e.Resource || p.Resource == "pods" && e.Resource == "bindings"
			})
		}) {
			w.barred = append(w.barred, e)
		}
	}
}

// nextEpoch draws users, schemas and definitions, and waits until all of them are in force.
func (w *world) nextEpoch(ctx context.Context) error {
	w.epoch++
	d := newDraw(w.config.Seed, uint64(w.epoch)<<32)
	if err := w.drawDefinitions(ctx, d); err != nil {
		return err
	}
	var err error
	if w.endpoints, err = discover(w.stack.Admin()); err != nil {
		return err
	}
	w.resources = map[runtimeschema.GroupKind]Place{}
	places := map[Place]bool{}
	var all []Place
	for _, e := range w.endpoints {
		if e.Sub == "" {
			w.resources[e.Kind.GroupKind()] = e.Place
		}
		if !places[e.Place] {
			places[e.Place] = true
			all = append(all, e.Place)
		}
		w.table.know(e)
	}
	if err := w.drawGuards(ctx, d); err != nil {
		return err
	}
	w.chooseHot()
	gated := drawGated(d, fmt.Sprint(w.epoch), all)
	w.users = append(drawUsers(d, fmt.Sprint(w.epoch), all, vocabularies(w)), gated...)
	for _, u := range w.users {
		if err := u.publish(ctx, w.client); err != nil {
			return err
		}
	}
	if err := w.publishGates(ctx, gated, all); err != nil {
		return err
	}
	return w.stack.AwaitGrants(ctx)
}
