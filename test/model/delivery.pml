/* One answer and its acknowledgement, over ways to the target that may break at any moment: streams and single calls, one
 * after the other, with a server between that may be killed (docs/connection.md, "When an answer has been delivered").
 *
 * The keeper has the answer until it hears that it has arrived. A way carries it to the caller and the acknowledgement
 * back, and when it breaks, both that are on it are lost; the keeper sees that it has broken, and holds the answer
 * again. Over a stream the acknowledgement is a message, rpc.ack, which may be asked to be confirmed; of a single call
 * it is the last byte of the answer, which the caller takes when it has the rest, and nothing confirms it.
 *
 * What is claimed: the keeper forgets nothing that no caller has (lost); it gives nothing that it has forgotten, so
 * that a caller who knows that his acknowledgement was heard gets it never again (twice); and when ways no longer
 * break, the answer arrives and is forgotten (claim `arrives`). */

#ifndef BREAKS
#define BREAKS 4 /* times that a way breaks, of whichever kind, or the server is killed */
#endif

mtype = { ANSWER, ACK, CONFIRMED };
mtype = { STREAM, CALL };

chan down = [2] of { mtype }; /* to the caller */
chan up = [2] of { mtype };   /* to the keeper */

mtype kind;           /* of the way that there is */
bool way;             /* there is one */
bool given;           /* the keeper has given the answer to it */
bool forgotten;       /* it has heard that it has arrived */
bool has;             /* a caller has it */
bool knows;           /* and knows that that was heard */
byte breaks;

/* What breaks: all that is under way is lost, in both directions, and both sides see it. */
inline break_way()
{
    do
    :: nempty(down) -> down ? _
    :: nempty(up) -> up ? _
    :: empty(down) && empty(up) -> break
    od;
    way = false;
    given = false
}

active proctype caller()
{
end:
    do
    /* A way is made: a stream, or a call by itself. */
    :: atomic { !way -> way = true; if :: kind = STREAM :: kind = CALL fi }
    :: atomic { way && nempty(down) && down ? [ANSWER] ->
           down ? ANSWER;
           assert(!knows); /* twice */
           has = true;
           up ! ACK }
    :: atomic { way && nempty(down) && down ? [CONFIRMED] -> down ? CONFIRMED; knows = true }
    od
}

active proctype keeper()
{
end:
    do
#ifdef FORGETS_WHAT_IS_SENT /* wrong: the model has to see it */
    :: atomic { way && !given && !forgotten -> given = true; assert(!forgotten); forgotten = true; down ! ANSWER }
#elif defined(FORGETS_THAT_IT_FORGOT) /* wrong as well */
    :: atomic { way && !given -> given = true; assert(!forgotten); down ! ANSWER }
#else
    :: atomic { way && !given && !forgotten -> given = true; assert(!forgotten); down ! ANSWER }
#endif
    :: atomic { way && nempty(up) ->
           up ? ACK;
           assert(has); /* lost */
           forgotten = true;
           if
           :: kind == STREAM -> down ! CONFIRMED
           :: kind == CALL -> way = false; given = false /* it ends by itself */
           fi }
    od
}

/* The stream, the runtime's command, the caller or the server is killed, at any moment. The server holds nothing, so
 * that its end is that of a way which went through it. */
active proctype killer()
{
    do
    :: atomic { way && breaks < BREAKS -> breaks++; break_way() }
    :: breaks < BREAKS -> breaks++ /* or not */
    :: breaks == BREAKS -> break
    od
}

ltl arrives { <> (has && forgotten) }
