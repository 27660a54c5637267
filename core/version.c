#include "version.h"

#ifndef TOOLBOX_VERSION
#error "the Makefile passes TOOLBOX_VERSION and TOOLBOX_BUILD_ID to this file alone"
#endif

const char toolbox_version[] = TOOLBOX_VERSION;
const char toolbox_build_id[] = TOOLBOX_BUILD_ID;
