package interlock

import (
	"strings"
	"sync"
	"testing"
)

// A kube-apiserver that starts again has the same address, and may call no webhook.
func TestA5_AProofEndsWithTheRunOfAServer(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.apis[1].set(always("passes"))
	w.apis[1].restart()
	eventually(t, func() bool { return w.Status() != nil })
	w.mustBe(t, false, "a server has started again")
	w.round(t.Context())
	w.mustBe(t, false, "it calls no webhook")
	w.apis[1].set(always(""))
	w.round(t.Context())
	w.mustBe(t, true, "proven anew")
}

// The state itself says no, before the withdrawal.
func TestA5_AProofWithoutItsWatchIsNone(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.state.Load().servers[w.servers[1].Address].ended.Store(true)
	if err := w.Status(); err == nil || !strings.Contains(err.Error(), "may have started again") {
		t.Errorf("the status is %v", err)
	}
}

func TestA5_ARoundDoesNotProveAServerThatStartsAgainDuringIt(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	once := sync.OnceFunc(func() {
		watch := w.state.Load().servers[w.servers[1].Address]
		w.apis[1].restart()
		eventually(t, watch.ended.Load)
	})
	w.apis[0].set(func(Target) string { once(); return "" })
	w.round(t.Context())
	w.mustBe(t, false, "started again during the round")
	w.round(t.Context())
	w.mustBe(t, true, "proven anew")
}

// TestA5_AServerThatStartsIsProvenWhenItIsReady: before, it knows no roles, and its refusals mislead.
func TestA5_AServerThatStartsIsProvenWhenItIsReady(t *testing.T) {
	w := newWorld(t, true)
	w.apis[1].starting, w.apis[1].unwatched = true, true
	w.round(t.Context())
	if err := w.Status(); err == nil || !strings.Contains(err.Error(), "is not ready yet") || w.apis[1].count() > 0 {
		t.Errorf("the status is %v, after %d probes", err, w.apis[1].count())
	}
	w.apis[1].starting, w.apis[1].unwatched = false, false
	w.prove(t)
}

// TestA5_AServerThatReadsNoManifestsIsNamed: it says nothing of the manifests that it ignores.
func TestA5_AServerThatReadsNoManifestsIsNamed(t *testing.T) {
	for is, named := range map[string]bool{"v1.35.4": true, "v1.34.4-gke.1": true, "v1.36.0-alpha.3": false, "v1.37.2": false, "": false} {
		w := newWorld(t, false)
		w.apis[1].version = is
		w.apis[1].set(always("passes"))
		w.round(t.Context())
		if err := w.Status(); err == nil || strings.Contains(err.Error(), "which reads no static manifests") != named {
			t.Errorf("%q: the status is %v", is, err)
		}
	}
	w := newWorld(t, true)
	w.apis[0].version = "v1.32.0"
	w.prove(t)
}

func TestA5_WithoutAWatchNothingIsProven(t *testing.T) {
	w := newWorld(t, true)
	w.apis[1].unwatched = true
	w.round(t.Context())
	if err := w.Status(); err == nil || !strings.Contains(err.Error(), "apply rbac.yaml of fieldperm-gen manifests again") {
		t.Errorf("the status is %v", err)
	}
	if said := w.reasons(); said[len(said)-1] != string(ReasonWatchEnded) {
		t.Errorf("said %q", said)
	}
}

func TestA5_AServerIsWatchedOnceAndNotAfterItLeft(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.round(t.Context())
	for i, api := range w.apis {
		if n := api.openWatches(); n != 1 {
			t.Errorf("server %d has %d watches", i, n)
		}
	}
	w.set(func() { w.servers = w.servers[:1] })
	w.ServersChanged()
	eventually(t, func() bool { return w.apis[1].openWatches() == 0 })
	w.mustBe(t, true, "the other is proven")
}
