package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// toTheEnd makes both steps, with verbs that are seen after the first, and takes them back if asked to.
func (s *scene) toTheEnd(undo bool) error {
	for range 6 {
		step, err := s.apply(Options{})
		var blocked *BlockedError
		if err != nil && !errors.As(err, &blocked) {
			return err
		}
		if step == Removed || step == Nothing && err == nil {
			break
		}
		s.observe(good())
		s.fields = "granular:label(a)"
	}
	if !undo {
		return nil
	}
	_, err := s.undo(false)
	return err
}

// TestApply_ACrashAtAnyWriteCanBeUndone: the program ends before or after the n-th write, for every n of both steps and of --undo itself. The
// next --undo restores every object, and leaves nothing.
func TestApply_ACrashAtAnyWriteCanBeUndone(t *testing.T) {
	everyCrash(t, func(s *scene) error {
		_, err := s.undo(false)
		return err
	})
}

// TestApply_ACrashAtAnyWriteCanBeContinued: the same, and the commands are called again first.
func TestApply_ACrashAtAnyWriteCanBeContinued(t *testing.T) {
	everyCrash(t, func(s *scene) error {
		if err := s.toTheEnd(false); err != nil && strings.Contains(err.Error(), "run with --undo") {
			// --undo had begun.
			_, err = s.undo(false)
			return err
		} else if err != nil {
			return err
		}
		if r := s.record(); len(r.Changed) != 2 {
			return fmt.Errorf("changed %v", r.Changed)
		}
		_, err := s.undo(false)
		return err
	})
}

func everyCrash(t *testing.T, then func(s *scene) error) {
	for _, after := range []bool{false, true} {
		n := 0
		for crashed := true; crashed; {
			n++
			s := newScene(t)
			before := s.text()
			s.writes, s.crash, s.after = 0, n, after
			err := s.toTheEnd(true)
			if crashed = errors.Is(err, errCrash); !crashed {
				must(t, err)
			}
			s.dead, s.crash = false, 0
			if err := then(s); err != nil {
				t.Fatalf("crash at write %d, after it %t: %v\n%q", n, after, err, s.said)
			}
			if text := s.text(); text != before {
				t.Fatalf("crash at write %d, after it %t\nbefore:\n%s\nafter:\n%s", n, after, before, text)
			}
			if st, err := s.client.load(t.Context(), s.subject()); err != nil || st != nil {
				t.Fatalf("crash at write %d, after it %t: a record is left: %v", n, after, err)
			}
		}
		if n < 20 {
			t.Errorf("only %d writes", n)
		}
	}
}
