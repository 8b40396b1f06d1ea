package generators

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

func TestPowers_PageHasEveryPower(t *testing.T) {
	documents, compiled := schematest.Documents(t), schematest.Schema(t)
	page, err := Powers([]byte("before\n"+powersBegin+"old\n"+powersEnd+"between\n"+keysBegin+"old\n"+keysEnd+"after\n"), compiled, documents)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if !strings.HasPrefix(text, "before\n"+powersBegin+"| power ") || !strings.Contains(text, powersEnd+"between\n"+keysBegin+"| kinds ") || !strings.HasSuffix(text, keysEnd+"after\n") || strings.Contains(text, "old\n") {
		t.Errorf("page %.200q…", text)
	}
	for _, power := range schema.AllPowers() {
		if !strings.Contains(text, "| `"+string(power)+"` | "+power.Sentence()+" | `granular:") {
			t.Errorf("power %q has no verb", power)
		}
	}
	// A part that a page writes once for several kinds counts for each of them.
	for _, want := range []string{
		"`granular:suspension` of CronJob.batch, Job.batch",
		"`granular:retries`",
		"`granular:template` of ControllerRevision.apps, CronJob.batch, DaemonSet.apps, DaemonSet.extensions, Deployment.apps, Deployment.extensions, Job.batch, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the table", want)
		}
	}
	if again, err := Powers(page, compiled, documents); err != nil || string(again) != text {
		t.Errorf("written over its own table it is another: %v", err)
	}
	for _, page := range []string{"no place", powersBegin + powersEnd, keysBegin + keysEnd} {
		if _, err := Powers([]byte(page), compiled, documents); err == nil {
			t.Errorf("the page %q was taken, which lacks a place", page)
		}
	}
}
