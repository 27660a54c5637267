/* One answer over a connection that is kept (docs/connection.md, "Kept on the host"): a client, the process that keeps
 * the connection, and the target's side, each of which may be killed at any moment, as may the stream between the last
 * two and the server that was to take a request. What has broken is made again, and the client asks again.
 *
 * The process passes requests on under numbers of its own, and answers back. A client that goes before it has
 * acknowledged its answer has it given back (CANCEL); one that the stream has left is told so (ENDED). An
 * acknowledgement is confirmed by the target's side, not by the process.
 *
 * What is claimed: the target's side forgets nothing that no client has (lost); a client who knows that he was heard
 * never gets it again (twice); no two requests have the answer at once; and when nothing breaks any more, the answer
 * arrives and is forgotten (claim `arrives`). */

#ifndef BREAKS
#define BREAKS 3
#endif

mtype = { REQUEST, ANSWER, GONE, FAILED, ACK, CONFIRMED, CANCEL, CLOSED, ENDED };

chan from_client = [3] of { mtype };
chan to_client = [3] of { mtype };
chan down = [4] of { mtype, byte }; /* to the target */
chan up = [4] of { mtype, byte };

bool linked, dead, ending; /* a client is there; it is no more, and that isn't seen yet; it is told that it is over */
bool stream = true, broken;
byte last, open;   /* numbers: of the last request; of the client's, 0: none */
bool acknowledged; /* that one */
byte given;        /* whose the answer is; 0: nobody's */
bool forgotten, has, knows, gone;
byte breaks;

inline drain(c)
{
    do
    :: nempty(c) -> c ? _
    :: empty(c) -> break
    od
}

inline drain2(c)
{
    do
    :: nempty(c) -> c ? _, _
    :: empty(c) -> break
    od
}

/* All that was under way between process and target is lost, and both see it. */
inline break_stream()
{
    drain2(down);
    drain2(up);
    given = 0
}

active proctype client()
{
end:
    do
    :: atomic { !linked && !knows && !gone -> linked = true; from_client ! REQUEST }
    :: atomic { !dead && to_client ? [ANSWER] ->
           to_client ? ANSWER;
           assert(!knows); /* twice */
           has = true;
           from_client ! ACK }
    :: atomic { !dead && to_client ? [CONFIRMED] -> to_client ? CONFIRMED; knows = true }
    :: atomic { !dead && to_client ? [GONE] -> to_client ? GONE; assert(has); gone = true }
    :: atomic { !dead && to_client ? [FAILED] -> to_client ? FAILED; from_client ! REQUEST }
    :: atomic { !dead && to_client ? [ENDED] -> to_client ? ENDED; drain(from_client); linked = false; ending = false }
    od
}

active proctype process()
{
    byte n;
end:
    do
    :: atomic { stream && nfull(down) && !ending && from_client ? [REQUEST] ->
           from_client ? REQUEST;
           last++;
           open = last;
           acknowledged = false;
           down ! REQUEST, open }
    :: atomic { !stream && !broken && !ending && from_client ? [REQUEST] -> from_client ? REQUEST; to_client ! FAILED }
    :: atomic { nfull(down) && !ending && from_client ? [ACK] ->
           from_client ? ACK;
           if
           :: stream && open != 0 -> acknowledged = true; down ! ACK, open
           :: else
           fi;
#ifdef CONFIRMS_BY_ITSELF /* wrong: the model has to see it */
           to_client ! CONFIRMED
#endif
           }
    :: atomic { nfull(down) && from_client ? [CLOSED] ->
           from_client ? CLOSED;
           drain(to_client);
           linked = false;
           dead = false;
           if
#ifdef TAKES_WHAT_IS_SENT_FOR_READ /* wrong as well */
           :: stream && open != 0 && !acknowledged -> down ! ACK, open
#elif defined(FORGETS_TO_GIVE_BACK) /* and so is this */
#else
           :: stream && open != 0 && !acknowledged -> down ! CANCEL, open
#endif
           :: else
           fi;
           open = 0 }
    :: atomic { up ? [ANSWER, n] -> up ? ANSWER, n; if :: n == open -> to_client ! ANSWER :: else fi }
    :: atomic { up ? [GONE, n] -> up ? GONE, n; if :: n == open -> to_client ! GONE; open = 0 :: else fi }
    :: atomic { up ? [FAILED, n] -> up ? FAILED, n; if :: n == open -> to_client ! FAILED; open = 0 :: else fi }
    :: atomic { up ? [CONFIRMED, n] ->
           up ? CONFIRMED, n;
#ifndef CONFIRMS_BY_ITSELF
           if :: n == open -> to_client ! CONFIRMED :: else fi;
#endif
           if :: n == open -> open = 0 :: else fi }
    :: atomic { broken -> broken = false; open = 0; if :: linked && !dead && !ending -> ending = true; to_client ! ENDED :: else fi }
    od
}

/* The stream is made again. */
active proctype maker()
{
end:
    do
    :: atomic { !stream && !broken -> stream = true }
    od
}

active proctype target()
{
    byte n;
end:
    do
    :: atomic { nfull(up) && down ? [REQUEST, n] ->
           down ? REQUEST, n;
           assert(given == 0); /* two at once */
           if
           :: forgotten -> up ! GONE, n
           :: !forgotten -> given = n; up ! ANSWER, n
           :: breaks < BREAKS -> breaks++; up ! FAILED, n /* the server that was to take it was killed */
           fi }
    :: atomic { nfull(up) && down ? [ACK, n] ->
           down ? ACK, n;
           if
           :: given == n -> assert(has); /* lost */ forgotten = true; given = 0
           :: else
           fi;
           up ! CONFIRMED, n }
    :: atomic { down ? [CANCEL, n] -> down ? CANCEL, n; if :: given == n -> given = 0 :: else fi }
    od
}

active proctype killer()
{
    do
    :: atomic { stream && breaks < BREAKS -> breaks++; stream = false; broken = true; break_stream() }
    :: atomic { linked && !dead && breaks < BREAKS && nfull(from_client) ->
           breaks++;
           drain(to_client);
           if
           :: ending -> ending = false; linked = false; drain(from_client)
           :: else -> dead = true; from_client ! CLOSED
           fi }
    :: atomic { breaks < BREAKS -> /* the process: both sides see it, and another one is made */
           breaks++;
           break_stream();
           drain(from_client);
           drain(to_client);
           linked = false;
           dead = false;
           ending = false;
           open = 0;
           broken = false;
           stream = true }
    :: atomic { breaks < BREAKS -> breaks++ } /* or not */
    :: breaks >= BREAKS -> break
    od
}

ltl arrives { <> (has && forgotten) }
