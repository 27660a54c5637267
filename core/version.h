/* Which build this is. The version stands in the Makefile; the ids are derived from the sources.
 *
 * All that is built from the same sources with the same settings has the same source id, whatever it is built
 * for. The build id is this one binary's: the start of SHA-256 of "SOURCE_ID ARCHITECTURE". */
#ifndef CORE_VERSION_H
#define CORE_VERSION_H

#define BUILD_ID_SIZE 17

extern const char toolbox_version[];   /* MAJOR.MINOR.PATCH */
extern const char toolbox_source_id[]; /* 16 lower-case hex digits, as the build id */
extern const char toolbox_build_id[];

/* The public key of whoever signs the releases (SubjectPublicKeyInfo, DER, base64); "" where none was given.
 */
extern const char toolbox_public_key[];

/* The build id that these sources have for an architecture (as os_arch() names it). */
void version_build_id(const char *arch, char id[BUILD_ID_SIZE]);

#endif
