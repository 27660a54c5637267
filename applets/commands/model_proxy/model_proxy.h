#ifndef APPLETS_MODEL_PROXY_MODEL_PROXY_H
#define APPLETS_MODEL_PROXY_MODEL_PROXY_H

#include "applet.h"

extern const struct applet model_proxy_applet;

#endif
