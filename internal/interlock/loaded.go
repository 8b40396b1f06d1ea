package interlock

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// loadedInterval is the period between two requests to a server for its hashes. The response has megabytes, because it is the server's
	// metrics.
	loadedInterval = 30 * time.Second
	// loadedPause is the minimum time between two such requests to one server.
	loadedPause = 2 * time.Second
	// loadedTimeout bounds one request. loadedBytes and loadedLines bound the bytes and lines that are read of the response.
	loadedTimeout = 10 * time.Second
	loadedBytes   = 256 << 20
	loadedLines   = 64

	manifestInfo = "apiserver_manifest_admission_config_controller_last_config_info"
	chainInfo    = "apiserver_authorization_config_controller_last_config_info"
)

// files is one reading of Manifests.
type files struct {
	hashes Hashes
	stamp  string
	reason Reason
	err    error
}

// reading has the hashes that a server reported for its loaded files.
type reading struct {
	at     time.Time
	hashes Hashes
	reason Reason
	err    error
	// stale is set when something has changed since. It only decides when to ask again.
	stale bool
}

func (r reading) old() reading { r.stale = true; return r }

// FilesChanged must be called when the files of Manifests may have changed. A content other than the proven one withdraws the proof
// before FilesChanged returns, before kube-apiserver has loaded it.
func (i *Interlock) FilesChanged() {
	if i.lookAtFiles() {
		i.again()
	}
}

// lookAtFiles reads the files. It reports whether they differ from the last reading, or were written in between.
func (i *Interlock) lookAtFiles() (differ bool) {
	if i.config.Manifests == nil {
		return false
	}
	i.looking.Lock()
	defer i.looking.Unlock()
	now := files{stamp: i.config.Manifests.stamp()} // The stamp comes first: a change during the reading is then seen the next time.
	now.hashes, now.reason, now.err = i.config.Manifests.Read(i.config.Clock.Now())
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.hashes == i.files.hashes && now.reason == i.files.reason && now.stamp == i.files.stamp {
		i.files = now
		return false
	}
	i.files = now
	if now.err != nil {
		i.withdrawLocked(now.reason, now.err)
		return true
	}
	i.withdrawLocked(ReasonManifestsChanged, errors.New("the static manifests or the AuthorizationConfiguration have changed, and it is not proven yet that every kube-apiserver has loaded them"))
	return true
}

