package compile

import "testing"

// TestC2_NoFaultOfAKindOverItsBudgetIsOfTheCatalogue, which all kinds have: all would fail.
func TestC2_NoFaultOfAKindOverItsBudgetIsOfTheCatalogue(t *testing.T) {
	of := func(source string, rank Rank) *overlay {
		return &overlay{level: level{claim: newGuard(source, rank, &Entry{Pointer: "/" + source}, nil)}}
	}
	r := newBudget()
	for range mostNodes - 1 {
		r.count(of("catalogue", RankCatalogue))
	}
	r.count(of("a", RankAdministrator))
	if r.made != mostNodes {
		t.Fatalf("%d nodes", r.made)
	}
	for range 2 {
		r.count(of("every", RankEveryKind))
	}
	if e := r.fault("types", nil); e == nil || e.Source != "a" || e.Pointer != "/a" {
		t.Errorf("got %v", e)
	}
	if again := r.fault("types", nil); again != nil {
		t.Errorf("twice: %v", again)
	}
}
