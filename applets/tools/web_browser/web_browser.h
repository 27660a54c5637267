/* A browser that is driven: pages as text, clicks, typing, pictures. */
#ifndef APPLETS_WEB_BROWSER_WEB_BROWSER_H
#define APPLETS_WEB_BROWSER_WEB_BROWSER_H

#include "applet.h"
#include "tool.h"

extern const struct tool web_browser_tool;
extern const struct applet web_browser_applet;

#endif
