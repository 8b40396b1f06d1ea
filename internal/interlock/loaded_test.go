package interlock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestA5_FilesAreProvenByWhatEveryServerHasLoaded(t *testing.T) {
	for name, c := range map[string]struct {
		fault  func(*world)
		reason Reason
		says   string
	}{
		"one server has other manifests": {func(w *world) { w.apis[1].load(Hashes{"sha256:other", w.apis[1].loaded.Authorization}) }, ReasonManifestsNotLoaded, "other static manifests"},
		"one server has none":            {func(w *world) { w.apis[1].load(Hashes{"", w.apis[1].loaded.Authorization}) }, ReasonManifestsNotLoaded, "no static manifests"},
		"one server has another chain":   {func(w *world) { w.apis[0].load(Hashes{w.apis[0].loaded.Manifests, "sha256:other"}) }, ReasonManifestsNotLoaded, "another AuthorizationConfiguration"},
		"one server has no chain":        {func(w *world) { w.apis[0].load(Hashes{w.apis[0].loaded.Manifests, ""}) }, ReasonManifestsNotLoaded, "no AuthorizationConfiguration"},
		"metrics may not be read":        {func(w *world) { w.apis[1].refused = true }, ReasonMetricsUnread, "nonResourceURL /metrics"},
		"nothing says where they are":    {func(w *world) { w.config.Manifests = nil }, ReasonManifestsUnread, "--static-manifests"},
		"a probe passes":                 {func(w *world) { w.apis[1].set(always("passes")) }, ReasonProbeNotEnforced, "passed admission"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			c.fault(w)
			w.round(t.Context())
			w.mustBe(t, false, "not in force")
			if said := w.reasons(); said[len(said)-1] != string(c.reason) || !strings.Contains(w.Status().Error(), c.says) {
				t.Errorf("said %q, %v", said, w.Status())
			}
		})
	}
	w := newWorld(t, false)
	w.mustBe(t, false, "before the first round")
	w.round(t.Context())
	w.mustBe(t, true, "proven")
	// One proof covers all resources.
	before := w.apis[0].count()
	for _, verb := range []string{"create", "patch", "update"} {
		for _, resource := range []string{"deployments", "secrets", "widgets"} {
			if err := w.Enforced(t.Context(), asking(verb, "example.com", resource, "web")); err != nil {
				t.Error(err)
			}
		}
	}
	if sent := w.apis[0].count() - before; sent > 0 {
		t.Errorf("%d probes for single objects", sent)
	}
	if w.Enforced(t.Context(), asking("patch", elsewhere, "things", "web")) == nil {
		t.Error("a manifest of kube-apiserver counts for a server that does not read it")
	}
	if w.Enforced(t.Context(), asking("patch", "", "unknown", "web")) == nil {
		t.Error("a write to an unserved resource is let through")
	}
}

func TestA5_AChangedFileIsUnprovenAtOnce(t *testing.T) {
	for name, file := range map[string]func(*testFiles) string{
		"manifests": func(f *testFiles) string { return f.manifest }, "chain": func(f *testFiles) string { return f.AuthorizationConfig },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			w.round(t.Context())
			w.mustBe(t, true, "proven")
			w.FilesChanged()
			w.mustBe(t, true, "an event without a change")
			// No server has loaded the change yet. The files in force still enforce, but for an unknown time.
			replace(t, file(w.files), "# Generated", "# Edited")
			w.FilesChanged()
			w.mustBe(t, false, "changed")
			if said := w.reasons(); said[len(said)-1] != string(ReasonManifestsChanged) {
				t.Errorf("said %q", said)
			}
			w.clock.Step(loadedPause)
			w.round(t.Context())
			w.mustBe(t, false, "not loaded yet")
			w.apis[0].load(w.files.hashes(t))
			w.clock.Step(loadedPause)
			w.round(t.Context())
			w.mustBe(t, false, "loaded by one server")
			w.apis[1].load(w.files.hashes(t))
			w.clock.Step(loadedPause)
			w.round(t.Context())
			w.mustBe(t, true, "loaded by all")
		})
	}
	// The file was changed and changed back. A server may have loaded the content in between.
	w := newWorld(t, false)
	w.round(t.Context())
	aside := w.files.AuthorizationConfig + ".aside"
	for _, move := range [][2]string{{w.files.AuthorizationConfig, aside}, {aside, w.files.AuthorizationConfig}} {
		must(t, os.Rename(move[0], move[1]))
	}
	w.FilesChanged()
	w.mustBe(t, false, "taken away and put back")
	w.clock.Step(loadedPause)
	w.round(t.Context())
	w.mustBe(t, true, "no server has loaded another")

	// Without an event, the next round sees the change, and so does a round in progress.
	w = newWorld(t, false)
	w.round(t.Context())
	replace(t, w.files.manifest, "failurePolicy: Fail", "failurePolicy: Ignore")
	w.clock.Step(testInterval)
	w.round(t.Context())
	w.mustBe(t, false, "loosened, and no event")

	w = newWorld(t, false)
	w.apis[0].set(func(Target) string {
		add(t, filepath.Join(w.files.Directory, "more.yaml"), another("policy.example.com", "https://policy.example.com/admit"))
		w.FilesChanged()
		return ""
	})
	w.round(t.Context())
	w.mustBe(t, false, "changed during the round")
}