// filesEnforce returns why the last reading of the files does not enforce, nil if it does.
func (i *Interlock) filesEnforce() (Reason, error) {
	if i.config.Manifests == nil {
		return ReasonManifestsUnread, errors.New("nothing says how kube-apiserver is made to ask fieldperm: name the webhook configuration by --webhook-configuration, or mount the static manifests and name them by --static-manifests and --kube-apiserver-authorization-config")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.files.reason, i.files.err
}

// filesInForce returns why it is not proven that every server has loaded the last reading of the files, nil if it is proven.
func (i *Interlock) filesInForce(ctx context.Context, servers []Server) (Reason, error) {
	i.mu.Lock()
	want := i.files.hashes
	i.mu.Unlock()
	type notLoaded struct {
		Reason
		error
	}
	err := everywhere(ctx, servers, func(ctx context.Context, server Server) error {
		if last := i.ask(ctx, server, want); last.err != nil {
			return notLoaded{last.reason, fmt.Errorf("kube-apiserver %s: %w", server.Address, last.err)}
		}
		return nil
	})
	if refused := (notLoaded{}); errors.As(err, &refused) {
		return refused.Reason, refused.error
	}
	return ReasonProven, err
}

// ask returns the last reading of a server if it is sufficient, and asks the server otherwise.
func (i *Interlock) ask(ctx context.Context, server Server, want Hashes) reading {
	started := i.config.Clock.Now()
	i.mu.Lock()
	epoch := i.epoch.Load()
	last, known := i.loaded[server.Address]
	i.mu.Unlock()
	age := started.Sub(last.at)
	switch {
	case known && !last.stale && last.err == nil && last.hashes == want && age < loadedInterval:
		return last
	case known && age < loadedPause && last.err != nil:
		return last
	case known && age < loadedPause:
		last.reason, last.err = ReasonManifestsNotLoaded, errors.New("was asked a moment ago what it has loaded, and something has changed since")
		return last
	}
	next := reading{at: started}
	if next.hashes, next.err = loaded(ctx, server); next.err != nil {
		next.reason = ReasonMetricsUnread
	} else if next.err = next.hashes.are(want); next.err != nil {
		next.reason = ReasonManifestsNotLoaded
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	next.stale = epoch != i.epoch.Load()
	if i.loaded == nil {
		i.loaded = map[string]reading{}
	}
	i.loaded[server.Address] = next
	return next
}

// left forgets the servers that are not among the addresses. The caller holds mu.
func (i *Interlock) left(addresses []string) {
	for address := range i.loaded {
		if !slices.Contains(addresses, address) {
			delete(i.loaded, address)
		}
	}
	for address, w := range i.watches {
		if !slices.Contains(addresses, address) {
			delete(i.watches, address)
			w.close()
		}
	}
}

// are returns how the hashes of a server differ from those of the files, nil if they are equal. An absent hash is always a
// difference.
func (h Hashes) are(want Hashes) error {
	switch {
	case h.Manifests == "":
		return errors.New("has loaded no static manifests for validating webhooks: it takes kube-apiserver 1.37 or later, and a staticManifestsDir for the plugin ValidatingAdmissionWebhook in the file of its --admission-control-config-file")
	case h.Manifests != want.Manifests:
		return fmt.Errorf("has loaded other static manifests (%s) than --static-manifests has now (%s): if it stays so, see that both are the same directory, and why its log says that it does not reload them", h.Manifests, want.Manifests)
	case h.Authorization == "":
		return errors.New("has loaded no AuthorizationConfiguration: see that its --authorization-config names one")
	case h.Authorization != want.Authorization:
		return fmt.Errorf("has loaded another AuthorizationConfiguration (%s) than --kube-apiserver-authorization-config has now (%s): if it stays so, see that both are the same file; after an edit of comments or spaces alone kube-apiserver has to be restarted", h.Authorization, want.Authorization)
	}
	return nil
}

// loaded asks a server for the hashes of the files that it has loaded.
func loaded(ctx context.Context, server Server) (Hashes, error) {
	ctx, cancel := context.WithTimeout(ctx, loadedTimeout)
	defer cancel()
	body, err := server.Client.Get().AbsPath("/metrics").SetHeader("Accept", "text/plain;version=0.0.4").Stream(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return Hashes{}, fmt.Errorf("fieldperm may not read its /metrics: apply rbac.yaml of fieldperm-gen manifests again, which grants get on the nonResourceURL /metrics (%w)", err)
	}
	if err != nil {
		return Hashes{}, fmt.Errorf("its /metrics cannot be read (%w)", err)
	}
	defer body.Close() //nolint:errcheck // The response has been read or is abandoned.
	hashes, err := published(io.LimitReader(body, loadedBytes))
	if err != nil {
		return Hashes{}, fmt.Errorf("its /metrics cannot be read (%w)", err)
	}
	return hashes, nil
}

// published reads the two metrics with the hashes. It does not parse the other metrics.
func published(metrics io.Reader) (Hashes, error) {
	var wanted bytes.Buffer
	lines := bufio.NewReaderSize(metrics, 64<<10)
	long := false // the current line started in an earlier read
	for count := 0; ; {
		line, err := lines.ReadSlice('\n')
		rest := long
		switch long = errors.Is(err, bufio.ErrBufferFull); {
		case long, rest && err == nil:
			// A line of the two metrics is never this long.
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return Hashes{}, err
		}
		if bytes.HasPrefix(line, []byte(manifestInfo+"{")) || bytes.HasPrefix(line, []byte(chainInfo+"{")) {
			if count++; count > loadedLines {
				return Hashes{}, fmt.Errorf("has more than %d lines about what is loaded", loadedLines)
			}
			wanted.Write(bytes.TrimRight(line, "\r\n"))
			wanted.WriteByte('\n')
		}
		if err != nil {
			break
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&wanted)
	if err != nil {
		return Hashes{}, err
	}
	var hashes Hashes
	for name, into := range map[string]*string{manifestInfo: &hashes.Manifests, chainInfo: &hashes.Authorization} {
		for _, metric := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			// The other plugins have manifests of their own.
			if name == manifestInfo && labels["plugin"] != "ValidatingAdmissionWebhook" {
				continue
			}
			if *into != "" || !strings.HasPrefix(labels["hash"], "sha256:") || metric.GetUntyped().GetValue() != 1 {
				return Hashes{}, fmt.Errorf("%s: is there twice, or has no hash", name)
			}
			*into = labels["hash"]
		}
	}
	return hashes, nil
}
