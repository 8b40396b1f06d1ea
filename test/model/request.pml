/*
 * A marker holder's request on one kube-apiserver, and time. Included by rest.pml and static.pml.
 *
 * ASSUMPTIONS. What is proved here is proved under these, and no more.
 *
 *  1. Clocks run at the same speed. (They may show different times: only spans are measured.)
 *  2. An answer of /authorize that takes longer than the authorizer's timeout is not used.
 *  3. A kube-apiserver keeps an Allow no longer than authorizedTTL, and loses it when it restarts.
 *  4. A request reaches admission within --request-timeout of its authorization, or never.
 *  5. A kube-apiserver acts on a change of the webhook configuration in less than the settle time, and takes changes
 *     in their order. After a restart it acts on what is stored.
 *  6. A kube-apiserver is known to fieldperm before it serves users.
 *  7. Nonces and tokens cannot be forged, and a canary changes nothing wherever it lands. So a canary is here a look
 *     at what the server would do, at one moment of the round.
 *  8. fieldperm reads the configuration as it is stored at that moment (no cache). Its watch may be late or silent.
 *  9. Administrators do not take the finalizer away by hand, and loosen nothing (guard), but where TAMPER is defined.
 * 10. What holds for one object of a resource in a namespace holds for all.
 *
 * Requests meet one another in one place only, the cache of their kube-apiserver. So it is enough to follow one at a
 * time on one server, whichever it is (home).
 *
 * Bounds of spans are closed: what lives for N ticks can still act at the Nth.
 */

#ifndef SERVERS
#define SERVERS 2
#endif
#ifndef REPLICAS
#define REPLICAS 1
#endif

/* Spans in ticks. Only their order and their sums matter. */
#define PROOF   2 /* two intervals: the life of a proof, counted from the start of its round */
#ifndef ANSWER
#define ANSWER  1 /* timeout of the authorizer in the AuthorizationConfiguration */
#endif
#ifndef TTL
#define TTL     1 /* authorizedTTL */
#endif
#define REQUEST 1 /* --request-timeout */
#define VISIBLE 1 /* how long a change of the configuration takes at most to reach a server */
#define UNDERWAY (PROOF + ANSWER + TTL + REQUEST)

#define down(t) if :: t > 0 -> t-- :: else fi

/* The kube-apiserver that the request is sent to. */
byte home;

mtype = { Idle, Answering, Authorized };
mtype request = Idle;
byte left;  /* ticks + 1 that what is under way may take; 0 for nothing under way */
byte cache; /* ticks + 1 that home keeps an Allow */

#ifdef TAMPER
/* Ticks + 1 since enforcement was taken away; 0 for never. Stops after the bound. */
byte since;
#define TAMPERING    if :: since == 0 -> since = 1 :: else fi
#define BOUNDED      (since > 0 && since <= WINDOW + 1)
#else
#define BOUNDED      false
#endif

/*
 * The promise. Admission has come to the request, looked says whether it looks, and no harm is done
 * otherwise only within the window of somebody's tampering.
 */
inline land(looked) {
	assert(looked || BOUNDED);
	request = Idle;
	left = 0
}

/* kube-apiserver home, up to admission. may says whether some replica says Allow now. */
inline authorize(may) {
	if
	:: request == Idle && cache > 0 -> request = Authorized; left = REQUEST + 1
	:: request == Idle && may -> request = Answering; left = ANSWER + 1
	:: request == Answering -> cache = TTL + 1; request = Authorized; left = REQUEST + 1
	fi
}

inline forget() {
	cache = 0;
	request = Idle;
	left = 0
}

inline passes() {
	down(cache);
	down(left);
	if
	:: left == 0 -> request = Idle
	:: else
	fi
#ifdef TAMPER
	;
	if
	:: since > 0 && since < WINDOW + 2 -> since++
	:: else
	fi
#endif
}
