/*
 * The interlock where the webhook configuration is an object of the cluster (--webhook-configuration). README.md maps
 * it to the code; request.pml has the assumptions.
 */
#ifdef SHORT
#define RELEASE (UNDERWAY + 1 - (SHORT))
#else
#define RELEASE (UNDERWAY + 1)
#endif
#define SETTLE  (VISIBLE + 1) /* what a change is given to reach every server: more than it takes */
#define WINDOW  (UNDERWAY - TIGHT)
#ifndef TIGHT
#define TIGHT 0
#endif

#include "request.pml"

/* States of the configuration. */
#define NONE     0
#define LOOSE    1 /* it leaves out what is asked about */
#define IGNORE   2 /* failurePolicy Ignore */
#define GOOD     3
#define DELETING 4 /* good, with a deletionTimestamp and the finalizer */

/* Everything that the configuration has ever been, in order. It starts as nothing. To save
 * states, it starts as GOOD where BEGUN is defined, with servers that call webhooks and replicas that do not crash. */
#ifndef VERSIONS
#define VERSIONS 5
#endif
byte is[VERSIONS];
byte latest;
byte due[VERSIONS]; /* ticks until every server has seen it */

typedef Server {
	bool serves;
	bool plugin; /* its admission calls webhooks at all */
	byte seen    /* version */
};
Server server[SERVERS];

typedef Replica {
	/* The state: ticks + 1 until the proof is too old; 0 is open. */
	byte proof;
	bool failed;   /* the webhook's error was seen to stop a write since it opened */
	byte known;    /* version that was last seen */
	byte settling; /* ticks until that has settled */
	/* The round under way. */
	bool running;
	byte age;       /* ticks since its start */
	bool tried;     /* its canaries are of mode fail */
	bool overtaken; /* the interlock was opened since its start, or the configuration was not settled */
	bool read;
	byte asked;    /* servers, as bits: those that were listed */
	byte enforced; /* of those, that refused the canary */
	/* Release: ticks + 1 until it lets go; 0 is nothing to let go. */
	byte release
};
Replica replica[REPLICAS];

#define now_is          is[latest]
#define acts(s)         is[server[s].seen]
#define stops(s, fails) (server[s].plugin && (acts(s) == GOOD || acts(s) == DELETING || acts(s) == IGNORE && !(fails)))

inline become(what) {
	latest++;
	is[latest] = what;
	due[latest] = VISIBLE
}

inline end_round(r) {
	replica[r].running = false;
	replica[r].age = 0;
	replica[r].tried = false;
	replica[r].overtaken = false;
	replica[r].read = false;
	replica[r].asked = 0;
	replica[r].enforced = 0
}

/* mustOpen: a new epoch. */
inline open(r) {
	replica[r].proof = 0;
	replica[r].failed = false;
#ifndef NO_EPOCH
	replica[r].overtaken = replica[r].running
#endif
}

/* seen: another identity has to settle. */
inline see(r) {
	if
	:: is[replica[r].known] == NONE && now_is == NONE -> replica[r].known = latest
	:: !(is[replica[r].known] == NONE && now_is == NONE) && replica[r].known != latest ->
		replica[r].known = latest;
#ifndef NO_SETTLE
		replica[r].settling = SETTLE;
		replica[r].overtaken = replica[r].running;
#endif
		if
		:: replica[r].proof > 0 -> open(r)
		:: else
		fi
	:: else
	fi
}

byte i; /* of loops within one step */
bool proven; /* within one step too */

proctype Fieldperm(byte r) {
	do
	/* A round starts. */
	:: atomic { !replica[r].running ->
		replica[r].running = true;
		replica[r].tried = !replica[r].failed;
		replica[r].overtaken = replica[r].settling > 0 }

	/* The static proof, and the list of servers. */
	:: atomic { replica[r].running && !replica[r].read ->
		see(r);
		if
#ifdef NO_GET
		:: true ->
#else
		:: now_is == GOOD ->
#endif
			replica[r].read = true;
#ifdef ONE_SERVER
			replica[r].asked = 1
#else
			i = 0;
			do
			:: i < SERVERS -> replica[r].asked = replica[r].asked | (server[i].serves << i); i++
			:: else -> break
			od;
			i = 0
#endif
#ifndef NO_GET
		:: else -> open(r); end_round(r)
#endif
		fi }

	/* A canary comes back, from one server after the other. */
	:: atomic { replica[r].read && replica[r].asked != replica[r].enforced ->
		i = 0;
		do
		:: i < SERVERS && (replica[r].asked & (1 << i)) && !(replica[r].enforced & (1 << i)) -> break
		:: i < SERVERS - 1 -> i++
		:: else -> break
		od;
		if
		:: !((replica[r].asked & (1 << i)) && !(replica[r].enforced & (1 << i)))
#ifdef NO_CANARY
		:: else -> replica[r].enforced = replica[r].enforced | (1 << i)
#else
		:: else ->
			if
			:: stops(i, replica[r].tried) -> replica[r].enforced = replica[r].enforced | (1 << i)
			:: else -> open(r); end_round(r)
			fi
#endif
		fi;
		i = 0 }

	/* The round ends well. */
	:: atomic { replica[r].read && replica[r].asked == replica[r].enforced ->
		if
		:: !replica[r].overtaken ->
#ifdef FROM_THE_END
			replica[r].proof = PROOF + 1;
#else
			replica[r].proof = (replica[r].age > PROOF -> 0 : PROOF + 1 - replica[r].age);
#endif
			replica[r].failed = true
		:: else
		fi;
		end_round(r) }

	/* Its watch tells of the configuration, some time or never. */
	:: atomic { replica[r].known != latest || replica[r].proof > 0 && now_is != GOOD ->
		see(r);
		if
		:: now_is != GOOD -> open(r)
		:: else
		fi }
	:: atomic { now_is == DELETING && replica[r].release == 0 -> replica[r].release = RELEASE + 1 }

	/* The delay is over. */
	:: atomic { replica[r].release == 1 ->
		if
		:: now_is == DELETING && latest < VERSIONS - 1 -> become(NONE)
		:: else
		fi;
		replica[r].release = 0 }

#ifndef BEGUN
	/* It crashes and starts again with nothing. It may be frozen or down at any time: then it does not act. */
	:: atomic { replica[r].known != 0 || replica[r].proof > 0 || replica[r].running || replica[r].release > 0 ->
		end_round(r);
		replica[r].known = 0;
		replica[r].settling = 0;
		replica[r].release = 0;
		replica[r].failed = false;
#ifdef CLOSED_AT_START
		replica[r].proof = PROOF + 1
#else
		replica[r].proof = 0
#endif
	   }
#endif
	od
}

