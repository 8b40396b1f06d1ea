package tighten

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func TestLog_CountsWhatItReads(t *testing.T) {
	log := line("apps/deployments", "", "team", "web", "granular:image(web),granular:scale") +
		line("apps/deployments", "", "team", "web", "granular:scale", `?fieldManager`, `?dryRun=All&fieldManager`) +
		line("apps/deployments", "", "team", "web", "granular:scale", `"ResponseComplete"`, `"RequestReceived"`) +
		line("apps/deployments", "", "team", "web", "granular:scale", `"code":200`, `"code":403`) +
		line("apps/deployments", "", "team", "web", "granular:label(a)", `:ops:operator","uid"`, `:ops:operator2","uid"`) +
		line("apps/deployments", "", "team", "web", "granular:label(b)", `"verb":"update"`, `"verb":"delete"`) +
		line("apps/deployments", "", "team", "new", "granular:label(c),granular:scale", `"verb":"update"`, `"verb":"patch"`, `"code":200`, `"code":201`) +
		line("apps/deployments", "status", "team", "web", "-") +
		line("/configmaps", "", "team", "big", "granular:data(a),…+7") +
		line("/configmaps", "", "team", "big", "…+3") +
		line("/configmaps", "", "team", "big", "none") +
		line("/configmaps", "", "team", "same", "") +
		"{\"kind\":\"Event\",\"verb\":\"update\",\"user\":\"" + operator + "\"\n" +
		"not JSON\n\n" +
		`{"kind":"EventList","items":[` + strings.TrimSpace(line("/configmaps", "", "team", "listed", "granular:data(b)")) + "," + strings.TrimSpace(line("/configmaps", "", "team", "listed", "granular:data(b)")) + "]}\n" +
		line("apps/deployments", "", "team", "web", "granular:scale")[:200]
	e, counts := collect(t, operator, log)
	want := LogCounts{Lines: 16, Broken: 2, Truncated: true, OtherStage: 1, Failed: 1, Writes: 10, DryRuns: 1, Created: 1, Unobserved: 1}
	if counts != want {
		t.Errorf("counts are %+v, want %+v", counts, want)
	}
	deployments := e.Resources[Resource{"apps", "deployments"}]
	if got := deployments.Verbs["granular:scale"].Count; got != 2 {
		t.Errorf("granular:scale is used %d times, want 2: not by an object that the write created", got)
	}
	if deployments.Verbs["granular"].Count != 3 || deployments.Verbs["granular:label(a)"] != nil || deployments.Verbs["granular:label(c)"] != nil {
		t.Errorf("the verbs are %v", deployments.Verbs)
	}
	if e.Resources[Resource{"apps", "deployments/status"}].Unobserved != 1 {
		t.Error("the write without annotation is not counted")
	}
	maps := e.Resources[Resource{"", "configmaps"}]
	if maps.Cut != 10 || maps.None != 1 || maps.Verbs["granular:data(b)"].Count != 2 || maps.Verbs["granular"].Count != 6 {
		t.Errorf("configmaps have %+v", maps)
	}
	if !e.Groups["system:serviceaccounts:ops"] {
		t.Error("the groups of the user are not collected")
	}
}

func TestLog_MatchesTheEffectiveUser(t *testing.T) {
	impersonating := line("/configmaps", "", "team", "a", "granular:data(a)", `"sourceIPs"`, `"impersonatedUser":{"username":"jane","groups":["team-a","system:authenticated"]},"sourceIPs"`)
	for subject, want := range map[string]int64{"jane": 1, operator: 0, "group:team-a": 1, "group:system:serviceaccounts": 0, "user:jane": 1} {
		if _, counts := collect(t, subject, impersonating); counts.Writes != want {
			t.Errorf("%s: %d writes, want %d", subject, counts.Writes, want)
		}
	}
	if _, counts := collect(t, "group:system:serviceaccounts", line("/configmaps", "", "team", "a", "")); counts.Writes != 1 {
		t.Error("a member of the group is not counted")
	}
	// JSON escapes characters of this name.
	strange := line("/configmaps", "", "team", "a", "", `"username":"system:serviceaccount:ops:operator"`, `"username":"<\u00fc/x\u003e\"y"`)
	if _, counts := collect(t, "<ü/x>\"y", strange); counts.Writes != 1 {
		t.Error("a name with escaped characters is not found")
	}
}

func TestLog_ReadsCompressedAndIndented(t *testing.T) {
	one := line("/configmaps", "", "team", "a", "granular:data(a)")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	for range 2000 {
		_, _ = io.WriteString(w, one)
	}
	must(t, w.Close())
	indented := "{\n \"kind\": \"EventList\",\n \"apiVersion\": \"audit.k8s.io/v1\",\n \"items\": [\n" + one + ",\n" + one + "]\n}\n{\n" + one[1:] + "[\n" + one + "]\n"
	for name, c := range map[string]struct {
		log       string
		writes    int64
		truncated bool
	}{
		"gzip":               {zipped.String(), 2000, false},
		"indented":           {indented, 4, false},
		"truncated indented": {indented[:len(indented)-40], 3, true},
		"empty":              {"", 0, false},
		"no newline":         {strings.TrimSpace(one), 1, false},
	} {
		if _, counts := collect(t, operator, c.log); counts.Writes != c.writes || counts.Truncated != c.truncated {
			t.Errorf("%s: %+v", name, counts)
		}
	}
	_, counts := collect(t, operator, zipped.String()[:zipped.Len()-20])
	if !counts.Truncated {
		t.Errorf("truncated gzip: %+v", counts)
	}
}

