/* The stateless entry: one JSON-RPC request in, one line of JSON out. */
#ifndef APPLETS_EXEC_EXEC_H
#define APPLETS_EXEC_EXEC_H

#include "applet.h"

extern const struct applet exec_applet;

#endif