func TestA5_EachServerIsAskedAgainAndNotTooOften(t *testing.T) {
	w := newWorld(t, false)
	w.round(t.Context())
	for range 3 {
		w.clock.Step(testInterval)
		w.round(t.Context())
	}
	if asked := w.apis[0].asked; asked != 1 {
		t.Errorf("asked %d times in %s", asked, 3*testInterval)
	}
	// This host cannot watch the directory of another host.
	w.apis[1].load(Hashes{"sha256:other", w.apis[1].loaded.Authorization})
	w.clock.Step(loadedInterval - 3*testInterval)
	w.round(t.Context())
	w.mustBe(t, false, "tampered with on another host")
	asked := w.apis[1].asked
	for range 5 {
		w.clock.Step(firstRetry)
		w.round(t.Context())
	}
	if w.apis[1].asked != asked {
		t.Error("a server that has not loaded the files is asked in every round")
	}
	w.apis[1].load(w.files.hashes(t))
	w.clock.Step(loadedPause)
	w.round(t.Context())
	w.mustBe(t, true, "loaded again")
}

func TestA5_AServerThatComesBackIsAskedAgain(t *testing.T) {
	w := newWorld(t, false)
	w.round(t.Context())
	both := w.servers
	for _, servers := range [][]Server{both[:1], both} {
		w.set(func() { w.servers = servers })
		w.ServersChanged()
	}
	w.apis[1].load(Hashes{"sha256:other", w.apis[1].loaded.Authorization})
	w.clock.Step(time.Millisecond)
	w.round(t.Context())
	w.mustBe(t, false, "it is back with other manifests")
}

// If a server restarts with other files, the only sign may be a probe that does not come back, or none.
func TestA5_LosingTheProofAsksEveryServerAgain(t *testing.T) {
	w := newWorld(t, false)
	w.round(t.Context())
	w.apis[1].load(Hashes{"sha256:other", w.apis[1].loaded.Authorization})
	w.withdraw(ReasonProbeError, errPassed)
	w.clock.Step(loadedPause)
	w.round(t.Context())
	w.mustBe(t, false, "loaded others when it was away")
}

func TestA5_ADuplicateOrMalformedHashIsNoHash(t *testing.T) {
	line := manifestInfo + `{plugin="ValidatingAdmissionWebhook",apiserver_id_hash="sha256:1",hash="sha256:2"} 1` + "\n"
	if hashes, err := published(strings.NewReader(line + "a " + strings.Repeat("0", 200<<10))); err != nil || hashes != (Hashes{Manifests: "sha256:2"}) {
		t.Errorf("%+v, %v", hashes, err)
	}
	// The rest of a line that is too long starts with the name of the metric.
	hidden := strings.Repeat("#", 64<<10) + line
	if hashes, err := published(strings.NewReader(hidden)); err != nil || hashes != (Hashes{}) {
		t.Errorf("%+v, %v", hashes, err)
	}
	for name, text := range map[string]string{
		"twice":    line + strings.Replace(line, "sha256:2", "sha256:3", 1),
		"no hash":  strings.Replace(line, "sha256:2", "", 1),
		"not 1":    strings.Replace(line, "} 1", "} 0", 1),
		"faulty":   strings.Replace(line, "hash=", "hash", 1),
		"too many": strings.Repeat(line, loadedLines+1),
	} {
		if hashes, err := published(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, hashes)
		}
	}
}
