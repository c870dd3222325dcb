/* One round of the parameter server (lib/strategy/ps: PsWorker, AsyncPsServer with ServerClock, SyncPsServer)
 * with memory that workers write and read (RemoteMemory, transport rma). Two-sided messages behave the same,
 * with fewer possible orders: a slot is then written only after its receive was posted.
 *
 * The protocol. A worker announces each push to every server, puts the gradient into its slot there, and
 * signals that it has arrived. It gets parameters when they are offered, and signals that it has taken them.
 * Server 0 answers a line with another share of the round, as long as there are any. A worker without shares
 * announces its last line, and gets the parameters once more when all workers have done so. A synchronous
 * server waits for a push from every worker; all workers have the same number of pushes. Every shard is one
 * chunk. In the model, a gradient is the number of its push, and parameters are counts of the pushes applied
 * from each worker.
 *
 * Left out:
 * - the trailer (PsEnd) that an asynchronous worker sends after its gradient with loss scaling or clipping.
 *   Sending it waits for nothing, and the server handles it like one more part of the gradient;
 * - synchronous servers that agree on a norm with each other when all gradients have arrived.
 *
 * Checked in every reachable state:
 * - a slot is written only after its content was used, and used only when it is complete;
 * - parameters are not changed between their offer and the moment when their worker has taken them;
 * - every push of each worker is applied once, in order;
 * - the parameters that a worker computes with lack at most STALENESS pushes of any other unfinished worker,
 *   compared with its own number of pushes;
 * - every share is computed once;
 * - at the end of the round, every worker has every push;
 * - no process waits forever, even if some finish early.
 *
 *   -D SHARES=n      shares of the round
 *   -D SERVERS=1     instead of 2
 *   -D STALENESS=n   gate ssp; without it: gate none
 *   -D CACHED        of ssp: workers pull only when what they have is too old (cached reads). As this takes messages,
 *                    a gradient waits until the slot's content was used
 *   -D SYNC          gate bsp; SHARES is a multiple of the number of workers
 *   -D STOP          server 0 may be asked to end the round early
 *   -D CRASH         one process may end anywhere. The others then cannot finish, so ends are not checked: the
 *                    launcher ends them, and a run resumes at the beginning of the round
 *
 * Each of the other macros plants one error, which must be found.
 */
#define WORKERS 3
#ifndef SERVERS
#define SERVERS 2
#endif
#define PAIRS 6
#if SERVERS == 2
#define AT_THE_SECOND(...) __VA_ARGS__
#else
#define AT_THE_SECOND(...)
#endif
#define AT(w, s) ((w) * SERVERS + (s))
#define TORN 255

mtype = { idle, to_put, putting, to_get };

/* Messages. */
chan line[PAIRS] = [1] of { byte, bit }; /* number of the push that follows, 0: the last line; whether it pulls */
chan landed[PAIRS] = [1] of { bit };
chan offered[PAIRS] = [1] of { byte }; /* CACHED: how many more gradients may be computed with them */
chan taken[PAIRS] = [1] of { bit };
chan answer[WORKERS] = [1] of { bit }; /* 1: one more share */

/* The memory of the servers, by worker. */
typedef Parameters { byte has[WORKERS] };
byte slot[PAIRS];
Parameters outgoing[PAIRS];

/* The workers. */
mtype todo[PAIRS] = idle; /* for a worker and a server */
byte shares[WORKERS];     /* dealt and not yet computed */
byte pushed[WORKERS];
bit awaits_answer[WORKERS];
#ifdef CACHED
byte reads[WORKERS] = STALENESS;
#endif
bit pulls[WORKERS]; /* after its last push */
bit over[WORKERS];        /* announced its last line */

/* Used only by the checks. */
bit unused[PAIRS]; /* the slot's content was not applied yet */
bit lent[PAIRS];   /* the parameters were offered and not taken yet */
byte dead;         /* number of the process, from 1: workers, then servers */

#ifdef CRASH
#define ALIVE(process) (dead != (process) + 1)
#else
#define ALIVE(process) true
#endif
#define SERVER(s) (WORKERS + (s))

