/*
 * The interlock where the webhook configuration is a static manifest, which nobody can read: each resource has a proof
 * of its own beside the round. README.md maps it to the code; request.pml has the assumptions. Each kube-apiserver has
 * a manifest of its own. It stays as it is, but where TAMPER is defined.
 */
#ifndef FAIL
#define FAIL 3 /* failInterval: how often the webhook's error is tried */
#endif

/* A manifest that is narrowed is found out by the next canary, failurePolicy Ignore by the next of mode fail, which
 * comes when FAIL ticks are over: until one tick before, canaries may be of mode deny. */
#ifdef IGNORED
#define WINDOW (FAIL - 1 + UNDERWAY - TIGHT)
#else
#define WINDOW (UNDERWAY - TIGHT)
#endif
#ifndef TIGHT
#define TIGHT 0
#endif

#include "request.pml"

/* What a manifest says about a resource. */
#define NONE   0
#define IGNORE 1 /* failurePolicy Ignore */
#define GOOD   2

/* Two resources: that of the round's canaries (configmaps), and the one that the request is about. */
#define ROUND 0
#define ASKED 1

typedef Server { byte manifest[2] };
Server server[SERVERS];

/* How far canaries have come: of the round, or on the resource. */
typedef Proof {
	byte good;     /* ticks + 1 until it is too old; 0 is none */
	byte failed;   /* ticks until the webhook's error has to be tried again; 0 for at once */
	bool running;
	bool tried;    /* its canaries are of mode fail */
	bool overtaken; /* the interlock was opened since the start */
	byte age;
	byte enforced  /* servers, as bits */
};

typedef Replica { Proof proof[2] };
Replica replica[REPLICAS];

#ifdef ONE_SERVER
#define ALL 1
#else
#define ALL ((1 << SERVERS) - 1)
#endif

#define level(s, what)        server[s].manifest[what]
#define stops(s, what, fails) (level(s, what) == GOOD || level(s, what) == IGNORE && !(fails))
#define p(what)               replica[r].proof[what]

#ifdef NO_RESOURCE_PROOF
#define closed(r) (replica[r].proof[ROUND].good > 0)
#else
#define closed(r) (replica[r].proof[ROUND].good > 0 && replica[r].proof[ASKED].good > 0)
#endif

inline end(what) {
	p(what).running = false;
	p(what).tried = false;
	p(what).overtaken = false;
	p(what).age = 0;
	p(what).enforced = 0
}

/* mustOpen: a new epoch takes every proof with it. */
inline open() {
	p(ROUND).good = 0;
	p(ROUND).failed = 0;
	p(ROUND).overtaken = p(ROUND).running;
	p(ASKED).good = 0;
	p(ASKED).failed = 0;
	p(ASKED).overtaken = p(ASKED).running
}

/* A canary passed. Of the round: the interlock opens. On a resource: that one is not proven. */
inline refuted(what) {
	if
	:: what == ROUND -> open()
	:: else -> p(what).good = 0;
#ifndef FAILED_KEPT
		p(what).failed = 0
#else
		/* As if the try had gone well. */
		if
		:: p(what).tried -> p(what).failed = (p(what).age > FAIL -> 0 : FAIL - p(what).age)
		:: else
		fi
#endif
	fi;
	end(what)
}

byte i; /* of loops within one step */
bool proven;

proctype Canaries(byte r; byte what) {
	do
	:: atomic { !p(what).running ->
		p(what).running = true;
#ifndef DENY_ONLY
		p(what).tried = p(what).failed == 0
#endif
	   }
	:: atomic { p(what).running && !(p(what).enforced & 1) ->
		if
		:: stops(0, what, p(what).tried) -> p(what).enforced = p(what).enforced | 1
		:: else -> refuted(what)
		fi }
	:: atomic { SERVERS > 1 && p(what).running && (ALL & 2) && !(p(what).enforced & 2) ->
		if
		:: stops(SERVERS - 1, what, p(what).tried) -> p(what).enforced = p(what).enforced | 2
		:: else -> refuted(what)
		fi }
	:: atomic { p(what).running && p(what).enforced == ALL ->
		if
		:: !p(what).overtaken ->
			p(what).good = (p(what).age > PROOF -> 0 : PROOF + 1 - p(what).age);
			if
			:: p(what).tried -> p(what).failed = (p(what).age > FAIL -> 0 : FAIL - p(what).age)
			:: else
			fi
		:: else
		fi;
		end(what) }
	od
}

/* It crashes and starts again with nothing. */
proctype Crash(byte r) {
	do
	:: atomic { p(ROUND).running || p(ROUND).good > 0 || p(ASKED).running || p(ASKED).good > 0 ->
		open();
		end(ROUND);
		end(ASKED);
#ifdef CLOSED_AT_START
		p(ROUND).good = PROOF + 1;
		p(ASKED).good = PROOF + 1
#endif
	   }
	od
}

proctype Apiserver() {
	do
	:: atomic { cache > 0 || request != Idle -> forget() }
	od
}

#ifdef TAMPER
proctype Administrator() {
	do
#ifdef IGNORED
	:: atomic { level(home, ASKED) == GOOD -> level(home, ASKED) = IGNORE; TAMPERING }
#else
	:: atomic { level(home, ASKED) == GOOD -> level(home, ASKED) = NONE; TAMPERING }
	:: atomic { level(home, ROUND) == GOOD -> level(home, ROUND) = NONE; level(home, ASKED) = NONE; TAMPERING }
#endif
	od
}
#endif

proctype User() {
	do
	:: atomic { request != Authorized ->
		proven = closed(0) || closed(REPLICAS - 1);
		if
		:: request == Idle && cache == 0 && !proven
		:: else -> authorize(proven)
		fi;
		proven = false }
	:: atomic { request == Authorized -> land(stops(home, ASKED, true)) }
	od
}

inline ages(r, what) {
#ifndef NO_EXPIRY
	down(p(what).good);
#endif
	down(p(what).failed);
	if
	:: p(what).running && p(what).age <= PROOF + FAIL -> p(what).age++
	:: else
	fi
}

proctype Time() {
	do
	:: atomic {
		i = 0;
		do
		:: i < REPLICAS -> ages(i, ROUND); ages(i, ASKED); i++
		:: else -> break
		od;
		i = 0;
		passes() }
	od
}

init {
	atomic {
		select(home: 0 .. SERVERS - 1);
		i = 0;
		do
		:: i < SERVERS ->
#ifdef TAMPER
			server[i].manifest[ROUND] = GOOD;
			server[i].manifest[ASKED] = GOOD;
#else
			if
			:: server[i].manifest[ROUND] = GOOD
			:: server[i].manifest[ROUND] = IGNORE
			:: server[i].manifest[ROUND] = NONE
			fi;
			if
			:: server[i].manifest[ASKED] = GOOD
			:: server[i].manifest[ASKED] = IGNORE
			:: server[i].manifest[ASKED] = NONE
			fi;
#endif
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < REPLICAS ->
#ifdef CLOSED_AT_START
			replica[i].proof[ROUND].good = PROOF + 1;
			replica[i].proof[ASKED].good = PROOF + 1;
#endif
			run Canaries(i, ROUND);
			run Canaries(i, ASKED);
			run Crash(i);
			i++
		:: else -> break
		od;
		i = 0;
#ifdef TAMPER
		run Administrator();
#endif
		run Apiserver();
		run User();
		run Time()
	}
}
