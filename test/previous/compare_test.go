package previous

import (
	"errors"
	"testing"
)

func demands(lists ...[]string) Answer {
	var out Answer
	for _, l := range lists {
		out.Demands = append(out.Demands, Demand{Path: ".x", AnyOf: l})
	}
	return out
}

func TestCompare(t *testing.T) {
	all, one, failed := []string{"granular:*", "granular:a", Generic}, []string{"granular:a"}, Answer{Err: errors.New("unknown")}
	for name, c := range map[string]struct {
		before, now      Answer
		looser, stricter int
	}{
		"equal":                             {demands(all, one), demands(one, all), 0, 0},
		"a verb less is stricter":           {demands(all), demands(one), 0, 1},
		"a verb more is looser":             {demands(one), demands(all), 1, 0},
		"one demand more is stricter":       {demands(all), demands(all, one), 0, 1},
		"one demand less is looser":         {demands(all, one), demands(all), 1, 0},
		"no demand is looser":               {demands(all), demands(), 1, 0},
		"other verbs are both":              {demands(one), demands([]string{"granular:b"}), 1, 1},
		"what nothing meets is stricter":    {demands(all), demands(nil), 0, 1},
		"a demand that is implied is none":  {demands(one), demands(one, all), 0, 0},
		"an error in place of demands":      {demands(all), failed, 0, 1},
		"demands in place of an error":      {failed, demands(all), 1, 0},
		"two errors are equal":              {failed, failed, 0, 0},
		"nothing in place of an error":      {failed, demands(), 1, 0},
		"a stricter one in place of two":    {demands(all, one), demands(one), 0, 0},
		"what nothing meets in place of it": {demands(nil), demands(all), 1, 0},
	} {
		looser, stricter := 0, 0
		for _, d := range Compare(c.before, c.now) {
			if d.Looser {
				looser++
			} else {
				stricter++
			}
		}
		if looser != c.looser || stricter != c.stricter {
			t.Errorf("%s: %d looser, %d stricter", name, looser, stricter)
		}
	}
}
