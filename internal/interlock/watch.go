package interlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
)

// A proof is about one run of a process: a kube-apiserver that ends may start again at once, at the same address, and call no webhook. So one
// watch is held open to each kube-apiserver, of an object that cannot exist. The kernel ends it with the process, before another process can
// take the address.

const (
	// watchedPath is a list that fieldperm may watch however it is installed.
	watchedPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// watchSeconds is when kube-apiserver ends a watch by itself. Without it, that would be after half an hour to an hour.
	watchSeconds = "2592000" // 30 days
)

// watch is held open to a server as long as it answers.
type watch struct {
	ended atomic.Bool
	// close ends it from this side.
	close context.CancelFunc
}

// openWatch opens a watch at a server. ended is called when it has ended, whatever ended it.
func openWatch(ctx context.Context, server Server, ended func()) (*watch, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &watch{close: cancel}
	timeout := time.AfterFunc(probeTimeout, cancel)
	// While a server starts, it knows no roles, and refuses fieldperm for reasons that are not true.
	if err := server.Client.Get().AbsPath("/readyz").Do(ctx).Error(); apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) {
		cancel()
		return nil, fmt.Errorf("kube-apiserver %s: is not ready yet: if it stays so, see its /readyz?verbose", server.Address)
	}
	body, err := server.Client.Get().AbsPath(watchedPath).
		Param("watch", "true").Param("fieldSelector", "metadata.name="+Name).Param("timeoutSeconds", watchSeconds).
		Stream(ctx)
	if err != nil {
		cancel()
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return nil, fmt.Errorf("kube-apiserver %s: fieldperm may not watch definitions: apply rbac.yaml of fieldperm-gen manifests again (%w)", server.Address, err)
		}
		return nil, fmt.Errorf("kube-apiserver %s: no watch can be opened: see that it can be reached from here (%w)", server.Address, err)
	}
	timeout.Stop() // If it is late, the watch has ended.
	go func() {
		_, _ = io.Copy(io.Discard, body)
		w.ended.Store(true)
		cancel()
		_ = body.Close()
		ended()
	}()
	return w, nil
}

// oldestWithManifests is the first kube-apiserver that reads static manifests of admission webhooks. Those before ignore them, and say nothing.
var oldestWithManifests = version.MajorMinor(1, 36)

var errReadsNone = errors.New("which reads no static manifests")

// readsManifests returns an error for a server whose version reads no static manifests. A version that cannot be read is no fault: the hash decides.
func readsManifests(ctx context.Context, server Server) error {
	raw, err := server.Client.Get().AbsPath("/version").Do(ctx).Raw()
	var info apimachineryversion.Info
	if err != nil || json.Unmarshal(raw, &info) != nil {
		return nil
	}
	if is, err := version.ParseGeneric(info.GitVersion); err == nil && is.LessThan(oldestWithManifests) {
		return fmt.Errorf("kube-apiserver %s: is %s, %w: these take 1.37, or 1.36 with the feature gate ManifestBasedAdmissionControlConfig: install fieldperm in the cluster", server.Address, info.GitVersion, errReadsNone)
	}
	return nil
}

// hold returns the watches of servers, and opens those that are not open.
func (i *Interlock) hold(ctx context.Context, servers []Server) (map[string]*watch, error) {
	out := map[string]*watch{}
	err := everywhere(ctx, servers, func(ctx context.Context, server Server) error {
		i.mu.Lock()
		w := i.watches[server.Address]
		i.mu.Unlock()
		if w == nil || w.ended.Load() {
			if i.config.Manifests != nil {
				if err := readsManifests(ctx, server); err != nil {
					return err
				}
			}
			var err error
			if w, err = openWatch(ctx, server, i.watchEnded); err != nil {
				return err
			}
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		out[server.Address], i.watches[server.Address] = w, w
		return nil
	})
	return out, err
}

// watchEnded withdraws a proof that has ended with a watch, and has the servers proven anew at once.
func (i *Interlock) watchEnded() {
	i.mu.Lock()
	if s := i.state.Load(); s.err == nil {
		if err := s.lasts(); err != nil {
			i.withdrawLocked(ReasonWatchEnded, err)
		}
	}
	i.mu.Unlock()
	i.again()
}

// lasts returns an error if a server that the state covers has ended its watch.
func (s *state) lasts() error {
	for address, w := range s.servers {
		if w.ended.Load() {
			return fmt.Errorf("kube-apiserver %s: has ended the watch that fieldperm holds open there, so that it may have started again: it is proven anew", address)
		}
	}
	return nil
}
