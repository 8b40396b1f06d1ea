package server

import (
	"context"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// budget bounds the bytes of request bodies in memory at the same time, in total and per user. A small reserve is for bodies that
// may be probes of enforcement: a flood of reviews must not keep fieldperm from proving enforcement. The zero budget accepts no
// body.
type budget struct {
	// All in bytes: total bounds reviews, reserve bounds probes, perUser bounds the part of total that one user's requests may take.
	total, reserve, perUser int64

	mu             sync.Mutex
	used, reserved int64
	users          map[string]int64
}

// lease is the part of a budget that one request holds. It is also the context of the request.
type lease struct {
	context.Context

	budget  *budget
	bytes   int64
	reserve bool
	user    string
}

// probeBytes is more than the review of a probe needs: two ConfigMaps with the CAs of a cluster.
const probeBytes = 128 << 10

func newBudget(total, perUser, reserve int64) *budget {
	return &budget{total: total, perUser: perUser, reserve: reserve, users: map[string]int64{}}
}

// take returns a lease of bytes. It returns nil if the budget has not enough left.
func (b *budget) take(bytes int64) *lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case bytes <= b.total-b.used:
		b.used += bytes
		return &lease{budget: b, bytes: bytes}
	case bytes <= probeBytes && bytes <= b.reserve-b.reserved:
		b.reserved += bytes
		return &lease{budget: b, bytes: bytes, reserve: true}
	}
	return nil
}

// own charges the lease to a user when the user is known. It reports whether the user may hold the lease. A lease from the reserve
// is for probes only.
func (l *lease) own(user string, probe bool) bool {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		return true
	}
	if l.reserve || b.users[user]+l.bytes > b.perUser && b.users[user] > 0 {
		return false
	}
	l.user = user
	b.users[user] += l.bytes
	return true
}

func (l *lease) release() {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.reserve {
		b.reserved -= l.bytes
	} else {
		b.used -= l.bytes
	}
	if l.user == "" {
		return
	}
	if b.users[l.user] -= l.bytes; b.users[l.user] <= 0 {
		delete(b.users, l.user)
	}
}

// held returns how many bytes all leases hold.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used + b.reserved
}

type leaseKey struct{}

// Value implements context.Context.
func (l *lease) Value(key any) any {
	if key == (leaseKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// handler refuses a request before it reads the body if the budget has not enough left. A body of unknown length counts as the
// longest allowed one. kube-apiserver sends the request again after Retry-After until the webhook's timeout ends, and then treats
// it as a failed call.
func (b *budget) handler(longest int64, refused func(), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bytes := r.ContentLength
		if bytes < 0 || bytes > longest {
			bytes = longest
		}
		l := b.take(bytes)
		if l == nil {
			refused()
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the reviews that are being answered hold all the memory that there is for them: try again; raise --memory-limit, or run more replicas", http.StatusTooManyRequests)
			return
		}
		defer l.release()
		l.Context = r.Context()
		next.ServeHTTP(w, r.WithContext(l))
	})
}

// share reports whether the user of a review may hold its body. It is a callback for admission.Handlers.
func share(ctx context.Context, user string, probe bool) bool {
	l, ok := ctx.Value(leaseKey{}).(*lease)
	return !ok || l.own(user, probe)
}

// bodiesOfLimit is the divisor of the memory limit that gives the limit for bodies. One byte of a body takes up to four bytes
// during the comparison. Schemas, connection buffers and garbage that is not collected yet take the rest.
const bodiesOfLimit = 8

// unknownLimit is used, in bytes, if no source has a memory limit.
const unknownLimit = 1 << 30

// memoryLimit returns the memory limit of the process in bytes: the flag, else GOMEMLIMIT, else nine tenths of the container's
// limit. It returns 0 if there is no limit.
func memoryLimit(flag int64) int64 {
	if flag > 0 {
		return flag
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// Without a limit, cgroup v2 has "max", and v1 has a number larger than any machine's memory.
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && limit > 0 && limit < 1<<50 {
			return limit / 10 * 9
		}
	}
	return 0
}

// budgets has one budget for each kind of endpoint.
type budgets struct{ reviews, observed, authorize, questions *budget }

// newBudgets divides the part of a memory limit that is for bodies. longest is the maximum size of an admission review, question
// that of other requests, both in bytes. Observations, /authorize and the review API have budgets of their own, so that none of them blocks
// the reviews that enforce, or is blocked by them.
func newBudgets(limit, longest, question int64) budgets {
	if limit == 0 {
		limit = unknownLimit
	}
	total := max(limit/bodiesOfLimit, longest)
	small := max(total/8, question)
	return budgets{
		reviews:   newBudget(total, total/4, 16*probeBytes),
		observed:  newBudget(max(total/8, longest), max(total/8, longest), 0),
		authorize: newBudget(small, small, 0),
		questions: newBudget(small, small, 0),
	}
}
