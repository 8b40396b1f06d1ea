//go:build integration

package patch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	donothing "github.com/fieldperm/fieldperm/test/noop"
)

var (
	rounds = flag.Int("rounds", 1, "how often each variant has a turn")
	writes = flag.Int("writes", 10, "PATCHes in a turn")
	only   = flag.String("variants", "", "regular expression of the names of the variants, besides none and noop, that have turns")
)

// TestW1W2P8P9_APatchCausesTheRequestsThatItNeeds: every variant allows the PATCH of the replicas, answers the PATCH of the image as it must,
// and causes no more requests than it needs. The times are printed, not judged.
func TestW1W2P8P9_APatchCausesTheRequestsThatItNeeds(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	runs := startAll(t)
	for _, r := range runs {
		if err := r.await(t.Context()); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}
	wanted, err := regexp.Compile(*only)
	must(t, err)
	runs = slices.DeleteFunc(runs, func(r *run) bool { return r.name != none && r.name != noop && !wanted.MatchString(r.name) })
	order := slices.Clone(runs)
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // The same order each time.
	for round := range *rounds {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, r := range order {
			begin := time.Now()
			must(t, r.measure(t.Context(), round, *writes))
			r.check(t, r.slices[round].requests, time.Since(begin))
		}
	}
	t.Logf("%d rounds of %d PATCHes one after the other\n%s", *rounds, *writes, table(runs))
}

// startAll starts all control planes.
func startAll(t *testing.T) []*run {
	t.Helper()
	all, on := variants(), map[string][]*variant{}
	for _, v := range all {
		on[v.plane] = append(on[v.plane], v)
	}
	var mu sync.Mutex
	var starting sync.WaitGroup
	planes, errs := map[string]*plane{}, []error(nil)
	for name, of := range on {
		starting.Go(func() {
			p, err := start(t.Context(), t, name, of, *writes)
			mu.Lock()
			defer mu.Unlock()
			planes[name] = p
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	starting.Wait()
	must(t, errors.Join(errs...))
	var out []*run
	for _, v := range all {
		r, err := newRun(v, planes[v.plane])
		must(t, err)
		out = append(out, r)
	}
	return out
}

// await returns when grants, barriers, policies and webhooks are in force. It leaves alone the objects that are measured.
func (r *run) await(ctx context.Context) error {
	last := errors.New("was not tried")
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 90*time.Second, true, func(ctx context.Context) (bool, error) {
		last = r.try(ctx, r.objects(*writes)-1)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// try returns an error unless PATCHes have the right answers and the right webhooks are asked.
func (r *run) try(ctx context.Context, number int) error {
	before, err := r.asked(ctx)
	if err != nil {
		return err
	}
	if err := r.scale(ctx, number); err != nil {
		return err
	}
	after, err := r.askedSince(ctx, before, 1)
	if err != nil {
		return err
	}
	if got := after.minus(before); !got.isAbout(r.causes) {
		return fmt.Errorf("one write has caused %s, want %s", got, r.causes)
	}
	// The number makes it a change each time.
	answer, err := r.patch(ctx, number, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example.com/%s-%d"}]}}}}`, donothing.Refused, r.replicas))
	if err == nil && answer.Code != r.image {
		err = fmt.Errorf("the PATCH of the image: %d, want %d: %s", answer.Code, r.image, answer.Body)
	}
	if err != nil {
		return err
	}
	_, err = r.askedSince(ctx, after, 1)
	return err
}

// retries is how many times more admission may be asked: kube-apiserver asks again when it repeats a write because the object has changed
// since it was read.
const retries = 2

// reaches reports whether at least the wanted questions of admission were asked.
func (r requests) reaches(want requests) bool {
	return r.granular >= want.granular && r.uncovered >= want.uncovered && r.observed >= want.observed
}

// isAbout reports whether the wanted questions of admission were asked, and others were not.
func (r requests) isAbout(want requests) bool {
	return r.reaches(want) && r.granular <= retries*want.granular && r.uncovered <= retries*want.uncovered && r.observed <= retries*want.observed
}

// check reports writes that caused other requests than they should. Nothing is asked more often than once for each write, and what is cached
// is asked again only when it is too old.
func (r *run) check(t *testing.T, got requests, took time.Duration) {
	t.Helper()
	asking := float64(*writes)
	if !r.cold {
		asking = warm * (1 + float64(took/cacheTime))
	}
	if !got.each(*writes).isAbout(r.causes) || got.authorize > asking*mostAsked.authorize+probes || got.checks > asking*mostAsked.checks ||
		got.authorize < r.causes.authorize*float64(*writes)-probes || (got.checks > 0) != (r.causes.checks > 0) && r.cold {
		t.Errorf("%s: %d writes in %s have caused %s; want of one %s", r.name, *writes, took, got, r.causes)
	}
}

// mostAsked is what is asked once for each object: the marker, get, update, patch, and the three verbs of the replicas.
var mostAsked = requests{authorize: 1, checks: 7}

// probes is the most that can be under way at the same time in a round of the proof of enforcement. Their questions may be counted.
const probes = 2