// TestLog_ReadsLongLinesEventByEvent: a batch of a webhook is one line, and other users choose the size of the objects in it.
func TestLog_ReadsLongLinesEventByEvent(t *testing.T) {
	one := line("/configmaps", "", "team", "a", "granular:data(a)")
	with := func(member string, size int) string {
		return line("/configmaps", "", "team", "a", "granular:data(a)", `"sourceIPs"`, `"`+member+`":{"data":{"x":"`+strings.Repeat("x", size)+`"}},"sourceIPs"`)
	}
	big := strings.TrimSpace(with("requestObject", 1<<20))
	batch := `{"kind":"EventList","items":[` + strings.Repeat(big+",", 8) + strings.TrimSpace(one) + "]}\n"
	for name, c := range map[string]struct {
		log  string
		want LogCounts
	}{
		"longer than the buffer":   {with("x", 3<<20) + one, LogCounts{Lines: 2, Writes: 2}},
		"a batch of 8 MiB":         {batch + one, LogCounts{Lines: 2, Writes: 10}},
		"the batch ends the log":   {one + strings.TrimSpace(batch), LogCounts{Lines: 2, Writes: 10}},
		"a batch that is cut":      {batch[:len(batch)-40] + "\n" + one, LogCounts{Lines: 2, Writes: 9, Broken: 1}},
		"a log that ends in it":    {one + batch[:len(batch)-40], LogCounts{Lines: 2, Writes: 9, Truncated: true}},
		"an event that is no JSON": {strings.Repeat("x", maxLine+2<<20) + "\n" + one, LogCounts{Lines: 2, Writes: 1, Broken: 1}},
		"an event that is too big": {with("x", maxEvent) + one, LogCounts{Lines: 2, Writes: 1, TooLong: 1}},
		"an object of 40 MiB":      {with("responseObject", 40<<20) + one, LogCounts{Lines: 2, Writes: 2}},
	} {
		if _, counts := collect(t, operator, c.log); counts != c.want {
			t.Errorf("%s: %+v, want %+v", name, counts, c.want)
		}
	}
}

// TestLogCounts_WhatIsNotReadIsAGap: a line that cannot be read may be a write.
func TestLogCounts_WhatIsNotReadIsAGap(t *testing.T) {
	one := line("/configmaps", "", "team", "a", "granular:data(a)")
	for name, c := range map[string]struct {
		log string
		gap string
	}{
		"a whole log":                              {one, ""},
		"without a last line break":                {strings.TrimSpace(one), ""},
		"a broken line":                            {"{broken\n" + one, "1 broken lines, which may be writes"},
		"a truncated line":                         {one + one[:200], "its end is truncated"},
		"no code":                                  {line("/configmaps", "", "team", "a", "granular:data(a)", `,"code":200`, ``), "1 broken lines, which may be writes"},
		"a code that is no number":                 {line("/configmaps", "", "team", "a", "granular:data(a)", `"code":200`, `"code":"200"`), "1 broken lines, which may be writes"},
		"a code that is none of HTTP":              {line("/configmaps", "", "team", "a", "granular:data(a)", `"code":200`, `"code":0`), "1 broken lines, which may be writes"},
		"a request that failed":                    {line("/configmaps", "", "team", "a", "granular:data(a)", `"code":200`, `"code":409`), ""},
		"truncated after an object":                {one + `{"kind":"Event","user":{"username":"x"}`, "its end is truncated"},
		"truncated after an object of the subject": {one + `{"kind":"Event","verb":"update","user":{"username":"` + operator + `"}`, "its end is truncated"},
	} {
		_, counts := collect(t, operator, c.log)
		if !strings.HasPrefix(strings.Join(counts.Gaps(), "; "), c.gap) || (c.gap == "") != (len(counts.Gaps()) == 0) {
			t.Errorf("%s: %q", name, counts.Gaps())
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzLog reads anything without a panic, and counts no more writes than lines have events.
func FuzzLog(f *testing.F) {
	f.Add([]byte(line("/configmaps", "", "team", "a", "granular:data(a)")))
	f.Add([]byte("{\n" + line("/configmaps", "", "team", "a", "granular:data(a),…+1")[1:]))
	f.Fuzz(func(t *testing.T, log []byte) {
		e := &Evidence{}
		l := Log{Subject: Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "operator"}, Visit: e.Collect}
		if err := l.Read(t.Context(), bytes.NewReader(log)); err != nil && !bytes.HasPrefix(log, []byte("\x1f\x8b")) {
			t.Fatal(err)
		}
	})
}
