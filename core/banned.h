/* Force-included into every file of ours: turns calls that this project never makes into errors.
 * Unbounded or locale-dependent string functions, scanf (five kilobytes of libc), the shell behind our back,
 * and everything that pulls the name service switch into a static binary (core/user.h reads the files
 * itself). */
#ifndef CORE_BANNED_H
#define CORE_BANNED_H

#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok system popen
#pragma GCC poison getpwnam getpwuid getpwnam_r getpwuid_r getgrnam getgrgid getgrouplist initgroups
#pragma GCC poison scanf fscanf sscanf vscanf vfscanf vsscanf
#pragma GCC poison gethostbyname atoi atol atoll tmpnam tempnam mktemp

/* Here it is safe: musl's resolver reads /etc/hosts and asks the name servers itself. core/net.c alone. */
#ifndef MAY_RESOLVE
#pragma GCC poison getaddrinfo
#endif

#endif
