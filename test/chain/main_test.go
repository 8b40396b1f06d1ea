//go:build integration

package chain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/issuer"
	"github.com/fieldperm/fieldperm/test/stack"
)

// scene is the control plane of all tests here. The tests run one after the other; their subtests may run at the same time.
type scene struct {
	*stack.Stack
	issuer *issuer.Issuer
	// dir has the configuration files.
	dir string
	// watcher is an authorizer that kube-apiserver asks before fieldperm, about every user with a team. It has no opinion.
	watcher *webhook
	// protector denies granular verbs, skipped is never asked, and grantor allows the requests that its team may make.
	protector, skipped, grantor *webhook
	// failing answers 500, and hanging does not answer.
	failing, hanging *webhook
	// closed is the kubeconfig of a webhook that is not running.
	closed string

	// inForce is the chain with which fieldperm was started, or the one that it loaded later.
	inForce string
}

var theScene struct {
	once sync.Once
	it   *scene
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	code := m.Run()
	if theScene.it != nil {
		if err := theScene.it.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// on returns the scene with a chain in force. It restarts fieldperm if another chain is in force.
func on(t *testing.T, chain func(*scene) string) *scene {
	t.Helper()
	theScene.once.Do(func() {
		theScene.it, theScene.err = newScene(context.Background(), chain)
	})
	must(t, theScene.err)
	s := theScene.it
	if content := chain(s); content != s.inForce {
		must(t, s.StopWebhook())
		must(t, s.writeChain(content))
		must(t, s.StartWebhook(t.Context()))
		s.inForce = content
	}
	return s
}

func (s *scene) authorization() string  { return filepath.Join(s.dir, "fieldperm-authorization.yaml") }
func (s *scene) authentication() string { return filepath.Join(s.dir, "fieldperm-authentication.yaml") }

// writeChain replaces fieldperm's file atomically.
func (s *scene) writeChain(content string) error { return replace(s.authorization(), content) }

func replace(file, content string) error {
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func newScene(ctx context.Context, chain func(*scene) string) (*scene, error) {
	bin, err := e2e.Build()
	if err != nil {
		return nil, err
	}
	s := &scene{}
	err = s.serveOthers()
	if err == nil {
		err = s.start(ctx, bin, chain)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *scene) start(ctx context.Context, bin string, chain func(*scene) string) error {
	var err error
	s.Stack, err = stack.Start(ctx, stack.Config{
		Bin: bin, Audit: true,
		// kube-apiserver has the same content as fieldperm, in a file that no test changes.
		Authentication: []byte(s.issuers()),
		Prepare:        func(dir string) ([]string, error) { return s.prepare(dir, chain) },
	})
	if err != nil {
		return err
	}
	return s.furnish(ctx)
}

// serveOthers starts the software of third parties.
func (s *scene) serveOthers() error {
	none := func(spec) status { return status{} }
	var err error
	if s.issuer, err = issuer.Start(issuer.Config{}); err != nil {
		return err
	}
	for name, w := range map[string]struct {
		place  **webhook
		decide func(spec) status
	}{
		"watcher":   {&s.watcher, none},
		"skipped":   {&s.skipped, none},
		"protector": {&s.protector, func(spec) status { return status{Denied: true, Reason: "frozen until Monday"} }},
		"grantor":   {&s.grantor, func(spec) status { return status{Allowed: true, Reason: "payments may"} }},
		"failing":   {&s.failing, none},
		"hanging":   {&s.hanging, none},
	} {
		*w.place = newWebhook(name, w.decide)
	}
	s.failing.fails = http.StatusInternalServerError
	s.hanging.hangs = make(chan struct{})
	return nil
}

func (s *scene) others() []*webhook {
	return []*webhook{s.watcher, s.protector, s.skipped, s.grantor, s.failing, s.hanging}
}

// stop ends all processes and removes all files.
func (s *scene) stop() error {
	var errs []error
	if s.Stack != nil {
		errs = append(errs, s.Stack.Stop())
	}
	if s.hanging != nil && s.hanging.hangs != nil {
		close(s.hanging.hangs)
	}
	for _, w := range s.others() {
		if w != nil {
			w.close()
		}
	}
	if s.issuer != nil {
		errs = append(errs, s.issuer.Close())
	}
	return errors.Join(errs...)
}

// admitTimeout is the time that kube-apiserver waits for fieldperm here. It is half of the generated value, because a test also waits.
const admitTimeout = 5 * time.Second

// prepare writes fieldperm's two files. It puts the watcher before fieldperm in kube-apiserver's chain, and replaces the certificate with
// which kube-apiserver calls /authorize by a token.
func (s *scene) prepare(dir string, chain func(*scene) string) ([]string, error) {
	s.dir = dir
	var errs []error
	for _, w := range s.others() {
		errs = append(errs, w.introduce(dir))
	}
	var err error
	s.closed, err = nowhere(dir, "closed")
	errs = append(errs, err)
	s.inForce = chain(s)
	return []string{
			"--authorization-config", s.authorization(), "--authentication-config", s.authentication(),
			"--webhook-token-users", apiServer,
		}, errors.Join(append(errs,
			s.writeChain(s.inForce),
			os.WriteFile(s.authentication(), []byte(s.issuers()), 0o600),
			s.addWatcher(filepath.Join(dir, "authorization-configuration.yaml")),
			s.callByToken(filepath.Join(dir, "authorizer.kubeconfig")),
			hurry(filepath.Join(dir, "admission", "fieldperm.yaml")))...)
}

func hurry(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return replace(file, strings.ReplaceAll(string(raw), "timeoutSeconds: 10\n", fmt.Sprintf("timeoutSeconds: %d\n", int(admitTimeout.Seconds()))))
}

func (s *scene) addWatcher(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var configuration, watcher map[string]any
	err = errors.Join(
		yaml.Unmarshal(raw, &configuration),
		yaml.Unmarshal([]byte(chainOf(entry{
			name: "watcher", kubeconfig: s.watcher.kubeconfig,
			conditions: []string{"has(request.extra) && 'example.com/team' in request.extra"},
		})), &watcher),
	)
	if err != nil {
		return err
	}
	authorizers := configuration["authorizers"].([]any)
	last := len(authorizers) - 1
	configuration["authorizers"] = append(append(authorizers[:last:last], watcher["authorizers"].([]any)...), authorizers[last])
	if raw, err = yaml.Marshal(configuration); err != nil {
		return err
	}
	return replace(file, string(raw))
}

func (s *scene) callByToken(file string) error {
	kubeconfig, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return err
	}
	token, err := s.token(person{name: "kube-apiserver"})
	if err != nil {
		return err
	}
	for name := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	return clientcmd.WriteToFile(*kubeconfig, file)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
