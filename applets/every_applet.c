/* The list of all applets, which those calls do without that name one. */
#include "applet.h"

#define PACKED_APPLET APPLET
#define APPLET(id) extern const struct applet id##_applet;
#include "applets.def"
#undef APPLET

const struct applet *const every_applet[] = {
#define APPLET(id) &id##_applet,
#include "applets.def"
};
