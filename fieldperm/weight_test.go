package fieldperm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestD8_D1_OwnersOfManyPathsWaitForRoom proves that heavy comparisons wait for room and end with their deadline, and that light ones do
// not wait.
func TestD8_D1_OwnersOfManyPathsWaitForRoom(t *testing.T) {
	k, none := compileGadget(t)
	renamed := func(n int) (old, new []byte) {
		var items, fields []string
		for i := range n {
			items = append(items, fmt.Sprintf(`{"name":"n%d","image":"i"}`, i))
			fields = append(fields, fmt.Sprintf(`"k:{\"name\":\"n%d\"}":{".":{},"f:name":{},"f:image":{}}`, i))
		}
		spec := `|,"spec":{"containers":[` + strings.Join(items, ",") + `]}`
		owns := `{"f:spec":{"f:containers":{` + strings.Join(fields, ",") + `}}}`
		return []byte(owned(spec, owner("a", "Update", owns))), []byte(owned(spec, owner("b", "Apply", owns)))
	}
	if err := ownersRoom.Acquire(t.Context(), ownersAtOnce); err != nil {
		t.Fatal(err)
	}
	ends, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	old, new := renamed(2)
	if got, err := Diff(t.Context(), old, new, k, none); err != nil || len(got) == 0 {
		t.Errorf("few paths: %d requirements, %v", len(got), err)
	}
	old, new = renamed(600)
	if got, err := Diff(ends, old, new, k, none); !errors.Is(err, context.DeadlineExceeded) || got != nil {
		t.Errorf("many paths without room: %d requirements, %v", len(got), err)
	}
	waited := make(chan error)
	go func() {
		got, err := Diff(t.Context(), old, new, k, none)
		if len(got) == 0 {
			err = errors.Join(err, errors.New("no requirements"))
		}
		waited <- err
	}()
	ownersRoom.Release(ownersAtOnce)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if !ownersRoom.TryAcquire(ownersAtOnce) {
		t.Error("room is not given back")
	} else {
		ownersRoom.Release(ownersAtOnce)
	}
}
