/* Shell sessions on a terminal: the tool that agents use most. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_H
#define APPLETS_BASH_SESSION_BASH_SESSION_H

#include "applet.h"
#include "tool.h"

extern const struct tool bash_session_tool;
extern const struct applet bash_session_applet;

#endif