#ifdef SYNC
#define FRESH(w, s, v) (outgoing[AT(w, s)].has[v] == pushed[w])
#elif defined STALENESS
#define FRESH(w, s, v) (outgoing[AT(w, s)].has[v] + STALENESS >= pushed[w])
#else
#define FRESH(w, s, v) true
#endif
/* Worker v has finished, and all its pushes are in the parameters. */
#define WHOLE(w, s, v) (over[v] && outgoing[AT(w, s)].has[v] == pushed[v])

inline check_parameters(w, s) {
  v = 0;
  do
  :: v < WORKERS ->
     assert(WHOLE(w, s, v) || (!over[w] && FRESH(w, s, v)));
     v++
  :: else -> break
  od;
  v = 0;
#ifndef STOP
  assert(!over[w] || pushed[0] + pushed[1] + pushed[2] == SHARES)
#endif
}

/* A server may look for a message at any time, so it does not matter when it is sent: a put is part of the
 * announcement, unless it can end half way, or be announced too early. */
#if defined(CRASH) || defined(TOLD_BEFORE_IT_LANDED) || defined(CACHED)
#define PUTS_BY_STEPS
#endif

inline begin_put(w, s) {
  assert(!unused[AT(w, s)]);
  unused[AT(w, s)] = 1;
  slot[AT(w, s)] = TORN;
#ifdef TOLD_BEFORE_IT_LANDED
  landed[AT(w, s)]!1;
#endif
  todo[AT(w, s)] = putting
}

inline end_put(w, s) {
  slot[AT(w, s)] = pushed[w];
#ifndef TOLD_BEFORE_IT_LANDED
  landed[AT(w, s)]!1;
#endif
  todo[AT(w, s)] = (pulls[w] -> to_get : idle)
}

#ifdef CACHED
#define MAY_PUT(w, s) (!unused[AT(w, s)])
#else
#define MAY_PUT(w, s) true
#endif

/* Decides whether the worker pulls after its push; if not, it goes on with what it has. */
inline schedule_pull(w) {
#ifdef CACHED
  pulls[w] = (reads[w] == 0);
  if
  :: reads[w] == 0 -> reads[w] = STALENESS
  :: else -> reads[w]--; check_parameters(w, 0); AT_THE_SECOND(check_parameters(w, 1))
  fi
#else
  pulls[w] = 1
#endif
}

inline take(w, s) {
#ifdef CACHED
  offered[AT(w, s)]?allowed;
  reads[w] = (allowed < reads[w] -> allowed : reads[w]);
  allowed = 0
#else
  offered[AT(w, s)]?_
#endif
}

/* The exchange between a worker and a server. */
#define TRANSFER(w, s)                                                                   \
  :: atomic { ALIVE(w) && todo[AT(w, s)] == to_put && MAY_PUT(w, s) -> begin_put(w, s) } \
  :: atomic { ALIVE(w) && todo[AT(w, s)] == putting -> end_put(w, s) }                   \
  :: atomic { ALIVE(w) && todo[AT(w, s)] == to_get && nempty(offered[AT(w, s)]) ->       \
       take(w, s);                                                                       \
       check_parameters(w, s);                                                           \
       lent[AT(w, s)] = 0;                                                               \
       taken[AT(w, s)]!1;                                                                \
       todo[AT(w, s)] = idle                                                             \
     }

#ifdef PUSHES_WITHOUT_PULLING
#define HAS_PARAMETERS(w, s) (todo[AT(w, s)] == idle || todo[AT(w, s)] == to_get)
#else
#define HAS_PARAMETERS(w, s) (todo[AT(w, s)] == idle)
#endif
#define READY(w) (!awaits_answer[w] && HAS_PARAMETERS(w, 0) AT_THE_SECOND(&& HAS_PARAMETERS(w, 1)))

inline announce(w, number) {
  line[AT(w, 0)]!number, pulls[w];
  AT_THE_SECOND(line[AT(w, 1)]!number, pulls[w])
}

