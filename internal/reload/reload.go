package reload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"k8s.io/apiserver/pkg/util/filesystem"
	"k8s.io/klog/v2"
)

// defaultInterval is how often files are read though nothing was heard of them (KEP-3221).
const defaultInterval = time.Minute

// Config says what to follow, and what to do with it.
type Config struct {
	File string
	// Interval is the time between two looks at the files; 0 for a minute.
	Interval time.Duration
	// Apply puts contents into force, and returns the files that they name, a change of which counts too.
	// An error leaves in force what was.
	Apply func(ctx context.Context, data []byte) (files []string, err error)
	// Observe is told how each attempt ended; data is nil if the file could not be read. Nil for nobody.
	Observe func(data []byte, err error)
}

// Watcher follows one file and those that it names.
type Watcher struct {
	config Config

	mu sync.Mutex
	// inForce is the digest of what is in force, failed that of the last attempt while fault is not nil.
	inForce, failed [sha256.Size]byte
	files           []string
	fault           error

	changed chan struct{}
}

// New returns a Watcher of what is in force already: data, which names files. Call it as soon as they
// have been read.
func New(c Config, data []byte, files []string) *Watcher {
	if c.Interval <= 0 {
		c.Interval = defaultInterval
	}
	w := &Watcher{config: c, files: files, changed: make(chan struct{}, 1)}
	w.inForce = digest(data, files, contents(files))
	return w
}

// Fault says why the file is not what is in force, nil if it is.
func (w *Watcher) Fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

// Run looks at the files whenever one of them changes, and at the interval, until the context ends. What
// failed is tried again at the interval only: a file that is written to all the time must not have
// webhooks asked all the time.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	followed := map[string]context.CancelFunc{}
	defer func() {
		for _, stop := range followed {
			stop()
		}
	}()
	interval := time.NewTicker(w.config.Interval)
	defer interval.Stop()
	for {
		w.follow(ctx, &running, followed)
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
			w.look(ctx, false)
		case <-interval.C:
			w.look(ctx, true)
		}
	}
}

// follow watches exactly the files that count now.
func (w *Watcher) follow(ctx context.Context, running *sync.WaitGroup, followed map[string]context.CancelFunc) {
	want := map[string]bool{w.config.File: true}
	w.mu.Lock()
	for _, file := range w.files {
		want[file] = true
	}
	w.mu.Unlock()
	for file, stop := range followed {
		if !want[file] {
			stop()
			delete(followed, file)
		}
	}
	for file := range want {
		if followed[file] != nil {
			continue
		}
		watching, stop := context.WithCancel(ctx)
		followed[file] = stop
		running.Go(func() {
			filesystem.WatchUntil(watching, w.config.Interval, file, w.tell, func(err error) {
				klog.FromContext(ctx).V(2).Info("A configuration file is not watched, and looked at from time to time", "file", file, "err", err)
			})
		})
	}
}

func (w *Watcher) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// look applies what is new, and again what failed if it is to be tried again.
func (w *Watcher) look(ctx context.Context, again bool) {
	data, unread := read(w.config.File)
	w.mu.Lock()
	files := w.files
	w.mu.Unlock()
	// Without the lock, and not from what blocks: whoever asks for the fault must not wait for a file.
	known, began := contents(files), time.Now()
	w.mu.Lock()
	now := digest(data, files, known)
	if unread != nil {
		// No file has these contents and this name.
		now = digest(nil, []string{""}, map[string]string{"": unread.Error()})
	}
	if now == w.inForce && w.fault != nil {
		klog.FromContext(ctx).Info("A configuration file is again what is in force", "file", w.config.File)
		w.fault = nil
	}
	done := now == w.inForce || w.fault != nil && now == w.failed && !again
	w.mu.Unlock()
	if done {
		return
	}
	if unread != nil {
		w.end(ctx, nil, now, fmt.Errorf("%s: cannot be read: %w: put it back", w.config.File, unread))
		return
	}
	// The digest is of what was applied, not of what the files are by then: what changes meanwhile is found
	// by the next look.
	files, err := w.config.Apply(ctx, data)
	if err == nil {
		for _, file := range files {
			if _, ok := known[file]; !ok {
				known[file] = contentSince(file, began)
			}
		}
		w.mu.Lock()
		w.files, w.inForce = files, digest(data, files, known)
		w.mu.Unlock()
	}
	w.end(ctx, data, now, err)
}

func (w *Watcher) end(ctx context.Context, data []byte, attempt [sha256.Size]byte, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	if w.config.Observe != nil {
		w.config.Observe(data, err)
	}
	w.mu.Lock()
	w.failed, w.fault = attempt, err
	w.mu.Unlock()
}

// digest is of a file and of the contents of those that it names.
func digest(data []byte, files []string, contents map[string]string) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", data)
	for _, file := range files {
		fmt.Fprintf(h, "%q %q\n", file, contents[file])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func contents(files []string) map[string]string {
	out := make(map[string]string, len(files))
	for _, file := range files {
		out[file] = content(file)
	}
	return out
}

// content tells a file that cannot be read from every other.
func content(file string) string {
	data, err := read(file)
	if err != nil {
		return "error: " + err.Error()
	}
	return "content: " + string(data)
}

// read reads a regular file, and nothing that might block or have no end.
func read(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // It was read only.
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", file)
	}
	return io.ReadAll(f)
}

// clockGrain is how much older than the clock the times of a file system may be.
const clockGrain = 20 * time.Millisecond

// contentSince is like nothing in force if the file was written since: what was applied may be older.
func contentSince(file string, began time.Time) string {
	info, err := os.Stat(file)
	if err != nil || info.ModTime().After(began.Add(-clockGrain)) {
		return "unknown"
	}
	return content(file)
}
