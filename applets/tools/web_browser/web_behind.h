/* Commands about the browser rather than a page; each returns EXIT_... */
#ifndef APPLETS_WEB_BROWSER_WEB_BEHIND_H
#define APPLETS_WEB_BROWSER_WEB_BEHIND_H

#include "command.h"

int web_do_save(const struct command_line *c); /* shot, pdf */
int web_do_upload(const struct command_line *c);
int web_do_downloads(const struct command_line *c);
int web_do_dialog(const struct command_line *c);
int web_do_console(const struct command_line *c);
int web_do_network(const struct command_line *c);
int web_do_emulate(const struct command_line *c);
int web_do_state(const struct command_line *c);
int web_do_devtools(const struct command_line *c);

#endif
