package model

import "testing"

// most bounds a search. A variant that comes near it is too large: the tests are to be quick.
const most = 2_000_000

// variant is one model to search.
type variant struct {
	name   string
	search func() (outcome, error)
}

// The protocol as it is. Variants start from these.
var (
	cluster = restRules{spans: spans{answer: 1, ttl: 1}, servers: 2, replicas: 1, changes: 4}
	own     = staticRules{spans: spans{answer: 1, ttl: 1}, servers: 1, fail: 3}
	servers = staticRules{spans: spans{answer: 1, ttl: 1}, servers: 2, fail: 2}
)

func inCluster(name string, with func(*restRules)) variant {
	rules := cluster
	with(&rules)
	return variant{name, func() (outcome, error) { return search(rules, most) }}
}

func inManifest(name string, rules staticRules, with func(*staticRules)) variant {
	with(&rules)
	return variant{name, func() (outcome, error) { return search(rules, most) }}
}

// The protocol as it is: no write lands unseen, and where somebody tampers none after the window.
func TestA5_Model_NoWriteLandsUnseen(t *testing.T) {
	for _, v := range []variant{
		inCluster("REST, two servers", func(r *restRules) {}),
		inCluster("REST, two replicas", func(r *restRules) {
			r.servers, r.replicas, r.changes, r.begun, r.answer, r.ttl = 1, 2, 2, true, 0, 0
		}),
		inCluster("REST, no guard", func(r *restRules) { r.tampers, r.changes = true, 3 }),
		inManifest("static, own server", own, func(r *staticRules) {}),
		inManifest("static, two servers", servers, func(r *staticRules) {}),
		inManifest("static, manifest narrowed", own, func(r *staticRules) { r.tampers, r.fail = true, 1 }),
		inManifest("static, failurePolicy ignored", own, func(r *staticRules) { r.ignored = true }),
	} {
		t.Run(v.name, func(t *testing.T) {
			seen, err := v.search()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states", seen.states)
			if seen.trace != "" {
				t.Errorf("a write lands that admission did not look at:\n%s", seen.trace)
			}
		})
	}
}

// The protocol without one of its rules, or without an assumption: each time there is an over-grant. If the search
// finds none, the models would not have found it in the code either.
func TestA5_Model_EveryRuleIsNeeded(t *testing.T) {
	for _, v := range []variant{
		inCluster("deleted without finalizer", func(r *restRules) { r.noFinalizer = true }),
		inCluster("released one tick early", func(r *restRules) { r.short = 1 }),
		inCluster("release does not wait for requests", func(r *restRules) { r.short = inFlight + 1 }),
		inCluster("release does not wait for caches", func(r *restRules) { r.short = r.ttl + 1 }),
		inCluster("release does not wait for proofs", func(r *restRules) { r.short = proofLife + 1 }),
		inCluster("released at once", func(r *restRules) { r.short = r.underWay() + 1 }),
		inCluster("nothing settles", func(r *restRules) { r.noSettle = true }),
		inCluster("proof never expires", func(r *restRules) { r.noExpiry = true }),
		inCluster("proof counts from the end of the round", func(r *restRules) { r.fromTheEnd = true }),
		inCluster("configuration is not read", func(r *restRules) { r.noGet = true }),
		inCluster("no canary", func(r *restRules) { r.noCanary = true }),
		inCluster("canary to one server", func(r *restRules) { r.oneServer = true }),
		inCluster("closed at start", func(r *restRules) { r.closedAtStart = true }),
		inCluster("overtaken round counts", func(r *restRules) { r.noEpoch = true }),
		inCluster("server serves before it is known", func(r *restRules) { r.lateListing = true }),
		inCluster("window is as long as it is said, REST", func(r *restRules) {
			r.tampers, r.servers, r.changes, r.tight = true, 1, 3, 1
		}),
		inManifest("no proof of single resources", servers, func(r *staticRules) { r.noResourceProof = true }),
		inManifest("webhook's error is never tried", servers, func(r *staticRules) { r.denyOnly = true }),
		inManifest("try that failed counts as tried", servers, func(r *staticRules) { r.failedKept = true }),
		inManifest("canary to one server, static", servers, func(r *staticRules) { r.oneServer = true }),
		inManifest("closed at start, static", servers, func(r *staticRules) { r.closedAtStart = true }),
		inManifest("proof never expires, static", own, func(r *staticRules) { r.tampers, r.noExpiry = true, true }),
		inManifest("window is as long as it is said, narrowed", own, func(r *staticRules) { r.tampers, r.fail, r.tight = true, 1, 1 }),
		inManifest("window is as long as it is said, ignored", own, func(r *staticRules) { r.ignored, r.tight = true, 1 }),
	} {
		t.Run(v.name, func(t *testing.T) {
			seen, err := v.search()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states, a shortest way to harm:\n%s", seen.states, seen.trace)
			if seen.trace == "" {
				t.Error("no write lands unseen: the model does not see what this rule is for")
			}
		})
	}
}
