#include "version.h"

#include <stdio.h>
#include <string.h>

#include "sha256.h"

#ifndef TOOLBOX_VERSION
#error                                                                                                       \
    "the Makefile passes TOOLBOX_VERSION, TOOLBOX_SOURCE_ID, TOOLBOX_BUILD_ID and TOOLBOX_PUBLIC_KEY to this file alone"
#endif

const char toolbox_version[] = TOOLBOX_VERSION;
const char toolbox_source_id[] = TOOLBOX_SOURCE_ID;
const char toolbox_build_id[] = TOOLBOX_BUILD_ID;
const char toolbox_public_key[] = TOOLBOX_PUBLIC_KEY;

void version_build_id(const char *arch, char id[BUILD_ID_SIZE])
{
    char text[64], hex[SHA256_HEX_SIZE];
    int n = snprintf(text, sizeof text, "%s %s", toolbox_source_id, arch);
    sha256_hex(text, n < (int)sizeof text ? (size_t)n : sizeof text - 1, hex);
    memcpy(id, hex, BUILD_ID_SIZE - 1);
    id[BUILD_ID_SIZE - 1] = '\0';
}
