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

// defaultInterval is how often files are read without any event (KEP-3221).
const defaultInterval = time.Minute

// Config configures a Watcher.
type Config struct {
	File string
	// Interval is the time between two reads of the files; 0 for a minute.
	Interval time.Duration
	// Apply puts contents in force. It returns the files that the contents name; a change of such a file causes another Apply. If
	// Apply returns an error, the previous contents must stay in force.
	Apply func(ctx context.Context, data []byte) (files []string, err error)
	// Observe is called after each attempt with its result. data is nil if the file could not be read. Observe may be nil.
	Observe func(data []byte, err error)
}

// Watcher follows one file and the files that it names.
type Watcher struct {
	config Config

	mu sync.Mutex
	// inForce is the digest of the contents in force. failed is the digest of the last attempt; it is valid while fault is not nil.
	inForce, failed [sha256.Size]byte
	files           []string
	fault           error

	changed chan struct{}
}

// New returns a Watcher for contents that are already in force: data and the files that data names. Call it as soon as they have
// been read.
func New(c Config, data []byte, files []string) *Watcher {
	if c.Interval <= 0 {
		c.Interval = defaultInterval
	}
	w := &Watcher{config: c, files: files, changed: make(chan struct{}, 1)}
	w.inForce = digest(data, files, contents(files))
	return w
}

// Fault returns why the current contents of the file are not in force, nil if they are.
func (w *Watcher) Fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

// Run reads the files whenever one of them changes and at the interval, until the context ends. It repeats a failed attempt only at
// the interval: otherwise a file that is written all the time would cause requests to webhooks all the time.
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

// follow watches exactly the current set of files.
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

// look applies new contents. With again, it also repeats a failed attempt.
func (w *Watcher) look(ctx context.Context, again bool) {
	data, unread := read(w.config.File)
	w.mu.Lock()
	files := w.files
	w.mu.Unlock()
	// Read without the lock, and with reads that cannot block: a caller of Fault must not wait for a file.
	known, began := contents(files), time.Now()
	w.mu.Lock()
	now := digest(data, files, known)
	if unread != nil {
		// No file can have this digest, because no file has an empty name.
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
	// The digest is of the contents that were applied, not of the files after that. The next look finds a change made meanwhile.
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

// digest returns the digest of a file and of the contents of the files that it names.
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

// content returns the content of a file. The result for a file that cannot be read differs from the content of every file.
func content(file string) string {
	data, err := read(file)
	if err != nil {
		return "error: " + err.Error()
	}
	return "content: " + string(data)
}

// read reads a regular file. It refuses anything that might block or be endless.
func read(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the file was only read
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", file)
	}
	return io.ReadAll(f)
}

// clockGrain is how far the times of a file system may be behind the clock.
const clockGrain = 20 * time.Millisecond

// contentSince returns a content that matches nothing in force if the file was written since began: an older content may have been
// applied.
func contentSince(file string, began time.Time) string {
	info, err := os.Stat(file)
	if err != nil || info.ModTime().After(began.Add(-clockGrain)) {
		return "unknown"
	}
	return content(file)
}
