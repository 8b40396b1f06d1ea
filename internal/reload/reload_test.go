package reload

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// never is an interval that no test waits for, so only events cause attempts.
	never = time.Hour
	soon  = 10 * time.Millisecond
)

// place is a directory whose files are replaced atomically, so that no read sees half a file.
type place struct {
	t   *testing.T
	dir string
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) write(name, data string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name)+".new", []byte(data), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.path(name)+".new", p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

// subject is a Watcher that reports its attempts one by one.
type subject struct {
	*Watcher
	place
	attempts chan attempt
}

type attempt struct {
	data string
	err  error
}

// watch follows "file", whose data is already in force. apply may be nil.
func watch(t *testing.T, interval time.Duration, data string, files []string, apply func(p place, data string) ([]string, error)) subject {
	t.Helper()
	s := subject{place: place{t, t.TempDir()}, attempts: make(chan attempt, 100)}
	s.write("file", data)
	for i, name := range files {
		files[i] = s.path(name)
		s.write(name, "first")
	}
	s.Watcher = New(Config{
		File:     s.path("file"),
		Interval: interval,
		Apply: func(_ context.Context, data []byte) ([]string, error) {
			if apply == nil {
				return files, nil
			}
			return apply(s.place, string(data))
		},
		Observe: func(data []byte, err error) { s.attempts <- attempt{string(data), err} },
	}, []byte(data), files)
	s.run()
	return s
}

func (s subject) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { s.Run(ctx) })
	s.t.Cleanup(wait.Wait)
	s.t.Cleanup(cancel)
}

func (s subject) expect(data string) error {
	s.t.Helper()
	select {
	case a := <-s.attempts:
		if a.data != data {
			s.t.Fatalf("attempt with %q, want %q", a.data, data)
		}
		// Observe is called before Fault changes.
		until(s.t, func() bool { return (s.Fault() == nil) == (a.err == nil) })
		return a.err
	case <-time.After(20 * time.Second):
		s.t.Fatalf("no attempt with %q", data)
		return nil
	}
}

func TestKEP3221_FileEventIsEnough(t *testing.T) {
	s := watch(t, never, "first", nil, nil)
	for _, data := range []string{"second", "third", "first"} {
		s.write("file", data)
		if err := s.expect(data); err != nil || s.Fault() != nil {
			t.Errorf("%q: %v, fault %v", data, err, s.Fault())
		}
	}
}

