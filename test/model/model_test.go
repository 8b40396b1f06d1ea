package model

import "testing"

// most limits a search. A variant that comes near it is too large, because the tests must be fast.
const most = 2_000_000

// variant is one model to search.
type variant struct {
	name   string
	search func() (outcome, error)
}

// The protocol of the product. Variants start from these.
var (
	cluster = restRules{spans: spans{answer: 1, ttl: 1}, servers: 2, replicas: 1, changes: 4}
	own     = staticRules{spans: spans{answer: 1, ttl: 1}, servers: 1, reread: 3, edits: 3}
	servers = staticRules{spans: spans{answer: 1, ttl: 1}, servers: 2, reread: 3, edits: 2}
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

// The complete protocol: no write passes without admission, and after tampering none passes after the window.
func TestA5_Model_NoWriteLandsUnseen(t *testing.T) {
	for _, v := range []variant{
		inCluster("REST, two servers", func(r *restRules) {}),
		inCluster("REST, two replicas", func(r *restRules) {
			r.servers, r.replicas, r.changes, r.begun, r.answer, r.ttl = 1, 2, 2, true, 0, 0
		}),
		inCluster("REST, no guard", func(r *restRules) { r.tampers, r.changes = true, 3 }),
		inCluster("REST, a server goes back", func(r *restRules) { r.falls, r.changes = true, 3 }),
		inManifest("static, own server", own, func(r *staticRules) {}),
		inManifest("static, two servers", servers, func(r *staticRules) {}),
		inManifest("static, files edited", own, func(r *staticRules) { r.tampers = true }),
		inManifest("static, files edited and no event", own, func(r *staticRules) { r.tampers, r.blind = true, true }),
		inManifest("static, files of another host edited", servers, func(r *staticRules) { r.tampers, r.remote = true, true }),
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

// The protocol without one of its rules, or without an assumption: each variant has an over-grant. If the search found none, the models
// would not have found it in the code either.
func TestA5_Model_EveryRuleIsNeeded(t *testing.T) {
	for _, v := range []variant{
		inCluster("deleted without finalizer", func(r *restRules) { r.noFinalizer = true }),
		inCluster("released one tick early", func(r *restRules) { r.short = 1 }),
		inCluster("release does not wait for requests", func(r *restRules) { r.short = inFlight + 1 }),
		inCluster("release does not wait for caches", func(r *restRules) { r.short = r.ttl + 1 }),
		inCluster("release does not wait for proofs", func(r *restRules) { r.short = proofLife + 1 }),
		inCluster("released at once", func(r *restRules) { r.short = r.underWay() + 1 }),
		inCluster("a probe does not say what is loaded", func(r *restRules) { r.noIdentity = true }),
		inCluster("proof never expires", func(r *restRules) { r.noExpiry = true }),
		inCluster("proof counts from the end of the round", func(r *restRules) { r.fromTheEnd = true }),
		inCluster("configuration is not read", func(r *restRules) { r.noGet = true }),
		inCluster("no probe", func(r *restRules) { r.noProbe = true }),
		inCluster("probe to one server", func(r *restRules) { r.oneServer = true }),
		inCluster("proven at start", func(r *restRules) { r.provenAtStart = true }),
		inCluster("overtaken round counts", func(r *restRules) { r.noEpoch = true }),
		inCluster("a server that starts again is trusted", func(r *restRules) { r.noWatch = true }),
		inManifest("a server that starts again is trusted, static", own, func(r *staticRules) { r.noWatch = true }),
		inCluster("server serves before it is known", func(r *restRules) { r.lateListing = true }),
		inCluster("window is as long as it is said, REST", func(r *restRules) {
			r.tampers, r.servers, r.changes, r.tight = true, 1, 3, 1
		}),
		inCluster("window is as long as it is said, a server goes back", func(r *restRules) {
			r.falls, r.servers, r.changes, r.tight = true, 1, 3, 1
		}),
		inManifest("no hash, static", servers, func(r *staticRules) { r.noHash = true }),
		inManifest("hash compared once", own, func(r *staticRules) { r.tampers, r.hashOnce, r.blind, r.noEpoch = true, true, true, true }),
		inManifest("hash of another host compared once", servers, func(r *staticRules) { r.tampers, r.remote, r.hashOnce = true, true, true }),
		inManifest("hash of one server only", servers, func(r *staticRules) { r.oneServer, r.remote = true, true }),
		inManifest("files are not checked", own, func(r *staticRules) { r.anyFiles = true }),
		inManifest("changed file counts until the next round", own, func(r *staticRules) { r.tampers, r.noEvent = true, true }),
		inManifest("file changed back counts as not changed", own, func(r *staticRules) { r.tampers, r.noStamp = true, true }),
		inManifest("overtaken round counts, static", own, func(r *staticRules) { r.tampers, r.noEpoch = true, true }),
		inManifest("proven at start, static", servers, func(r *staticRules) { r.provenAtStart = true }),
		inManifest("proof never expires, static", own, func(r *staticRules) { r.tampers, r.blind, r.noExpiry = true, true, true }),
		inManifest("window is as long as it is said, event", own, func(r *staticRules) { r.tampers, r.tight = true, 1 }),
		inManifest("window is as long as it is said, no event", own, func(r *staticRules) { r.tampers, r.blind, r.tight = true, true, 1 }),
		inManifest("window is as long as it is said, another host", servers, func(r *staticRules) { r.tampers, r.remote, r.tight = true, true, 1 }),
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
