package schema

import "testing"

// TestC2_NoFaultOfAKindWithoutRoomIsOfTheCatalogue, which all kinds have: all would fail.
func TestC2_NoFaultOfAKindWithoutRoomIsOfTheCatalogue(t *testing.T) {
	of := func(source string, rank Rank) *overlay {
		return &overlay{level: level{claim: newGuard(source, rank, &Entry{Pointer: "/" + source}, nil)}}
	}
	r := newRoom()
	for range mostNodes - 1 {
		if !r.take(of("catalogue", RankCatalogue)) {
			t.Fatal("the catalogue has no room")
		}
	}
	if !r.take(of("a", RankAdministrator)) {
		t.Fatal("no room for the last node")
	}
	for range 2 {
		if r.take(of("every", RankEveryKind)) {
			t.Fatal("room for one more node")
		}
	}
	if e := r.fault("types", nil); e == nil || e.Source != "a" || e.Pointer != "/a" {
		t.Errorf("got %v", e)
	}
	if again := r.fault("types", nil); again != nil {
		t.Errorf("twice: %v", again)
	}
}