func TestKEP3221_IntervalFindsChangesWithoutEvent(t *testing.T) {
	// If the directory above a file is replaced, the file has no event of its own.
	p := place{t, t.TempDir()}
	for _, version := range []string{"one", "two"} {
		if err := os.MkdirAll(p.path(version+"/deep"), 0o755); err != nil {
			t.Fatal(err)
		}
		p.write(version+"/deep/file", version)
	}
	link := func(to string) {
		_ = os.Remove(p.path("new"))
		if err := errors.Join(os.Symlink(to, p.path("new")), os.Rename(p.path("new"), p.path("current"))); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	s := subject{place: p, attempts: make(chan attempt, 100)}
	s.Watcher = New(Config{
		File: p.path("current/deep/file"), Interval: soon,
		Apply:   func(context.Context, []byte) ([]string, error) { return nil, nil },
		Observe: func(data []byte, err error) { s.attempts <- attempt{string(data), err} },
	}, []byte("one"), nil)
	s.run()
	link("two")
	if err := s.expect("two"); err != nil {
		t.Error(err)
	}
}

// The way in which a kubelet updates a mounted ConfigMap: the files are links through ..data, and the kubelet replaces ..data.
func TestKEP3221_ConfigMapThatKubeletUpdatesIsNoticed(t *testing.T) {
	p := place{t, t.TempDir()}
	update := func(version, data string) {
		if err := os.Mkdir(p.path("..v"+version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.path("..v"+version+"/file"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Readlink(p.path("..data"))
		if err := errors.Join(os.Symlink("..v"+version, p.path("..data_tmp")), os.Rename(p.path("..data_tmp"), p.path("..data"))); err != nil {
			t.Fatal(err)
		}
		if before != "" {
			if err := os.RemoveAll(p.path(before)); err != nil {
				t.Fatal(err)
			}
		}
	}
	update("1", "one")
	if err := os.Symlink("..data/file", p.path("file")); err != nil {
		t.Fatal(err)
	}
	s := subject{place: p, attempts: make(chan attempt, 100)}
	s.Watcher = New(Config{
		File: p.path("file"), Interval: soon,
		Apply:   func(context.Context, []byte) ([]string, error) { return nil, nil },
		Observe: func(data []byte, err error) { s.attempts <- attempt{string(data), err} },
	}, []byte("one"), nil)
	s.run()
	for i, data := range []string{"two", "three"} {
		update(string(rune('2'+i)), data)
		if err := s.expect(data); err != nil {
			t.Error(err)
		}
	}
}

func TestKEP3221_FilesThatAreNamedCount(t *testing.T) {
	s := watch(t, never, "data", []string{"kubeconfig", "ca"}, nil)
	for _, name := range []string{"kubeconfig", "ca", "kubeconfig"} {
		for _, content := range []string{name + " anew", "first"} {
			if name == "ca" {
				s.write(name, "another")
			}
			s.write(name, content)
			// Two writes may be one attempt or two, so that an attempt alone does not show that the last one was noticed.
			until(t, s.holds)
			if err := s.expect("data"); err != nil {
				t.Error(err)
			}
		}
	}
}

// holds reports whether what is in force is what the files hold now.
func (s subject) holds() bool {
	data, err := read(s.config.File)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && s.inForce == digest(data, s.files, contents(s.files))
}

func TestKEP3221_FilesThatANewFileNamesCount(t *testing.T) {
	s := watch(t, never, "names none", nil, func(p place, data string) ([]string, error) {
		name, found := strings.CutPrefix(data, "names ")
		if !found || name == "none" {
			return nil, nil
		}
		return []string{p.path(name)}, nil
	})
	// The file is older than the attempt, as in practice.
	s.write("ca", "first")
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(s.path("ca"), old, old); err != nil {
		t.Fatal(err)
	}
	s.write("file", "names ca")
	_ = s.expect("names ca")
	s.write("ca", "second")
	_ = s.expect("names ca")
	s.write("file", "names none")
	_ = s.expect("names none")
	s.write("ca", "third")
	s.write("file", "end")
	if err := s.expect("end"); err != nil {
		t.Error(err)
	}
}

func TestSameBytesAreIgnored(t *testing.T) {
	s := watch(t, soon, "data", []string{"ca"}, nil)
	s.write("file", "data")
	s.write("ca", "first")
	s.write("file", "new data")
	if err := s.expect("new data"); err != nil {
		t.Error(err)
	}
}

// kube-apiserver stores the bytes before it parses them, and never tries them again.
func TestKEP3221_BytesThatFailedAreTriedAgain(t *testing.T) {
	var tries int
	s := watch(t, soon, "first", nil, func(_ place, data string) ([]string, error) {
		if tries++; tries < 4 {
			return nil, errors.New("webhook: is down")
		}
		return nil, nil
	})
	s.write("file", "second")
	for i := range 3 {
		if err := s.expect("second"); err == nil {
			t.Errorf("attempt %d: no error", i)
		}
	}
	if err := s.expect("second"); err != nil || s.Fault() != nil {
		t.Errorf("at last: %v, fault %v", err, s.Fault())
	}
}

// A broken file must not cause requests to webhooks each time a file is written.
func TestBytesThatFailedAreTriedAgainAtTheIntervalOnly(t *testing.T) {
	s := watch(t, never, "first", nil, func(_ place, data string) ([]string, error) {
		if data == "bad" {
			return nil, errors.New("is bad")
		}
		return nil, nil
	})
	s.write("file", "bad")
	if err := s.expect("bad"); err == nil || s.Fault() == nil {
		t.Errorf("%v, fault %v", err, s.Fault())
	}
	for range 3 {
		s.write("file", "bad")
	}
	s.write("file", "good")
	if err := s.expect("good"); err != nil || s.Fault() != nil {
		t.Errorf("%v, fault %v", err, s.Fault())
	}
}

func TestKEP3221_FaultEndsWhenTheFileEqualsTheOneInForce(t *testing.T) {
	s := watch(t, never, "first", nil, func(place, string) ([]string, error) { return nil, errors.New("is bad") })
	s.write("file", "bad")
	if err := s.expect("bad"); err == nil || s.Fault() == nil {
		t.Fatalf("%v, fault %v", err, s.Fault())
	}
	s.write("file", "first")
	until(t, func() bool { return s.Fault() == nil })
	if len(s.attempts) > 0 {
		t.Errorf("an attempt with the bytes in force: %v", <-s.attempts)
	}
}

// until polls a condition that the Watcher does not report.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
	}
}

func TestKEP3221_ARemovedFileIsAFaultAndTriedAgain(t *testing.T) {
	s := watch(t, soon, "first", nil, nil)
	if err := os.Remove(s.path("file")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.expect(""); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.path("file")) {
			t.Errorf("got %v", err)
		}
	}
	if s.Fault() == nil {
		t.Error("no fault")
	}
	s.write("file", "second")
	var last attempt
	for last = range s.attempts {
		if last.data != "" {
			break
		}
	}
	if last.data != "second" || last.err != nil {
		t.Errorf("got %+v", last)
	}
	until(t, func() bool { return s.Fault() == nil })
}

func TestRemovalOfANamedFileIsAChange(t *testing.T) {
	s := watch(t, never, "data", []string{"ca"}, func(p place, _ string) ([]string, error) {
		_, err := os.ReadFile(p.path("ca"))
		return []string{p.path("ca")}, err
	})
	if err := os.Remove(s.path("ca")); err != nil {
		t.Fatal(err)
	}
	if err := s.expect("data"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestChangesWhileAFileIsAppliedAreAppliedToo(t *testing.T) {
	var seen []string
	s := watch(t, never, "data", []string{"ca"}, func(p place, data string) ([]string, error) {
		ca, err := os.ReadFile(p.path("ca"))
		if seen = append(seen, string(ca)); len(seen) == 1 {
			// No file that has been read names this one.
			p.write("ca", "third")
		}
		return []string{p.path("ca")}, err
	})
	s.write("ca", "second")
	_ = s.expect("data")
	_ = s.expect("data")
	if !slices.Equal(seen, []string{"second", "third"}) {
		t.Errorf("applied %q", seen)
	}
}

// The same for a file that the contents in force did not name.
func TestChangesOfANewlyNamedFileAreAppliedToo(t *testing.T) {
	var seen []string
	s := watch(t, never, "names none", nil, func(p place, _ string) ([]string, error) {
		ca, err := os.ReadFile(p.path("ca"))
		if seen = append(seen, string(ca)); len(seen) == 1 {
			p.write("ca", "second")
		}
		return []string{p.path("ca")}, err
	})
	s.write("ca", "first")
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(s.path("ca"), old, old); err != nil {
		t.Fatal(err)
	}
	s.write("file", "names ca")
	_ = s.expect("names ca")
	_ = s.expect("names ca")
	if !slices.Equal(seen, []string{"first", "second"}) {
		t.Errorf("applied %q", seen)
	}
}

func TestAttemptInterruptedByShutdownIsNotCounted(t *testing.T) {
	s := subject{place: place{t, t.TempDir()}, attempts: make(chan attempt, 1)}
	s.write("file", "second")
	ctx, cancel := context.WithCancel(t.Context())
	s.Watcher = New(Config{
		File: s.path("file"),
		Apply: func(ctx context.Context, _ []byte) ([]string, error) {
			cancel()
			return nil, ctx.Err()
		},
		Observe: func(data []byte, err error) { s.attempts <- attempt{string(data), err} },
	}, []byte("first"), nil)
	s.Run(ctx)
	if len(s.attempts) > 0 || s.Fault() != nil {
		t.Errorf("an attempt is reported, fault %v", s.Fault())
	}
}
