/* file: files as bytes and trees, for hosts; answered in the process that is asked, as the caller or as
 * another user. */
#ifndef FILE_H
#define FILE_H

#include "applet.h"
#include "tool.h"

extern const struct rpc_method file_methods[];
extern const struct tool file_tool;
extern const struct applet file_applet;

#endif
