/* What the words of a command line stand for: params, texts, times. One reading for all applets. */
#ifndef APPLETS_WORDS_H
#define APPLETS_WORDS_H

#include <stdbool.h>

#include "buf.h"

/* Params (or a tool's arguments) from words, in the manner of HTTPie:
 *
 *   key=value     a string                      key=@FILE    a string: what is in the file, to the byte
 *   key:=JSON     anything else                 key:=@FILE   JSON from the file
 *   {…}           all of them, as JSON          @FILE, -     the same from a file, from stdin
 *
 * FILE may be "-": stdin, which can be read once. No word at all is {}. Puts one line of checked JSON, an
 * object unless a whole JSON was something else. EXIT_OK, or what was said: EXIT_USAGE, EXIT_FAILED. */
int words_params(const char *applet, char *const *words, int n, struct buf *params);

#define WORDS_PARAMS_HELP                                                                                    \
    "A PARAM is key=value (a string), key:=JSON (a number, a list, …), key=@FILE or "                      \
    "key:=@FILE (the same from a file); or one word is all of them: JSON, @FILE, or - for stdin."
/* The same in lines, with why. */
#define WORDS_PARAMS_USAGE                                                                                   \
    "A PARAM is key=value (a string), key:=JSON (a number, a list, …), key=@FILE or\n"                     \
    "key:=@FILE (the same from a file); or one word is all of them: JSON, @FILE, or -\n"                     \
    "for stdin. What is secret is best in a file or stdin: others of the machine can\n"                      \
    "read arguments in the moment in which a program starts.\n"

/* A file whole; "-" is stdin. As above. */
int words_file(const char *applet, const char *path, struct buf *text);

/* A text that a word gives: "-" is stdin, anything else itself. As above. */
int words_text(const char *applet, const char *word, struct buf *text);

/* A time (duration.h) of at least `min` and at most `max` seconds. As above. */
int words_seconds(const char *applet, const char *option, const char *word, double min, double max,
                  double *seconds);

#endif
