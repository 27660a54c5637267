/* `toolbox cp` and `toolbox sync`: files and trees between here and targets, and between targets. */
#ifndef CP_H
#define CP_H

#include "applet.h"

extern const struct applet cp_applet, sync_applet;

#endif
