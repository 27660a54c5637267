/* A desktop: pictures of its screen, its pointer and its keyboard. */
#ifndef APPLETS_COMPUTER_COMPUTER_H
#define APPLETS_COMPUTER_COMPUTER_H

#include "applet.h"
#include "tool.h"

extern const struct tool computer_tool;
extern const struct applet computer_applet;

#endif