proctype Worker(byte w) {
  bit more;
  byte v;
#ifdef CACHED
  byte allowed;
#endif
  do
  :: atomic { ALIVE(w) && READY(w) && shares[w] > 0 && !over[w] ->
       shares[w]--;
       pushed[w]++;
       schedule_pull(w);
       awaits_answer[w] = 1;
       announce(w, pushed[w]);
#ifdef PUTS_BY_STEPS
       todo[AT(w, 0)] = to_put;
       AT_THE_SECOND(todo[AT(w, 1)] = to_put)
#else
       begin_put(w, 0);
       end_put(w, 0);
       AT_THE_SECOND(begin_put(w, 1); end_put(w, 1))
#endif
     }
  :: atomic { ALIVE(w) && awaits_answer[w] && nempty(answer[w]) ->
       answer[w]?more;
       shares[w] = shares[w] + more;
       more = 0;
       awaits_answer[w] = 0
     }
  TRANSFER(w, 0)
  AT_THE_SECOND(TRANSFER(w, 1))
  :: atomic { ALIVE(w) && READY(w) && shares[w] == 0 && !over[w] ->
       over[w] = 1;
       pulls[w] = 1;
       announce(w, 0);
       todo[AT(w, 0)] = to_get;
       AT_THE_SECOND(todo[AT(w, 1)] = to_get)
     }
  :: ALIVE(w) && over[w] && READY(w) -> break
  od
}

#ifdef GATE_OFF_BY_ONE
#define ALLOWED (STALENESS + 1)
#else
#define ALLOWED STALENESS
#endif
#ifdef STALENESS
#define MAY_GO_ON(v) (applied[v] <= least + ALLOWED)
#else
#define MAY_GO_ON(v) true
#endif
#ifdef CACHED
#ifdef READS_OFF_BY_ONE
#define LAST_CLOCK (least + STALENESS + 1)
#else
#define LAST_CLOCK (least + STALENESS)
#endif
#define READS(v) (LAST_CLOCK > applied[v] -> LAST_CLOCK - applied[v] : 0)
#else
#define READS(v) 1
#endif
#ifdef THE_FINISHED_COUNT
#define COUNTS(v) true
#else
#define COUNTS(v) (!finished[v])
#endif

inline copy(s, v) {
  outgoing[AT(v, s)].has[0] = applied[0];
  outgoing[AT(v, s)].has[1] = applied[1];
  outgoing[AT(v, s)].has[2] = applied[2]
}

inline hand_out(s, v) {
  if
  :: under_way[v] -> taken[AT(v, s)]?_
  :: else
  fi;
  assert(!lent[AT(v, s)]);
#ifdef OFFERED_BEFORE_IT_IS_THERE
  late[v] = 1;
#else
  copy(s, v);
#endif
  lent[AT(v, s)] = 1;
  offered[AT(v, s)]!READS(v);
  under_way[v] = 1
}

/* Offers parameters to the workers that may continue. */
inline release(s) {
  least = 255;
  v = 0;
  do
  :: v < WORKERS && COUNTS(v) && applied[v] < least -> least = applied[v]; v++
  :: v < WORKERS && !(COUNTS(v) && applied[v] < least) -> v++
  :: v == WORKERS -> break
  od;
  v = 0;
  do
  :: v < WORKERS && waiting[v] && MAY_GO_ON(v) -> hand_out(s, v); waiting[v] = 0; v++
  :: v < WORKERS && !(waiting[v] && MAY_GO_ON(v)) -> v++
  :: v == WORKERS -> break
  od;
  v = 0;
  least = 0
}

inline deal(w) {
#ifdef STOP
  if
  :: next_share = SHARES
  :: skip
  fi;
#endif
  if
  :: next_share < SHARES -> next_share++; answer[w]!1
  :: else -> answer[w]!0
  fi
}

/* Handles what has arrived from a worker: a line, then the announced push. */
#define ATTEND(s, w)                                                                                    \
  :: atomic { ALIVE(SERVER(s)) && !waiting[w] && !finished[w] && !announced[w] && nempty(line[AT(w, s)]) -> \
       line[AT(w, s)]?number, asks[w];                                                                  \
       if                                                                                               \
       :: number == 0 -> finished[w] = 1; unfinished--; RELEASE_AT_FINISH(s)                            \
       :: number > 0 && s == 0 -> announced[w] = 1; deal(w)                                             \
       :: number > 0 && s > 0 -> announced[w] = 1                                                       \
       fi;                                                                                              \
       number = 0                                                                                       \
     }                                                                                                  \
  :: atomic { ALIVE(SERVER(s)) && announced[w] && nempty(landed[AT(w, s)]) ->                           \
       landed[AT(w, s)]?_;                                                                              \
       assert(slot[AT(w, s)] == applied[w] + 1);                                                        \
       applied[w]++;                                                                                    \
       unused[AT(w, s)] = 0;                                                                            \
       announced[w] = 0;                                                                                \
       waiting[w] = asks[w];                                                                            \
       release(s)                                                                                       \
     }
