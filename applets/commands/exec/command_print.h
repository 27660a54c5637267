/* What the commands of all applets ask and print alike. */
#ifndef APPLETS_EXEC_COMMAND_PRINT_H
#define APPLETS_EXEC_COMMAND_PRINT_H

#include "command.h"
#include "err.h"
#include "json.h"
#include "tool.h"

/* Prints a text, or with a newline where it lacks one. */
int command_print(const struct command_line *c, struct span text);
int command_print_line(const struct command_line *c, struct span text);

/* Puts the command line's own words into what a method says. */
void command_reword(const struct command_line *c, struct buf *text);

/* Says so why a method has failed. EXIT_FAILED. */
int command_failed(const struct command_line *c, const struct err *err);

/* Ends the object that `params` has begun, and calls the method with it, until our caller has gone. EXIT_OK;
 * or EXIT_FAILED, said. */
int command_call(const struct command_line *c, const char *method, struct buf *params, struct buf *result);

/* The options of a command that lists, for its table; and their names. */
#define COMMAND_LIST_OPTIONS                                                                                 \
    {"json", NULL, "the result as JSON", 0}, {"quiet", NULL, "only the first column, and no heading", 'q'},  \
    {                                                                                                        \
        "format", "FIELDS", "these members of the JSON, with commas between, for the columns", 0             \
    }
#define COMMAND_LIST_TAKES "json quiet format"

/* Lists what the applet's tool has, or a list of objects, as these options say. */
int command_print_list(const struct command_line *c);
int command_print_table(const struct command_line *c, struct span list, const char *const *columns);

#endif
