/* Which build this is. The version stands in the Makefile; the build id is derived from the sources. */
#ifndef CORE_VERSION_H
#define CORE_VERSION_H

extern const char toolbox_version[];  /* MAJOR.MINOR.PATCH */
extern const char toolbox_build_id[]; /* 16 lower-case hex digits */

#endif