proctype Administrator() {
	do
	:: atomic { now_is == NONE && latest < VERSIONS - 1 -> become(GOOD) }
#ifdef NO_FINALIZER
	:: atomic { now_is == GOOD && latest < VERSIONS - 1 -> become(NONE) }
#else
	:: atomic { now_is == GOOD && latest < VERSIONS - 1 -> become(DELETING) }
#endif
#ifdef TAMPER
	:: atomic { now_is == GOOD && since == 0 && latest < VERSIONS - 1 -> TAMPERING; become(LOOSE) }
	:: atomic { now_is == GOOD && since == 0 && latest < VERSIONS - 1 -> TAMPERING; become(IGNORE) }
	:: atomic { (now_is == LOOSE || now_is == IGNORE) && latest < VERSIONS - 1 -> become(GOOD) }
#endif
	od
}

proctype Apiserver(byte s) {
	do
	/* It sees the next version. */
	:: atomic { server[s].seen < latest -> server[s].seen++ }
	/* It restarts. */
	:: atomic { server[s].serves -> server[s].seen = latest;
		if
		:: s == home -> forget()
		:: else
		fi }
	/* It is new, and is known before it serves users. */
	:: atomic { !server[s].serves ->
		server[s].serves = true;
		server[s].seen = latest;
#ifndef LATE_LISTING
		i = 0;
		do
		:: i < REPLICAS -> open(i); i++
		:: else -> break
		od;
		i = 0
#endif
	   }
	od
}

proctype User() {
	do
	:: atomic { server[home].serves && (request != Authorized) ->
		proven = false;
		i = 0;
		do
		:: i < REPLICAS -> proven = proven || replica[i].proof > 0; i++
		:: else -> break
		od;
		i = 0;
		if
		:: request == Idle && cache == 0 && !proven
		:: else -> authorize(proven)
		fi;
		proven = false }
	/* Under failurePolicy Ignore nobody looks if fieldperm cannot be reached just then. */
	:: atomic { request == Authorized -> land(stops(home, true)) }
	od
}

proctype Time() {
	do
	:: atomic {
		i = 1;
		do
		:: i <= latest && due[i] > 0 -> i++
		:: i <= latest && due[i] == 0 && server[0].seen >= i && server[SERVERS - 1].seen >= i -> i++
		:: else -> break
		od;
		/* An overdue version has to be seen before time goes on. */
		i > latest;
		i = 1;
		do
		:: i <= latest -> down(due[i]); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < REPLICAS ->
#ifndef NO_EXPIRY
			down(replica[i].proof);
#endif
			down(replica[i].settling);
			if
			:: replica[i].release > 1 -> replica[i].release--
			:: else
			fi;
			if
			:: replica[i].running && replica[i].age <= PROOF -> replica[i].age++
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		passes() }
	od
}

init {
	atomic {
#ifdef BEGUN
		is[0] = GOOD;
#endif
		select(home: 0 .. SERVERS - 1);
		i = 0;
		do
		:: i < SERVERS ->
			if
			:: server[i].plugin = true
#ifndef BEGUN
			:: server[i].plugin = false
#endif
			fi;
			if
			:: server[i].serves = true
			:: i > 0 -> server[i].serves = false
			fi;
			run Apiserver(i);
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < REPLICAS ->
#ifdef CLOSED_AT_START
			replica[i].proof = PROOF + 1;
#endif
			run Fieldperm(i);
			i++
		:: else -> break
		od;
		i = 0;
		run Administrator();
		run User();
		run Time()
	}
}