#ifdef FINISHING_RELEASES_NOBODY
#define RELEASE_AT_FINISH(s) skip
#else
#define RELEASE_AT_FINISH(s) release(s)
#endif

proctype Server(byte s) {
  byte applied[WORKERS];
  bit announced[WORKERS], waiting[WORKERS], finished[WORKERS];
  bit asks[WORKERS]; /* for parameters, after its push */
  bit under_way[WORKERS]; /* it may not have taken the parameters offered last */
  byte unfinished = WORKERS;
  byte next_share = (SHARES < 2 * WORKERS -> SHARES : 2 * WORKERS);
  byte number, least, v;
#ifdef OFFERED_BEFORE_IT_IS_THERE
  bit late[WORKERS];
#endif
  do
  ATTEND(s, 0)
  ATTEND(s, 1)
  ATTEND(s, 2)
#ifdef OFFERED_BEFORE_IT_IS_THERE
  :: atomic { late[0] -> copy(s, 0); late[0] = 0 }
  :: atomic { late[1] -> copy(s, 1); late[1] = 0 }
  :: atomic { late[2] -> copy(s, 2); late[2] = 0 }
#endif
  :: ALIVE(SERVER(s)) && unfinished == 0 -> break
  od;
  atomic {
    hand_out(s, 0);
    hand_out(s, 1);
    hand_out(s, 2)
  };
  taken[AT(0, s)]?_;
  taken[AT(1, s)]?_;
  taken[AT(2, s)]?_
}

#ifdef SYNC
#define SERVE(s) SyncServer(s)
#define DEALT(w) (SHARES / WORKERS)

inline receive_lines(s) {
  line[AT(0, s)]?number, _;
  line[AT(1, s)]?number, _;
  line[AT(2, s)]?number, _
}

inline answer_all(s) {
  if
  :: s == 0 -> answer[0]!0; answer[1]!0; answer[2]!0
  :: else
  fi
}

inline receive_push(w, s) {
  landed[AT(w, s)]?_;
  assert(slot[AT(w, s)] == applied[w] + 1)
}

/* Applied together with the pushes of all workers, not earlier. */
inline use_push(w, s) {
  unused[AT(w, s)] = 0;
  applied[w]++
}

proctype SyncServer(byte s) {
  byte applied[WORKERS];
  bit under_way[WORKERS];
  byte number;
  do
  :: receive_lines(s);
     if
     :: number == 0 -> break
     :: else
     fi;
     atomic { ALIVE(SERVER(s)) -> answer_all(s) };
     receive_push(0, s);
     receive_push(1, s);
     receive_push(2, s);
     atomic { ALIVE(SERVER(s)) -> use_push(0, s); use_push(1, s); use_push(2, s) };
     atomic { ALIVE(SERVER(s)) -> hand_out(s, 0); hand_out(s, 1); hand_out(s, 2) }
  od;
  atomic { ALIVE(SERVER(s)) -> hand_out(s, 0); hand_out(s, 1); hand_out(s, 2) };
  taken[AT(0, s)]?_;
  taken[AT(1, s)]?_;
  taken[AT(2, s)]?_
}
#else
#define SERVE(s) Server(s)
#define DEALT(w) ((w < SHARES -> 1 : 0) + (w + WORKERS < SHARES -> 1 : 0))
#endif

#ifdef CRASH
/* If each worker has one share, workers are interchangeable. */
proctype Crash() {
  if
  :: dead = 1
  :: dead = SERVER(0) + 1
  :: dead = SERVER(1) + 1
  fi
}
#endif

init {
  byte w;
  atomic {
    do
    :: w < WORKERS ->
       shares[w] = DEALT(w);
       run Worker(w);
       w++
    :: w == WORKERS -> break
    od;
    w = 0;
    run SERVE(0);
    AT_THE_SECOND(run SERVE(1);)
#ifdef CRASH
    run Crash()
#endif
  }
}
