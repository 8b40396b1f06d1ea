package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A demo whose steps cannot fail would prove nothing.

func TestJudgeAllowed(t *testing.T) {
	two, three := deployment("1", 2), deployment("2", 3)
	step := &Step{Object: "deployment/web", Allowed: map[string]string{".spec.replicas": "3", ".spec.paused": ""}}
	for name, test := range map[string]struct {
		allowed       bool
		before, after *unstructured.Unstructured
		faults        int
	}{
		"changed as asked":  {true, two, three, 0},
		"created":           {true, nil, three, 0},
		"refused":           {false, two, two, 1},
		"not changed":       {true, two, two, 2},
		"it was so already": {true, three, three, 1},
		"gone":              {true, two, nil, 1},
	} {
		r := &result{allowed: test.allowed}
		if r.judgeAllowed(step, test.before, test.after); len(r.faults) != test.faults {
			t.Errorf("%s: faults %q, want %d", name, r.faults, test.faults)
		}
	}
}

func TestJudgeRefused(t *testing.T) {
	const (
		denial   = `Error from server (Forbidden): admission webhook "granular.fieldperm.dev" denied the request: User "a" may not change .spec.replicas`
		servers  = `Error from server (Forbidden): deployments.apps "web" is forbidden`
		elseones = `Error from server (Forbidden): admission webhook "other.example.com" denied the request: User "a" may not change .spec.replicas`
	)
	two, three := deployment("1", 2), deployment("2", 3)
	for name, test := range map[string]struct {
		by, part, stderr string
		allowed          bool
		before, after    *unstructured.Unstructured
		faults           int
	}{
		"by fieldperm":          {byFieldperm, "may not change .spec.replicas", denial, false, two, two, 0},
		"by the API server":     {byAPIServer, "is forbidden", servers, false, two, two, 0},
		"never created":         {byFieldperm, ".spec.replicas", denial, false, nil, nil, 0},
		"allowed":               {byFieldperm, "may not change .spec.replicas", "", true, two, three, 4},
		"for another field":     {byFieldperm, "may not change .spec.paused", denial, false, two, two, 1},
		"by someone else":       {byFieldperm, "is forbidden", servers, false, two, two, 1},
		"by another webhook":    {byFieldperm, "may not change", elseones, false, two, two, 1},
		"fieldperm, not server": {byAPIServer, "may not change", denial, false, two, two, 1},
		"changed all the same":  {byFieldperm, "may not change", denial, false, two, three, 1},
		"created all the same":  {byFieldperm, "may not change", denial, false, nil, two, 1},
		"deleted all the same":  {byFieldperm, "may not change", denial, false, two, nil, 1},
		"no message":            {byAPIServer, "may not change", "", false, two, two, 1},
	} {
		step := &Step{Object: "deployment/web", Refused: []string{test.part}, By: test.by}
		r := &result{allowed: test.allowed}
		if r.judgeRefused(step, test.stderr, test.before, test.after); len(r.faults) != test.faults {
			t.Errorf("%s: faults %q, want %d", name, r.faults, test.faults)
		}
	}
}

func deployment(version string, replicas int64) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	object.SetUID("uid")
	object.SetResourceVersion(version)
	return object
}
