//go:build controllers

package thirdparty

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

const kustomizations = "kustomizations.kustomize.toolkit.fluxcd.io"

// TestKustomizeController moves Flux's kustomize-controller, and the ServiceAccount of a tenant by which it deploys, to granular verbs. The
// test plays source-controller.
func TestKustomizeController(t *testing.T) {
	dir := module(t, "kustomize-controller", "github.com/fluxcd/kustomize-controller")
	sources := module(t, "source-controller", "github.com/fluxcd/source-controller")
	(&trial.Trial{
		Name: "kustomize-controller",
		Observe: []v1alpha1.Subject{
			{Kind: "ServiceAccount", Namespace: "flux-system", Name: "kustomize-controller"},
			{Kind: "ServiceAccount", Namespace: "shop", Name: "deployer"},
		},
		Flags: func(user string) []string {
			if strings.Contains(user, ":shop:") {
				return nil
			}
			return []string{"--also=events=granular:message"}
		},
		Prepare: func(r *trial.Run) {
			for _, crds := range []string{dir, sources} {
				files, err := filepath.Glob(filepath.Join(crds, "config", "crd", "bases", "*.yaml"))
				trial.Must(r.T, err)
				for _, file := range files {
					r.Apply(file)
				}
			}
			r.Apply(filepath.Join(dir, "config", "rbac", "role.yaml"))
			r.Apply(filepath.Join("testdata", "kustomize.yaml"))
		},
		Start: func(r *trial.Run) {
			health := r.Port()
			tmp := filepath.Join(r.Stack.Dir(), "kustomize-controller")
			trial.Must(r.T, os.MkdirAll(tmp, 0o700))
			r.Launch(trial.Program{
				Name: "kustomize-controller", Path: program(t, "kustomize-controller"),
				Args: []string{
					fmt.Sprintf("--health-addr=127.0.0.1:%d", health), fmt.Sprintf("--metrics-addr=127.0.0.1:%d", r.Port()),
					"--watch-all-namespaces", "--requeue-dependency=2s",
					r.Stack.Dir(), // It ignores this, and has no flag for a kubeconfig. The watchdog looks for it.
				},
				Env: []string{
					"KUBECONFIG=" + r.User("system:serviceaccount:flux-system:kustomize-controller").Kubeconfig,
					"RUNTIME_NAMESPACE=flux-system", "TMPDIR=" + tmp,
				},
				Health: fmt.Sprintf("http://127.0.0.1:%d/readyz", health),
			})
		},
		Play:      playKustomizations,
		Volatile:  forgetAttempts,
		Differing: []trial.Differing{{Pattern: regexp.MustCompile(`127\.0\.0\.1:\d+`), Same: "<server>"}},
		Foreign:   []string{`{"spec":{"template":{"spec":{"hostNetwork":true}}}}`, `{"spec":{"serviceAccountName":"admin"}}`},
		Roles:     "config/roles/flux-kustomize-controller-1.9",
	}).Prove(t)
}

// forgetAttempts removes all but the last attempt from a Kustomization, and of that one how long and how often it was made. The controller writes
// the list whole, from the object in its cache: an attempt that follows the one before it sooner than the cache does takes that one out.
func forgetAttempts(o *unstructured.Unstructured) {
	history, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	if len(history) == 0 {
		return
	}
	last := history[0].(map[string]any)
	delete(last, "lastReconciledDuration")
	delete(last, "totalReconciliations")
	_ = unstructured.SetNestedSlice(o.Object, history[:1], "status", "history")
}

func playKustomizations(r *trial.Run) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		content, _, err := archive(filepath.Base(request.URL.Path))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(content)
	}))
	r.OnStop(server.Close)
	r.Apply(filepath.Join("testdata", "kustomizations.yaml"))
	release := func(number string) (revision string) {
		r.T.Helper()
		content, digest, err := archive(number)
		trial.Must(r.T, err)
		revision = "main@sha1:" + digest[:40]
		now := time.Now().UTC().Format(time.RFC3339)
		r.Patch("gitrepositories.source.toolkit.fluxcd.io", "shop/release", fmt.Sprintf(
			`{"status":{"observedGeneration":1,"artifact":{"url":"%s/%s","path":%q,"revision":%q,"digest":"sha256:%s","lastUpdateTime":%q,"size":%d},`+
				`"conditions":[{"type":"Ready","status":"True","reason":"Succeeded","message":"stored","observedGeneration":1,"lastTransitionTime":%q}]}}`,
			server.URL, number, number, revision, digest, now, len(content), now), "status")
		return revision
	}
	applied := func(revision string) {
		r.T.Helper()
		for _, name := range []string{"shop/shop", "shop/extra"} {
			r.Until(kustomizations, name, "status.lastAppliedRevision", revision)
			r.Until(kustomizations, name, "status.conditions[Ready].status", "True")
		}
	}

	applied(release("1"))
	applied(release("2"))
	r.Gone("configmaps", "shop/old")
	// A user changes what is deployed, and Flux restores it.
	r.Patch("deployments.apps", "shop/web", `{"spec":{"replicas":7},"metadata":{"labels":{"app":"other"}}}`)
	r.Patch("configmaps", "shop/settings", `{"data":{"color":"green"}}`)
	r.Patch(kustomizations, "shop/shop", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"drift"}}}`)
	r.Until(kustomizations, "shop/shop", "status.lastHandledReconcileAt", "drift")
	r.Until("deployments.apps", "shop/web", "spec.replicas", "3")
	r.Until("configmaps", "shop/settings", "data.color", "blue")
	// A release with a mistake, and back.
	release("3")
	r.Until(kustomizations, "shop/shop", "status.conditions[Ready].status", "False")
	applied(release("2"))
	// Suspended and resumed.
	r.Patch(kustomizations, "shop/shop", `{"spec":{"suspend":true}}`)
	r.Patch(kustomizations, "shop/shop", `{"spec":{"suspend":false}}`)
	r.Until(kustomizations, "shop/shop", "status.conditions[Ready].status", "True")
	r.Remove(kustomizations, "shop/extra", metav1.DeletePropagationBackground)
	r.Gone(kustomizations, "shop/extra")
	r.Gone("configmaps", "shop/extra")
}

// archive returns a release as source-controller serves it, and its digest.
func archive(number string) (content []byte, digest string, err error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	root := filepath.Join("testdata", "releases", number)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if err := files.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = files.Write(text)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if err := files.Close(); err != nil {
		return nil, "", err
	}
	if err := packed.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), fmt.Sprintf("%x", sha256.Sum256(out.Bytes())), nil
}
