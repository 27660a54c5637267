/* The functions behind the table of tools, by file. Each fills w->structured, or returns -1. */
#ifndef APPLETS_MCP_SERVE_MCP_TOOLS_H
#define APPLETS_MCP_SERVE_MCP_TOOLS_H

#include "mcp_tool.h"

/* mcp_shell.c */
int mcp_shell_run(struct work *w, struct err *err);
int mcp_shell_wait(struct work *w, struct err *err);
int mcp_shell_input(struct work *w, struct err *err);
int mcp_shell_read(struct work *w, struct err *err);
int mcp_shell_interrupt(struct work *w, struct err *err);
int mcp_shell_restart(struct work *w, struct err *err);
int mcp_shell_new(struct work *w, struct err *err);
int mcp_shell_close(struct work *w, struct err *err);
int mcp_shell_list(struct work *w, struct err *err);
int mcp_end_session(struct work *w, struct err *err); /* of our own accord: w->session */
/* Members of params for what starts in a directory, as a user, with variables: cwd, user, env. */
void mcp_put_surroundings(struct buf *params, const struct args *a);
/* An array, where it was given. */
void mcp_put_words(struct buf *params, const char *key, const struct texts *words);
/* That what is started begins as if it were started here, and ends with the process that serves, however that
 * ends, unless it is to be kept. */
void mcp_put_start(struct buf *params, const struct work *w);

/* mcp_job.c */
int mcp_job_start(struct work *w, struct err *err);
int mcp_job_wait(struct work *w, struct err *err);
int mcp_job_write(struct work *w, struct err *err);
int mcp_job_kill(struct work *w, struct err *err);
int mcp_job_list(struct work *w, struct err *err);
int mcp_end_job(struct work *w, struct err *err); /* of our own accord: w->args.job */

/* mcp_web.c */
int mcp_web_go(struct work *w, struct err *err);
int mcp_web_click(struct work *w, struct err *err);
int mcp_web_type(struct work *w, struct err *err);
int mcp_web_select(struct work *w, struct err *err);
int mcp_web_press(struct work *w, struct err *err);
int mcp_web_scroll(struct work *w, struct err *err);
int mcp_web_history(struct work *w, struct err *err);
int mcp_web_tabs(struct work *w, struct err *err);
int mcp_web_text(struct work *w, struct err *err);
int mcp_web_wait(struct work *w, struct err *err);
int mcp_web_find(struct work *w, struct err *err);
int mcp_web_screenshot(struct work *w, struct err *err);
int mcp_web_evaluate(struct work *w, struct err *err);
int mcp_web_close(struct work *w, struct err *err);
int mcp_end_browser(struct work *w, struct err *err); /* of our own accord: w->session */

/* mcp_computer.c */
int mcp_computer(struct work *w, struct err *err);
int mcp_end_computer(struct work *w, struct err *err); /* of our own accord: w->session */

/* mcp_write.c */
int mcp_text_editor(struct work *w, struct err *err);
int mcp_write_file(struct work *w, struct err *err);

/* mcp_read.c */
int mcp_read_file(struct work *w, struct err *err);
/* Takes the file as the image of the result, when it is one. 0: it is none, and nothing was taken. */
int mcp_take_image(struct work *w, const char *path, struct err *err);
/* The type of image that the first bytes of a file are of; NULL: none that is known (PNG, JPEG, GIF, WebP).
 */
const char *mcp_image_type(const char *data, size_t n);

/* mcp_find.c */
int mcp_list_files(struct work *w, struct err *err);
int mcp_find_files(struct work *w, struct err *err);
int mcp_search_files(struct work *w, struct err *err);

/* mcp_probe.c */
int mcp_probe(struct work *w, struct err *err);

#endif
