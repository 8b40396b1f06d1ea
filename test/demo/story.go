package main

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed stories
var storyFiles embed.FS

// The values of Step.Fieldperm.
const (
	actionStop  = "stop"
	actionStart = "start"
	// actionUnenforce takes the webhook granular away, actionEnforce restores it.
	actionUnenforce = "unenforce"
	actionEnforce   = "enforce"
)

// The components that can refuse, for Step.By.
const (
	byFieldperm = "fieldperm"
	byAPIServer = "kube-apiserver"
)

// Story is one file: documents that an administrator applies, and a Story as the last one.
type Story struct {
	// Title is a line. Name is the file's name without number and ending, and the namespace of the story.
	Title string `json:"title"`
	Name  string `json:"-"`
	// Labels are the labels of the namespace.
	Labels map[string]string `json:"labels"`
	Users  []Player          `json:"users"`
	// Files are created in the working directory of the steps.
	Files map[string]string `json:"files"`
	// Object is the default object of the steps: resource/name.
	Object string `json:"object"`
	Steps  []Step `json:"steps"`

	// Manifests are the documents to apply.
	Manifests []*unstructured.Unstructured `json:"-"`
}

// Player is a user with a client certificate.
type Player struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
	// As is the short name of the user in the steps, if the name is long.
	As string `json:"as"`
}

func (p Player) short() string {
	if p.As != "" {
		return p.As
	}
	return p.Name
}

// Step is a command of a user with its expected result, or an action on fieldperm itself.
type Step struct {
	// Fieldperm is "stop", "start", "unenforce" or "enforce"; then the other fields are empty.
	Fieldperm string `json:"fieldperm"`

	// Note is a line for the reader, shown before the step.
	Note string `json:"note"`
	User string `json:"user"`
	// Run is the shell command of the user.
	Run string `json:"run"`
	// Object is the object of the step. If it is empty, it is the story's.
	Object string `json:"object"`

	// Allowed has JSON paths into the object, and the values that must be there after the command; "" for none. At least one of them
	// differs before.
	Allowed map[string]string `json:"allowed"`

	// Refused are parts of the server's message. The object must not have changed at all.
	Refused []string `json:"refused"`
	// By is the component that refuses: fieldperm if empty, or kube-apiserver.
	By string `json:"by"`
	// Code is the status code of the server, 403 if zero.
	Code int32 `json:"code"`
}

// stories returns all stories, sorted by the names of their files.
func stories() ([]*Story, error) {
	names, err := fs.Glob(storyFiles, "stories/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Story
	var errs []error
	users := map[string]string{}
	for _, name := range names {
		raw, err := storyFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		story, err := decodeStory(name, raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		// A kubeconfig has one namespace, and a grant in one story must have no effect in another one.
		for _, user := range story.Users {
			if other := users[user.Name]; other != "" {
				errs = append(errs, fmt.Errorf("%s: user %q appears in %s too: rename one", name, user.Name, other))
			}
			users[user.Name] = name
		}
		all = append(all, story)
	}
	return all, errors.Join(errs...)
}

func decodeStory(name string, raw []byte) (*Story, error) {
	var documents [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	if len(documents) == 0 {
		return nil, errors.New("is empty: end it with a story")
	}
	last := len(documents) - 1
	story := &Story{}
	if err := yaml.UnmarshalStrict(documents[last], story); err != nil {
		return nil, fmt.Errorf("the last document is no story: %w", err)
	}
	_, story.Name, _ = strings.Cut(strings.TrimSuffix(path.Base(name), ".yaml"), "-")
	for _, document := range documents[:last] {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(bytes.TrimSpace(document), &object.Object); err != nil {
			return nil, err
		}
		story.Manifests = append(story.Manifests, object)
	}
	return story, story.complete()
}

// complete fills in defaults and refuses a story that could not fail.
func (s *Story) complete() error {
	users := map[string]bool{}
	for _, user := range s.Users {
		users[user.short()] = true
	}
	var errs []error
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Fieldperm != "" {
			if actions := []string{actionStop, actionStart, actionUnenforce, actionEnforce}; !slices.Contains(actions, step.Fieldperm) || step.Run != "" {
				errs = append(errs, fmt.Errorf("step %d: fieldperm: %q: use one of %q, alone", i+1, step.Fieldperm, actions))
			}
			continue
		}
		step.Run = strings.TrimSpace(step.Run)
		if step.Object == "" {
			step.Object = s.Object
		}
		if (len(step.Allowed) > 0) == (len(step.Refused) > 0) {
			errs = append(errs, fmt.Errorf("step %d: give either the value after an allowed write, or the text of the server's message", i+1))
		}
		if !users[step.User] {
			errs = append(errs, fmt.Errorf("step %d: user %q is none of the story's: add it to users", i+1, step.User))
		}
		if !strings.HasPrefix(step.Run, "kubectl ") || strings.Count(step.Object, "/") != 1 {
			errs = append(errs, fmt.Errorf("step %d: run %q about object %q: run kubectl, about resource/name", i+1, step.Run, step.Object))
		}
		if len(step.Refused) == 0 {
			continue
		}
		if step.Code == 0 {
			step.Code = http.StatusForbidden
		}
		switch step.By {
		case "":
			step.By = byFieldperm
		case byFieldperm, byAPIServer:
		default:
			errs = append(errs, fmt.Errorf("step %d: by %q: use %q or %q", i+1, step.By, byFieldperm, byAPIServer))
		}
	}
	return errors.Join(errs...)
}
