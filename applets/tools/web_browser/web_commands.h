/* What commands of the browser have in common: whose session it is, and how a page is shown. */
#ifndef APPLETS_WEB_BROWSER_WEB_COMMANDS_H
#define APPLETS_WEB_BROWSER_WEB_COMMANDS_H

#include <stdbool.h>

#include "command.h"
#include "json.h"

/* Appends the member's text; false where there is none. */
bool web_member(struct span object, const char *key, struct buf *text);

/* Opens a session by the options, and appends its name. */
int web_open_session(const struct command_line *c, struct buf *name, struct err *err);
/* Begins the params with the session's name: that of --session, or the newest. EXIT_OK, or said. */
int web_begin(const struct command_line *c, bool may_open, struct buf *params);
/* EXIT_OK, or EXIT_USAGE, said, where the word is no whole number. */
int web_put_number(const struct command_line *c, struct buf *params, const char *key, const char *word);

/* Likewise an option of two numbers with a sign between; none is given: nothing. */
int web_put_pair(const struct command_line *c, const char *option, char between, const char *const keys[2],
                 struct buf *params);

/* The notes of an answer, on stderr; and an answer that is a page. EXIT_... */
void web_print_notes(const struct command_line *c, struct span page);
int web_print_page(const struct command_line *c, struct buf *page);

#endif
