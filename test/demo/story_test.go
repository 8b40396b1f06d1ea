package main

import (
	"strings"
	"testing"
)

func TestStories_ShowBothSides(t *testing.T) {
	all, err := stories()
	if err != nil {
		t.Fatal(err)
	}
	const leastSteps = 40
	total := 0
	for _, story := range all {
		allowed, refused := 0, 0
		for _, step := range story.Steps {
			switch {
			case len(step.Allowed) > 0:
				allowed++
			case len(step.Refused) > 0:
				refused++
			}
		}
		if story.Title == "" || story.Name == "" || allowed == 0 || refused == 0 {
			t.Errorf("%s: title %q, %d steps allowed, %d refused: want a title and some of both", story.Name, story.Title, allowed, refused)
		}
		for _, object := range story.Manifests {
			if object.GetKind() == "" || object.GetName() == "" || object.GetNamespace() != "" {
				t.Errorf("%s: manifest %q %q in namespace %q: want a kind, a name, and the story's namespace", story.Name, object.GetKind(), object.GetName(), object.GetNamespace())
			}
		}
		total += allowed + refused
	}
	if total < leastSteps {
		t.Errorf("%d steps, want %d or more", total, leastSteps)
	}
}

func TestDecodeStory_RefusesStoriesWithoutAResult(t *testing.T) {
	const good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n" +
		"title: A story\nusers: [{name: alice}]\nobject: configmap/a\nsteps:\n- user: alice\n  run: kubectl get configmap a\n"
	story, err := decodeStory("stories/01-a-story.yaml", []byte(good+"  refused: [no]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if step := story.Steps[0]; story.Name != "a-story" || len(story.Manifests) != 1 || step.By != byFieldperm || step.Code != 403 || step.Object != "configmap/a" {
		t.Errorf("story %+v, want its defaults", story)
	}
	for name, test := range map[string]struct{ raw, want string }{
		"empty":           {"", "is empty"},
		"no story":        {"apiVersion: v1\nkind: ConfigMap\n", "the last document is no story"},
		"no expectation":  {good, "step 1: give either"},
		"both":            {good + "  refused: [no]\n  allowed: {.data.a: b}\n", "step 1: give either"},
		"unknown user":    {strings.Replace(good, "- user: alice", "- user: bob", 1) + "  refused: [no]\n", `user "bob" is none of the story's`},
		"no kubectl":      {strings.Replace(good, "run: kubectl", "run: rm", 1) + "  refused: [no]\n", "run kubectl"},
		"unknown refuser": {good + "  refused: [no]\n  by: unknown\n", `by "unknown"`},
		"unknown action":  {"title: A\nsteps: [{fieldperm: kill}]\n", `use one of`},
	} {
		if _, err := decodeStory("stories/01-a.yaml", []byte(test.raw)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}
